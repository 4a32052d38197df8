"""Operators on one tensor: a table, activations and casts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from converters.onnx.context import Context
from converters.onnx.registry import add, translates
from irexec.errors import ConversionError
from irexec.ir.elements import BOOLEAN, F32
from irexec.ir.graph import Value

_PLAIN = {
    "Abs": "Abs", "Neg": "Negative", "Ceil": "Ceiling", "Floor": "Floor", "Sqrt": "Sqrt", "Exp": "Exp", "Log": "Log", "Sin": "Sin",
    "Cos": "Cos", "Tan": "Tan", "Asin": "Asin", "Acos": "Acos", "Atan": "Atan", "Sinh": "Sinh", "Cosh": "Cosh", "Asinh": "Asinh",
    "Acosh": "Acosh", "Atanh": "Atanh", "Erf": "Erf", "Sigmoid": "Sigmoid", "Tanh": "Tanh", "Relu": "Relu", "Softplus": "SoftPlus",
    "Softsign": "SoftSign", "Sign": "Sign", "HardSwish": "HSwish", "Mish": "Mish", "IsNaN": "IsNaN",
}  # fmt: skip


def _table(operator: str, type: str) -> None:
    def translate(b: Context, x: Value) -> Any:
        return b.emit(type, x)

    add(operator, 1, "", translate)


for _operator, _type in _PLAIN.items():
    _table(_operator, _type)


@translates("Reciprocal")
def reciprocal(b: Context, x: Value) -> Value:
    return b.emit("Divide", b.constant(1, x), x)


@translates("Round", since=11)
def round_(b: Context, x: Value) -> Value:
    return b.emit("Round", x, mode="half_to_even")


@translates("IsInf", since=10)
def is_inf(b: Context, x: Value, *, detect_negative: int = 1, detect_positive: int = 1) -> Value:
    return b.emit("IsInf", x, detect_negative=bool(detect_negative), detect_positive=bool(detect_positive))


@translates("Elu")
def elu(b: Context, x: Value, *, alpha: float = 1.0) -> Value:
    return b.emit("Elu", x, alpha=alpha)


@translates("Selu")
def selu(b: Context, x: Value, *, alpha: float = 1.67326319217681884765625, gamma: float = 1.05070102214813232421875) -> Value:
    return b.emit("Selu", x, b.constant(alpha, x), b.constant(gamma, x))


@translates("HardSigmoid")
def hard_sigmoid(b: Context, x: Value, *, alpha: float = 0.2, beta: float = 0.5) -> Value:
    return b.emit("HardSigmoid", x, b.constant(alpha, x), b.constant(beta, x))


@translates("LeakyRelu")
def leaky_relu(b: Context, x: Value, *, alpha: float = 0.01) -> Value:
    return b.emit("PRelu", x, b.constant([alpha], x))


@translates("ThresholdedRelu", since=10)
def thresholded_relu(b: Context, x: Value, *, alpha: float = 1.0) -> Value:
    return b.emit("Select", b.emit("Greater", x, b.constant(alpha, x)), x, b.constant(0, x))


@translates("Celu", since=12)
def celu(b: Context, x: Value, *, alpha: float = 1.0) -> Value:
    """alpha * (exp(x / alpha) - 1) where x is negative."""
    scaled = b.emit("Elu", b.emit("Divide", x, b.constant(alpha, x)), alpha=1.0)
    return b.emit("Multiply", scaled, b.constant(alpha, x))


@translates("Gelu", since=20)
def gelu(b: Context, x: Value, *, approximate: str = "none") -> Value:
    return b.emit("Gelu", x, approximation_mode="tanh" if approximate == "tanh" else "erf")


@translates("Swish", since=24)
def swish(b: Context, x: Value, *, alpha: float = 1.0) -> Value:
    return b.emit("Swish", x, b.constant(alpha, x))


@translates("Shrink", since=9)
def shrink(b: Context, x: Value, *, bias: float = 0.0, lambd: float = 0.5) -> Value:
    """x + bias below -lambd, x - bias above lambd, 0 between; computed in f32 for integers."""
    kind = b.element(x)
    if not kind.is_float:
        wide = shrink(b, b.emit("Convert", x, destination_type=F32), bias=bias, lambd=lambd)
        return b.emit("Convert", wide, destination_type=kind)
    below = b.emit("Select", b.emit("Less", x, b.constant(-lambd, x)), b.emit("Add", x, b.constant(bias, x)), b.constant(0, x))
    return b.emit("Select", b.emit("Greater", x, b.constant(lambd, x)), b.emit("Subtract", x, b.constant(bias, x)), below)


def _clipped(b: Context, x: Value, low: Value | None, high: Value | None) -> Value:
    """First the lower bound, then the upper: where they cross the upper wins."""
    if low is not None:
        x = b.emit("Maximum", x, low)
    return x if high is None else b.emit("Minimum", x, high)


@translates("Clip")
def clip_1(b: Context, x: Value, *, min: float = -math.inf, max: float = math.inf) -> Value:
    if min <= max and math.isfinite(min) and math.isfinite(max):
        return b.emit("Clamp", x, min=min, max=max)
    low = None if min <= np.finfo(np.float32).min else b.constant(min, x)
    high = None if max >= np.finfo(np.float32).max else b.constant(max, x)
    return _clipped(b, x, low, high)


@translates("Clip", since=11)
def clip_11(b: Context, x: Value, low: Value | None = None, high: Value | None = None) -> Value:
    least, most = b.known(low), b.known(high)
    if b.element(x).is_float and least is not None and most is not None and least.size == most.size == 1:
        bounds = float(least.reshape(-1)[0]), float(most.reshape(-1)[0])
        if bounds[0] <= bounds[1] and all(map(math.isfinite, bounds)):
            return b.emit("Clamp", x, min=bounds[0], max=bounds[1])
    return _clipped(b, x, low, high)


@translates("Dropout")
def dropout_1(b: Context, x: Value, *, ratio: float = 0.5, is_test: int = 0) -> tuple[Value, ...]:
    return _dropped(b, x)


@translates("Dropout", since=12)
def dropout_12(
    b: Context, x: Value, ratio: Value | None = None, training_mode: Value | None = None, *, seed: int | None = None
) -> tuple[Value, ...]:
    """Nothing is dropped unless training; a ratio of 0 drops nothing either."""
    mode, share = b.known(training_mode), b.known(ratio)
    none = share is not None and float(share.reshape(-1)[0]) == 0
    if training_mode is not None and not none and (mode is None or bool(mode.reshape(-1)[0])):
        raise ConversionError("dropout in training is random, which IR does not have", unsupported=True)
    return _dropped(b, x)


def _dropped(b: Context, x: Value) -> tuple[Value, ...]:
    """The input, and a mask of everything kept where it is wanted."""
    if len(b.outputs) < 2 or not b.outputs[1]:
        return (x,)
    kind = BOOLEAN if b.opset >= 10 else b.element(x)
    return x, b.emit("Broadcast", b.constant(np.ones((), np.bool_) if kind is BOOLEAN else 1, kind), b.emit("ShapeOf", x))
