"""Engines in processes of their own, which run when they are asked to, in turns."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field

from irexec.io.line_process import LineProcess
from irexec.messages import silent
from irexec.tools.engines.engine import EngineJob

TURN = 5
"""Runs before the next engine's turn: other load of the machine changes slowly, and caches are warm after one run."""


@dataclass
class ProcessMeasurement:
    """The measurements of one process.

    Attributes:
        engine, version: the engine that ran, and its version.
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
        job: the model to load.
        prepare: called in the new process before anything else, where the system can do that.

    Raises:
        IrexecError: irexec refuses the model.
        EngineError: another engine does, or the process ended.
    """

    def __init__(self, job: EngineJob, prepare: Callable[[], None] | None = None) -> None:
        self.job = job
        self._process = LineProcess(
            "irexec.tools.engines.engine", json.dumps(asdict(job)), name=job.engine, prepare=prepare
        )
        try:
            self.measured = ProcessMeasurement(job.engine, **self._process.answer(job.model))
        except BaseException:
            self.stop()
            raise

    def run(self, times: int) -> None:
        """Run ``times`` times, after one run that is not counted."""
        self._process.ask(str(times))
        self.measured.times_ms += self._process.answer(self.job.model)

    def finish(self) -> ProcessMeasurement:
        """End the process; what it measured, with its peak memory."""
        self._process.close()
        self.measured.peak_bytes = self._process.answer(self.job.model)["peak_bytes"]
        self._process.wait()
        return self.measured

    def stop(self) -> None:
        """End the process at once."""
        self._process.stop()

    def __enter__(self) -> EngineProcess:
        return self

    def __exit__(self, *raised: object) -> None:
        self.stop()


def take_turns(processes: Iterable[EngineProcess], runs: int, advance: Callable[[int], None] = silent) -> None:
    """Let every process run ``runs`` times, a few at a time; ``advance`` is called with the number of finished runs."""
    processes = list(processes)
    for start in range(0, runs, TURN):
        count = min(TURN, runs - start)
        for process in processes:
            process.run(count)
            advance(count)
