"""Logic, operations on bits, and selection by a condition."""

from __future__ import annotations

from typing import Literal

from converters.onnx.algorithms.elementwise import add_binary, add_binary_with_axis, add_elementwise, emit_binary
from converters.onnx.algorithms.expression import Expression
from converters.onnx.context import TranslationContext
from converters.onnx.registry import translates
from irexec.ir.graph import Value

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
