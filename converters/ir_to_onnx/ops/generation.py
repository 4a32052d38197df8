"""Range, OneHot, Eye."""

from __future__ import annotations

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.ops.shape import as_i64
from converters.ir_to_onnx.registry import composed, exact
from converters.ir_to_onnx.tensors import Tensor
from irexec.dtypes.elements import F64, I64, Element


@exact("Range", since=1)
def range_1(ctx: ExportContext, start: Tensor, stop: Tensor, step: Tensor) -> Tensor:
    """Range."""
    return _range(ctx, start, stop, step, start.element)


@exact("Range", since=4)
def range_4(ctx: ExportContext, start: Tensor, stop: Tensor, step: Tensor, *, output_type: Element) -> Tensor:
    """Range of inputs that are cast to the type of the result."""
    return _range(ctx, start, stop, step, output_type)


def _range(ctx: ExportContext, start: Tensor, stop: Tensor, step: Tensor, kind: Element) -> Tensor:
    """Floats are computed in f64 and rounded once; integers are truncated first."""
    work = F64 if kind.is_float else I64
    first, last, stride = (ctx.cast(ctx.reshape(x, []) if x.rank != 0 else x, work) for x in (start, stop, step))
    if work is I64 and step.element.is_float:
        # A fraction becomes a stride of 0, which ONNX refuses; the range is empty then.
        none = ctx.emit("Equal", stride, ctx.constant(0))
        last, stride = ctx.emit("Where", none, first, last), ctx.emit("Where", none, ctx.constant(1), stride)
    return ctx.cast(ctx.emit("Range", first, last, stride), kind)


@exact("OneHot")
def one_hot(
    ctx: ExportContext, indices: Tensor, depth: Tensor, on_value: Tensor, off_value: Tensor, *, axis: int,
    negative_indices_mode: str = "ignore_negative",
) -> Tensor:  # fmt: skip
    """OneHot; negative indices, which ONNX counts from the end, are replaced by the depth if they are to be ignored."""
    places, size = as_i64(ctx, indices), ctx.reshape(as_i64(ctx, depth), [])
    if negative_indices_mode == "ignore_negative":
        places = ctx.where(ctx.emit("Less", places, ctx.constant(0)), size, places)
    values = ctx.concat(ctx.reshape(off_value, [1]), ctx.reshape(on_value, [1]))
    if indices.rank == 0:
        # ONNX needs an axis of indices.
        return ctx.squeeze(ctx.emit("OneHot", ctx.reshape(places, [1]), size, values, axis=-1), 0)
    return ctx.emit("OneHot", places, size, values, axis=axis)


@composed("Eye")
def eye(
    ctx: ExportContext, num_rows: Tensor, num_columns: Tensor, diagonal_index: Tensor,
    batch_shape: Tensor | None = None, *, output_type: Element,
) -> Tensor:  # fmt: skip
    """Range of rows + diagonal is equal to Range of columns; Expand for batches."""
    rows, columns, diagonal = (ctx.reshape(as_i64(ctx, x), []) for x in (num_rows, num_columns, diagonal_index))
    zero, one = ctx.constant(0), ctx.constant(1)
    row, column = (ctx.emit("Range", zero, count, one) for count in (rows, columns))
    on = ctx.emit("Equal", ctx.unsqueeze(ctx.emit("Add", row, diagonal), 1), ctx.unsqueeze(column, 0))
    matrix = ctx.cast(on, output_type)
    if batch_shape is None:
        return matrix
    sizes = ctx.concat(as_i64(ctx, batch_shape), ctx.unsqueeze(rows, 0), ctx.unsqueeze(columns, 0))
    return ctx.emit("Expand", matrix, sizes)
