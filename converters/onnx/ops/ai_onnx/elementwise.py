"""Element-wise operators: arithmetic, comparisons, logic, bits, functions, activations with parameters, Softmax.

Source: ONNX 1.3 ``defs/experiments``, and ONNX Runtime, which runs them up to opset 9.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any, Literal

import numpy as np

from converters.onnx.algorithms.expression import (
    Expression,
    add_binary,
    add_binary_with_axis,
    add_elementwise,
    emit_binary,
)
from converters.onnx.context import TranslationContext
from converters.onnx.ops.ai_onnx.indexing import first_extreme, slice_10
from converters.onnx.ops.ai_onnx.movement import flattened
from converters.onnx.registry import add, translates
from irexec.dtypes.elements import F32
from irexec.errors import OpError
from irexec.ir.graph import Value
from irexec.schema.opdef import ONE_ELEMENT, Rank


def _divide(ctx: TranslationContext, x: Value, y: Value) -> Any:
    """Integers are divided towards zero."""
    return ctx.emit("Divide", x, y, m_pythondiv=not ctx.element(x).is_integer)


def _power(ctx: TranslationContext, x: Value, y: Value) -> Any:
    """Power in the exponent's type if that is the wider float; the result has the type of the base."""
    base, exponent = ctx.element(x), ctx.element(y)
    wide = exponent if exponent.is_float and (base.is_integer or exponent.bits > base.bits) else base
    return ctx.convert(ctx.emit("Power", ctx.convert(x, wide), ctx.convert(y, wide)), base)


for _operator, _type in {"Add": "Add", "Sub": "Subtract", "Mul": "Multiply"}.items():
    add_binary_with_axis(_operator, emit_binary(_type))
add_binary_with_axis("Div", _divide)
add_binary_with_axis("Pow", _power)


@translates("Mod", since=10)
def mod(ctx: TranslationContext, x: Value, y: Value, *, fmod: int = 0) -> Value:
    """The remainder; its sign is the dividend's with fmod, else the divisor's."""
    return ctx.emit("Mod" if fmod else "FloorMod", x, y)


def _fold(ctx: TranslationContext, type: str, inputs: tuple[Value, ...]) -> Value:
    if not inputs:
        raise OpError("it has no inputs")
    result = inputs[0]
    for value in inputs[1:]:
        result = ctx.emit(type, result, value)
    return result


def _folding(type: str) -> Callable[..., Value]:
    def translate(ctx: TranslationContext, *inputs: Value) -> Value:
        return _fold(ctx, type, inputs)

    return translate


for _operator, _type in {"Max": "Maximum", "Min": "Minimum", "Sum": "Add"}.items():
    add(_operator, 1, "", _folding(_type))


@translates("Mean")
def mean(ctx: TranslationContext, *inputs: Value) -> Value:
    return ctx.emit("Divide", _fold(ctx, "Add", inputs), ctx.constant(len(inputs), inputs[0]))


for _operator in ("Equal", "Greater", "Less"):
    add_binary_with_axis(_operator, emit_binary(_operator))
add_binary("GreaterOrEqual", 12, emit_binary("GreaterEqual"))
add_binary("LessOrEqual", 12, emit_binary("LessEqual"))
add_elementwise("IsNaN", 9, "IsNaN")


@translates("IsInf", since=10)
def is_inf(ctx: TranslationContext, x: Value, *, detect_negative: int = 1, detect_positive: int = 1) -> Value:
    return ctx.emit("IsInf", x, detect_negative=bool(detect_negative), detect_positive=bool(detect_positive))


for _operator in ("And", "Or", "Xor"):
    add_binary_with_axis(_operator, emit_binary(f"Logical{_operator}"))
for _operator in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
    add_binary(_operator, 18, emit_binary(_operator))
add_elementwise("Not", 1, "LogicalNot")
add_elementwise("BitwiseNot", 18, "BitwiseNot")


@translates("BitShift", since=11)
def bit_shift(ctx: TranslationContext, x: Value, y: Value, *, direction: Literal["LEFT", "RIGHT"]) -> Value:
    """A shift by at least the width of the type, or by a negative amount, leaves the sign; IR does not define it."""
    kind, type = ctx.element(x), "BitwiseLeftShift" if direction == "LEFT" else "BitwiseRightShift"
    amounts = ctx.known(y)
    if amounts is not None and bool(((amounts >= 0) & (amounts < kind.bits)).all()):
        return ctx.emit(type, x, y)
    shift = Expression(ctx, y)
    beyond = shift > (kind.bits - 1)
    if kind.kind == "signed":
        beyond = beyond | (shift < 0)
    shifted = Expression(ctx, ctx.emit(type, x, beyond.select(0, shift).value))
    if kind.kind == "signed" and direction == "RIGHT":
        return beyond.select(Expression(ctx, ctx.emit(type, x, ctx.constant(kind.bits - 1, y))), shifted).value
    return beyond.select(0, shifted).value


