"""Activations with parameters, and Softmax, LogSoftmax and Hardmax."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any, Literal

import numpy as np

from converters.onnx.algorithms.expression import Expression
from converters.onnx.context import TranslationContext
from converters.onnx.ops.ai_onnx.movement import flattened
from converters.onnx.ops.ai_onnx.sorting import first_extreme
from converters.onnx.registry import add, translates
from irexec.dtypes.elements import F32
from irexec.ir.graph import Value
from irexec.schema.inputs import ONE_ELEMENT


@translates("Elu")
def elu(ctx: TranslationContext, x: Value, *, alpha: float = 1.0) -> Value:
    return ctx.emit("Elu", x, alpha=alpha)


@translates("Selu")
def selu_1(ctx: TranslationContext, x: Value, *, alpha: float = 1.6732, gamma: float = 1.0507) -> Value:
    return ctx.emit("Selu", x, ctx.constant(alpha, x), ctx.constant(gamma, x))


@translates("Selu", since=6)
def selu_6(
    ctx: TranslationContext, x: Value, *, alpha: float = 1.67326319217681884765625,
    gamma: float = 1.05070102214813232421875,
) -> Value:  # fmt: skip
    return selu_1(ctx, x, alpha=alpha, gamma=gamma)


@translates("HardSigmoid")
def hard_sigmoid(ctx: TranslationContext, x: Value, *, alpha: float = 0.2, beta: float = 0.5) -> Value:
    return ctx.emit("HardSigmoid", x, ctx.constant(alpha, x), ctx.constant(beta, x))


@translates("LeakyRelu")
def leaky_relu(ctx: TranslationContext, x: Value, *, alpha: float = 0.01) -> Value:
    """A PRelu with a slope of shape [1]; data of rank 0 needs a slope without an axis."""
    if ctx.fact(x).shape == ():
        return prelu_7(ctx, x, ctx.constant(alpha, x))
    return ctx.emit("PRelu", x, ctx.constant([alpha], x))


@translates("PRelu")
def prelu_1(ctx: TranslationContext, x: Value, slope: Value) -> Value:
    """One slope for all elements, or one per channel."""
    if ctx.rank(slope) == 1 and ctx.sizes(slope)[0] != 1 and ctx.rank(x) > 2:
        slope = ctx.along_channels(slope, ctx.rank(x))
    return prelu_7(ctx, x, slope)


@translates("PRelu", since=7)
def prelu_7(ctx: TranslationContext, x: Value, slope: Value) -> Value:
    """ONNX broadcasts the slope from the last axis; IR reads a vector as one slope per channel."""
    slope = ctx.unsqueeze(slope, list(range(max(ctx.rank(x) - ctx.rank(slope), 0))))
    if ctx.element(x).is_float and ctx.rank(x) > 1:
        return ctx.emit("PRelu", x, slope)
    return ctx.emit("Select", ctx.emit("Less", x, ctx.constant(0, x)), ctx.emit("Multiply", x, slope), x)


@translates("ThresholdedRelu")
def thresholded_relu(ctx: TranslationContext, x: Value, *, alpha: float = 1.0) -> Value:
    """On trial before opset 10."""
    return ctx.emit("Select", ctx.emit("Greater", x, ctx.constant(alpha, x)), x, ctx.constant(0, x))


@translates("Celu", since=12)
def celu(ctx: TranslationContext, x: Value, *, alpha: float = 1.0) -> Value:
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1)); for a positive alpha, alpha times the Elu of x / alpha."""
    divided = ctx.emit("Divide", x, ctx.constant(alpha, x))
    if alpha > 0:
        return ctx.emit("Multiply", ctx.emit("Elu", divided, alpha=1.0), ctx.constant(alpha, x))
    curve = (Expression(ctx, divided).exp() - 1) * alpha
    return (Expression(ctx, x).maximum(0) + curve.minimum(0)).value


@translates("Gelu", since=20)
def gelu(ctx: TranslationContext, x: Value, *, approximate: Literal["none", "tanh"] = "none") -> Value:
    return ctx.emit("Gelu", x, approximation_mode="tanh" if approximate == "tanh" else "erf")


@translates("Swish", since=24)
def swish(ctx: TranslationContext, x: Value, *, alpha: float = 1.0) -> Value:
    return ctx.emit("Swish", x, ctx.constant(alpha, x))


