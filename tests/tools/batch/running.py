"""A job in the process of the test, and its items."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from irexec.tools.batch.parts import BatchJob
from irexec.tools.batch.run import BatchOptions, BatchReport, BatchWatch, run_job
from tests.tools.batch.engines import InThisProcess

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
