"""Models, engines and items of the jobs of the tests."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from irexec import Builder, save_model
from irexec.tools.batch.parts import DONE, NOTHING_DONE, BatchJob, PartResult, PartRunner, PartTask
from irexec.tools.batch.run import BatchOptions, BatchReport, BatchWatch, run_job


def twice_plus_one(folder: Path, shape: list[Any], name: str = "model") -> str:
    """An IR that gives ``y = 2 x + 1``."""
    b = Builder()
    x = b.parameter("f32", shape, "x")
    doubled = b.emit("Multiply", x, b.constant(np.float32(2)))
    b.result(b.emit("Add", doubled, b.constant(np.float32(1)), names=["y"]))
    return saved(b, folder, name)


def positions_of_values(folder: Path) -> str:
    """An IR whose result has as many columns as the input has values other than 0: no axis of it counts items."""
    b = Builder()
    x = b.parameter("f32", [-1, 4], "x")
    b.result(b.emit("NonZero", x, output_type="i64", names=["y"]))
    return saved(b, folder, "nonzero")


def reshaped(folder: Path) -> str:
    """An IR that takes 2 items, and no other number."""
    b = Builder()
    x = b.parameter("f32", [2, 3], "x")
    b.result(b.emit("Reshape", x, b.constant(np.array([2, 3, 1])), special_zero=False, names=["y"]))
    return saved(b, folder, "reshaped")


def rank_one(folder: Path) -> str:
    """An IR of vectors as a whole: ten values, of which the sum is the result."""
    b = Builder()
    x = b.parameter("f32", [10], "x")
    b.result(b.emit("ReduceSum", x, b.constant(np.array([0])), keep_dims=True, names=["y"]))
    return saved(b, folder, "sum")


def counter(folder: Path) -> str:
    """An IR with a variable, to which every run adds its input."""
    b = Builder()
    x = b.parameter("f32", [1, 2], "x")
    before = b.emit(
        "ReadValue",
        b.constant(np.zeros((1, 2), np.float32)),
        variable_id="sum",
        variable_type="f32",
        variable_shape=(1, 2),
    )
    after = b.emit("Add", before, x)
    b.result(b.emit("Assign", after, variable_id="sum", names=["y"]))
    return saved(b, folder, "counter")


def saved(b: Builder, folder: Path, name: str) -> str:
    """Save what was built, and return the path."""
    path = folder / f"{name}.xml"
    save_model(b.model(), path)
    return str(path)


# An engine that starts no processes: most tests are about jobs, and a process takes longer than all the items.


class InThisProcess:
    """Does the parts of a job one after the other. All that other processes would get is pickled."""

    def __init__(self, job: BatchJob, count: int | None = None) -> None:
        self.count = 1
        self._job: BatchJob = pickle.loads(pickle.dumps(job))

    def run(self, tasks: Iterator[PartTask], advance: Callable[[int], None]) -> Generator[PartResult, None, None]:
        progress = list(NOTHING_DONE)
        runner = PartRunner(self._job, progress)
        for task in tasks:
            progress[:] = NOTHING_DONE
            result: PartResult = pickle.loads(pickle.dumps(runner(pickle.loads(pickle.dumps(task)))))
            advance(progress[DONE])
            yield result


# A job in the process of the test, and its items.


ITEMS = np.arange(60, dtype=np.float32).reshape(20, 3)
EXPECTED = 2 * ITEMS + 1


class Stopped(Exception):
    """Ends a job where a test wants it to."""


def run(model: str, sources: list[str], output: Path, watch: BatchWatch | None = None, **options: Any) -> BatchReport:
    of_job = {
        name: options.pop(name)
        for name in ("batch_size", "topk", "labels", "image", "column", "predictor")
        if name in options
    }
    form = options.pop("form", output.suffix[1:] or "npz")
    engine = options.pop("engine", InThisProcess)
    job = BatchJob(model=model, form=form, **of_job)
    return run_job(sources, job, BatchOptions(output=str(output), **options), watch, engine)
