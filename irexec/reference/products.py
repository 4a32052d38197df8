"""Products of stacks of matrices, which a time limit can stop, and inverses."""

from __future__ import annotations

import math

import numpy as np

from irexec.reference.limits import check_time

_LONG = 10_000_000
"""About how many multiplications and additions are done at once."""

_CALL = 64
"""Multiplications and additions in the time that a matrix takes in which there are none."""


def matmul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """np.matmul; the time of the run is looked at between blocks of matrices, or of rows where NumPy itself computes
    the product."""
    # np.broadcast_shapes takes longer than a small product.
    if min(a.ndim, b.ndim) < 2 or a.size * b.size * _CALL <= _LONG or _work(a, b) <= _LONG:
        return np.asarray(np.matmul(a, b))
    leading = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    result = np.empty((*leading, a.shape[-2], b.shape[-1]), np.result_type(a, b))
    _multiply(a, b, result)
    return result


def _work(a: np.ndarray, b: np.ndarray) -> int:
    matrices = math.prod(np.broadcast_shapes(a.shape[:-2], b.shape[:-2]))
    return matrices * (_CALL + a.shape[-2] * a.shape[-1] * b.shape[-1])


def _multiply(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """Write the product into ``out``, in blocks along its first axis, or the next one where an entry of it takes
    long."""
    check_time()
    work = _work(a, b)
    # BLAS may round otherwise if it is given fewer rows.
    is_whole = out.ndim == 2 and (len(out) == 1 or out.dtype.char in "fd")
    if work <= _LONG or is_whole:
        np.matmul(a, b, out=out)
        return
    step = max(1, len(out) * _LONG // work)
    for start in range(0, len(out), step):
        block = slice(start, start + step) if step > 1 or out.ndim == 2 else start
        if out.ndim == 2:
            _multiply(a[block], b, out[block])
        else:
            _multiply(_entries(a, block, out.ndim), _entries(b, block, out.ndim), out[block])


def _entries(x: np.ndarray, block: slice | int, rank: int) -> np.ndarray:
    """Entries of an operand along the first axis of a result of a rank, to which its leading axes are broadcast."""
    if x.ndim < rank:
        return x
    if len(x) == 1:
        block = slice(None) if isinstance(block, slice) else 0
    return x[block]


def inverse(x: np.ndarray) -> np.ndarray:
    """The inverses of (..., n, n), in the type of ``x``; divisions by 0 of a singular matrix give infinities and
    NaN."""
    try:
        inverses = np.linalg.inv(x)
    except np.linalg.LinAlgError:
        return _by_elimination(x)
    # NumPy notices a singular matrix by the processor's flags, which WebAssembly does not have.
    return _by_elimination(x) if np.isnan(inverses).any() else inverses


def _by_elimination(x: np.ndarray) -> np.ndarray:
    """Gauss-Jordan elimination with pivots, column by column, of all matrices at once."""
    size = x.shape[-1]
    upper = x.reshape(-1, size, size).copy()
    right = np.broadcast_to(np.eye(size, dtype=x.dtype), upper.shape).copy()
    matrix_index = np.arange(len(upper))
    with np.errstate(all="ignore"):
        for k in range(size):
            check_time()
            pivot = k + np.abs(upper[:, k:, k]).argmax(1)
            for matrices in (upper, right):
                matrices[matrix_index, k], matrices[matrix_index, pivot] = (
                    matrices[matrix_index, pivot],
                    matrices[matrix_index, k].copy(),
                )
            factor = upper[:, k + 1 :, k] / upper[:, k, k, None]
            upper[:, k + 1 :] -= factor[:, :, None] * upper[:, k, None]
            right[:, k + 1 :] -= factor[:, :, None] * right[:, k, None]
        for k in reversed(range(size)):
            right[:, k] -= (upper[:, k, None, k + 1 :] @ right[:, k + 1 :])[:, 0]
            right[:, k] /= upper[:, k, k, None]
    return right.reshape(x.shape)
