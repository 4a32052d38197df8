"""Products of stacks of matrices, which a time limit can stop."""

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
