"""What products in C cost: by the width of a panel, and by the number of blocks that two threads share.

    python -m tests.benchmarks.native_products

The first table justifies _TIME in irexec/backend/native/panels.py, the second one the constants of
irexec/backend/native/panels.py. Minima of runs in turns, for a machine that does other things meanwhile.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from unittest import mock

import numpy as np

from irexec.backend.calls import Binding, Job, loaded
from irexec.backend.native import panels
from irexec.backend.native.convolution import Product, zeros
from irexec.backend.native.panels import rows_as_windows, table_bytes
from irexec.backend.pool import Pool

# Of a run, which is long beside waking a thread.
_MICROSECONDS = 2000
_ROUNDS = 60


def job(rows: int, depth: int, panel: int, count: int, calls: int = 1, blocks: int = 1) -> Job:
    """Products (rows, depth) by ``count`` panels, ``calls`` of them one after the other, each of some blocks of rows."""
    columns = count * panel * loaded().vector
    weights = np.ones((1, depth, columns), np.float32)
    with mock.patch.object(panels, "panel_of", lambda _: panel):
        packed = panels.pack(weights)
    x, out = np.ones((rows, depth), np.float32), np.empty((rows, columns), np.float32)
    each = table_bytes(rows + 16, 1)
    scratch = np.empty(2 * each, np.uint8)
    binding = Binding((scratch.ctypes.data, each), kept=[scratch])
    window = rows_as_windows(binding.address(x), 0, depth, rows, binding.address(zeros(depth)))
    parameters = Product(
        window, binding.address(packed), 0, None, None, binding.address(out), 0, columns, 1, None, depth, 1, columns, panel,
        rows, blocks, 1, -math.inf, math.inf,
    )  # fmt: skip
    for _ in range(calls):
        binding.call("irx_product", parameters, blocks)
    return Job([binding])


def fastest(jobs: Sequence[tuple[Job, int]]) -> list[float]:
    """The minimum of each job on a number of threads, in microseconds, in turns."""
    times: list[list[float]] = [[] for _ in jobs]
    for _ in range(_ROUNDS):
        for (one, threads), found in zip(jobs, times, strict=True):
            start = time.perf_counter()
            one.run(Pool(threads))
            found.append((time.perf_counter() - start) * 1e6)
    return [min(found) for found in times]


def compare_panels() -> None:
    """Time of a panel by its column, relative to the fastest."""
    print("depth   time of a column in panels of 1, 2, 3 vectors")
    for depth in (16, 64, 192, 576, 2304):
        rows = max(48, 48 * (20_000 // (48 * depth)))
        times = fastest([(job(rows, depth, panel, 6 // panel), 1) for panel in (1, 2, 3)])
        print(f"{depth:5}   " + "  ".join(f"{t / min(times):.2f}" for t in times))


def compare_shares() -> None:
    """Calls of several lengths on one thread, and on two that share 2, 4, ... blocks of each call."""
    counts = (2, 4, 8, 16)
    print("us of a call on one thread; on two threads with", *counts, "blocks")
    for rows in (48, 96, 192, 384, 960, 1920, 5760):
        calls = max(4, int(_MICROSECONDS / fastest([(job(rows, 64, 2, 2), 1)])[0]))
        several = [(job(rows, 64, 2, 2, calls, blocks), 2) for blocks in counts]
        print("  ".join(f"{t / calls:7.1f}" for t in fastest([(job(rows, 64, 2, 2, calls), 1), *several])))


if __name__ == "__main__":
    compare_panels()
    compare_shares()
