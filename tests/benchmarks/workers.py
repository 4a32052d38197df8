"""The engines of the benchmark in processes of their own, on cores of their own."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import TracebackType

import numpy as np

from irexec.errors import IrexecError
from irexec.tools.engines import engine as engine_process
from irexec.tools.engines.engine import EngineProcess
from tests.benchmarks.conditions import available_cores, pin
from tests.benchmarks.engines import job, random_feeds
from tests.benchmarks.table import Result


class Worker:
    """A process with one engine and one model loaded.

    Args:
        engine: of irexec.tools.engines.engine.LOADERS.
        threads: as many cores are given to the process; None leaves both to the engine and the system.
        group: the file of a control group to enter, see conditions.cpu_quota.
        outputs: where the outputs of the first run are written.
    """

    def __init__(
        self, engine: str, model: Path, threads: int | None, group: Path | None = None, outputs: Path | None = None
    ) -> None:
        def enter() -> None:
            if group:
                group.write_text(str(os.getpid()))
            if threads and threads < len(available_cores()):
                pin(0, available_cores()[:threads])

        with tempfile.TemporaryDirectory() as folder:
            inputs = Path(folder) / "inputs.npz"
            np.savez(inputs, **random_feeds(model))
            wanted = replace(job(engine, model, threads, inputs), outputs=None if outputs is None else str(outputs))
            try:
                # The inputs are read before the first run, which is over when this returns.
                self.process = EngineProcess(wanted, enter)
            except IrexecError as error:
                raise SystemExit(f"{engine} on {model.name}: {error}") from None

    def finish(self) -> Result:
        """End the process: milliseconds of the runs, of loading with compiling and of the first run, peak memory in MB."""
        found = self.process.finish()
        return {
            "ms": found.times_ms,
            "load_ms": found.load_ms,
            "first_ms": found.first_ms,
            "peak_mb": found.peak_bytes / (1 << 20),
        }

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.close()


def take_turns(workers: Iterable[Worker], runs: int) -> None:
    """Let every worker run this number of times, a few at a time."""
    engine_process.take_turns([worker.process for worker in workers], runs)
