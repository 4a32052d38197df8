"""Activations with parameters, and Softmax, LogSoftmax and Hardmax."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np

from converters.onnx.context import Context
from converters.onnx.ops.ai_onnx.shape import flattened
from converters.onnx.ops.ai_onnx.sorting import first_extreme
from converters.onnx.registry import add, translates
from irexec.dtypes.elements import F32
from irexec.errors import OpError
from irexec.ir.graph import Value
from irexec.schema.inputs import SCALAR


@translates("Elu")
def elu(b: Context, x: Value, *, alpha: float = 1.0) -> Value:
    return b.emit("Elu", x, alpha=alpha)


@translates("Selu")
def selu_1(b: Context, x: Value, *, alpha: float = 1.6732, gamma: float = 1.0507) -> Value:
    return b.emit("Selu", x, b.constant(alpha, x), b.constant(gamma, x))


@translates("Selu", since=6)
def selu_6(
    b: Context, x: Value, *, alpha: float = 1.67326319217681884765625, gamma: float = 1.05070102214813232421875
) -> Value:
    return selu_1(b, x, alpha=alpha, gamma=gamma)


@translates("HardSigmoid")
def hard_sigmoid(b: Context, x: Value, *, alpha: float = 0.2, beta: float = 0.5) -> Value:
    return b.emit("HardSigmoid", x, b.constant(alpha, x), b.constant(beta, x))


@translates("LeakyRelu")
def leaky_relu(b: Context, x: Value, *, alpha: float = 0.01) -> Value:
    """A PRelu of one slope, which has an axis that data of rank 0 lacks."""
    if b.fact(x).shape == ():
        return prelu_7(b, x, b.constant(alpha, x))
    return b.emit("PRelu", x, b.constant([alpha], x))


@translates("PRelu")
def prelu_1(b: Context, x: Value, slope: Value) -> Value:
    """One slope for all elements, or one per channel."""
    if b.rank(slope) == 1 and b.sizes(slope)[0] != 1 and b.rank(x) > 2:
        slope = b.along_channels(slope, b.rank(x))
    return prelu_7(b, x, slope)


@translates("PRelu", since=7)
def prelu_7(b: Context, x: Value, slope: Value) -> Value:
    """ONNX broadcasts the slope from the last axis, whereas IR takes a vector as one slope per channel."""
    slope = b.unsqueeze(slope, list(range(max(b.rank(x) - b.rank(slope), 0))))
    if b.element(x).is_float and b.rank(x) > 1:
        return b.emit("PRelu", x, slope)
    return b.emit("Select", b.emit("Less", x, b.constant(0, x)), b.emit("Multiply", x, slope), x)


@translates("ThresholdedRelu", since=10)
def thresholded_relu(b: Context, x: Value, *, alpha: float = 1.0) -> Value:
    return b.emit("Select", b.emit("Greater", x, b.constant(alpha, x)), x, b.constant(0, x))


@translates("Celu", since=12)
def celu(b: Context, x: Value, *, alpha: float = 1.0) -> Value:
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1)): of a positive alpha an Elu of x / alpha."""
    divided = b.emit("Divide", x, b.constant(alpha, x))
    if alpha > 0:
        return b.emit("Multiply", b.emit("Elu", divided, alpha=1.0), b.constant(alpha, x))
    curve = b.emit("Multiply", b.emit("Subtract", b.emit("Exp", divided), b.constant(1, x)), b.constant(alpha, x))
    return b.emit("Add", b.emit("Maximum", x, b.constant(0, x)), b.emit("Minimum", curve, b.constant(0, x)))


@translates("Gelu", since=20)
def gelu(b: Context, x: Value, *, approximate: str = "none") -> Value:
    if approximate not in ("none", "tanh"):
        raise OpError(f"approximate is {approximate!r}, expected none or tanh")
    return b.emit("Gelu", x, approximation_mode="tanh" if approximate == "tanh" else "erf")


@translates("Swish", since=24)
def swish(b: Context, x: Value, *, alpha: float = 1.0) -> Value:
    return b.emit("Swish", x, b.constant(alpha, x))


