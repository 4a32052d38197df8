"""Inverses of matrices."""

from __future__ import annotations

import numpy as np


def inverse(x: np.ndarray) -> np.ndarray:
    """The inverses of (..., n, n), in the type of ``x``; a singular matrix has infinities and NaN where it is divided by 0."""
    try:
        return np.linalg.inv(x)
    except np.linalg.LinAlgError:
        return _eliminated(x)


def _eliminated(x: np.ndarray) -> np.ndarray:
    """By elimination with pivots, column by column of all the matrices at once."""
    size = x.shape[-1]
    upper = x.reshape(-1, size, size).copy()
    right = np.broadcast_to(np.eye(size, dtype=x.dtype), upper.shape).copy()
    every = np.arange(len(upper))
    with np.errstate(all="ignore"):
        for k in range(size):
            pivot = k + np.abs(upper[:, k:, k]).argmax(1)
            for matrices in (upper, right):
                matrices[every, k], matrices[every, pivot] = matrices[every, pivot], matrices[every, k].copy()
            factor = upper[:, k + 1 :, k] / upper[:, k, k, None]
            upper[:, k + 1 :] -= factor[:, :, None] * upper[:, k, None]
            right[:, k + 1 :] -= factor[:, :, None] * right[:, k, None]
        for k in reversed(range(size)):
            right[:, k] -= (upper[:, k, None, k + 1 :] @ right[:, k + 1 :])[:, 0]
            right[:, k] /= upper[:, k, k, None]
    return right.reshape(x.shape)
