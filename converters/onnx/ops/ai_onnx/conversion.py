"""Casts."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from converters.onnx.algorithms.expression import Expression
from converters.onnx.context import TranslationContext
from converters.onnx.registry import translates
from converters.onnx.tensors import element_of
from irexec.dtypes.elements import F32, F64, Element
from irexec.errors import OpError
from irexec.ir.graph import Value

_LARGEST = {"f8e4m3": 448.0, "f8e5m2": 57344.0}


def cast(ctx: TranslationContext, x: Value, kind: Element, saturate: bool, round_mode: str) -> Value:
    """Conversion to another type by ONNX's rules; for floats of 8 bits and less they differ from Convert's."""
    source = ctx.element(x)
    if source is kind:
        return x
    if source.kind == "string":
        return ctx.emit("StringToNumber", x, destination_type=kind)
    if kind.kind == "string":
        return ctx.emit("AsString", x)
    if kind.name == "f8e8m0":
        return _power_of_two(ctx, x, kind, saturate, round_mode)
    if kind.name == "f4e2m1" and source.is_float:
        # NaN becomes -0, as in ml_dtypes, the source of ONNX's expected results.
        x = ctx.emit("Select", ctx.emit("IsNaN", x), ctx.constant(-0.0, x), x)
    if kind.name in _LARGEST and saturate:
        x = ctx.emit("Clamp", ctx.as_float(x), min=-_LARGEST[kind.name], max=_LARGEST[kind.name])
    return ctx.convert(x, kind)


def _power_of_two(ctx: TranslationContext, x: Value, kind: Element, saturate: bool, round_mode: str) -> Value:
    """Conversion to f8e8m0: the power of two that Convert chooses, corrected. Source: ONNX Cast-24."""
    if round_mode not in ("up", "down", "nearest"):
        raise OpError(f"round_mode is {round_mode!r}, expected up, down or nearest")
    wide = F64 if ctx.element(x) is F64 else F32
    value = Expression(ctx, ctx.convert(x, wide))
    chosen = value.to(kind).to(wide)
    below = (chosen > value).select(chosen * 0.5, chosen)
    if round_mode == "up":
        result = (below < value).select(below * 2, below)
    elif round_mode == "down":
        result = below
    else:
        result = (value < below * 1.5).select(below, below * 2)
    if not saturate:
        result = ((value > 2.0**127) | value.equals(0)).select(np.nan, result)
    return result.to(kind).value


@translates("Cast")
def cast_1(ctx: TranslationContext, x: Value, *, to: str) -> Value:
    """``to`` is the name of the type."""
    name = str(to).upper()
    if name not in TensorProto.DataType.keys():  # noqa: SIM118 (protobuf's enum has no iterator)
        raise OpError(f"to is {to!r}, which is not a type of ONNX")
    return cast(ctx, x, element_of(TensorProto.DataType.Value(name)), True, "up")


@translates("Cast", since=6)
def cast_6(ctx: TranslationContext, x: Value, *, to: int, saturate: int = 1, round_mode: str = "up") -> Value:
    return cast(ctx, x, element_of(to), bool(saturate), round_mode)


@translates("CastLike", since=15)
def cast_like(ctx: TranslationContext, x: Value, like: Value, *, saturate: int = 1, round_mode: str = "up") -> Value:
    return cast(ctx, x, ctx.element(like), bool(saturate), round_mode)
