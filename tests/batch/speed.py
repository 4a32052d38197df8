"""Throughput of one and two processes, and what an item costs beside a bare loop over the same model."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

import irexec
from tests.batch import data
from tests.batch.command import finish

_CASES = (("tiny", 64, 2, 20_000), ("about 20 ms", 2048, 30, 300))
"""Name, width and number of products, and items."""


def run(folder: Path, rounds: int) -> int:
    """Prints the figures; they are not tests, since they depend on the machine."""
    for name, width, layers, items in _CASES:
        model = data.products(folder, width, layers, f"w{width}")
        source = data.rows(folder / f"w{width}.npy", items, width)
        bare = min(_bare(model, source) for _ in range(rounds))
        times = {jobs: min(_batch(folder, model, source, jobs) for _ in range(rounds)) for jobs in (1, 2)}
        over = (times[1] - bare) / items * 1e3
        print(
            f"{name}: bare loop {bare / items * 1e3:.3f} ms an item; one process {times[1] / items * 1e3:.3f} ms "
            f"({over:+.3f} ms, {times[1] / bare - 1:+.1%}); two processes {times[1] / times[2]:.2f} times as fast"
        )
    return 0


def _bare(model: str, source: Path) -> float:
    items = np.load(source, mmap_mode="r")
    compiled = irexec.compile_model(model, threads=1)
    began = time.perf_counter()
    results = [compiled(items[i : i + 1])[0] for i in range(len(items))]
    np.save(source.with_suffix(".bare.npy"), np.concatenate(results))
    return time.perf_counter() - began


def _batch(folder: Path, model: str, source: Path, jobs: int) -> float:
    """Seconds without those that it takes to begin: of a job less those of one of two items for each process."""
    times = []
    for limit in (["--limit", str(2 * jobs)], []):
        output = folder / "out.npy"
        for path in (output, output.with_name("out.npy.sqlite")):
            path.unlink(missing_ok=True)
        began = time.perf_counter()
        finish([model, str(source), "-o", str(output), "--jobs", str(jobs), "--batch-size", "1", *limit])
        times.append(time.perf_counter() - began)
    return times[1] - times[0]
