"""Arithmetic on two and more tensors."""

from __future__ import annotations

from typing import Any

from converters.onnx.algorithms.elementwise import add_binary_with_axis, emit_binary
from converters.onnx.context import TranslationContext
from converters.onnx.registry import translates
from irexec.errors import OpError
from irexec.ir.graph import Value


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


@translates("Max")
def maximum(ctx: TranslationContext, *inputs: Value) -> Value:
    return _fold(ctx, "Maximum", inputs)


@translates("Min")
def minimum(ctx: TranslationContext, *inputs: Value) -> Value:
    return _fold(ctx, "Minimum", inputs)


@translates("Sum")
def sum_(ctx: TranslationContext, *inputs: Value) -> Value:
    return _fold(ctx, "Add", inputs)


@translates("Mean")
def mean(ctx: TranslationContext, *inputs: Value) -> Value:
    return ctx.emit("Divide", _fold(ctx, "Add", inputs), ctx.constant(len(inputs), inputs[0]))
