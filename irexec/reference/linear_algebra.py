"""Inverses of matrices."""

from __future__ import annotations

import numpy as np

from irexec.reference.limits import check_time


def inverse(x: np.ndarray) -> np.ndarray:
    """The inverses of (..., n, n), in the type of ``x``; divisions by 0 of a singular matrix give infinities and
    NaN."""
    try:
        return np.linalg.inv(x)
    except np.linalg.LinAlgError:
        return _by_elimination(x)


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
