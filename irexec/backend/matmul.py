"""Fast kernels of matrix products."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from irexec.backend.registry import fast_kernel
from irexec.ir.facts import Fact


@fast_kernel("MatMul", since=1)
def _matmul_1(
    a: Fact, b: Fact, *, transpose_a: bool = False, transpose_b: bool = False
) -> Callable[[np.ndarray, np.ndarray], np.ndarray] | None:
    """A constant matrix on the right: all leading axes of ``a`` in one product."""
    weights = b.known
    if weights is None or weights.ndim != 2 or weights.dtype not in (np.float32, np.float64) or transpose_a or a.rank in (None, 1):
        return None
    matrix = weights.T if transpose_b else weights

    def product(data: np.ndarray, _: np.ndarray) -> np.ndarray:
        flat = data.reshape(math.prod(data.shape[:-1]), data.shape[-1])
        return np.matmul(flat, matrix).reshape(*data.shape[:-1], matrix.shape[1])

    return product
