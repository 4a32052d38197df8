"""Stretching."""

from __future__ import annotations

from converters.onnx.context import Context
from converters.onnx.registry import translates
from irexec.ir.graph import Value


@translates("Expand", since=8)
def expand(b: Context, x: Value, shape: Value) -> Value:
    """Both ways: a size 1 of the shape is stretched to the data's."""
    return b.emit("Broadcast", x, shape, mode="bidirectional")
