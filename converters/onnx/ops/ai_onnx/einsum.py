"""Sums of products over labels."""

from __future__ import annotations

from converters.onnx.context import Context
from converters.onnx.registry import translates
from irexec.ir.graph import Value


@translates("Einsum", since=12)
def einsum(b: Context, *inputs: Value, equation: str) -> Value:
    return b.emit("Einsum", *inputs, equation=equation.replace(" ", ""))
