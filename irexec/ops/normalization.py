"""Normalization: by mean and variance, by given statistics, by lengths, by neighbours."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import numpy as np

from irexec.errors import check
from irexec.ir.dims import ANY, Size
from irexec.ir.facts import Fact
from irexec.ir.integers import integers
from irexec.reference.windows import pad, windows
from irexec.schema.attributes import Ints, Positive
from irexec.schema.elementwise import unchanged
from irexec.schema.inputs import VECTOR, AxesTensor, FloatTensor, IntegerVector, Rank
from irexec.schema.registry import op
from irexec.schema.shape_rules import mvn_2_axes, normalize_axes, unify_elements, unify_sizes

ChannelsTensor = Annotated[FloatTensor, Rank(2, None)]
FloatVector = Annotated[FloatTensor, VECTOR]
EpsMode = Literal["inside_sqrt", "outside_sqrt"]


def _known_axes(axes: np.ndarray, rank: int) -> tuple[int, ...]:
    """The axes counted from the front, each once."""
    return tuple(dict.fromkeys(normalize_axes(integers(axes, "axes"), rank)))


def _mean(data: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """The mean along axes, summed in f64: what is left of equal values would be divided by a small epsilon."""
    return data.mean(axes, keepdims=True, dtype=np.float64).astype(data.dtype)


def _mvn(data: np.ndarray, axes: tuple[int, ...], normalize_variance: bool, eps: float, inside: bool) -> np.ndarray:
    if data.size == 0:
        # NumPy warns of a mean of nothing.
        return data.copy()
    centered = data - _mean(data, axes)
    if not normalize_variance:
        return centered
    variance = _mean(centered * centered, axes)
    epsilon = data.dtype.type(eps)
    return centered / (np.sqrt(variance + epsilon) if inside else np.sqrt(variance) + epsilon)


@op("MVN", since=2, widen=True, tolerance=1e-5)
def mvn_2(
    data: FloatTensor,
    *,
    across_channels: bool = False,
    normalize_variance: bool = True,
    eps: float,
    reduction_axes: Ints | None = None,
) -> np.ndarray:
    """(x - mean) / sqrt(variance + eps) over the spatial axes, and the channels if ``across_channels``.

    Source: MVN-1 of the specification, first in opset 2; ``mvn_2_axes`` for the reduction_axes that OpenVINO writes.
    """
    axes = tuple(mvn_2_axes(data.ndim, across_channels, reduction_axes))
    return _mvn(data, axes, normalize_variance, eps, True)


@mvn_2.shape_rule
def _mvn_2_facts(data: Fact, *, eps: float) -> Fact:
    check(eps > 0, f"eps {eps:g} is not positive")
    return Fact(data.element, data.shape)


@op("MVN", since=6, widen=True, tolerance=1e-5)
def mvn_6(
    data: FloatTensor, axes: IntegerVector, *, normalize_variance: bool, eps: float, eps_mode: EpsMode
) -> np.ndarray:
    """(x - mean) / standard deviation along ``axes``; eps is added before or after the square root. Source: MVN-6."""
    return _mvn(data, _known_axes(axes, data.ndim), normalize_variance, eps, eps_mode == "inside_sqrt")


def _by_channel(data: Fact, vectors: dict[str, Fact]) -> Fact:
    """The fact of ``data``, with the element type and the number of channels that it shares with the vectors."""
    kind = unify_elements(data, *vectors.values())
    size: Size = ANY if data.shape is None else data.shape[1]
    for name, fact in vectors.items():
        if fact.shape:
            size = unify_sizes(f"number of channels of {name}", size, fact.shape[0])
    shape = None if data.shape is None else (data.shape[0], size, *data.shape[2:])
    return Fact(kind, shape)


def _batch_norm(
    data: np.ndarray, gamma: np.ndarray, beta: np.ndarray, mean: np.ndarray, variance: np.ndarray, epsilon: float
) -> np.ndarray:
    along = (1, -1) + (1,) * (data.ndim - 2)
    scale = gamma / np.sqrt(variance + data.dtype.type(epsilon))
    return (data - mean.reshape(along)) * scale.reshape(along) + beta.reshape(along)


@op("BatchNormInference", since=1, widen=True, tolerance=1e-5)
def batch_norm_inference_1(
    gamma: FloatVector,
    beta: FloatVector,
    data: ChannelsTensor,
    mean: FloatVector,
    variance: FloatVector,
    *,
    epsilon: float,
) -> np.ndarray:
    """gamma * (data - mean) / sqrt(variance + epsilon) + beta, channel by channel.

    In opset 1 gamma and beta come before the data, as OpenVINO's own operation has them.
    Source: BatchNormInference-1 and openvino ``batch_norm.cpp``.
    """
    return _batch_norm(data, gamma, beta, mean, variance, epsilon)


@batch_norm_inference_1.shape_rule
def _batch_norm_inference_1_facts(
    gamma: Fact, beta: Fact, data: Fact, mean: Fact, variance: Fact, *, epsilon: float
) -> Fact:
    check(epsilon >= 0, f"epsilon {epsilon:g} is negative")
    return _by_channel(data, {"gamma": gamma, "beta": beta, "mean": mean, "variance": variance})


@op("BatchNormInference", since=5, widen=True, tolerance=1e-5)
def batch_norm_inference_5(
    data: ChannelsTensor,
    gamma: FloatVector,
    beta: FloatVector,
    mean: FloatVector,
    variance: FloatVector,
    *,
    epsilon: float,
) -> np.ndarray:
    """gamma * (data - mean) / sqrt(variance + epsilon) + beta, channel by channel. Source: BatchNormInference-5."""
    return _batch_norm(data, gamma, beta, mean, variance, epsilon)


@batch_norm_inference_5.shape_rule
def _batch_norm_inference_5_facts(
    data: Fact, gamma: Fact, beta: Fact, mean: Fact, variance: Fact, *, epsilon: float
) -> Fact:
    check(epsilon >= 0, f"epsilon {epsilon:g} is negative")
    return _by_channel(data, {"gamma": gamma, "beta": beta, "mean": mean, "variance": variance})


@op("NormalizeL2", since=1, widen=True, tolerance=4e-6)
def normalize_l2_1(data: FloatTensor, axes: AxesTensor, *, eps: float, eps_mode: Literal["add", "max"]) -> np.ndarray:
    """x / sqrt(sum of squares along ``axes`` + eps), or max(sum, eps) instead of sum + eps if eps_mode is max.

    For empty ``axes`` the result is 1 for every element but 0, whatever its sign.
    Source: NormalizeL2-1 and openvino ``reference/normalize_l2.hpp``.
    """
    known = _known_axes(axes, data.ndim)
    if not known:
        return (data != 0).astype(data.dtype)
    total = (data * data).sum(known, keepdims=True, dtype=data.dtype)
    epsilon = data.dtype.type(eps)
    return data / np.sqrt(total + epsilon if eps_mode == "add" else np.maximum(total, epsilon))


@op("LRN", since=1, widen=True, tolerance=4e-6)
def lrn_1(
    data: FloatTensor, axes: IntegerVector, *, alpha: float, beta: float, bias: float, size: Positive
) -> np.ndarray:
    """x / (bias + alpha * mean square of the neighbours along ``axes``) ** beta.

    The window has (size - 1) // 2 elements on each side, so that an even size is reduced by one; elements outside
    are 0; the divisor of the mean is ``size`` nevertheless. Source: LRN-1, openvino ``reference/lrn.hpp``.
    """
    known = _known_axes(axes, data.ndim)
    total = data * data
    for axis in known:
        side = (size - 1) // 2
        padded = pad(np.moveaxis(total, axis, -1), ((side,), (side,)))
        total = np.moveaxis(
            windows(padded, (2 * side + 1,), (1,), (1,), (data.shape[axis],)).sum(-1, dtype=data.dtype), -1, axis
        )
    kind = data.dtype.type
    return data / (kind(bias) + kind(alpha / size ** len(known)) * total) ** kind(beta)


@mvn_6.shape_rule
@normalize_l2_1.shape_rule
@lrn_1.shape_rule
def _normalized_along(data: Fact, axes: Fact) -> Fact:
    """The fact of ``data``; raises OpError for an axis out of range."""
    known = axes.ints("axes")
    if data.shape is not None and known is not None:
        normalize_axes(known, len(data.shape))
    return Fact(data.element, data.shape)


@op("GroupNormalization", since=12, widen=True, tolerance=1e-5)
def group_normalization_12(
    data: ChannelsTensor, scale: FloatVector, bias: FloatVector, *, num_groups: Positive, epsilon: float
) -> np.ndarray:
    """(x - mean) / sqrt(variance + epsilon) over each group of channels, times scale plus bias of the channel.

    Source: GroupNormalization-12.
    """
    grouped = data.reshape(data.shape[0], num_groups, math.prod(data.shape[1:]) // num_groups)
    normalized = _mvn(grouped, (2,), True, epsilon, True).reshape(data.shape)
    along = (1, -1) + (1,) * (data.ndim - 2)
    return normalized * scale.reshape(along) + bias.reshape(along)


@group_normalization_12.shape_rule
def _group_normalization_12_facts(data: Fact, scale: Fact, bias: Fact, *, num_groups: int) -> Fact:
    fact = _by_channel(data, {"scale": scale, "bias": bias})
    if fact.shape is not None and isinstance(fact.shape[1], int):
        check(fact.shape[1] % num_groups == 0, f"{fact.shape[1]} channels cannot be split into {num_groups} groups")
    return fact


@op("GRN", since=1, widen=True, tolerance=4e-6)
def grn_1(data: Annotated[FloatTensor, Rank(2, 4)], *, bias: float) -> np.ndarray:
    """x / sqrt(bias + sum of squares along the channels). Source: GRN-1."""
    return data / np.sqrt((data * data).sum(1, keepdims=True, dtype=data.dtype) + data.dtype.type(bias))


grn_1.shape_rule(unchanged)
