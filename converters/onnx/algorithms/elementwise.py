"""Registration of element-wise operators on one and on two tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from converters.onnx.context import Context
from converters.onnx.registry import add
from irexec.ir.graph import Value

Binary = Callable[[Context, Value, Value], Any]


def add_elementwise(operator: str, since: int, type: str) -> None:
    """An operator of ai.onnx on one tensor that is one operation of IR."""

    def translate(b: Context, x: Value) -> Any:
        return b.emit(type, x)

    add(operator, since, "", translate)


def emit_binary(type: str) -> Binary:
    """Two operands that broadcast, as one operation of IR."""
    return lambda b, x, y: b.emit(type, x, y)


def add_binary(operator: str, since: int, emit: Binary) -> None:
    """An operator of ai.onnx on two tensors that broadcast as in NumPy."""

    def translate(b: Context, x: Value, y: Value) -> Any:
        return emit(b, x, y)

    add(operator, since, "", translate)


def add_binary_with_axis(operator: str, emit: Binary) -> None:
    """An operator of ai.onnx on two tensors that had an explicit broadcast axis before opset 7."""

    def translate(b: Context, x: Value, y: Value, *, broadcast: int = 0, axis: int | None = None) -> Any:
        return emit(b, x, _aligned(b, x, y, axis) if broadcast else y)

    add(operator, 1, "", translate)
    add_binary(operator, 7, emit)


def _aligned(b: Context, x: Value, y: Value, axis: int | None) -> Value:
    """The second operand with axes of size 1 appended, so that its first axis is ``axis`` of the first operand."""
    if axis is None:
        return y
    missing = b.rank(x) - b.axis(axis, x) - b.rank(y)
    return b.unsqueeze(y, [b.rank(y) + i for i in range(missing)])
