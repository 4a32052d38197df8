"""Softmax and its logarithm."""

from __future__ import annotations

import numpy as np


def softmax(data: np.ndarray, axis: int) -> np.ndarray:
    """exp(x) / sum(exp(x)) along ``axis``, in the type of floating-point ``data``; 1 for data of rank 0."""
    if data.ndim == 0:
        return np.ones_like(data)
    if data.size == 0:
        return data.copy()
    weights = _minus_maximum(data, axis)
    np.exp(weights, out=weights)
    weights /= weights.sum(axis, keepdims=True)
    return weights


def log_softmax(data: np.ndarray, axis: int) -> np.ndarray:
    """x - log(sum(exp(x))) along ``axis``, in the type of floating-point ``data``; 0 for data of rank 0."""
    if data.ndim == 0:
        return np.zeros_like(data)
    if data.size == 0:
        return data.copy()
    shifted = _minus_maximum(data, axis)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis, keepdims=True)))


def _minus_maximum(data: np.ndarray, axis: int) -> np.ndarray:
    """x - max(x) along the axis, so that no exponential overflows; data must not be empty."""
    with np.errstate(invalid="ignore"):
        return np.asarray(data - data.max(axis, keepdims=True))
