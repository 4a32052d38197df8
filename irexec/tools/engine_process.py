"""Engines in processes of their own, which run when they are asked to, in turns."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from types import TracebackType
from typing import Any

from irexec import errors
from irexec.errors import IrexecError, ModelError
from irexec.tools.engines import Job

# The process finds the same modules as this one, wherever it was started.
_PROGRAM = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from irexec.tools.engines import main; main(sys.argv[2])"
TURN = 5
"""Runs before the next engine's turn: what else the machine does changes more slowly, and caches are warm after the first."""


@dataclass
class Measured:
    """What one process measured.

    Attributes:
        engine, version: what ran.
        load_ms: milliseconds of reading and compiling the model.
        first_ms: of the first run.
        times_ms: of the other runs.
        peak_bytes: the peak memory of the process; 0 until it ended.
    """

    engine: str
    version: str = ""
    load_ms: float = 0
    first_ms: float = 0
    times_ms: list[float] = field(default_factory=list)
    peak_bytes: int = 0


class EngineProcess:
    """A process with one engine and one model loaded.

    Args:
        job: what it loads.
        prepare: called in the new process before anything else, where the system can do that.

    Raises:
        IrexecError: irexec refuses the model.
        ModelError: another engine does, or the process ended.
    """

    def __init__(self, job: Job, prepare: Callable[[], None] | None = None) -> None:
        self.job = job
        command = [sys.executable, "-c", _PROGRAM, json.dumps(sys.path), json.dumps(asdict(job))]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, preexec_fn=prepare
        )
        try:
            self.measured = Measured(job.engine, **self._answer())
        except BaseException:
            self.stop()
            raise

    def _answer(self) -> Any:
        line = "" if self._process.stdout is None else self._process.stdout.readline()
        if not line:
            raise ModelError(f"the process of {self.job.engine} ended with exit code {self._process.wait()}")
        document = json.loads(line)
        if isinstance(document, dict) and "error" in document:
            raise self._error(document["error"], document["message"])
        return document

    def _error(self, kind: str, message: str) -> IrexecError:
        found = getattr(errors, kind, None)
        if isinstance(found, type) and issubclass(found, IrexecError):
            return found(message)
        first = next((line.strip() for line in message.splitlines() if line.strip()), kind)
        return ModelError(f"{self.job.engine} cannot run {self.job.model}: {first}")

    def run(self, times: int) -> None:
        """Run so many times, after one run that is not counted."""
        self._ask(f"{times}\n")
        self.measured.times_ms += self._answer()

    def _ask(self, text: str) -> None:
        if self._process.stdin is None:
            raise AssertionError("the process was started with a pipe")
        try:
            self._process.stdin.write(text)
            self._process.stdin.flush()
        except BrokenPipeError:
            # Its last answer says why it ended.
            return

    def finish(self) -> Measured:
        """End the process; what it measured, with its peak memory."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self.measured.peak_bytes = self._answer()["peak_bytes"]
        self._process.wait()
        return self.measured

    def stop(self) -> None:
        """End the process at once."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                _close(pipe)

    def __enter__(self) -> EngineProcess:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()


def _close(pipe: Any) -> None:
    try:
        pipe.close()
    except BrokenPipeError:
        # What was still to be written does not matter any more.
        return


def take_turns(processes: Iterable[EngineProcess], runs: int, advance: Callable[[int], None] = lambda runs: None) -> None:
    """Let every process run so many times, a few at a time; ``advance`` is called with the number of runs that are done."""
    processes = list(processes)
    for start in range(0, runs, TURN):
        count = min(TURN, runs - start)
        for process in processes:
            process.run(count)
            advance(count)
