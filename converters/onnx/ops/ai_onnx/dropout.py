"""Dropout, which drops nothing except in training mode."""

from __future__ import annotations

from typing import Any

import numpy as np

from converters.onnx.context import Context
from converters.onnx.registry import translates
from irexec.dtypes.elements import BOOLEAN, F32
from irexec.ir.graph import Value


@translates("Dropout")
def dropout_1(b: Context, x: Value, *, ratio: float = 0.5, is_test: int = 0) -> tuple[Value, ...]:
    """``is_test`` is ignored, as by every runtime."""
    return _unchanged(b, x)


@translates("Dropout", since=7)
def dropout_7(b: Context, x: Value, *, ratio: float = 0.5) -> tuple[Value, ...]:
    return _unchanged(b, x)


@translates("Dropout", since=12)
def dropout_12(
    b: Context, x: Value, ratio: Value | None = None, training_mode: Value | None = None, *, seed: int | None = None
) -> tuple[Value, ...]:
    mode, share = b.known(training_mode), b.known(ratio)
    if training_mode is None or (mode is not None and not mode.any()) or (share is not None and not share.any()):
        return _unchanged(b, x)
    return _dropped(b, x, b.constant(0.5) if ratio is None else ratio, training_mode, seed or 0)


def _unchanged(b: Context, x: Value) -> tuple[Value, ...]:
    """The input, and a mask of ones if the node has that output."""
    if not b.needs_output(1):
        return (x,)
    kind = BOOLEAN if b.opset >= 10 else b.element(x)
    return x, b.full(b.constant(np.ones((), kind.carrier), kind), b.shape_of(x))


def _dropped(b: Context, x: Value, ratio: Value, training_mode: Value, seed: int) -> tuple[Value, ...]:
    """In training each element is dropped with the probability ``ratio``, and the others are scaled by 1 / (1 - ratio)."""
    share = b.scalar(b.convert(ratio, F32))
    limits: dict[str, Any] = {"output_type": F32, "global_seed": seed, "op_seed": 0}
    random = b.emit("RandomUniform", b.shape_of(x), b.constant(0.0), b.constant(1.0), **limits)
    mask = b.emit("LogicalOr", b.emit("GreaterEqual", random, share), b.emit("LogicalNot", b.scalar(training_mode)))
    scale = b.convert(b.emit("Divide", b.constant(1.0), b.emit("Subtract", b.constant(1.0), share)), b.element(x))
    trained = b.emit("Select", mask, b.emit("Multiply", x, scale), b.constant(0, x))
    return b.emit("Select", b.scalar(training_mode), trained, x), mask
