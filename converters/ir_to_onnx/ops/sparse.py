"""Rows of a table that are pooled by bag or segment: EmbeddingBag, EmbeddingSegmentsSum, SegmentMax;
SparseFillEmptyRows."""

from __future__ import annotations

import numpy as np

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.ops.shape import as_i64
from converters.ir_to_onnx.registry import composed
from converters.ir_to_onnx.tensors import Tensor
from irexec.dtypes.elements import BF16, BOOLEAN, F16, F32, F64, I32, I64
from irexec.dtypes.limits import lowest
from irexec.errors import check


def _rows(ctx: ExportContext, table: Tensor, indices: Tensor, weights: Tensor | None) -> Tensor:
    rows = ctx.emit("Gather", table, as_i64(ctx, indices), axis=0)
    if weights is None:
        return rows
    rank = table.require_rank("the table")
    count = weights.require_rank("the weights")
    return ctx.emit("Mul", rows, ctx.unsqueeze(weights, *range(count, count + rank - 1)) if rank > 1 else weights)


@composed("EmbeddingBagPackedSum")
def embedding_bag_packed_sum(
    ctx: ExportContext, table: Tensor, indices: Tensor, weights: Tensor | None = None
) -> Tensor:
    """Gather, Mul by weights, ReduceSum."""
    return _packed(ctx, table, indices, weights, "sum")


@composed("EmbeddingBagPacked")
def embedding_bag_packed(
    ctx: ExportContext, table: Tensor, indices: Tensor, weights: Tensor | None = None, *, reduction: str
) -> Tensor:
    """Gather, Mul by weights, ReduceSum; the mean by Div."""
    return _packed(ctx, table, indices, weights, reduction)


def _packed(ctx: ExportContext, table: Tensor, indices: Tensor, weights: Tensor | None, reduction: str) -> Tensor:
    sums = ctx.reduce("ReduceSum", _summable(ctx, _rows(ctx, table, indices, weights)), [1])
    if reduction == "mean":
        count = ctx.emit("Max", ctx.slice(ctx.shape_of(indices), 1, 2, 0), ctx.ints(1))
        sums = ctx.emit("Div", sums, ctx.cast(count, sums.element))
    return ctx.cast(sums, table.element)


def _summable(ctx: ExportContext, rows: Tensor) -> Tensor:
    """Rows in a type that ONNX Runtime sums in."""
    if rows.element in (F32, F64, I32, I64):
        return rows
    return ctx.cast(rows, F32 if rows.element in (F16, BF16) else I64)


