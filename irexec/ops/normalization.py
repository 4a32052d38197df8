"""Normalization, and reductions along axes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any, Literal

import numpy as np

from irexec.errors import check
from irexec.ir.dims import ANY, PartialShape, Size, join
from irexec.ir.facts import Fact, integers
from irexec.reference.windows import pad, windows
from irexec.schema.attributes import Ints, Positive
from irexec.schema.opdef import (
    BOOLEAN_TYPE,
    NUMERIC,
    AxesTensor,
    ElementSet,
    FloatTensor,
    FloatVector,
    IntegerVector,
    Rank,
    unchanged,
)
from irexec.schema.registry import op
from irexec.schema.shape_rules import mvn_2_axes, normalize_axes, unify_elements, unify_sizes

ChannelsTensor = Annotated[FloatTensor, Rank(2, None)]
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
    return batch_norm_inference_5.kernel(data, gamma, beta, mean, variance, epsilon=epsilon)


@batch_norm_inference_1.shape_rule
def _batch_norm_inference_1_facts(
    gamma: Fact, beta: Fact, data: Fact, mean: Fact, variance: Fact, *, epsilon: float
) -> Fact:
    return _batch_norm_inference_5_facts(data, gamma, beta, mean, variance, epsilon=epsilon)


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
    along = (1, -1) + (1,) * (data.ndim - 2)
    scale = gamma / np.sqrt(variance + data.dtype.type(epsilon))
    return (data - mean.reshape(along)) * scale.reshape(along) + beta.reshape(along)


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


# A function of an array, ``axis`` (a tuple of int) and ``keepdims``, as NumPy's reductions are.
Reduction = Callable[..., Any]


def reduced_shape(data: Fact, axes: Fact, keep_dims: bool) -> PartialShape:
    """The shape of the result; sizes or the rank are unknown where the axes are."""
    if data.shape is None:
        return None
    known = axes.ints("axes")
    rank = len(data.shape)
    if known is None and rank > 0:
        count = 1 if axes.rank == 0 else axes.shape[0] if axes.shape else None
        if keep_dims:
            # A size is kept or becomes 1.
            return tuple(join(size, 1) for size in data.shape)
        # Several axes may be the same one twice.
        return (ANY,) * (rank - count) if isinstance(count, int) and count <= min(rank, 1) else None
    reduced = set(normalize_axes(known or [], rank, scalar=True))
    if keep_dims:
        return tuple(1 if i in reduced else size for i, size in enumerate(data.shape))
    return tuple(size for i, size in enumerate(data.shape) if i not in reduced)


def _define(type: str, since: int, function: Reduction, doc: str, elements: ElementSet = NUMERIC, **flags: Any) -> None:
    def kernel(data: np.ndarray, axes: AxesTensor, *, keep_dims: bool = False) -> np.ndarray:
        reduced = tuple(sorted(set(normalize_axes(integers(np.asarray(axes), "axes"), data.ndim, scalar=True))))
        with np.errstate(all="ignore"):
            result = np.asarray(function(data, axis=reduced, keepdims=keep_dims))
        return result if result.dtype == data.dtype else result.astype(data.dtype)

    kernel.__doc__ = f"{doc} Source: {type}-{since}."
    kernel.__annotations__["data"] = Annotated[np.ndarray, elements]
    definition = op(type, since, **flags)(kernel)

    @definition.shape_rule
    def shape_rule(data: Fact, axes: Fact, *, keep_dims: bool = False) -> Fact:
        return Fact(data.element, reduced_shape(data, axes, keep_dims))


def _sum(x: np.ndarray, **along: Any) -> Any:
    return np.sum(x, dtype=None if x.dtype == object else x.dtype, **along)


def _mean_along(x: np.ndarray, **along: Any) -> Any:
    """For floats in double precision; for integers the sum, which wraps, divided by the count and truncated."""
    count = int(np.prod([x.shape[axis] for axis in along["axis"]], dtype=np.int64))
    if count == 0:
        return np.zeros_like(_sum(x, **along))
    if x.dtype == np.float32:
        return np.mean(x, dtype=np.float64, **along).astype(np.float32)
    total = _sum(x, **along)
    if x.dtype.kind == "f":
        return total / x.dtype.type(count)
    return (np.abs(total) // count) * np.sign(total) if x.dtype.kind == "i" else total // x.dtype.type(count)


def _extreme(function: np.ufunc, ignoring_nan: np.ufunc, lowest: bool) -> Reduction:
    """``function``; for floats ``ignoring_nan``, which gives NaN only where all elements are NaN."""

    def reduce(x: np.ndarray, **along: Any) -> Any:
        used = ignoring_nan if x.dtype.kind == "f" else function
        if x.size or x.dtype == object:
            return used.reduce(x, **along)
        return used.reduce(x, initial=_bound(x.dtype, lowest), **along)

    return reduce


def _bound(dtype: np.dtype, lowest: bool) -> Any:
    """The maximum (minimum) of no elements: the lowest (highest) value of the type.

    For floats an infinity, as in ONNX: IR's specification does not define it, and OpenVINO's reference gives the lowest
    finite f32 for the maximum, and infinity for the minimum.
    """
    if dtype.kind == "f":
        return dtype.type(-np.inf if lowest else np.inf)
    return np.iinfo(dtype).min if lowest else np.iinfo(dtype).max


def _prod(x: np.ndarray, **along: Any) -> Any:
    return np.prod(x, dtype=None if x.dtype == object else x.dtype, **along)


def _l1(x: np.ndarray, **along: Any) -> Any:
    return _sum(np.abs(x), **along)


def _l2(x: np.ndarray, **along: Any) -> Any:
    return np.sqrt(_sum(x * x, **along))


_define("ReduceSum", 1, _sum, "The sum; integers wrap.", symbolic=True, widen=True, tolerance=4e-6)
_define("ReduceMean", 1, _mean_along, "The mean; 0 for no elements, as in OpenVINO.", widen=True, tolerance=4e-6)
_define("ReduceProd", 1, _prod, "The product; integers wrap.", symbolic=True, widen=True, tolerance=4e-6)
_define(
    "ReduceMax",
    1,
    _extreme(np.maximum, np.fmax, True),
    "The maximum, NaN only where all elements are NaN; for no elements the lowest value of the type.",
    symbolic=True,
)
_define(
    "ReduceMin",
    1,
    _extreme(np.minimum, np.fmin, False),
    "The minimum, NaN only where all elements are NaN; for no elements the highest value of the type.",
    symbolic=True,
)
_define("ReduceL1", 4, _l1, "The sum of absolute values.", widen=True, tolerance=4e-6)
_define("ReduceL2", 4, _l2, "The square root of the sum of squares.", widen=True, tolerance=4e-6)
_define("ReduceLogicalAnd", 1, np.all, "Whether all are true.", BOOLEAN_TYPE)
_define("ReduceLogicalOr", 1, np.any, "Whether any is true.", BOOLEAN_TYPE)
