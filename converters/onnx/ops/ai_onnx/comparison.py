"""Comparisons, and tests for infinities and NaN."""

from __future__ import annotations

from converters.onnx.algorithms.elementwise import add_binary, add_binary_with_axis, add_elementwise, emit_binary
from converters.onnx.context import TranslationContext
from converters.onnx.registry import translates
from irexec.ir.graph import Value

for _operator in ("Equal", "Greater", "Less"):
    add_binary_with_axis(_operator, emit_binary(_operator))
add_binary("GreaterOrEqual", 12, emit_binary("GreaterEqual"))
add_binary("LessOrEqual", 12, emit_binary("LessEqual"))
add_elementwise("IsNaN", 9, "IsNaN")


@translates("IsInf", since=10)
def is_inf(ctx: TranslationContext, x: Value, *, detect_negative: int = 1, detect_positive: int = 1) -> Value:
    return ctx.emit("IsInf", x, detect_negative=bool(detect_negative), detect_positive=bool(detect_positive))
