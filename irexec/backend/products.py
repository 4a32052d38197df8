"""Matrix products in the form in which BLAS is fastest, and their costs.

OpenBLAS has kernels for small matrices on processors with AVX-512, which read both operands as they lie in memory;
larger ones it copies into an order of its own first, which takes as long as a good part of the product where that is
thin. So a product with not too many terms in each sum is computed as a grid of small ones, in one call. The grid is
fastest on data whose sums run along memory (channels last), with weights cut into panels of columns that lie together.

Costs are those of a model fitted to OpenBLAS on an AVX-512 core, in nanoseconds. How far a product of few rows is from
the machine's limit depends on which axis of the result is contiguous: packing is cheaper where it is the short one.
"""

from __future__ import annotations

import math
from bisect import bisect_left

import numpy as np

from irexec.backend.scratch import Scratch

# Products of up to this number of multiplications are computed from the operands as they lie in memory.
_SMALL = 1_000_000
# Terms in a sum up to which a grid of small products is faster than one that is copied first: of (weights, data), and
# of (data, panels).
THIN, _PANEL_THIN = 160, 600
# Rows and columns of a small product of (weights, data), rows of one of (data, panels), columns of a panel; in order of
# preference.
_ROWS = (32, 48, 40, 24, 16, 8)
_COLUMNS = 256
_HEIGHT = 64
_PANELS = (64, 96, 48, 80, 32, 112, 40, 72, 56, 24, 16)
# Terms in a sum up to which the rows and a panel of a small product stay in the first-level cache.
_QUICK = 200
# Values that a vector instruction computes at once.
LANES = 16


def _has_small_products() -> bool:
    features = getattr(getattr(np, "_core", None), "_multiarray_umath", None)
    found: dict[str, bool] = getattr(features, "__cpu_features__", {})
    return found.get("AVX512_SKX", False) or found.get("X86_V4", False)


HAS_SMALL_PRODUCTS = _has_small_products()

# Speed of BLAS relative to an AVX-512 core; the rates below were measured on one (tests/benchmarks/native_products.py).
SPEED = 1.0 if HAS_SMALL_PRODUCTS else 0.8


