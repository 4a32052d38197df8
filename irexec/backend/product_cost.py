"""The cost of a matrix product: a model fitted to OpenBLAS on an AVX-512 core, in nanoseconds.

OpenBLAS packs both operands on every call, so that a product of few rows is far from the machine's limit. How far
depends on which axis of the result is contiguous: packing is cheaper where the short axis is the contiguous one.
"""

from __future__ import annotations

import math
from bisect import bisect_left

from irexec.backend.products import SPEED

# Products below this are computed by a kernel that packs nothing (rows * columns * inner).
UNPACKED_LIMIT = 1_000_000

# Floating-point operations of a block of a product at most: some tenths of a second, after which the run's time is
# looked at.
LONGEST_BLOCK = 20_000_000_000

# Bytes per nanosecond that a thread reads from memory beyond its L2 cache.
_BANDWIDTH = 12.0

_SIZES = (1, 4, 8, 16, 24, 32, 48, 64, 96, 128, 160, 200, 256, 512)
# Fractions of 110 GFLOP/s for so many rows of a result whose columns are contiguous, and for so many contiguous
# columns.
_ROWS = (0.06, 0.09, 0.17, 0.31, 0.42, 0.48, 0.58, 0.65, 0.79, 0.83, 0.88, 0.92, 0.96, 1.0)
_COLUMNS = (0.06, 0.18, 0.33, 0.56, 0.63, 0.75, 0.79, 0.82, 0.92, 0.95, 0.97, 0.98, 0.99, 1.0)

# Nanoseconds for an element that is transposed while it is copied, and for one that is copied row by row.
TRANSPOSED_COPY = 0.8
COPY = 0.25


def _interpolated(size: int, values: tuple[float, ...]) -> float:
    i = bisect_left(_SIZES, size)
    if i == 0 or i == len(_SIZES):
        return values[min(i, len(values) - 1)]
    low, high = _SIZES[i - 1], _SIZES[i]
    share = math.log(size / low) / math.log(high / low)
    return values[i - 1] + share * (values[i] - values[i - 1])


def product_cost(rows: int, columns: int, inner: int, itemsize: int = 4) -> float:
    """Cost of (rows, inner) @ (inner, columns) into a result whose columns are contiguous."""
    if not rows * columns * inner:
        return 1.0
    rate = 110 * SPEED * _interpolated(rows, _ROWS) * _interpolated(columns, _COLUMNS) * inner / (inner + 16)
    arithmetic = 2 * rows * columns * inner / rate * itemsize / 4
    return max(arithmetic, traffic_cost((rows * inner + inner * columns + rows * columns) * itemsize)) + 1000


def unpacked_product_cost(rows: int, columns: int, inner: int, itemsize: int = 4) -> float:
    """Cost of a product in pieces below UNPACKED_LIMIT, limited by the speed of reading the larger operand."""
    rate = 70 * SPEED * _interpolated(rows, (0.1, 0.65, 0.8, 0.8, *[0.8] * 10))
    arithmetic = 2 * rows * columns * inner / rate * itemsize / 4
    return max(arithmetic, traffic_cost(inner * columns * itemsize)) + 2000


def traffic_cost(size: int) -> float:
    """Cost of reading so many bytes from outside the cache."""
    return size / _BANDWIDTH
