"""Sums of products over labels."""

from __future__ import annotations

from converters.onnx.context import TranslationContext
from converters.onnx.registry import translates
from irexec.ir.graph import Value


@translates("Einsum", since=12)
def einsum(ctx: TranslationContext, *inputs: Value, equation: str) -> Value:
    return ctx.emit("Einsum", *inputs, equation=equation.replace(" ", ""))