def multiply(scratch: Scratch, a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """``out = a @ b`` for a (m, k) in C order, and b (k, n) and out (m, n) that lie in memory as BLAS takes them."""
    m, k = a.shape
    n = b.shape[1]
    item = a.itemsize
    is_thin = k <= THIN and m * k * n > _SMALL and b.strides[1] == out.strides[1] == item
    rows = next((r for r in _ROWS if m % r == 0), 0)
    if not HAS_SMALL_PRODUCTS or not is_thin or not rows:
        scratch.do(np.matmul, a, b, out=out)
        return
    width = min(_COLUMNS, _SMALL // (rows * k) // LANES * LANES)
    down, across = m // rows, n // width
    covered = across * width
    left = a.reshape(down, 1, rows, k)
    right = b[:, :covered].reshape(k, across, width).swapaxes(0, 1)
    result = out[:, :covered].reshape(down, rows, across, width).swapaxes(1, 2)
    scratch.do(np.matmul, left, right, out=result)
    if covered < n:
        scratch.do(np.matmul, a, b[:, covered:], out=out[:, covered:])


def panels(matrix: np.ndarray) -> np.ndarray:
    """Weights (..., m, k) as (..., panels, k, columns), for ``multiply_rows``."""
    *lead, m, k = matrix.shape
    width = panel_width(m, k)
    return np.ascontiguousarray(matrix.reshape(*lead, m // width, width, k).swapaxes(-1, -2))


def panel_width(m: int, k: int) -> int:
    """Columns of the panels of weights (m, k)."""
    if not HAS_SMALL_PRODUCTS or k > _PANEL_THIN:
        return m
    return next((width for width in _PANELS if m % width == 0), m)


def multiply_rows(scratch: Scratch, rows: np.ndarray, weights: np.ndarray, out: np.ndarray) -> None:
    """``out = rows @ matrix.T`` for rows (..., n, k), ``panels`` of the matrix (..., m, k), and out (..., n, m).

    All have contiguous rows. The leading axes are the same for all.
    """
    n, k = rows.shape[-2:]
    count, _, width = weights.shape[-3:]
    height = min(_HEIGHT, _SMALL // (k * width) // 8 * 8)
    if count == 1 and (not HAS_SMALL_PRODUCTS or height < 8 or n * k * width <= _SMALL):
        scratch.do(np.matmul, rows, weights[..., 0, :, :], out=out)
        return
    by_panel = out.reshape(*out.shape[:-1], count, width)
    if height < 8 or n <= height:
        scratch.do(np.matmul, rows[..., None, :, :], weights, out=by_panel.swapaxes(-2, -3))
        return
    # Pieces have about equal heights, since a last piece of a few rows would be slow.
    height = -(-n // -(-n // height))
    pieces = n // height
    covered = pieces * height
    lead = rows.shape[:-2]
    left = rows[..., :covered, :].reshape(*lead, pieces, 1, height, k)
    result = by_panel[..., :covered, :, :].reshape(*lead, pieces, height, count, width).swapaxes(-2, -3)
    # In this order a piece of the data is read from memory once, whatever the strides of the result.
    scratch.do(np.matmul, left, weights[..., None, :, :, :], out=result, order="C")
    if covered < n:
        scratch.do(np.matmul, rows[..., None, covered:, :], weights, out=by_panel[..., covered:, :, :].swapaxes(-2, -3))


def pixel_product_cost(m: int, k: int, n: int, channels_last: bool = False) -> float:
    """Nanoseconds of one product of weights (m, k) with data (k, n), or (n, k) if ``channels_last``."""
    if not channels_last:
        return 2 * m * k * n / (95 * SPEED) + m * k * 0.3 + k * n * (0.1 if k <= THIN else 0.5) + m * n * 0.4 + 5000
    if HAS_SMALL_PRODUCTS and k <= _PANEL_THIN:
        padded = -(-m // LANES) * LANES
        rate = 105 if k <= _QUICK else 87
        return 2 * padded * k * n / rate + m * k * 0.4 + k * n * 0.1 + m * n * 0.2 + 5000
    return 2 * m * k * n / (92 * SPEED) + m * k * 0.4 + k * n * 0.2 + m * n * 0.2 + 5000


# Products below this are computed by a kernel that packs nothing (rows * columns * inner).
UNPACKED_LIMIT = 1_000_000

# Floating-point operations of a block of a product at most: some tenths of a second, after which the run's time is
# looked at.
LONGEST_BLOCK = 20_000_000_000

# Bytes per nanosecond that a thread reads from memory beyond its L2 cache.
_BANDWIDTH = 12.0

_SIZES = (1, 4, 8, 16, 24, 32, 48, 64, 96, 128, 160, 200, 256, 512)
# Fractions of 110 GFLOP/s for these numbers of rows of a result whose columns are contiguous, and of contiguous
# columns.
_RATES_OF_ROWS = (0.06, 0.09, 0.17, 0.31, 0.42, 0.48, 0.58, 0.65, 0.79, 0.83, 0.88, 0.92, 0.96, 1.0)
_RATES_OF_COLUMNS = (0.06, 0.18, 0.33, 0.56, 0.63, 0.75, 0.79, 0.82, 0.92, 0.95, 0.97, 0.98, 0.99, 1.0)

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
    rate = (
        110
        * SPEED
        * _interpolated(rows, _RATES_OF_ROWS)
        * _interpolated(columns, _RATES_OF_COLUMNS)
        * inner
        / (inner + 16)
    )
    arithmetic = 2 * rows * columns * inner / rate * itemsize / 4
    return max(arithmetic, traffic_cost((rows * inner + inner * columns + rows * columns) * itemsize)) + 1000


def unpacked_product_cost(rows: int, columns: int, inner: int, itemsize: int = 4) -> float:
    """Cost of a product in pieces below UNPACKED_LIMIT, limited by the speed of reading the larger operand."""
    rate = 70 * SPEED * _interpolated(rows, (0.1, 0.65, 0.8, 0.8, *[0.8] * 10))
    arithmetic = 2 * rows * columns * inner / rate * itemsize / 4
    return max(arithmetic, traffic_cost(inner * columns * itemsize)) + 2000


def traffic_cost(size: int) -> float:
    """Cost of reading ``size`` bytes from outside the cache."""
    return size / _BANDWIDTH
