"""Activations with parameters, Softmax and LogSoftmax, and scaled dot-product attention."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Literal

import numpy as np

from irexec.dtypes.elements import BOOLEAN
from irexec.errors import check
from irexec.ir.dims import ANY, PartialShape, Size, broadcastable_to, may_equal, shape_text
from irexec.ir.facts import Fact
from irexec.reference.integers import through_float
from irexec.reference.products import log_softmax, matmul, score_scale, softmax, softmax_with_sink
from irexec.reference.special import elu, gelu, gelu_tanh, swish
from irexec.schema.opdef import ONE_ELEMENT, SCALAR, FloatTensor, NumericTensor, Rank, Tensor, unchanged
from irexec.schema.registry import op
from irexec.schema.shape_rules import broadcast, normalize_axis, unify_elements, unify_sizes

FloatScalar = Annotated[FloatTensor, SCALAR]
FloatElement = Annotated[FloatTensor, ONE_ELEMENT]
NumericScalar = Annotated[NumericTensor, SCALAR]


@op("Clamp", since=1)
def clamp_1(data: NumericTensor, *, min: float, max: float) -> np.ndarray:
    """min(max(x, min), max); for integers min is rounded up and max down. Source: Clamp-1."""
    if data.dtype.kind == "f":
        return np.clip(data, data.dtype.type(min), data.dtype.type(max))
    limits = np.iinfo(data.dtype)
    low, high = _integer_bound(min, math.ceil, limits), _integer_bound(max, math.floor, limits)
    return np.clip(data, data.dtype.type(low), data.dtype.type(high))


def _integer_bound(bound: float, round_: Callable[[float], int], limits: np.iinfo) -> int:
    if math.isinf(bound) or bound >= limits.max or bound <= limits.min:
        return limits.max if bound > 0 else limits.min
    return round_(bound)


@clamp_1.shape_rule
def _clamp_1_facts(data: Fact, *, min: float, max: float) -> Fact:
    check(min <= max, f"min {min:g} is above max {max:g}")
    return Fact(data.element, data.shape)


@op("Elu", since=1, widen=True, tolerance=2e-6)
def elu_1(data: NumericTensor, *, alpha: float) -> np.ndarray:
    """x where it is positive, alpha * (exp(x) - 1) elsewhere; results of integers are rounded. Source: Elu-1."""
    return through_float(lambda x: elu(x, alpha), data)


elu_1.shape_rule(unchanged)


@op("Selu", since=1, widen=True, tolerance=2e-6)
def selu_1(data: FloatTensor, alpha: FloatElement, lambda_: FloatElement) -> np.ndarray:
    """lambda * (x where it is positive, alpha * (exp(x) - 1) elsewhere). Source: Selu-1."""
    alpha, scale = alpha.reshape(-1)[0], lambda_.reshape(-1)[0]
    return scale * np.where(data > 0, data, alpha * np.expm1(np.minimum(data, data.dtype.type(0))))


@op("HardSigmoid", since=1, widen=True)
def hard_sigmoid_1(data: NumericTensor, alpha: NumericScalar, beta: NumericScalar) -> np.ndarray:
    """min(max(alpha * x + beta, 0), 1). Source: HardSigmoid-1."""
    kind = data.dtype.type
    return np.clip(alpha.reshape(-1)[0] * data + beta.reshape(-1)[0], kind(0), kind(1))


@op("PRelu", since=1)
def prelu_1(data: NumericTensor, slope: NumericTensor) -> np.ndarray:
    """x where it is positive, slope * x elsewhere.

    A slope of rank 1 with one element per channel lies along axis 1; any other is broadcast to the data
    as NumPy does. The slope of floating-point data may have another floating-point type, as Model Optimizer wrote it.
    Source: PRelu-1 and openvino ``reference/prelu.hpp``.
    """
    if slope.ndim == 1 and data.ndim > 1 and slope.shape[0] == data.shape[1]:
        slope = slope.reshape((1, -1) + (1,) * (data.ndim - 2))
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where(data < 0, data * slope, data).astype(data.dtype, copy=False)


@prelu_1.shape_rule
def _prelu_1_facts(data: Fact, slope: Fact) -> Fact:
    if not all(fact.element is not None and fact.element.is_float for fact in (data, slope)):
        unify_elements(data, slope)
    if data.is_static and slope.is_static and data.shape is not None and slope.shape is not None:
        channels = len(slope.shape) == 1 and len(data.shape) > 1 and slope.shape[0] == data.shape[1]
        check(
            channels or broadcastable_to(slope.shape, data.shape), f"slope {slope} cannot be broadcast to data {data}"
        )
    return Fact(data.element, data.shape)


@op("Swish", since=4, widen=True, tolerance=2e-6)
def swish_4(data: FloatTensor, beta: FloatScalar | None = None) -> np.ndarray:
    """x / (1 + exp(-beta * x)), beta is 1 by default. Source: Swish-4."""
    with np.errstate(over="ignore", invalid="ignore"):
        return swish(data, 1 if beta is None else beta.reshape(-1)[0])


@selu_1.shape_rule
@hard_sigmoid_1.shape_rule
@swish_4.shape_rule
def _unchanged_with_parameters(data: Fact, *parameters: Fact) -> Fact:
    return Fact(unify_elements(data, *parameters), data.shape)


@op("Gelu", since=2, widen=True, tolerance=4e-6)
def gelu_2(data: FloatTensor) -> np.ndarray:
    """x * (1 + erf(x / sqrt(2))) / 2. Source: Gelu-2."""
    return gelu(data)


gelu_2.shape_rule(unchanged)


@op("Gelu", since=7, widen=True, tolerance=4e-6)
def gelu_7(data: FloatTensor, *, approximation_mode: Literal["erf", "tanh"] = "erf") -> np.ndarray:
    """x times the cumulative normal distribution of x, exactly (erf) or approximated by tanh. Source: Gelu-7."""
    return gelu_tanh(data) if approximation_mode == "tanh" else gelu(data)


gelu_7.shape_rule(unchanged)


@op("Softmax", since=1, widen=True, tolerance=4e-6)
def softmax_1(data: FloatTensor, *, axis: int = 1) -> np.ndarray:
    """exp(x) / sum(exp(x)) along ``axis``. Source: Softmax-1."""
    return softmax(data, axis)


@softmax_1.shape_rule
def _softmax_1_facts(data: Fact, *, axis: int) -> Fact:
    check(axis >= 0, f"axis {axis} is negative, which Softmax-1 does not allow")
    return _normalized_along(data, axis=axis)


@op("Softmax", since=8, widen=True, tolerance=4e-6)
def softmax_8(data: FloatTensor, *, axis: int = 1) -> np.ndarray:
    """exp(x) / sum(exp(x)) along ``axis``, which may be negative. Source: Softmax-8."""
    return softmax(data, axis)


@op("LogSoftmax", since=5, widen=True, tolerance=4e-6)
def log_softmax_5(data: FloatTensor, *, axis: int = 1) -> np.ndarray:
    """The logarithm of Softmax along ``axis``. Source: LogSoftmax-5."""
    return log_softmax(data, axis)


@softmax_8.shape_rule
@log_softmax_5.shape_rule
def _normalized_along(data: Fact, *, axis: int) -> Fact:
    if data.shape is not None:
        normalize_axis(axis, max(len(data.shape), 1))
    return Fact(data.element, data.shape)


Matrices = Annotated[FloatTensor, Rank(3, None)]


@op("ScaledDotProductAttention", since=13, widen=True, tolerance=1e-5)
def scaled_dot_product_attention_13(
    query: Matrices,
    key: Matrices,
    value: Matrices,
    attention_mask: Tensor | None = None,
    scale: FloatElement | None = None,
    sink: FloatTensor | None = None,
    *,
    causal: bool,
) -> np.ndarray:
    """softmax(query @ key.T * scale + mask) @ value, leading axes broadcast: (..., L, E), (..., S, E), (..., S, Ev) to
    (..., L, Ev).

    A boolean mask keeps the scores where it is true; ``causal`` keeps for row i the columns up to i, and ignores the
    mask. The sink is one more score of each row, broadcast to all of them, that adds to the sum of softmax and has no
    value (in OpenVINO 2026, not in the specification). A row without any score kept is NaN. ``scale`` is 1 / sqrt(E) by
    default. Source: ScaledDotProductAttention-13.
    """
    factor = score_scale(query, scale)
    with np.errstate(invalid="ignore", over="ignore"):
        scores = matmul(query * factor, np.swapaxes(key, -1, -2))
        if causal:
            scores = np.where(np.tri(*scores.shape[-2:], dtype=np.bool_), scores, scores.dtype.type(-np.inf))
        elif attention_mask is not None and attention_mask.dtype == np.bool_:
            scores = np.where(attention_mask, scores, scores.dtype.type(-np.inf))
        elif attention_mask is not None:
            scores = scores + attention_mask.astype(scores.dtype, copy=False)
        return matmul(softmax_with_sink(scores, sink), value)


@scaled_dot_product_attention_13.shape_rule
def _scaled_dot_product_attention_13_facts(
    query: Fact,
    key: Fact,
    value: Fact,
    attention_mask: Fact | None = None,
    scale: Fact | None = None,
    sink: Fact | None = None,
    *,
    causal: bool,
) -> Fact:
    kind = unify_elements(query, key, value, scale, sink)
    batch = broadcast([None if fact.shape is None else fact.shape[:-2] for fact in (query, key, value)])
    rows, source = _size(query.shape, -2), _size(key.shape, -2)
    unify_sizes("last axis of query and key", _size(query.shape, -1), _size(key.shape, -1))
    source = unify_sizes("length of key and value", source, _size(value.shape, -2))
    if attention_mask is not None and not causal:
        allowed = kind is None or attention_mask.element in (None, kind, BOOLEAN)
        check(allowed, f"attention_mask has element type {attention_mask.element}, expected {kind} or boolean")
        batch, rows = _with_mask(batch, attention_mask.shape, rows, source)
    if sink is not None and sink.shape is not None:
        check(
            query.rank in (None, len(sink.shape)),
            f"sink {shape_text(sink.shape)} does not have the rank of query, {query.rank}",
        )
        check(
            len(sink.shape) < 1 or may_equal(sink.shape[-1], 1),
            f"the last axis of sink is {sink.shape[-1]}, expected 1",
        )
        if batch is not None:
            target = (*batch, rows, 1)
            check(
                broadcastable_to(sink.shape, target),
                f"sink {shape_text(sink.shape)} cannot be broadcast to {shape_text(target)}",
            )
    return Fact(kind, None if batch is None else (*batch, rows, _size(value.shape, -1)))


def _size(shape: PartialShape, axis: int) -> Size:
    return ANY if shape is None else shape[axis]


def _with_mask(batch: PartialShape, mask: PartialShape, rows: Size, source: Size) -> tuple[PartialShape, Size]:
    """Leading axes and rows of the scores, broadcast with those of the mask unless it is a scalar.

    OpenVINO also infers a shape for a mask that is longer than the only key, but does not compile the model.
    """
    if mask == ():
        return batch, rows
    if mask is None:
        return None, ANY
    check(len(mask) >= 2, f"attention_mask has rank {len(mask)}, expected 0, or 2 or more")
    fits = may_equal(mask[-1], 1) or may_equal(mask[-1], source)
    check(fits, f"the last axis of attention_mask is {mask[-1]}, expected 1 or the length of key, {source}")
    scores = broadcast([(rows, source), mask[-2:]])
    return broadcast([batch, mask[:-2]]), ANY if scores is None else scores[0]
