"""Arithmetic on two and more tensors."""

from __future__ import annotations

from typing import Any

from converters.onnx.algorithms.elementwise import add_binary_with_axis, emit_binary
from converters.onnx.context import Context
from converters.onnx.registry import translates
from irexec.errors import OpError
from irexec.ir.graph import Value


def _divide(b: Context, x: Value, y: Value) -> Any:
    """Integers are divided towards zero."""
    return b.emit("Divide", x, y, m_pythondiv=not b.element(x).is_integer)


def _power(b: Context, x: Value, y: Value) -> Any:
    """Computed in the exponent's type if that is the wider float; the result has the type of the base."""
    base, exponent = b.element(x), b.element(y)
    wide = exponent if exponent.is_float and (base.is_integer or exponent.bits > base.bits) else base
    return b.convert(b.emit("Power", b.convert(x, wide), b.convert(y, wide)), base)


for _operator, _type in {"Add": "Add", "Sub": "Subtract", "Mul": "Multiply"}.items():
    add_binary_with_axis(_operator, emit_binary(_type))
add_binary_with_axis("Div", _divide)
add_binary_with_axis("Pow", _power)


@translates("Mod", since=10)
def mod(b: Context, x: Value, y: Value, *, fmod: int = 0) -> Value:
    """The remainder has the sign of the dividend with fmod, else of the divisor."""
    return b.emit("Mod" if fmod else "FloorMod", x, y)


def _fold(b: Context, type: str, inputs: tuple[Value, ...]) -> Value:
    if not inputs:
        raise OpError("it has no inputs")
    result = inputs[0]
    for value in inputs[1:]:
        result = b.emit(type, result, value)
    return result


@translates("Max")
def maximum(b: Context, *inputs: Value) -> Value:
    return _fold(b, "Maximum", inputs)


@translates("Min")
def minimum(b: Context, *inputs: Value) -> Value:
    return _fold(b, "Minimum", inputs)


@translates("Sum")
def sum_(b: Context, *inputs: Value) -> Value:
    return _fold(b, "Add", inputs)


@translates("Mean")
def mean(b: Context, *inputs: Value) -> Value:
    return b.emit("Divide", _fold(b, "Add", inputs), b.constant(len(inputs), inputs[0]))
