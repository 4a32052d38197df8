"""Rows brought to mean 0 and variance 1, by blocks that stay in cache."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

# Bytes of rows that are worked on at once.
_CACHED = 1 << 20


def normal_rows(data: np.ndarray, eps: float, inside: bool) -> np.ndarray:
    """Each row of (N, M), M not 0, less its mean, over the root of variance + eps, or over the root and then + eps."""
    out = np.empty_like(data, order="C")
    for some, variance in _centred(data, out):
        out[some] /= np.sqrt(variance + eps) if inside else np.sqrt(variance) + eps
    return out


def normal_groups(data: np.ndarray, scale: np.ndarray, bias: np.ndarray, eps: float) -> np.ndarray:
    """Each group of (G, C, M) to mean 0 and variance 1, then each channel scaled and shifted by (G, C)."""
    out = np.empty_like(data, order="C")
    rows = out.reshape(len(data), -1)
    for some, variance in _centred(data.reshape(rows.shape), rows):
        part = out[some]
        part *= (scale[some] / np.sqrt(variance + eps))[:, :, None]
        part += bias[some, :, None]
    return out


def _centred(data: np.ndarray, out: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Blocks of rows, written to ``out`` less their means, and their variances [rows, 1]."""
    rows = max(1, _CACHED // (data.shape[1] * data.itemsize))
    for first in range(0, len(data), rows):
        some = slice(first, first + rows)
        block = data[some]
        centred = np.subtract(block, block.mean(1, keepdims=True), out=out[some])
        yield some, np.einsum("ij,ij->i", centred, centred)[:, None] / data.shape[1]
