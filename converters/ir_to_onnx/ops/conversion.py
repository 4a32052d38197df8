"""Conversions of element types, and operations that do nothing."""

from __future__ import annotations

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.opsets import accepted
from converters.ir_to_onnx.registry import composed, exact
from converters.ir_to_onnx.tensors import Tensor
from irexec.dtypes.elements import F8E4M3, F8E5M2, F8E8M0, F16, F32, F64, I8, I32, U8, Element
from irexec.errors import check


def converted(ctx: ExportContext, data: Tensor, to: Element) -> Tensor:
    """Cast as Convert does: to f8 without saturation, from f64 to f16 by way of f32, to integers of few bits by way of
    bytes, as ONNX Runtime rounds floats to them."""
    known = to.onnx is not None and to in accepted("Cast", ctx.opset, "", "T2")
    check(known, f"ONNX of opset {ctx.opset} does not cast to {to}")
    if to.is_integer and to.bits < 8 and data.element.is_float:
        data = ctx.cast(ctx.cast(data, I32), I8 if to.kind == "signed" else U8)
    if data.element is F64 and to is F16:
        data = ctx.cast(data, F32)
    assert to.onnx is not None
    if to in (F8E4M3, F8E5M2):
        return ctx.emit("Cast", data, to=to.onnx.number, saturate=0, element=to)
    if to is F8E8M0:
        return ctx.emit("Cast", data, to=to.onnx.number, saturate=1, round_mode="nearest", element=to)
    return ctx.cast(data, to) if data.element is not to else ctx.emit("Identity", data)


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
