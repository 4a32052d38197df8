"""Numbers taken by their indices."""

from __future__ import annotations

from converters.onnx.context import Context
from converters.onnx.registry import translates
from irexec.ir.graph import Value


@translates("Gather")
def gather(b: Context, x: Value, indices: Value, *, axis: int = 0) -> Value:
    return b.emit("Gather", x, indices, b.constant(axis))


@translates("GatherElements", since=11)
def gather_elements(b: Context, x: Value, indices: Value, *, axis: int = 0) -> Value:
    return b.emit("GatherElements", x, indices, axis=b.axis(axis, x))


@translates("GatherND", since=11)
def gather_nd(b: Context, x: Value, indices: Value, *, batch_dims: int = 0) -> Value:
    return b.emit("GatherND", x, indices, batch_dims=batch_dims)
