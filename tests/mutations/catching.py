"""The commands that must catch a mutation, run in a workspace: selections of tests, and random graphs."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.mutations.mutation import Mutation

SEED = 1
"""Of the random graphs."""
TEST_LIMIT, RUN_LIMIT = 90, 900
"""Seconds for a test, and for a run of pytest or of the fuzzer."""

_CRASHES = {getattr(signal, name, None) for name in ("SIGSEGV", "SIGBUS", "SIGABRT", "SIGFPE", "SIGILL")}
"""Signals that end a process whose memory is overwritten."""

_FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)
_FOUND = re.compile(r"^case \d+: .*", re.MULTILINE)

Verdict = Literal["caught", "missed", "broken"]


@dataclass(frozen=True)
class Catcher:
    """Something that should fail.

    Attributes:
        tests: the arguments of pytest; "" for random graphs.
        graphs: how many.
    """

    tests: str
    graphs: int = 0

    def __str__(self) -> str:
        return self.tests or f"{self.graphs} random graphs"

    @property
    def command(self) -> list[str]:
        """What is run."""
        if self.tests:
            quick = ["-q", "-x", "--tb=line", "-rfE", "-p", "no:cacheprovider", "--hypothesis-profile=unshrunk"]
            return [sys.executable, "-m", "pytest", *quick, "--timeout", str(TEST_LIMIT), *shlex.split(self.tests)]
        cases = ["--target", "graphs", "--seed", str(SEED), "--cases", str(self.graphs), "--minimise", "0"]
        return [sys.executable, "-m", "tests.fuzz", *cases]


@dataclass(frozen=True)
class Outcome:
    """How a run of a catcher ended.

    Attributes:
        verdict: "broken" where it could not be run, or ended in another way than a test that fails.
        text: the test or the finding that shows the fault; of a broken run the end of what it wrote.
    """

    catcher: Catcher
    verdict: Verdict
    text: str = ""


def catchers_of(mutation: Mutation) -> list[Catcher]:
    """All that should catch a mutation."""
    graphs = [Catcher("", mutation.graphs)] if mutation.graphs else []
    return [*map(Catcher, mutation.tests), *graphs]


def run(catcher: Catcher, root: Path) -> Outcome:
    """Run a catcher on the source at ``root``; the run ends with the first failure."""
    process = subprocess.Popen(
        catcher.command, cwd=root, env=os.environ | {"PYTHONPATH": str(root)}, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    late = threading.Event()
    timer = threading.Timer(RUN_LIMIT, lambda: (late.set(), _kill(process)))
    timer.start()
    try:
        output = _output(process, catcher)
    finally:
        timer.cancel()
        _kill(process)
    if late.is_set():
        return Outcome(catcher, "caught", f"it does not end within {RUN_LIMIT} s")
    return _judged(catcher, process.returncode, output)


def _output(process: subprocess.Popen[str], catcher: Catcher) -> str:
    """What the process writes, until it ends; of the fuzzer until its first finding."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if not catcher.tests and _FOUND.match(line):
            return "".join(lines)
    process.wait()
    return "".join(lines)


def _judged(catcher: Catcher, code: int, output: str) -> Outcome:
    found = (_FAILED if catcher.tests else _FOUND).search(output)
    if found is not None and (not catcher.tests or code == 1):
        return Outcome(catcher, "caught", found[1] if catcher.tests else found[0])
    if -code in _CRASHES:
        return Outcome(catcher, "caught", f"the process is ended by signal {-code}")
    if code == 0:
        return Outcome(catcher, "missed")
    return Outcome(catcher, "broken", output[-2000:])


def _kill(process: subprocess.Popen[str]) -> None:
    """Kill the process and those that it started, unless it has ended."""
    if process.poll() is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()
