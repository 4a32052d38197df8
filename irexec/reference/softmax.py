"""Softmax, its logarithm, and what attention adds to it."""

from __future__ import annotations

import math

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


def softmax_with_sink(scores: np.ndarray, sink: np.ndarray | None) -> np.ndarray:
    """softmax over the last axis, where ``sink``, broadcast to (..., 1), is one more score of each row; its share is
    left out."""
    if scores.shape[-1] == 0:
        return scores
    maximum = scores.max(-1, keepdims=True)
    if sink is not None:
        maximum = np.maximum(maximum, sink)
    weights = np.exp(scores - maximum)
    total = weights.sum(-1, keepdims=True)
    weights /= total if sink is None else total + np.exp(sink - maximum)
    return np.asarray(weights)


def score_scale(query: np.ndarray, scale: np.ndarray | None) -> np.floating:
    """The factor of the scores of attention: ``scale``, by default 1 / sqrt(E) for a query of (..., E)."""
    default = 1 / math.sqrt(max(query.shape[-1], 1))
    return query.dtype.type(default if scale is None else scale.reshape(()))
