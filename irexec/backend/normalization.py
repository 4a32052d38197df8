"""Fast kernels of normalization: by blocks of rows that stay in cache."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from irexec.backend.registry import fast_kernel
from irexec.dtypes.elements import F32
from irexec.ir.facts import Fact
from irexec.schema.axes import normalize_axes

# Bytes of rows that are normalized at once.
_CACHED = 1 << 20

Kernel = Callable[..., np.ndarray]


@fast_kernel("MVN", since=2)
def _mvn_2(data: Fact, *, across_channels: bool = False, normalize_variance: bool = True, eps: float) -> Kernel | None:
    axes = range(1 if across_channels else 2, len(data.shape or ()))
    return _over_last_axes(data, axes, eps, inside=True) if normalize_variance else None


@fast_kernel("MVN", since=6)
def _mvn_6(data: Fact, axes: Fact, *, normalize_variance: bool, eps: float, eps_mode: str) -> Kernel | None:
    known = axes.ints()
    if known is None or data.shape is None or not normalize_variance:
        return None
    return _over_last_axes(data, sorted(set(normalize_axes(known, len(data.shape)))), eps, inside=eps_mode == "inside_sqrt")


def _over_last_axes(data: Fact, axes: Sequence[int], eps: float, *, inside: bool) -> Kernel | None:
    """Where the axes are the last ones, rows of them flattened."""
    kept = len(data.shape or ()) - len(axes)
    if data.element is not F32 or not axes or list(axes) != list(range(kept, kept + len(axes))):
        return None

    def run(data: np.ndarray, _: np.ndarray | None = None) -> np.ndarray:
        if not data.size:
            return data.copy()
        return normalize_rows(data.reshape(math.prod(data.shape[:kept]), -1), eps, inside).reshape(data.shape)

    return run


@fast_kernel("BatchNormInference", since=1)
def _batch_norm_inference_1(gamma: Fact, beta: Fact, data: Fact, mean: Fact, variance: Fact, *, epsilon: float) -> Kernel | None:
    folded = _scale_and_shift(gamma, beta, mean, variance, epsilon, data.rank)
    return None if folded is None else lambda g, b, x, m, v: _apply(x, *folded)


@fast_kernel("BatchNormInference", since=5)
def _batch_norm_inference_5(data: Fact, gamma: Fact, beta: Fact, mean: Fact, variance: Fact, *, epsilon: float) -> Kernel | None:
    folded = _scale_and_shift(gamma, beta, mean, variance, epsilon, data.rank)
    return None if folded is None else lambda x, g, b, m, v: _apply(x, *folded)


def _scale_and_shift(
    gamma: Fact, beta: Fact, mean: Fact, variance: Fact, epsilon: float, rank: int | None
) -> tuple[np.ndarray, np.ndarray] | None:
    """The factor and the summand of each channel, if all statistics are constants."""
    values = [fact.known for fact in (gamma, beta, mean, variance)]
    if rank is None or any(value is None or value.dtype != np.float32 for value in values):
        return None
    g, b, m, v = (value.astype(np.float64) for value in values if value is not None)
    along = (1, -1) + (1,) * (rank - 2)
    scale = g / np.sqrt(v + epsilon)
    return scale.astype(np.float32).reshape(along), (b - m * scale).astype(np.float32).reshape(along)


def _apply(data: np.ndarray, scale: np.ndarray, shift: np.ndarray) -> np.ndarray:
    result = data * scale
    result += shift
    return result


@fast_kernel("GroupNormalization", since=12)
def _group_normalization_12(data: Fact, scale: Fact, bias: Fact, *, num_groups: int, epsilon: float) -> Kernel | None:
    if data.element is not F32:
        return None

    def run(data: np.ndarray, scale: np.ndarray, bias: np.ndarray) -> np.ndarray:
        if not data.size:
            return data.copy()
        grouped = data.reshape(len(data), num_groups, data.shape[1] // num_groups, math.prod(data.shape[2:]))
        scales, biases = (np.tile(vector.reshape(num_groups, -1), (len(data), 1)) for vector in (scale, bias))
        return normalize_groups(grouped.reshape(-1, *grouped.shape[2:]), scales, biases, epsilon).reshape(data.shape)

    return run


def normalize_rows(data: np.ndarray, eps: float, inside: bool) -> np.ndarray:
    """(x - mean) / sqrt(variance + eps) for each row of (N, M), M not 0; / (sqrt(variance) + eps) if not ``inside``."""
    out = np.empty_like(data, order="C")
    for block, variance in _centered(data, out):
        out[block] /= np.sqrt(variance + eps) if inside else np.sqrt(variance) + eps
    return out


def normalize_groups(data: np.ndarray, scale: np.ndarray, bias: np.ndarray, eps: float) -> np.ndarray:
    """(x - mean) / sqrt(variance + eps) for each group of (G, C, M), times ``scale`` (G, C) plus ``bias`` (G, C)."""
    out = np.empty_like(data, order="C")
    rows = out.reshape(len(data), -1)
    for block, variance in _centered(data.reshape(rows.shape), rows):
        part = out[block]
        part *= (scale[block] / np.sqrt(variance + eps))[:, :, None]
        part += bias[block, :, None]
    return out


def _centered(data: np.ndarray, out: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Blocks of rows, whose x - mean is written to ``out``, and their variances [rows, 1]."""
    rows = max(1, _CACHED // (data.shape[1] * data.itemsize))
    for first in range(0, len(data), rows):
        block = slice(first, first + rows)
        part = data[block]
        centered = np.subtract(part, part.mean(1, keepdims=True), out=out[block])
        yield block, np.einsum("ij,ij->i", centered, centered)[:, None] / data.shape[1]
