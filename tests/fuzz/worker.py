"""A process that runs cases under limits, and says how they ended."""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import io
import os
import shutil
import signal
import tempfile
import traceback
import warnings
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from tests.fuzz import targets
from tests.fuzz.audit import Audit
from tests.fuzz.case import Case
from tests.fuzz.findings import NOWHERE, Finding, Observer, TimeUp
from tests.fuzz.limits import limit_memory, limited_time

DUMP, ERRORS, ROOM = "dump.txt", "stderr.txt", "case"


@dataclass(frozen=True)
class Settings:
    """Limits of each case.

    Attributes:
        seconds: of processor time; on the clock it may take tests.fuzz.limits.WALL times as long.
        memory: bytes that the process may take more than it had before the case.
        grace: seconds after which a process is killed that has not stopped itself when its time was over.
        plant: "module:function" to call before the first case, by which tests put faults into the project.
    """

    seconds: float = 10
    memory: int = 1 << 30
    grace: float = 5
    plant: str | None = None


@dataclass(frozen=True)
class Job:
    """A case, by its number or as it is; without ``run`` it is only made."""

    target: str
    seed: int = 0
    number: int = 0
    case: Case | None = None
    run: bool = True


@dataclass(frozen=True)
class Result:
    """How a case ended.

    Attributes:
        findings: what is wrong with it.
        case: the case itself, where there are findings or it was only made.
        failure: the traceback of an exception of the fuzzer itself.
        alive: whether the process continues; it does not after a hang, which may leave locks behind.
    """

    findings: tuple[Finding, ...] = ()
    case: Case | None = None
    failure: str = ""
    alive: bool = True


def main(connection: Connection, folder: str, settings: Settings) -> None:
    """Run the jobs that arrive until None does, or nobody is at the other end."""
    errors = os.open(f"{folder}/{ERRORS}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(errors, 1)
    os.dup2(errors, 2)
    # It stays open for as long as the process lives.
    dump = open(f"{folder}/{DUMP}", "w", encoding="utf-8")  # noqa: SIM115
    faulthandler.enable(dump)
    # Not SIGUSR1, of which irexec sets the handler while it writes files.
    if hasattr(signal, "SIGRTMIN"):
        faulthandler.register(signal.SIGRTMIN, dump)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if settings.plant is not None:
        module, _, function = settings.plant.partition(":")
        getattr(importlib.import_module(module), function)()
    # Where temporary files of a case go; where they may go is not looked for, which would write elsewhere.
    tempfile.tempdir = f"{folder}/{ROOM}"
    audit = Audit()
    with contextlib.suppress(EOFError, BrokenPipeError):
        alive = True
        while alive and (job := connection.recv()) is not None:
            result = _done(job, Path(folder), audit, settings)
            alive = result.alive
            connection.send(result)


def _done(job: Job, folder: Path, audit: Audit, settings: Settings) -> Result:
    try:
        case = job.case if job.case is not None else targets.generate(job.target, job.seed, job.number)
        if not job.run:
            return Result(case=case)
        findings = execute(case, folder, audit, settings)
    except Exception:
        return Result(failure=traceback.format_exc())
    return Result(
        tuple(findings), case if findings else None, alive=all(finding.kind != "hang" for finding in findings)
    )


def execute(case: Case, folder: Path, audit: Audit, settings: Settings) -> list[Finding]:
    """Run one case in this process; returns what is wrong with how it ended."""
    target, observer = targets.load(case.target), Observer()
    room = _fill(folder / ROOM, case)
    out, err = _stream(), _stream()
    with (
        contextlib.chdir(room),
        warnings.catch_warnings(),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        observer.watch_warnings()
        limit_memory(settings.memory)
        audit.begin(room, lambda event, argument, where: observer.found("audit", event, where, argument))
        try:
            with limited_time(settings.seconds):
                target.run(case, observer)
        except TimeUp as error:
            if not any(finding.kind == "hang" for finding in observer.findings):
                observer.found("hang", str(error), NOWHERE, "")
        finally:
            audit.end()
    for name, stream in (("stdout", out), ("stderr", err)):
        stream.flush()
        if text := stream.buffer.getvalue():
            observer.found("output", f"text on {name}", NOWHERE, repr(text))
    return observer.findings


def _fill(room: Path, case: Case) -> Path:
    """The folder of the case, with its files and nothing else."""
    if room.exists():
        shutil.rmtree(room)
    room.mkdir()
    for name, data in case.files.items():
        path = room / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return room


def _stream() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="surrogateescape", newline="")
