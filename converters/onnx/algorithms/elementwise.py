"""Registration of element-wise operators on one and on two tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from converters.onnx.context import TranslationContext
from converters.onnx.registry import add
from irexec.ir.graph import Value

Binary = Callable[[TranslationContext, Value, Value], Any]


def add_elementwise(operator: str, since: int, type: str, **attributes: Any) -> None:
    """An operator of ai.onnx on one tensor that is one operation of IR."""

    def translate(ctx: TranslationContext, x: Value) -> Any:
        return ctx.emit(type, x, **attributes)

    add(operator, since, "", translate)


def emit_binary(type: str) -> Binary:
    """Two operands that broadcast, as one operation of IR."""
    return lambda ctx, x, y: ctx.emit(type, x, y)


def add_binary(operator: str, since: int, emit: Binary) -> None:
    """An operator of ai.onnx on two tensors that broadcast as in NumPy."""

    def translate(ctx: TranslationContext, x: Value, y: Value) -> Any:
        return emit(ctx, x, y)

    add(operator, since, "", translate)


def add_binary_with_axis(operator: str, emit: Binary) -> None:
    """An operator of ai.onnx on two tensors that had an explicit broadcast axis before opset 7."""

    def translate(ctx: TranslationContext, x: Value, y: Value, *, broadcast: int = 0, axis: int | None = None) -> Any:
        return emit(ctx, x, _aligned(ctx, x, y, axis) if broadcast else y)

    add(operator, 1, "", translate)
    add_binary(operator, 7, emit)


def _aligned(ctx: TranslationContext, x: Value, y: Value, axis: int | None) -> Value:
    """The second operand with axes of size 1 appended: its first axis meets ``axis`` of the first operand."""
    if axis is None:
        return y
    missing = ctx.rank(x) - ctx.axis(axis, x) - ctx.rank(y)
    return ctx.unsqueeze(y, [ctx.rank(y) + i for i in range(missing)])
