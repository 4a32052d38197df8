"""Element-wise operators: arithmetic, comparisons, logic, bits, and functions of one tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from converters.onnx.algorithms.elementwise import add_binary, add_binary_with_axis, add_elementwise, emit_binary
from converters.onnx.algorithms.expression import Expression
from converters.onnx.context import TranslationContext
from converters.onnx.registry import add, translates
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