@translates("Where", since=9)
def where(ctx: TranslationContext, condition: Value, x: Value, y: Value) -> Value:
    return ctx.emit("Select", condition, x, y)


# By the opset in which the operator appeared: ONNX's name and IR's.
_TYPES = {
    1: {
        "Abs": "Abs", "Neg": "Negative", "Ceil": "Ceiling", "Floor": "Floor", "Sqrt": "Sqrt", "Exp": "Exp",
        "Log": "Log", "Tanh": "Tanh", "Sigmoid": "Sigmoid", "Relu": "Relu", "Softplus": "SoftPlus",
        "Softsign": "SoftSign",
    },
    7: {"Sin": "Sin", "Cos": "Cos", "Tan": "Tan", "Asin": "Asin", "Acos": "Acos", "Atan": "Atan"},
    9: {"Sinh": "Sinh", "Cosh": "Cosh", "Asinh": "Asinh", "Acosh": "Acosh", "Atanh": "Atanh", "Erf": "Erf",
    "Sign": "Sign"}, 14: {"HardSwish": "HSwish"},
    18: {"Mish": "Mish"},
}  # fmt: skip

for _since, _names in _TYPES.items():
    for _operator, _type in _names.items():
        add_elementwise(_operator, _since, _type)
add_elementwise("Round", 11, "Round", mode="half_to_even")


@translates("Reciprocal")
def reciprocal(ctx: TranslationContext, x: Value) -> Value:
    return ctx.emit("Divide", ctx.constant(1, x), x)


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
    """The minimum and the maximum of f32, defaults of later opsets, do not bound anything."""
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


Maps = Annotated[Value, Rank(4)]


@translates("Affine")
def affine(ctx: TranslationContext, x: Value, *, alpha: float = 1.0, beta: float = 0.0) -> Value:
    return (Expression(ctx, x) * alpha + beta).value


@translates("Scale")
def scale(ctx: TranslationContext, x: Value, *, scale: float = 1.0) -> Value:
    return (Expression(ctx, x) * scale).value


@translates("ScaledTanh")
def scaled_tanh(ctx: TranslationContext, x: Value, *, alpha: float, beta: float) -> Value:
    """alpha * tanh(beta * x)."""
    return ((Expression(ctx, x) * beta).tanh() * alpha).value


@translates("ParametricSoftplus")
def parametric_softplus(ctx: TranslationContext, x: Value, *, alpha: float, beta: float) -> Value:
    """alpha * log(1 + exp(beta * x))."""
    return (Expression(ctx, ctx.emit("SoftPlus", (Expression(ctx, x) * beta).value)) * alpha).value


@translates("ImageScaler")
def image_scaler(ctx: TranslationContext, x: Maps, *, bias: list[float] | None = None, scale: float = 1.0) -> Value:
    """x * scale plus a bias per channel."""
    scaled = Expression(ctx, x) * scale
    channels = ctx.sizes(x)[1]
    if isinstance(channels, int) and len(bias or ()) != channels:
        raise OpError(f"bias has {len(bias or ())} values for {channels} channels")
    return (scaled + Expression(ctx, ctx.along_channels(ctx.constant(list(bias or ()), x), 4))).value


@translates("Crop")
def crop(ctx: TranslationContext, x: Maps, *, border: list[int], scale: list[int] | None = None) -> Value:
    """The image without its border (left, top, right, bottom), or with ``scale`` (height, width) of it from there."""
    if len(border) != 4 or len(scale or (0, 0)) != 2:
        raise OpError(f"border is {list(border)} and scale {list(scale or ())}, expected 4 sizes and 2 or none")
    left, top, right, bottom = border
    sizes = [Expression(ctx, ctx.size(x, axis)).unsqueeze(0) for axis in (2, 3)]
    ends = [size - cut for size, cut in zip(sizes, (bottom, right), strict=True)]
    stops = ctx.emit("Concat", *(end.value for end in ends), axis=0)
    if scale:
        stops = ctx.constant([top + scale[0], left + scale[1]])
        _check_inside(ctx, x, (top + scale[0], left + scale[1]))
    return ctx.emit("Slice", x, [top, left], stops, [1, 1], [2, 3])


def _check_inside(ctx: TranslationContext, x: Value, ends: tuple[int, int]) -> None:
    """Raise OpError for an end beyond a known size of the image."""
    for size, end in zip(ctx.sizes(x)[2:], ends, strict=True):
        if isinstance(size, int) and end > size:
            raise OpError(f"the border and scale reach {end} along an axis of size {size}")


@translates("DynamicSlice")
def dynamic_slice(ctx: TranslationContext, x: Value, starts: Value, ends: Value, axes: Value | None = None) -> Value:
    """Slice of opset 10 without steps."""
    return slice_10(ctx, x, starts, ends, axes)
