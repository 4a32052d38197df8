"""Normalisation: to mean and variance, by given statistics, by lengths, by neighbours."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from irexec.backend.normalization import normal_groups, normal_rows
from irexec.dtypes.elements import F32
from irexec.errors import check
from irexec.ir.dims import ANY, Size, meet
from irexec.ir.facts import Fact
from irexec.reference.windows import pad, windows
from irexec.schema.attributes import Positive
from irexec.schema.axes import normalize_axes
from irexec.schema.element_checks import check_float, unify_elements
from irexec.schema.registry import op
from irexec.schema.rules import check_vector

EpsMode = Literal["inside_sqrt", "outside_sqrt"]


def _along(data: Fact, axes: Fact) -> Fact:
    """Floats normalised along axes, which are checked as far as they are known."""
    check_float(data, "data")
    check(axes.rank in (None, 0, 1), f"axes have rank {axes.rank}, expected 1")
    known = axes.ints()
    if data.shape is not None and known is not None:
        normalize_axes(known, len(data.shape))
    return Fact(data.element, data.shape)


def _mvn(data: np.ndarray, axes: tuple[int, ...], normalize_variance: bool, eps: float, inside: bool) -> np.ndarray:
    centred = data - data.mean(axes, keepdims=True, dtype=data.dtype)
    if not normalize_variance:
        return centred
    variance = (centred * centred).mean(axes, keepdims=True, dtype=data.dtype)
    small = data.dtype.type(eps)
    return centred / (np.sqrt(variance + small) if inside else np.sqrt(variance) + small)


@op("MVN", since=2, widen=True, tolerance=1e-5, ignores=("reduction_axes",))
def mvn_2(data: np.ndarray, *, across_channels: bool = False, normalize_variance: bool = True, eps: float) -> np.ndarray:
    """Less the mean, over the square root of variance + eps, of the spatial axes and perhaps the channels.

    Source: MVN-1 of the specification, first in opset 2. OpenVINO writes its reduction_axes too, which say the same.
    """
    axes = tuple(range(1 if across_channels else 2, data.ndim))
    return _mvn(data, axes, normalize_variance, eps, True)


@mvn_2.shape_rule
def _mvn_2_facts(data: Fact, *, across_channels: bool = False, normalize_variance: bool = True, eps: float) -> Fact:
    check_float(data, "data")
    check(eps > 0, f"eps {eps:g} is not positive")
    return Fact(data.element, data.shape)


@op("MVN", since=6, widen=True, tolerance=1e-5)
def mvn_6(data: np.ndarray, axes: np.ndarray, *, normalize_variance: bool, eps: float, eps_mode: EpsMode) -> np.ndarray:
    """Less the mean along ``axes``, over the deviation, eps added before or after the root. Source: MVN-6."""
    places = normalize_axes([int(axis) for axis in axes.ravel().tolist()], data.ndim)
    return _mvn(data, places, normalize_variance, eps, eps_mode == "inside_sqrt")


@mvn_6.shape_rule
def _mvn_6_facts(data: Fact, axes: Fact, *, normalize_variance: bool, eps: float, eps_mode: str) -> Fact:
    return _along(data, axes)


def _bound(data: Fact, axes: Sequence[int], eps: float, inside: bool) -> Callable[..., np.ndarray] | None:
    """The fast way for the last axes, all of which are normalised as one."""
    kept = len(data.shape or ()) - len(axes)
    if data.element is not F32 or not axes or list(axes) != list(range(kept, kept + len(axes))):
        return None

    def run(data: np.ndarray, _: np.ndarray | None = None) -> np.ndarray:
        return normal_rows(data.reshape(math.prod(data.shape[:kept]), -1), eps, inside).reshape(data.shape) if data.size else data.copy()

    return run


@mvn_2.bind
def _mvn_2_bind(
    data: Fact, *, across_channels: bool = False, normalize_variance: bool = True, eps: float
) -> Callable[..., np.ndarray] | None:
    axes = range(1 if across_channels else 2, len(data.shape or ()))
    return _bound(data, axes, eps, True) if normalize_variance else None


@mvn_6.bind
def _mvn_6_bind(data: Fact, axes: Fact, *, normalize_variance: bool, eps: float, eps_mode: str) -> Callable[..., np.ndarray] | None:
    known = axes.ints()
    if known is None or data.shape is None or not normalize_variance:
        return None
    return _bound(data, sorted(normalize_axes(known, len(data.shape))), eps, eps_mode == "inside_sqrt")


def _channels(data: Fact, parts: dict[str, Fact]) -> Fact:
    """Data of rank 2 and more, and one number for each channel in every part."""
    kind = unify_elements(data, *parts.values())
    check_float(Fact(kind, None), "data")
    check(data.rank is None or data.rank >= 2, f"data {data} has no channels")
    size: Size = ANY if data.shape is None else data.shape[1]
    for what, fact in parts.items():
        check(fact.rank in (None, 1), f"{what} has shape {fact}, expected rank 1")
        if fact.shape:
            check_same = f"{what} has {fact.shape[0]} numbers, there are {size} channels"
            check(not (isinstance(size, int) and isinstance(fact.shape[0], int)) or size == fact.shape[0], check_same)
            size = meet(size, fact.shape[0])
    shape = None if data.shape is None else (data.shape[0], size, *data.shape[2:])
    return Fact(kind, shape)


def _batch_norm(
    data: np.ndarray, gamma: np.ndarray, beta: np.ndarray, mean: np.ndarray, variance: np.ndarray, epsilon: float
) -> np.ndarray:
    along = (1, -1) + (1,) * (data.ndim - 2)
    scale = gamma / np.sqrt(variance + data.dtype.type(epsilon))
    return (data - mean.reshape(along)) * scale.reshape(along) + beta.reshape(along)


def _folded(gamma: Fact, beta: Fact, mean: Fact, variance: Fact, epsilon: float, rank: int | None) -> tuple[np.ndarray, np.ndarray] | None:
    """The factor and the summand of each channel, where all statistics are constants."""
    values = [fact.known for fact in (gamma, beta, mean, variance)]
    if rank is None or any(value is None or value.dtype != np.float32 for value in values):
        return None
    g, b, m, v = (value.astype(np.float64) for value in values if value is not None)
    along = (1, -1) + (1,) * (rank - 2)
    scale = g / np.sqrt(v + epsilon)
    return scale.astype(np.float32).reshape(along), (b - m * scale).astype(np.float32).reshape(along)


def _scaled(data: np.ndarray, scale: np.ndarray, shift: np.ndarray) -> np.ndarray:
    result = data * scale
    result += shift
    return result


@op("BatchNormInference", since=1, widen=True, tolerance=1e-5)
def batch_norm_inference_1(
    gamma: np.ndarray, beta: np.ndarray, data: np.ndarray, mean: np.ndarray, variance: np.ndarray, *, epsilon: float
) -> np.ndarray:
    """gamma * (data - mean) / sqrt(variance + epsilon) + beta, channel by channel.

    In opset 1 gamma and beta come before the data, as OpenVINO's own operation has them.
    Source: BatchNormInference-1 and openvino ``batch_norm.cpp``.
    """
    return _batch_norm(data, gamma, beta, mean, variance, epsilon)


@batch_norm_inference_1.shape_rule
def _batch_norm_inference_1_facts(gamma: Fact, beta: Fact, data: Fact, mean: Fact, variance: Fact, *, epsilon: float) -> Fact:
    check(epsilon >= 0, f"epsilon {epsilon:g} is negative")
    return _channels(data, {"gamma": gamma, "beta": beta, "mean": mean, "variance": variance})


@batch_norm_inference_1.bind
def _batch_norm_inference_1_bind(
    gamma: Fact, beta: Fact, data: Fact, mean: Fact, variance: Fact, *, epsilon: float
) -> Callable[..., np.ndarray] | None:
    folded = _folded(gamma, beta, mean, variance, epsilon, data.rank)
    return None if folded is None else lambda g, b, x, m, v: _scaled(x, *folded)


@op("BatchNormInference", since=5, widen=True, tolerance=1e-5)
def batch_norm_inference_5(
    data: np.ndarray, gamma: np.ndarray, beta: np.ndarray, mean: np.ndarray, variance: np.ndarray, *, epsilon: float
) -> np.ndarray:
    """gamma * (data - mean) / sqrt(variance + epsilon) + beta, channel by channel. Source: BatchNormInference-5."""
    return _batch_norm(data, gamma, beta, mean, variance, epsilon)


@batch_norm_inference_5.shape_rule
def _batch_norm_inference_5_facts(data: Fact, gamma: Fact, beta: Fact, mean: Fact, variance: Fact, *, epsilon: float) -> Fact:
    check(epsilon >= 0, f"epsilon {epsilon:g} is negative")
    return _channels(data, {"gamma": gamma, "beta": beta, "mean": mean, "variance": variance})


@batch_norm_inference_5.bind
def _batch_norm_inference_5_bind(
    data: Fact, gamma: Fact, beta: Fact, mean: Fact, variance: Fact, *, epsilon: float
) -> Callable[..., np.ndarray] | None:
    folded = _folded(gamma, beta, mean, variance, epsilon, data.rank)
    return None if folded is None else lambda x, g, b, m, v: _scaled(x, *folded)


@op("NormalizeL2", since=1, widen=True, tolerance=4e-6)
def normalize_l2_1(data: np.ndarray, axes: np.ndarray, *, eps: float, eps_mode: Literal["add", "max"]) -> np.ndarray:
    """Over the root of the sum of squares along ``axes``, to which eps is added, or which is at least eps.

    Without axes every number but 0 becomes 1, whatever its sign. Source: NormalizeL2-1 and openvino ``reference/normalize_l2.hpp``.
    """
    places = normalize_axes([int(axis) for axis in axes.ravel().tolist()], data.ndim)
    if not places:
        return (data != 0).astype(data.dtype)
    total = (data * data).sum(places, keepdims=True, dtype=data.dtype)
    small = data.dtype.type(eps)
    return data / np.sqrt(total + small if eps_mode == "add" else np.maximum(total, small))


@normalize_l2_1.shape_rule
def _normalize_l2_1_facts(data: Fact, axes: Fact, *, eps: float, eps_mode: str) -> Fact:
    return _along(data, axes)


@op("LRN", since=1, widen=True, tolerance=4e-6)
def lrn_1(data: np.ndarray, axes: np.ndarray, *, alpha: float, beta: float, bias: float, size: Positive) -> np.ndarray:
    """Over (bias + alpha * mean square of the neighbours along ``axes``) to the power of beta.

    The window reaches (size - 1) // 2 places to each side, so that an even size loses one, and places
    outside count as 0; the mean is over ``size`` all the same. Source: LRN-1, openvino ``reference/lrn.hpp``.
    """
    places = normalize_axes([int(axis) for axis in axes.ravel().tolist()], data.ndim)
    total = data * data
    for axis in places:
        reach = (size - 1) // 2
        moved = pad(np.moveaxis(total, axis, -1), ((reach,), (reach,)))
        total = np.moveaxis(windows(moved, (2 * reach + 1,), (1,), (1,), (data.shape[axis],)).sum(-1, dtype=data.dtype), -1, axis)
    kind = data.dtype.type
    return data / (kind(bias) + kind(alpha / size ** len(places)) * total) ** kind(beta)


@lrn_1.shape_rule
def _lrn_1_facts(data: Fact, axes: Fact, *, alpha: float, beta: float, bias: float, size: int) -> Fact:
    check_vector(axes, "axes")
    return _along(data, axes)


@op("GroupNormalization", since=12, widen=True, tolerance=1e-5)
def group_normalization_12(data: np.ndarray, scale: np.ndarray, bias: np.ndarray, *, num_groups: Positive, epsilon: float) -> np.ndarray:
    """Each group of channels to mean 0 and variance 1, then scaled and shifted channel by channel.

    Source: GroupNormalization-12.
    """
    grouped = data.reshape(data.shape[0], num_groups, math.prod(data.shape[1:]) // num_groups)
    normal = _mvn(grouped, (2,), True, epsilon, True).reshape(data.shape)
    along = (1, -1) + (1,) * (data.ndim - 2)
    return normal * scale.reshape(along) + bias.reshape(along)


@group_normalization_12.bind
def _group_normalization_12_bind(
    data: Fact, scale: Fact, bias: Fact, *, num_groups: int, epsilon: float
) -> Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray] | None:
    if data.element is not F32:
        return None

    def run(data: np.ndarray, scale: np.ndarray, bias: np.ndarray) -> np.ndarray:
        if not data.size:
            return data.copy()
        grouped = data.reshape(len(data), num_groups, data.shape[1] // num_groups, math.prod(data.shape[2:]))
        parts = (part.reshape(num_groups, -1) for part in (scale, bias))
        factors, terms = (np.tile(part, (len(data), 1)) for part in parts)
        return normal_groups(grouped.reshape(-1, *grouped.shape[2:]), factors, terms, epsilon).reshape(data.shape)

    return run


@group_normalization_12.shape_rule
def _group_normalization_12_facts(data: Fact, scale: Fact, bias: Fact, *, num_groups: int, epsilon: float) -> Fact:
    fact = _channels(data, {"scale": scale, "bias": bias})
    if fact.shape is not None and isinstance(fact.shape[1], int):
        check(fact.shape[1] % num_groups == 0, f"{fact.shape[1]} channels cannot be split into {num_groups} groups")
    return fact


@op("GRN", since=1, widen=True, tolerance=4e-6)
def grn_1(data: np.ndarray, *, bias: float) -> np.ndarray:
    """Over the root of bias + the sum of squares along the channels. Source: GRN-1."""
    return data / np.sqrt((data * data).sum(1, keepdims=True, dtype=data.dtype) + data.dtype.type(bias))


@grn_1.shape_rule
def _grn_1_facts(data: Fact, *, bias: float) -> Fact:
    check_float(data, "data")
    check(data.rank is None or 2 <= data.rank <= 4, f"data {data} does not have rank 2 to 4")
    return Fact(data.element, data.shape)