@translates("SwiGLU", since=28)
def swiglu(b: Context, gate: Value, x: Value, *, alpha: float = 1.0) -> Value:
    """Swish of the gate times the second input."""
    return b.emit("Multiply", swish(b, gate, alpha=alpha), x)


@translates("Shrink", since=9)
def shrink(b: Context, x: Value, *, bias: float = 0.0, lambd: float = 0.5) -> Value:
    """x + bias below -lambd, else x - bias above lambd, 0 between; computed in f32 for integers."""
    kind = b.element(x)
    if not kind.is_float:
        return b.convert(shrink(b, b.convert(x, F32), bias=bias, lambd=lambd), kind)
    above = b.emit(
        "Select",
        b.emit("Greater", x, b.constant(lambd, x)),
        b.emit("Subtract", x, b.constant(bias, x)),
        b.constant(0, x),
    )
    return b.emit("Select", b.emit("Less", x, b.constant(-lambd, x)), b.emit("Add", x, b.constant(bias, x)), above)


@translates("Clip")
def clip_1(b: Context, x: Value, *, min: float = -math.inf, max: float = math.inf) -> Value:
    """The lowest and the highest f32, the defaults of newer opsets, mean no bound."""
    limits = np.finfo(np.float32)
    low = None if min <= limits.min else b.constant(min, x)
    high = None if max >= limits.max else b.constant(max, x)
    return clip_11(b, x, low, high)


@translates("Clip", since=11)
def clip_11(
    b: Context, x: Value, low: Annotated[Value, SCALAR] | None = None, high: Annotated[Value, SCALAR] | None = None
) -> Value:
    """The lower bound first, then the upper: if they cross, the result is the upper one, which Clamp refuses."""
    bounds = [b.known(bound) for bound in (low, high)]
    if b.element(x).is_float and bounds[0] is not None and bounds[1] is not None:
        lower, upper = (float(bound.reshape(-1)[0]) for bound in bounds if bound is not None)
        if -math.inf < lower <= upper < math.inf:
            return b.emit("Clamp", x, min=lower, max=upper)
    if low is not None:
        x = b.emit("Maximum", x, low)
    return x if high is None else b.emit("Minimum", x, high)


def _flattened_before_13(b: Context, x: Value, axis: int, emit: Callable[[Value, int], Value]) -> Value:
    """The operator before opset 13: over all axes from ``axis`` on together."""
    rank = b.rank(x)
    first = rank if axis == rank else b.axis(axis, max(rank, 1))
    axes_over_1 = [i for i in range(first, rank) if b.sizes(x)[i] != 1]
    if first < rank and len(axes_over_1) <= 1:
        return emit(x, axes_over_1[0] if axes_over_1 else first)
    return b.emit("Reshape", emit(flattened(b, x, first), 1), b.shape_of(x), special_zero=False)


def _softmax_like(operator: str, emit: Callable[[Context, Value, int], Any]) -> None:
    def old(b: Context, x: Value, *, axis: int = 1) -> Any:
        return _flattened_before_13(b, x, axis, lambda value, softmax_axis: emit(b, value, softmax_axis))

    def new(b: Context, x: Value, *, axis: int = -1) -> Any:
        return emit(b, x, axis if b.fact(x).shape is None else b.axis(axis, max(b.rank(x), 1)))

    add(operator, 1, "", old)
    add(operator, 13, "", new)


def _hardmax(b: Context, x: Value, axis: int) -> Value:
    """1 at the first maximum along the axis, else 0."""
    index = b.emit("Squeeze", first_extreme(b, x, "max", axis), [axis], version=1)
    return b.emit("OneHot", index, b.size(x, axis), b.constant(1, x), b.constant(0, x), axis=axis, version=1)


_softmax_like("Softmax", lambda b, x, axis: b.emit("Softmax", x, axis=axis))
_softmax_like("LogSoftmax", lambda b, x, axis: b.emit("LogSoftmax", x, axis=axis))
_softmax_like("Hardmax", _hardmax)
