"""Activations, other element-wise operations, normalisation and attention in older operations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from irexec.authoring.downgrade.layer import ONE, Layer, rewrites
from irexec.authoring.tensor import Tensor, constant
from irexec.schema.shape_rules import mvn_2_axes


def _floats(layer: Layer) -> Sequence[Tensor]:
    """The inputs, which must be floats: integers are computed in f32 and rounded."""
    layer.refuse_unless(layer.element().is_float, "integers are computed in f32 and rounded")
    return layer.inputs


@rewrites("Softmax", 8)
def _softmax(layer: Layer) -> Any:
    """Softmax-1 counts axes from the front."""
    return layer.same(1, axis=layer.axis(layer["axis"]))


@rewrites("LogSoftmax", 5)
def _log_softmax(layer: Layer) -> Any:
    (x,) = layer.inputs
    axis = [layer.axis(layer["axis"])]
    shifted = ONE.subtract(x, ONE.reduce_max(x, axis, keep_dims=True))
    return ONE.subtract(shifted, ONE.log(ONE.reduce_sum(ONE.exp(shifted), axis, keep_dims=True)))


@rewrites("Gelu", 7)
def _gelu_7(layer: Layer) -> Any:
    if layer["approximation_mode"] == "erf":
        return layer.same(2, leave=["approximation_mode"])
    (x,) = layer.inputs
    cubic = ONE.multiply(ONE.multiply(ONE.multiply(x, x), x), layer.number(0.044715))
    inner = ONE.multiply(ONE.add(x, cubic), layer.number(math.sqrt(2 / math.pi)))
    return ONE.multiply(ONE.multiply(x, layer.number(0.5)), ONE.add(ONE.tanh(inner), layer.number(1)))


@rewrites("Gelu", 2)
def _gelu_2(layer: Layer) -> Any:
    (x,) = layer.inputs
    erf = ONE.erf(ONE.multiply(x, layer.number(math.sqrt(0.5))))
    return ONE.multiply(ONE.multiply(x, layer.number(0.5)), ONE.add(erf, layer.number(1)))


@rewrites("Swish", 4)
def _swish(layer: Layer) -> Any:
    x, *beta = _floats(layer)
    return ONE.multiply(x, ONE.sigmoid(ONE.multiply(x, *beta) if beta else x))


@rewrites("SoftSign", 9)
def _soft_sign(layer: Layer) -> Any:
    (x,) = _floats(layer)
    return ONE.divide(x, ONE.add(ONE.abs(x), layer.number(1)))


@rewrites("SoftPlus", 4)
def _soft_plus(layer: Layer) -> Any:
    """max(x, 0) + log(1 + exp(-|x|)), which does not overflow."""
    (x,) = _floats(layer)
    rest = ONE.log(ONE.add(ONE.exp(ONE.negative(ONE.abs(x))), layer.number(1)))
    return ONE.add(ONE.relu(x), rest)


@rewrites("Mish", 4)
def _mish(layer: Layer) -> Any:
    (x,) = _floats(layer)
    return ONE.multiply(x, ONE.tanh(_soft_plus(layer)))


@rewrites("HSwish", 4)
def _h_swish(layer: Layer) -> Any:
    (x,) = _floats(layer)
    gate = ONE.clamp(ONE.add(x, layer.number(3)), min=0, max=6)
    return ONE.divide(ONE.multiply(x, gate), layer.number(6))


@rewrites("HSigmoid", 5)
def _h_sigmoid(layer: Layer) -> Any:
    (x,) = _floats(layer)
    return ONE.divide(ONE.clamp(ONE.add(x, layer.number(3)), min=0, max=6), layer.number(6))


@rewrites("IsNaN", 10)
def _is_nan(layer: Layer) -> Any:
    (x,) = layer.inputs
    return ONE.not_equal(x, x)


@rewrites("IsFinite", 10)
def _is_finite(layer: Layer) -> Any:
    (x,) = layer.inputs
    return ONE.less(ONE.abs(x), layer.number(math.inf))


@rewrites("IsInf", 10)
def _is_inf(layer: Layer) -> Any:
    (x,) = layer.inputs
    negative, positive = layer["detect_negative"], layer["detect_positive"]
    if negative and positive:
        return ONE.equal(ONE.abs(x), layer.number(math.inf))
    if not (negative or positive):
        return ONE.less(ONE.abs(x), layer.number(0))  # false everywhere, NaN included
    return ONE.equal(x, layer.number(math.inf if positive else -math.inf))


@rewrites("BitwiseAnd", 13)
@rewrites("BitwiseOr", 13)
@rewrites("BitwiseXor", 13)
def _bitwise(layer: Layer) -> Any:
    layer.refuse_unless(layer.element().kind == "boolean", "no older operation works on the bits of integers")
    logical = getattr(ONE, layer.definition.type.lower().replace("bitwise", "logical_"))
    return logical(*layer.inputs, **layer.attributes)


@rewrites("BitwiseNot", 13)
def _bitwise_not(layer: Layer) -> Any:
    """Minus x minus 1, or the largest number minus x."""
    (x,), element = layer.inputs, layer.element()
    if element.kind == "boolean":
        return ONE.logical_not(x)
    highest = -1 if element.kind == "signed" else element.limits[1]
    if element.bits >= 32:
        return ONE.subtract(layer.number(highest), x)
    # Arithmetic of bytes is not what the plugins of old releases compute.
    wide = ONE.subtract(constant(highest, "i32"), ONE.convert(x, destination_type="i32"))
    return ONE.convert(wide, destination_type=element)


@rewrites("Identity", 16)
def _identity(layer: Layer) -> Any:
    return layer.unchanged()


@rewrites("ConvertPromoteTypes", 14)
def _convert_promote_types(layer: Layer) -> Any:
    made = []
    for source, output in zip(layer.inputs, layer.outputs, strict=True):
        layer.refuse_unless(output.element is not None, "the common type is not known")
        made.append(
            source if source.element is output.element else ONE.convert(source, destination_type=output.element)
        )
    return tuple(made)


@rewrites("MVN", 2, 6)
def _mvn(layer: Layer) -> Any:
    x, *lists = layer.inputs
    axes: list[Any] = lists or [list(mvn_2_axes(layer.rank(), layer["across_channels"], layer["reduction_axes"]))]
    centred = ONE.subtract(x, ONE.reduce_mean(x, *axes, keep_dims=True))
    if not layer["normalize_variance"]:
        return centred
    variance = ONE.reduce_mean(ONE.multiply(centred, centred), *axes, keep_dims=True)
    epsilon = layer.number(layer["eps"])
    if layer.attributes.get("eps_mode", "inside_sqrt") == "inside_sqrt":
        return ONE.divide(centred, ONE.sqrt(ONE.add(variance, epsilon)))
    return ONE.divide(centred, ONE.add(ONE.sqrt(variance), epsilon))


@rewrites("BatchNormInference", 5)
def _batch_norm_5(layer: Layer) -> Any:
    """In opset 1 gamma and beta come first."""
    data, gamma, beta, mean, variance = layer.inputs
    return layer.same(1, gamma, beta, data, mean, variance)


@rewrites("GroupNormalization", 12)
def _group_normalization(layer: Layer) -> Any:
    """The groups are an axis of their own while they are normalised."""
    data, scale, bias = layer.inputs
    rank, groups = layer.rank(), layer["num_groups"]
    grouped = ONE.reshape(data, [0, groups, -1], special_zero=True)
    mean = ONE.reduce_mean(grouped, [2], keep_dims=True)
    centred = ONE.subtract(grouped, mean)
    variance = ONE.reduce_mean(ONE.multiply(centred, centred), [2], keep_dims=True)
    normal = ONE.divide(centred, ONE.sqrt(ONE.add(variance, layer.number(layer["epsilon"]))))
    whole = ONE.reshape(normal, ONE.shape_of(data), special_zero=False)
    along = [i for i in range(rank) if i != 1]
    factor, shift = (ONE.unsqueeze(vector, along) for vector in (scale, bias))
    return ONE.add(ONE.multiply(whole, factor), shift)


@rewrites("ScaledDotProductAttention", 13)
def attention(layer: Layer) -> Any:
    """softmax(query @ key.T * scale + mask) @ value."""
    query, key, value, *others = layer.inputs
    mask, scale = (others[i] if len(others) > i else None for i in range(2))
    rank = layer.rank()
    layer.refuse_unless(layer.rank(1) == rank, "query and key have different ranks")
    if scale is None:
        size = layer.sizes()[-1]
        scale = layer.number(1 / math.sqrt(size)) if isinstance(size, int) else _scale(layer)
    else:
        scale = ONE.reshape(scale, constant(np.zeros(0), "i64"), special_zero=False)
    scores = ONE.matmul(ONE.multiply(query, scale), key, transpose_b=True)
    low = layer.number(-math.inf)
    if layer["causal"]:
        lower = np.tri(layer.static()[-2], layer.static(1)[-2], dtype=bool)
        scores = ONE.select(constant(lower, "boolean"), scores, low)
    elif mask is not None and mask.element is not None and mask.element.kind == "boolean":
        scores = ONE.select(mask, scores, low)
    elif mask is not None:
        scores = ONE.add(scores, mask)
    axis = (scores.fact.rank or 0) - 1
    layer.refuse_unless(axis >= 0, "the rank of the scores is not known")
    return ONE.matmul(_weights(scores, axis, *others[2:]), value)


def _scale(layer: Layer) -> Tensor:
    """One by the root of the last size of the query, which is not known before the model runs."""
    size = ONE.gather(ONE.shape_of(layer.inputs[0]), constant(layer.rank() - 1, "i64"), constant(0, "i64"))
    return ONE.power(ONE.convert(size, destination_type=layer.element()), layer.number(-0.5))


def _weights(scores: Tensor, axis: int, *sinks: Tensor) -> Tensor:
    """The softmax of scores, among which a sink is one more score of no value."""
    if not sinks:
        return ONE.softmax(scores, axis=axis)
    (sink,) = sinks
    highest = ONE.maximum(ONE.reduce_max(scores, [axis], keep_dims=True), sink)
    shares = ONE.exp(ONE.subtract(scores, highest))
    return ONE.divide(
        shares, ONE.add(ONE.reduce_sum(shares, [axis], keep_dims=True), ONE.exp(ONE.subtract(sink, highest)))
    )