@translates("SwiGLU", since=28)
def swiglu(ctx: TranslationContext, gate: Value, x: Value, *, alpha: float = 1.0) -> Value:
    """Swish of the gate times the second input."""
    return ctx.emit("Multiply", swish(ctx, gate, alpha=alpha), x)


@translates("Shrink", since=9)
def shrink(ctx: TranslationContext, x: Value, *, bias: float = 0.0, lambd: float = 0.5) -> Value:
    """x + bias below -lambd, x - bias above lambd, 0 between; integers are computed in f32."""
    kind = ctx.element(x)
    if not kind.is_float:
        return ctx.convert(shrink(ctx, ctx.convert(x, F32), bias=bias, lambd=lambd), kind)
    value = Expression(ctx, x)
    above = (value > lambd).select(value - bias, Expression(ctx, ctx.constant(0, x)))
    return (value < -lambd).select(value + bias, above).value


@translates("Clip")
def clip_1(ctx: TranslationContext, x: Value, *, min: float = -math.inf, max: float = math.inf) -> Value:
    """The minimum and the maximum of f32, defaults of later opsets, are no bounds."""
    limits = np.finfo(np.float32)
    low = None if min <= limits.min else ctx.constant(min, x)
    high = None if max >= limits.max else ctx.constant(max, x)
    return clip_11(ctx, x, low, high)


@translates("Clip", since=11)
def clip_11(
    ctx: TranslationContext, x: Value, low: Annotated[Value, ONE_ELEMENT] | None = None,
    high: Annotated[Value, ONE_ELEMENT] | None = None,
) -> Value:  # fmt: skip
    """The upper bound is applied last: it is the result if the bounds cross, which Clamp refuses."""
    bounds = [ctx.known(bound) for bound in (low, high)]
    if ctx.element(x).is_float and bounds[0] is not None and bounds[1] is not None:
        lower, upper = (float(bound.reshape(-1)[0]) for bound in bounds if bound is not None)
        if -math.inf < lower <= upper < math.inf:
            return ctx.emit("Clamp", x, min=lower, max=upper)
    if low is not None:
        x = ctx.emit("Maximum", x, low)
    return x if high is None else ctx.emit("Minimum", x, high)


def _flattened_before_13(ctx: TranslationContext, x: Value, axis: int, emit: Callable[[Value, int], Value]) -> Value:
    """The operator before opset 13, over the flattened axes from ``axis`` on."""
    rank = ctx.rank(x)
    first = rank if axis == rank else ctx.axis(axis, max(rank, 1))
    axes_over_1 = [i for i in range(first, rank) if ctx.sizes(x)[i] != 1]
    if first < rank and len(axes_over_1) <= 1:
        return emit(x, axes_over_1[0] if axes_over_1 else first)
    return ctx.emit("Reshape", emit(flattened(ctx, x, first), 1), ctx.shape_of(x), special_zero=False)


def _softmax_like(operator: str, emit: Callable[[TranslationContext, Value, int], Any]) -> None:
    def old(ctx: TranslationContext, x: Value, *, axis: int = 1) -> Any:
        return _flattened_before_13(ctx, x, axis, lambda value, softmax_axis: emit(ctx, value, softmax_axis))

    def new(ctx: TranslationContext, x: Value, *, axis: int = -1) -> Any:
        return emit(ctx, x, axis if ctx.fact(x).shape is None else ctx.axis(axis, max(ctx.rank(x), 1)))

    add(operator, 1, "", old)
    add(operator, 13, "", new)


def _hardmax(ctx: TranslationContext, x: Value, axis: int) -> Value:
    """1 at the first maximum along the axis, else 0."""
    index = ctx.emit("Squeeze", first_extreme(ctx, x, "max", axis), [axis], version=1)
    return ctx.emit("OneHot", index, ctx.size(x, axis), ctx.constant(1, x), ctx.constant(0, x), axis=axis, version=1)


_softmax_like("Softmax", lambda ctx, x, axis: ctx.emit("Softmax", x, axis=axis))
_softmax_like("LogSoftmax", lambda ctx, x, axis: ctx.emit("LogSoftmax", x, axis=axis))
_softmax_like("Hardmax", _hardmax)
