"""Processes that run jobs: one that hangs or crashes is replaced, and what it ran is a finding."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import tempfile
import time
from collections.abc import Iterator
from multiprocessing import connection
from pathlib import Path

from tests.fuzz.findings import Finding, frames_dumped, innermost
from tests.fuzz.limits import WALL, waited
from tests.fuzz.worker import DUMP, ERRORS, Job, Result, Settings, main

_POLL = 0.5
_PATIENCE = 5


class FuzzerError(Exception):
    """The fuzzer itself is wrong."""


class Worker:
    """One process, and the job that it works on."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._temporary = tempfile.TemporaryDirectory(prefix="fuzz-", ignore_cleanup_errors=True)
        self._folder = Path(self._temporary.name).resolve()
        self.job: Job | None = None
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=main, args=(theirs, str(self._folder), self._settings), daemon=True)
        self._process.start()
        theirs.close()
        self._is_new = True

    def send(self, job: Job) -> None:
        self.job = job
        self._began, self._used = self._clock(), self._processor_time()
        self.connection.send(job)

    def receive(self) -> Result:
        """How the job ended, which must have."""
        job = self.job
        assert job is not None
        try:
            result: Result = self.connection.recv()
        except (EOFError, ConnectionError):
            result = Result((self._crash(),), job.case)
            self._restart()
        self.job, self._is_new = None, False
        if result.failure:
            raise FuzzerError(f"{job.target}, seed {job.seed}, case {job.number}:\n{result.failure}")
        if not result.alive:
            self._restart()
        return result

    def is_late(self) -> bool:
        """Whether the process has not stopped itself when its time was over; a new one imports what it needs first."""
        extra = self._settings.grace * (4 if self._is_new else 1)
        processor = self._processor_time() - self._used > self._settings.seconds + extra
        return processor or self._clock() - self._began > WALL * self._settings.seconds + WALL * extra

    def end_late(self) -> Result:
        """Kill the process; where it was is the finding."""
        job = self.job
        self._ask_where()
        finding = Finding("hang", "did not stop itself", innermost(frames_dumped(self._text(DUMP))))
        self._restart()
        self.job = None
        return Result((finding,), job.case if job else None)

    def _ask_where(self) -> None:
        """Have the process write where it is, if the system has a signal for that."""
        if not hasattr(signal, "SIGRTMIN"):
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process.pid or 0, signal.SIGRTMIN)
        end = time.monotonic() + _PATIENCE
        # It may have to wait for a processor between two lines, of which the last is that of the outermost frame.
        while not self._text(DUMP).rstrip().endswith("in <module>") and time.monotonic() < end:
            time.sleep(_POLL)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.connection.send(None)
        self._process.join(1)
        self._process.kill()
        self._process.join()
        self._temporary.cleanup()

    def _restart(self) -> None:
        self._process.kill()
        self._process.join()
        self.connection.close()
        self._start()

    def _crash(self) -> Finding:
        self._process.join(_PATIENCE)
        code = self._process.exitcode
        what = signal.Signals(-code).name if code is not None and code < 0 else f"exit code {code}"
        text = self._text(ERRORS)[-300:]
        return Finding("crash", what, innermost(frames_dumped(self._text(DUMP))), text)

    def _text(self, name: str) -> str:
        path = self._folder / name
        return path.read_text("utf-8", "replace") if path.exists() else ""

    def _clock(self) -> float:
        """Seconds, without those in which the process waited for a processor."""
        return time.monotonic() - waited(self._process.pid)

    def _processor_time(self) -> float:
        """Seconds of processor time that the process has used; 0 where it has ended, or only the clock can be asked."""
        try:
            fields = Path(f"/proc/{self._process.pid}/stat").read_text("utf-8").rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Pool:
    """Some workers, each with a job at a time."""

    def __init__(self, workers: int, settings: Settings) -> None:
        self.workers = [Worker(settings) for _ in range(workers)]

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *error: object) -> None:
        for worker in self.workers:
            worker.close()

    def results(self, jobs: Iterator[Job]) -> Iterator[tuple[Job, Result]]:
        """Every job and how it ended, in the order in which they end."""
        for worker in self.workers:
            self._next(worker, jobs)
        while busy := [worker for worker in self.workers if worker.job is not None]:
            ready = connection.wait([worker.connection for worker in busy], _POLL)
            for worker in busy:
                job = worker.job
                assert job is not None
                if worker.connection in ready:
                    result = worker.receive()
                elif worker.is_late():
                    result = worker.end_late()
                else:
                    continue
                yield job, result
                self._next(worker, jobs)

    def one(self, job: Job) -> Result:
        """How one job ends."""
        return next(self.results(iter([job])))[1]

    @staticmethod
    def _next(worker: Worker, jobs: Iterator[Job]) -> None:
        job = next(jobs, None)
        if job is not None:
            worker.send(job)
