"""Distinct values, and slices selected by a condition."""

from __future__ import annotations

from typing import Annotated

from converters.onnx.context import TranslationContext
from converters.onnx.registry import translates
from irexec.ir.graph import Value
from irexec.schema.inputs import VECTOR


@translates("Unique", since=11)
def unique(ctx: TranslationContext, x: Value, *, axis: int | None = None, sorted: int = 1) -> tuple[Value, ...]:
    axis_input = None if axis is None else ctx.constant(ctx.axis(axis, x))
    return tuple(
        ctx.emit("Unique", x, axis_input, sorted=bool(sorted), index_element_type="i64", count_element_type="i64")
    )


@translates("Compress", since=9)
def compress(
    ctx: TranslationContext, x: Value, condition: Annotated[Value, VECTOR], *, axis: int | None = None
) -> Value:
    """Slices with a true condition; the condition may be shorter than the axis."""
    if axis is None:
        x, axis = ctx.reshape(x, [-1]), 0
    kept = ctx.emit("Squeeze", ctx.emit("NonZero", condition, output_type="i64"), [0])
    return ctx.emit("Gather", x, kept, ctx.constant(ctx.axis(axis, x)))
