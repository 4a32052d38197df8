"""TopK, NonZero, CumSum, Unique, Bucketize, SearchSorted."""

from __future__ import annotations

from typing import Any

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.ops.shape import as_i64
from converters.ir_to_onnx.registry import composed, exact
from converters.ir_to_onnx.tensors import Tensor
from irexec.dtypes.elements import I32, I64, element
from irexec.errors import check


@exact("TopK")
def topk(ctx: ExportContext, data: Tensor, k: Tensor, *, attributes: Any) -> tuple[Tensor | None, Tensor]:
    """TopK, or ArgMax, ArgMin where only one index is read; in the order of indices a second TopK sorts them."""
    check(data.rank != 0, "ONNX's TopK takes no scalar")
    if not ctx.is_used(0) and k.value is not None and k.require_ints("k") == (1,):
        type = "ArgMax" if attributes.mode == "max" else "ArgMin"
        return None, ctx.emit(type, data, axis=attributes.axis, keepdims=1)
    count = ctx.reshape(as_i64(ctx, k), [1])
    values, indices = ctx.emit_all("TopK", 2, data, count, axis=attributes.axis, largest=int(attributes.mode == "max"))
    if attributes.sort == "index":
        # Sorted by TopK itself: the smallest indices of all.
        _, order = ctx.emit_all("TopK", 2, indices, count, axis=attributes.axis, largest=0)
        values, indices = (ctx.emit("GatherElements", x, order, axis=attributes.axis) for x in (values, indices))
    return values, indices


@exact("NonZero")
def non_zero(ctx: ExportContext, data: Tensor, *, output_type: str) -> Tensor:
    """NonZero; of a scalar that of a vector of it, without a row if it is 0."""
    if data.rank == 0:
        found = ctx.emit("NonZero", ctx.reshape(data, [1]))
        count = ctx.slice(ctx.emit("Shape", found), 1, 2, 0)
        return ctx.emit("Slice", found, ctx.ints(0), count, ctx.ints(0))
    return ctx.emit("NonZero", data)


@exact("CumSum")
def cum_sum(ctx: ExportContext, data: Tensor, axis: Tensor | None = None, *, exclusive: bool, reverse: bool) -> Tensor:
    """CumSum."""
    if data.rank == 0:
        return ctx.emit("Sub", data, data) if exclusive else ctx.emit("Identity", data)
    along = ctx.constant(0) if axis is None else ctx.reshape(as_i64(ctx, axis), [])
    return ctx.emit("CumSum", data, along, exclusive=int(exclusive), reverse=int(reverse))


@exact("Unique")
def unique(
    ctx: ExportContext, data: Tensor, axis: Tensor | None = None, *, sorted: bool, index_element_type: str,
    count_element_type: str,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Unique of a constant axis."""
    along = None if axis is None else axis.require_ints("the axis")[0]
    return ctx.emit_all("Unique", 4, data, axis=along, sorted=int(sorted))


@composed("Bucketize")
def bucketize(ctx: ExportContext, data: Tensor, buckets: Tensor, *, output_type: str, with_right_bound: bool) -> Tensor:
    """The number of boundaries below each value: Less or LessOrEqual, Cast, ReduceSum."""
    values = ctx.unsqueeze(data, -1)
    if values.element is not buckets.element:
        values, buckets = ctx.cast(values, element("f64")), ctx.cast(buckets, element("f64"))
    if with_right_bound:
        below = ctx.emit("Less", buckets, values)
    else:
        below = ctx.emit("Not", ctx.emit("Less", values, buckets))
    return ctx.reduce("ReduceSum", ctx.cast(below, I32), [-1])


@composed("SearchSorted")
def search_sorted(
    ctx: ExportContext, sorted_sequence: Tensor, values: Tensor, *, right_mode: bool, output_type: str
) -> Tensor:
    """The number of elements below each value: Less or LessOrEqual, Cast, ReduceSum."""
    one = ctx.unsqueeze(values, -1)
    sequence = (
        sorted_sequence if sorted_sequence.require_rank("the sequence") == 1 else ctx.unsqueeze(sorted_sequence, -2)
    )
    below = ctx.emit("LessOrEqual" if right_mode else "Less", sequence, one)
    return ctx.reduce("ReduceSum", ctx.cast(below, I64), [-1])
