"""Matrix products in the form in which BLAS is fastest, and what they cost.

OpenBLAS has kernels for small matrices on processors with AVX-512, which read both operands as they lie in memory;
larger ones it copies into an order of its own first, which costs about as much as the product where it is thin. So a product
with few terms in each sum is computed as a grid of small ones, in one call.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import as_strided

# Products of up to so many multiplications are computed from the operands as they lie in memory.
_SMALL = 1_000_000
# Terms in a sum up to which a grid of small products is faster than one that is copied first.
THIN = 160
# Rows of such a small product, in order of preference.
_ROWS = (32, 48, 40, 24, 16, 8)
_COLUMNS = 256


def _has_small_products() -> bool:
    features = getattr(getattr(np, "_core", None), "_multiarray_umath", None)
    found: dict[str, bool] = getattr(features, "__cpu_features__", {})
    return found.get("AVX512_SKX", False) or found.get("X86_V4", False)


HAS_SMALL_PRODUCTS = _has_small_products()


def multiply(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """``out = a @ b`` for a (m, k) in C order, and b (k, n) and out (m, n) that lie in memory as BLAS takes them."""
    m, k = a.shape
    n = b.shape[1]
    item = a.itemsize
    is_thin = k <= THIN and m * k * n > _SMALL and b.strides[1] == out.strides[1] == item
    rows = next((r for r in _ROWS if m % r == 0), 0)
    if not HAS_SMALL_PRODUCTS or not is_thin or not rows:
        np.matmul(a, b, out=out)
        return
    width = min(_COLUMNS, _SMALL // (rows * k) // 16 * 16)
    down, across = m // rows, n // width
    covered = across * width
    left = as_strided(a, (down, 1, rows, k), (rows * a.strides[0], 0, *a.strides))
    right = as_strided(b, (1, across, k, width), (0, width * item, *b.strides))
    result = as_strided(out, (down, across, rows, width), (rows * out.strides[0], width * item, *out.strides))
    np.matmul(left, right, out=result)
    if covered < n:
        np.matmul(a, b[:, covered:], out=out[:, covered:])


def product_cost(m: int, k: int, n: int, data_last: bool = False, result_last: bool = False) -> float:
    """Nanoseconds of one product of weights (m, k) with data (k, n).

    ``data_last``: the data is stored with k innermost; ``result_last``: the result with m innermost.
    """
    rate = 100.0
    if data_last or result_last:
        rate *= 0.85 if data_last and result_last else 0.75
    # Reading weights that are in no cache, and BLAS's copies of both operands.
    return 2 * m * k * n / rate + m * k * 0.25 + k * n * 0.15 + m * n * 0.05 + 1000