@composed("EmbeddingBagOffsetsSum")
def embedding_bag_offsets_sum(
    ctx: ExportContext, table: Tensor, indices: Tensor, offsets: Tensor, default_index: Tensor | None = None,
    weights: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The bag of each index by comparison with the offsets, Gather, ScatterND that adds; Where for empty bags."""
    return _by_offsets(ctx, table, indices, offsets, default_index, weights, "sum")


@composed("EmbeddingBagOffsets")
def embedding_bag_offsets(
    ctx: ExportContext, table: Tensor, indices: Tensor, offsets: Tensor, default_index: Tensor | None = None,
    weights: Tensor | None = None, *, reduction: str,
) -> Tensor:  # fmt: skip
    """The bag of each index by comparison with the offsets, Gather, ScatterND that adds, Div; Where for empty bags."""
    return _by_offsets(ctx, table, indices, offsets, default_index, weights, reduction)


def _by_offsets(
    ctx: ExportContext, table: Tensor, indices: Tensor, offsets: Tensor, default_index: Tensor | None,
    weights: Tensor | None, reduction: str,
) -> Tensor:  # fmt: skip
    offsets = as_i64(ctx, offsets)
    count = ctx.reshape(ctx.shape_of(indices), [])
    number = ctx.emit("Range", ctx.constant(0), count, ctx.constant(1))
    begun = ctx.emit("LessOrEqual", ctx.unsqueeze(offsets, 0), ctx.unsqueeze(number, 1))
    bags = ctx.emit("Sub", ctx.reduce("ReduceSum", ctx.cast(begun, I64), [1]), ctx.constant(1))
    rows = _rows(ctx, table, indices, weights)
    return _pooled(ctx, table, rows, bags, ctx.shape_of(offsets), default_index, reduction)


@composed("EmbeddingSegmentsSum")
def embedding_segments_sum(
    ctx: ExportContext, table: Tensor, indices: Tensor, segment_ids: Tensor, num_segments: Tensor,
    default_index: Tensor | None = None, weights: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Gather, ScatterND that adds; Where for empty segments."""
    count = ctx.reshape(as_i64(ctx, num_segments), [1])
    rows = _rows(ctx, table, indices, weights)
    return _pooled(ctx, table, rows, as_i64(ctx, segment_ids), count, default_index, "sum")


def _scattered(
    ctx: ExportContext, rows: Tensor, groups: Tensor, count: Tensor, first: float, reduction: str
) -> tuple[Tensor, Tensor]:
    """The reduction of the rows of each of ``count`` groups, and how many there are, both with a last group for rows
    of no group."""
    check(ctx.opset >= (16 if reduction == "add" else 18), f"ONNX's ScatterND of opset {ctx.opset} does not reduce")
    last = ctx.reshape(count, [])
    is_in = ctx.emit("And", ctx.emit("GreaterOrEqual", groups, ctx.constant(0)), ctx.emit("Less", groups, last))
    places = ctx.unsqueeze(ctx.where(is_in, groups, last), 1)
    total = ctx.emit("Add", count, ctx.ints(1))
    shape = ctx.concat(total, ctx.slice(ctx.emit("Shape", rows), 1, None, 0))
    start = ctx.emit("Expand", ctx.scalar(first, rows), shape)
    ones = ctx.emit("Expand", ctx.constant(1), ctx.emit("Shape", groups))
    counts = ctx.emit("ScatterND", ctx.emit("Expand", ctx.constant(0), total), places, ones, reduction="add")
    return ctx.emit("ScatterND", start, places, rows, reduction=reduction), counts


def _pooled(
    ctx: ExportContext, table: Tensor, rows: Tensor, bags: Tensor, count: Tensor, default_index: Tensor | None,
    reduction: str,
) -> Tensor:  # fmt: skip
    rank = table.require_rank("the table")
    sums, counts = _scattered(ctx, _summable(ctx, rows), bags, count, 0, "add")
    counts = ctx.unsqueeze(counts, *range(1, rank)) if rank > 1 else counts
    if reduction == "mean":
        sums = ctx.emit("Div", sums, ctx.cast(ctx.emit("Max", counts, ctx.constant(1)), sums.element))
    zero = ctx.scalar(0, sums)
    empty = zero
    if default_index is not None:
        index = ctx.reshape(as_i64(ctx, default_index), [])
        row = ctx.emit("Gather", table, ctx.emit("Max", index, ctx.constant(0)), axis=0)
        empty = ctx.where(ctx.emit("Less", index, ctx.constant(0)), zero, ctx.cast(row, sums.element))
    found = ctx.where(ctx.emit("Greater", counts, ctx.constant(0)), sums, empty)
    return ctx.cast(ctx.emit("Slice", found, ctx.ints(0), count, ctx.ints(0)), table.element)


@composed("SegmentMax")
def segment_max(
    ctx: ExportContext, data: Tensor, segment_ids: Tensor, num_segments: Tensor | None = None, *, fill_mode: str
) -> Tensor:
    """ScatterND that takes the maximum; Where for empty segments."""
    ids, rank = as_i64(ctx, segment_ids), data.require_rank("the data")
    if num_segments is None:
        count = ctx.emit("Add", ctx.slice(ids, -1, None, 0), ctx.ints(1))
    else:
        count = ctx.reshape(as_i64(ctx, num_segments), [1])
    wide = _summable(ctx, data)
    first = -np.inf if wide.element.is_float else float(np.iinfo(wide.element.carrier).min)
    maxima, counts = _scattered(ctx, wide, ids, count, first, "max")
    counts = ctx.unsqueeze(counts, *range(1, rank)) if rank > 1 else counts
    fill = ctx.constant(0 if fill_mode == "zero" else lowest(data.element), data.element)
    found = ctx.where(ctx.emit("Greater", counts, ctx.constant(0)), ctx.cast(maxima, data.element), fill)
    return ctx.emit("Slice", found, ctx.ints(0), count, ctx.ints(0))


@composed("SparseFillEmptyRows")
def sparse_fill_empty_rows(
    ctx: ExportContext, values: Tensor, dense_shape: Tensor, indices: Tensor, default_value: Tensor
) -> tuple[Tensor, ...]:
    """The rows without elements by ScatterElements and NonZero, Concat, and TopK of the positions."""
    sizes, given = as_i64(ctx, dense_shape), as_i64(ctx, indices)
    rows, columns = ctx.slice(sizes, 0, 1, 0), ctx.slice(sizes, 1, 2, 0)
    given_rows = ctx.squeeze(ctx.slice(given, 0, 1, 1), 1)
    zeros = ctx.emit("Expand", ctx.constant(0), ctx.emit("Shape", given_rows))
    flags = ctx.emit("ScatterElements", ctx.emit("Expand", ctx.constant(1), rows), given_rows, zeros, axis=0)
    filling = ctx.emit("Pad", ctx.transpose(ctx.emit("NonZero", flags), [1, 0]), ctx.ints(0, 0, 0, 1))
    together = ctx.emit("Concat", given, filling, axis=0)
    count = ctx.slice(ctx.emit("Shape", filling), 0, 1, 0)
    default = ctx.emit("Expand", ctx.reshape(default_value, [1]), count)
    # In row-major order; TopK takes the first of equal ones.
    widths = ctx.concat(ctx.emit("Max", columns, ctx.ints(1)), ctx.ints(1))
    keys = ctx.reduce("ReduceSum", ctx.emit("Mul", together, widths), [1])
    _, order = ctx.emit_all("TopK", 2, keys, ctx.emit("Shape", keys), axis=0, largest=0)
    all_values = ctx.emit("Gather", ctx.emit("Concat", values, default, axis=0), order, axis=0)
    return ctx.emit("Gather", together, order, axis=0), all_values, ctx.cast(flags, BOOLEAN)
