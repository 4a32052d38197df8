"""Weights of products as the C library reads them: panels of one to three vectors of columns."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from irexec.backend.calls import copied, loaded
from irexec.backend.copies import Copy, bordered
from irexec.backend.native.sharing import blocks_for, imbalance
from irexec.backend.native.windows import most_rows

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

    @staticmethod
    def of(images: int, rows: int, taps: int, depth: int, columns: int, threads: int) -> Cut:
        """The cut of ``images`` products (rows, taps * depth) by (taps * depth, columns): shares are equal, and blocks
        read as little as possible."""
        inner = taps * depth
        work = product_cost(rows, inner, columns)
        wanted = -(-blocks_for(images * work, threads) // images)
        tiles, panels = -(-rows // _LEAST_ROWS), -(-columns // (panel_of(columns) * loaded().vector))
        least = min(tiles, -(-rows // most_rows(taps, inner)))

        def cost(cut: Cut) -> float:
            largest = imbalance(tiles, cut.rows) * imbalance(panels, cut.panels)
            blocks = images * cut.rows * cut.panels
            read = cut.panels * rows * depth + cut.rows * columns * inner
            return work * largest * imbalance(blocks, threads) + READ * read / threads

        row_parts = range(least, max(least, min(tiles, wanted)) + 1)
        return min((Cut(parts, min(panels, -(-wanted // parts))) for parts in row_parts), key=cost)

    def block_rows(self, rows: int) -> int:
        """Rows of a block, at most: parts differ by a tile."""
        return min(rows, -(-rows // self.rows) + 2 * _LEAST_ROWS)
