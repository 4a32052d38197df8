"""Engines in processes of their own that run when they are told to, in turns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.benchmarks.conditions import available_cores, pin
from tests.benchmarks.table import Result

# Runs before the next engine's turn: what else the machine does changes more slowly, and caches are warm after the first.
TURN = 5


class Worker:
    """A process with one engine and one model loaded.

    Args:
        engine: of tests.benchmarks.engines.LOADERS.
        threads: as many cores are given to the process; None leaves both to the engine and the system.
        group: the file of a control group to enter, see conditions.cpu_quota.
        outputs: where the outputs of the first run are written.

    Attributes:
        result: milliseconds of the runs, of loading with compiling and of the first run; after the end also peak memory in MB.
    """

    def __init__(self, engine: str, model: Path, threads: int | None, group: Path | None = None, outputs: Path | None = None) -> None:
        command = [sys.executable, "-m", "tests.benchmarks.engines", engine, str(model)]
        command += ["--threads", str(threads)] if threads else []
        command += ["--outputs", str(outputs)] if outputs else []

        def enter() -> None:
            if group:
                group.write_text(str(os.getpid()))
            if threads and threads < len(available_cores()):
                pin(0, available_cores()[:threads])

        self._name = f"{engine} on {model.name}"
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=enter)
        self.result: Result = {"ms": [], **self._answer()}

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{self._name}: the process ended with exit code {self._process.wait()}")
        return json.loads(line)

    def run(self, times: int) -> None:
        """Run so many times, after one run that is not counted."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{times}\n")
        self._process.stdin.flush()
        self.result["ms"] += self._answer()

    def finish(self) -> Result:
        """End the process; its result with the peak memory."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self.result |= self._answer()
        self._process.wait()
        return self.result

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._process.kill()
        self._process.wait()


def take_turns(workers: Iterable[Worker], runs: int) -> None:
    """Let every worker run so many times, a few at a time."""
    workers = list(workers)
    for start in range(0, runs, TURN):
        for worker in workers:
            worker.run(min(TURN, runs - start))
