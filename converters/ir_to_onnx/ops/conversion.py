"""Conversions of element types, and operations that do nothing."""

from __future__ import annotations

import math

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.opsets import accepted
from converters.ir_to_onnx.registry import composed, exact
from converters.ir_to_onnx.tensors import Tensor
from irexec.dtypes.elements import F4E2M1, F8E4M3, F8E5M2, F8E8M0, F16, F32, F64, I8, I32, U8, Element
from irexec.errors import check


def converted(ctx: ExportContext, data: Tensor, to: Element) -> Tensor:
    """Cast as Convert does: to f8 without saturation, from f64 to f16 by way of f32, to integers of few bits by way of
    bytes, as ONNX Runtime rounds floats to them."""
    known = to is F4E2M1 or (to.onnx is not None and to in accepted("Cast", ctx.opset, "", "T2"))
    check(known, f"ONNX of opset {ctx.opset} does not cast to {to}")
    if to.is_integer and to.bits < 8 and data.element.is_float:
        data = ctx.cast(ctx.cast(data, I32), I8 if to.kind == "signed" else U8)
    if to is F4E2M1:
        return _f4e2m1(ctx, ctx.cast(data, F32))
    if to is F8E8M0:
        return _f8e8m0(ctx, data)
    if data.element is F64 and to is F16:
        data = ctx.cast(data, F32)
    assert to.onnx is not None
    if to in (F8E4M3, F8E5M2):
        return ctx.emit("Cast", data, to=to.onnx.number, saturate=0, element=to)
    return ctx.cast(data, to) if data.element is not to else ctx.emit("Identity", data)


def _f4e2m1(ctx: ExportContext, data: Tensor) -> Tensor:
    """Values rounded to f4e2m1, ties to even: multiples of 0.5 below 2, of 1 below 4, of 2 up to 6; NaN is 6."""
    top = ctx.scalar(6, data)
    data = ctx.where(ctx.emit("IsNaN", data), top, ctx.emit("Clip", data, ctx.scalar(-6, data), top))
    size = ctx.emit("Abs", data)
    step = ctx.where(ctx.emit("Less", size, ctx.scalar(4, data)), ctx.scalar(1, data), ctx.scalar(2, data))
    step = ctx.where(ctx.emit("Less", size, ctx.scalar(2, data)), ctx.scalar(0.5, data), step)
    return ctx.emit("Mul", ctx.emit("Round", ctx.emit("Div", data, step)), step, shape=data.shape)


def _f8e8m0(ctx: ExportContext, data: Tensor) -> Tensor:
    """Cast of the nearest power of two; ties go to an even code, which is the exponent + 127.

    ONNX's round_mode nearest takes the larger one.
    """
    assert F8E8M0.onnx is not None
    x = ctx.cast(data, F64)
    below = ctx.emit("Cast", data, to=F8E8M0.onnx.number, saturate=1, round_mode="down", element=F8E8M0)
    low = ctx.cast(below, F64)
    exponent = ctx.emit("Round", ctx.emit("Div", ctx.emit("Log", low), ctx.constant(math.log(2), F64)))
    middle, half = ctx.emit("Mul", low, ctx.constant(1.5, F64)), ctx.emit("Mul", exponent, ctx.constant(0.5, F64))
    is_tie, is_odd = ctx.emit("Equal", x, middle), ctx.emit("Equal", half, ctx.emit("Floor", half))
    is_above = ctx.emit("Or", ctx.emit("Greater", x, middle), ctx.emit("And", is_tie, is_odd))
    nearest = ctx.where(is_above, ctx.emit("Mul", low, ctx.constant(2, F64)), low)
    return ctx.emit("Cast", nearest, to=F8E8M0.onnx.number, saturate=1, round_mode="nearest", element=F8E8M0)


@exact("Convert")
def convert(ctx: ExportContext, data: Tensor, *, destination_type: Element) -> Tensor:
    """Cast; floats beyond the range of an integer type are not defined in ONNX."""
    return converted(ctx, data, destination_type)


@composed("ConvertLike")
def convert_like(ctx: ExportContext, data: Tensor, like: Tensor) -> Tensor:
    """Cast to the element type of the other input, which is known."""
    return converted(ctx, data, like.element)


@exact("Identity")
def identity(ctx: ExportContext, data: Tensor) -> Tensor:
    """Identity."""
    return ctx.emit("Identity", data)


@composed("ConvertPromoteTypes")
def convert_promote_types(
    ctx: ExportContext, input_0: Tensor, input_1: Tensor, *, promote_unsafe: bool, pytorch_scalar_promotion: bool,
    u64_integer_promotion_target: Element,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Two Casts to the type that is inferred for both."""
    kind = ctx.facts[0].element
    check(kind is not None, "the type to which both inputs are promoted is not known")
    assert kind is not None
    return converted(ctx, input_0, kind), converted(ctx, input_1, kind)
