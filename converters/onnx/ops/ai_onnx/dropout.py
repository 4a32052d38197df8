"""Dropout, which drops nothing except in training mode."""

from __future__ import annotations

from typing import Any

import numpy as np

from converters.onnx.context import TranslationContext
from converters.onnx.registry import translates
from irexec.dtypes.elements import BOOLEAN, F32
from irexec.ir.graph import Value


@translates("Dropout")
@translates("Dropout", since=7, without=["is_test"])
def dropout_1(ctx: TranslationContext, x: Value, *, ratio: float = 0.5, is_test: int = 0) -> tuple[Value, ...]:
    """``is_test`` is ignored, as by every runtime."""
    return _unchanged(ctx, x)


@translates("Dropout", since=12)
def dropout_12(
    ctx: TranslationContext, x: Value, ratio: Value | None = None, training_mode: Value | None = None, *,
    seed: int | None = None,
) -> tuple[Value, ...]:  # fmt: skip
    mode, share = ctx.known(training_mode), ctx.known(ratio)
    if training_mode is None or (mode is not None and not mode.any()) or (share is not None and not share.any()):
        return _unchanged(ctx, x)
    return _dropped(ctx, x, ctx.constant(0.5) if ratio is None else ratio, training_mode, seed or 0)


def _unchanged(ctx: TranslationContext, x: Value) -> tuple[Value, ...]:
    """The input, and a mask of ones if the node has that output."""
    if not ctx.needs_output(1):
        return (x,)
    kind = BOOLEAN if ctx.opset >= 10 else ctx.element(x)
    return x, ctx.full(ctx.constant(np.ones((), kind.carrier), kind), ctx.shape_of(x))


def _dropped(ctx: TranslationContext, x: Value, ratio: Value, training_mode: Value, seed: int) -> tuple[Value, ...]:
    """Dropout in training: elements dropped with probability ``ratio``, the others scaled by 1 / (1 - ratio)."""
    share = ctx.scalar(ctx.convert(ratio, F32))
    limits: dict[str, Any] = {"output_type": F32, "global_seed": seed, "op_seed": 0}
    random = ctx.emit("RandomUniform", ctx.shape_of(x), ctx.constant(0.0), ctx.constant(1.0), **limits)
    mask = ctx.emit(
        "LogicalOr", ctx.emit("GreaterEqual", random, share), ctx.emit("LogicalNot", ctx.scalar(training_mode))
    )
    scale = ctx.convert(
        ctx.emit("Divide", ctx.constant(1.0), ctx.emit("Subtract", ctx.constant(1.0), share)), ctx.element(x)
    )
    trained = ctx.emit("Select", mask, ctx.emit("Multiply", x, scale), ctx.constant(0, x))
    return ctx.emit("Select", ctx.scalar(training_mode), trained, x), mask
