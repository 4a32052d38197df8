"""Weights of products as the C library reads them: panels of one to three vectors of columns."""

from __future__ import annotations

import functools

import numpy as np

from irexec.backend.native.calls import loaded

# Time of a panel of 1, 2 and 3 vectors relative to its columns (tests/benchmarks/native_products.py): the narrow tile
# reads more than it multiplies.
_TIME = (1.45, 1.08, 1.0)
# GFLOP/s of products on one thread by the size of a vector, as chosen against those of BLAS in backend/products.py.
_RATE = {16: 180.0, 8: 97.0, 4: 30.0}


@functools.cache
def panel_of(columns: int) -> int:
    """Vectors of a panel, for which the padded columns take the least time."""
    vector = loaded().vector
    return min((3, 2, 1), key=lambda panel: _time(-(-columns // vector), panel))


def _time(vectors: int, panel: int) -> float:
    whole, rest = divmod(vectors, panel)
    return whole * panel * _TIME[panel - 1] + (rest * _TIME[rest - 1] if rest else 0.0)


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
    for start in range(0, columns, width):
        some = matrices[:, :, start : start + width]
        pitch = padded(some.shape[2])
        panel = made[:, start * depth : (start + pitch) * depth].reshape(groups, depth, pitch)
        panel[:, :, : some.shape[2]] = some
        panel[:, :, some.shape[2] :] = 0
    return made.reshape(-1)


def product_cost(rows: int, depth: int, columns: int) -> float:
    """Estimated nanoseconds of a product with packed weights on one thread."""
    vector = loaded().vector
    work = _time(-(-columns // vector), panel_of(columns)) * vector * depth
    return 2 * work * rows / _RATE[vector] + work * 0.05 + rows * columns * 0.05 + 400
