"""Operands of products in C, windows of the data and weights in panels; and the blocks into which a step is cut.

Threads get equal shares. Any number of blocks gives the same results: every kernel computes a value of its result in
the same way wherever a block begins.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from ctypes import c_int64
from dataclasses import dataclass

import numpy as np

from irexec.backend.calls import Binding, copied, element_strides, loaded
from irexec.backend.copies import Copy, bordered
from irexec.native.structures import Parameters, structure
from irexec.reference.windows import SlidingWindows

# Time of a panel of 1, 2 and 3 vectors relative to its columns, by the size of a vector: narrow tiles read more than
# they multiply, wide ones need more registers than the smallest vectors have (tests/benchmarks/native_products.py).
_TIME = {16: (1.45, 1.08, 1.0), 8: (1.3, 1.01, 1.0), 4: (1.25, 1.0, 1.1)}
# GFLOP/s of products on one thread by the size of a vector, as chosen against those of BLAS in backend/products.py.
_RATE = {16: 180.0, 8: 97.0, 4: 30.0}
# Nanoseconds to read a weight, of which all but the first few layers find none in the second-level cache.
READ = 0.12
# Rows of a tile, at most.
_LEAST_ROWS = 8


@functools.cache
def panel_of(columns: int) -> int:
    """Vectors of a panel, for which the padded columns take the least time."""
    vector = loaded().vector
    return min((3, 2, 1), key=lambda panel: _time(-(-columns // vector), panel))


def _time(vectors: int, panel: int) -> float:
    time, (whole, rest) = _TIME[loaded().vector], divmod(vectors, panel)
    return whole * panel * time[panel - 1] + (rest * time[rest - 1] if rest else 0.0)


def padded(columns: int) -> int:
    """Columns in whole vectors."""
    vector = loaded().vector
    return -(-columns // vector) * vector


def pack(matrices: np.ndarray) -> np.ndarray:
    """Matrices (groups, depth, columns) as a flat array: for each group its panels, each (depth, columns of a panel).

    The last panel is as narrow as whole vectors allow, and padded with zeros.
    """
    groups, depth, columns = matrices.shape
    vector = loaded().vector
    width, whole = panel_of(columns) * vector, padded(columns)
    made = np.empty((groups, whole * depth), np.float32)
    full = columns // width
    stop = full * width
    panels = made[:, : stop * depth].reshape(groups, full, depth, width)
    copies = [Copy(matrices[:, :, :stop].reshape(groups, depth, full, width).swapaxes(1, 2), panels)]
    if stop < columns:
        last = made[:, stop * depth :].reshape(groups, depth, whole - stop)
        copies += bordered(matrices[:, :, stop:], last, [(0, 0), (0, 0), (0, whole - columns)])
    copied(copies)
    return made.reshape(-1)


def product_cost(rows: int, depth: int, columns: int) -> float:
    """Estimated nanoseconds of a product with packed weights on one thread."""
    vector = loaded().vector
    work = _time(-(-columns // vector), panel_of(columns)) * vector * depth
    return 2 * work * rows / _RATE[vector] + work * READ + rows * columns * 0.05 + 400


@dataclass(frozen=True)
class Cut:
    """The parts of a product that its blocks are; see irexec/native/source/product.c."""

    rows: int
    panels: int
    unit: int = _LEAST_ROWS

    @staticmethod
    def of(images: int, rows: int, taps: int, depth: int, columns: int, threads: int, unit: int = _LEAST_ROWS) -> Cut:
        """The cut of ``images`` products (rows, taps * depth) by (taps * depth, columns): shares are equal, and blocks
        read as little as possible.

        Args:
            unit: rows that are not cut.
        """
        inner = taps * depth
        work = product_cost(rows, inner, columns)
        wanted = -(-blocks_for(images * work, threads) // images)
        tiles, panels = -(-rows // unit), -(-columns // (panel_of(columns) * loaded().vector))
        least = min(tiles, -(-rows // most_rows(taps, inner)))

        def cost(cut: Cut) -> float:
            largest = imbalance(tiles, cut.rows) * imbalance(panels, cut.panels)
            blocks = images * cut.rows * cut.panels
            read = cut.panels * rows * depth + cut.rows * columns * inner
            return work * largest * imbalance(blocks, threads) + READ * read / threads

        row_parts = range(least, max(least, min(tiles, wanted)) + 1)
        return min((Cut(parts, min(panels, -(-wanted // parts)), unit) for parts in row_parts), key=cost)

    def block_rows(self, rows: int) -> int:
        """Rows of a block, at most: parts differ by a tile."""
        return min(rows, -(-rows // self.rows) + 2 * self.unit)


_Three = c_int64 * 3

Windows = structure("windows.h", "windows")


def three(values: Sequence[int], fill: int = 1) -> ctypes.Array[c_int64]:
    """Up to three values, with ``fill`` in front."""
    return _Three(*[fill] * (3 - len(values)), *values)


def windows_of(x: np.ndarray, windows: SlidingWindows, zeros: np.ndarray, binding: Binding) -> Parameters:
    """The windows on data (N, C, spatial...) whose channels follow each other in memory.

    Args:
        zeros: as many as a tap reads.
    """
    image, _, *spatial = element_strides(x)
    return Windows(
        binding.address(x), image, binding.address(zeros), three(spatial, 0), three(x.shape[2:]), three(windows.counts),
        three(windows.kernel), three(windows.strides), three(windows.dilations), three(windows.pads_begin, 0),
    )  # fmt: skip


def rows_as_windows(address: int, image: int, row: int, count: int, zeros: int) -> Parameters:
    """Rows of a matrix as windows of one tap."""
    ones = three(())
    return Windows(
        address, image, zeros, three((row,), 0), three((count,)), three((count,)), ones, ones, ones, three((), 0)
    )


def table_bytes(rows: int, taps: int) -> int:
    """Bytes of the table of pointers for a block of rows."""
    return (rows + 8) * taps * 8


def most_rows(taps: int, floats: int) -> int:
    """Rows of a block, at most: 64 KiB of table, and data that stays in the second-level cache.

    Args:
        floats: of the data that a row reads.
    """
    return max(8, min((1 << 16) // (8 * taps), (1 << 17) // max(1, floats)))


def row_block(rows: int, taps: int, floats: int, wanted: int) -> int:
    """Rows of a block: at least ``wanted`` blocks if that leaves some rows for each.

    Args:
        floats: of the data that a row reads.
    """
    size = min(most_rows(taps, floats), -(-rows // wanted))
    return min(rows, max(8, -(-size // 8) * 8))


# Nanoseconds of work that pay for a second thread, and of a block of longer work (tests/benchmarks/native_products.py).
_LEAST, _BLOCK = 10_000, 50_000
# Blocks for each thread, at most.
_MOST = 8


def blocks_for(nanoseconds: float, threads: int) -> int:
    """The blocks of a step that takes this long on one thread: one, or as many for each thread."""
    if threads == 1 or nanoseconds < _LEAST:
        return 1
    return threads * max(1, min(_MOST, round(nanoseconds / (threads * _BLOCK))))


def imbalance(units: int, parts: int) -> float:
    """The largest of ``parts`` parts of whole units, relative to an equal part."""
    return -(-units // parts) * parts / units
