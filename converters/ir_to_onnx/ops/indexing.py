"""Elements at positions: Gather, Scatter, TopK and other orders of elements."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.graph import Tensor
from converters.ir_to_onnx.ops.elementwise import floor_divide
from converters.ir_to_onnx.ops.generation import as_i64
from converters.ir_to_onnx.registry import composed, exact
from irexec.dtypes.elements import BF16, BOOLEAN, F16, F32, I32, I64, element
from irexec.errors import check

_LONGEST = 512
"""Steps of a search that are unrolled."""


def as_index(ctx: ExportContext, indices: Tensor) -> Tensor:
    """Indices of a type that ONNX has for them."""
    return indices if indices.element in (I32, I64) else ctx.cast(indices, I64)


@exact("Gather")
def gather(ctx: ExportContext, data: Tensor, indices: Tensor, axis: Tensor, *, batch_dims: int = 0) -> Tensor:
    """Gather of a constant axis; with batches GatherND and Transpose. An index out of range is an error in ONNX."""
    along = axis.require_ints("the axis")[0]
    indices = as_index(ctx, indices)
    if batch_dims == 0:
        return ctx.emit("Gather", data, indices, axis=along)
    rank, index_rank = data.require_rank("the data"), indices.require_rank("the indices")
    along, batch = along % rank, batch_dims % index_rank if batch_dims < 0 else batch_dims
    order = [*range(batch), along, *(axis for axis in range(batch, rank) if axis != along)]
    moved = data if order == list(range(rank)) else ctx.transpose(data, order)
    taken = ctx.emit("GatherND", moved, ctx.cast(ctx.unsqueeze(indices, -1), I64), batch_dims=batch)
    # The axes of the indices come before those between batch and axis.
    count = index_rank - batch
    between = along - batch
    back = [
        *range(batch), *range(batch + count, batch + count + between), *range(batch, batch + count),
        *range(batch + count + between, rank - 1 + count),
    ]  # fmt: skip
    return taken if back == list(range(len(back))) else ctx.transpose(taken, back)


@exact("GatherElements")
def gather_elements(ctx: ExportContext, data: Tensor, indices: Tensor, *, axis: int) -> Tensor:
    """GatherElements."""
    return ctx.emit("GatherElements", data, as_index(ctx, indices), axis=axis)


@exact("GatherND", since=8)
def gather_nd(ctx: ExportContext, data: Tensor, indices: Tensor, *, batch_dims: int) -> Tensor:
    """GatherND."""
    return ctx.emit("GatherND", data, ctx.cast(indices, I64), batch_dims=batch_dims)


@exact("GatherND", since=5)
def gather_nd_5(ctx: ExportContext, data: Tensor, indices: Tensor, *, batch_dims: int) -> Tensor:
    """GatherND; of several batch axes followed by a Reshape that merges them."""
    taken = gather_nd(ctx, data, indices, batch_dims=batch_dims)
    if batch_dims <= 1:
        return taken
    shape = ctx.facts[0].shape
    if shape is not None and all(isinstance(size, int) for size in shape):
        return ctx.emit("Reshape", taken, ctx.ints(*(int(size) for size in shape if isinstance(size, int))),
                        allowzero=1 if 0 in shape else None)  # fmt: skip
    batch = indices.shape[:batch_dims] if indices.shape is not None else ()
    sizes = [size for size in batch if isinstance(size, int)]
    first = ctx.ints(math.prod(sizes)) if sizes and len(sizes) == len(batch) else ctx.ints(-1)
    rest = ctx.emit("Slice", ctx.emit("Shape", taken), ctx.ints(batch_dims), ctx.ints(1 << 30))
    return ctx.emit("Reshape", taken, ctx.concat(first, rest))


@composed("GatherTree")
def gather_tree(
    ctx: ExportContext, step_ids: Tensor, parent_idx: Tensor, max_seq_len: Tensor, end_token: Tensor
) -> Tensor:
    """The steps from the last one back, unrolled: GatherElements of the step and of its parents, Where."""
    time, _, beams = step_ids.require_shape("the steps")
    check(isinstance(time, int) and time <= _LONGEST, f"the number of steps is not known, or above {_LONGEST}")
    check(isinstance(beams, int), "the number of beams is not known")
    assert isinstance(time, int) and isinstance(beams, int)
    if time == 0:
        return ctx.emit("Identity", step_ids)
    lengths, end = ctx.unsqueeze(ctx.cast(max_seq_len, I64), 1), ctx.reshape(end_token, [])
    first = ctx.emit("Mul", ctx.constant(0), ctx.cast(ctx.squeeze(ctx.slice(step_ids, 0, 1, 0), 0), I64))
    parents = ctx.emit("Add", first, ctx.constant([list(range(beams))]))
    steps = []
    for step in reversed(range(time)):
        within = ctx.emit("Greater", lengths, ctx.constant(step))
        ids, before = (ctx.squeeze(ctx.slice(x, step, step + 1, 0), 0) for x in (step_ids, parent_idx))
        steps.append(ctx.where(within, ctx.emit("GatherElements", ids, parents, axis=1), end))
        moved = ctx.cast(ctx.emit("GatherElements", before, parents, axis=1), I64)
        parents = ctx.where(within, moved, parents)
    whole = ctx.concat(*(ctx.unsqueeze(x, 0) for x in reversed(steps)))
    ended = ctx.emit("CumSum", ctx.cast(ctx.emit("Equal", whole, end), I32), ctx.constant(0))
    return ctx.where(ctx.emit("Greater", ended, ctx.constant(0, I32)), end, whole)


_REDUCTIONS = {"sum": "add", "prod": "mul", "min": "min", "max": "max", "sub": "add"}


@composed("ScatterUpdate")
def scatter_update(ctx: ExportContext, data: Tensor, indices: Tensor, updates: Tensor, axis: Tensor) -> Tensor:
    """ScatterND along the first axis; Transpose before and after for another one."""
    rank, count = data.require_rank("the data"), indices.require_rank("the indices")
    along = axis.require_ints("the axis")[0] % rank
    places = ctx.unsqueeze(ctx.cast(indices, I64), -1)
    if along == 0:
        return ctx.emit("ScatterND", data, places, updates)
    order = [along, *(i for i in range(rank) if i != along)]
    of_updates = [*range(along, along + count), *range(along), *range(along + count, rank - 1 + count)]
    written = ctx.emit("ScatterND", ctx.transpose(data, order), places, ctx.transpose(updates, of_updates))
    return ctx.transpose(written, [order.index(i) for i in range(rank)])


@exact("ScatterElementsUpdate")
def scatter_elements_update(
    ctx: ExportContext, data: Tensor, indices: Tensor, updates: Tensor, axis: Tensor, *, reduction: str = "none",
    use_init_val: bool = True,
) -> Tensor:  # fmt: skip
    """ScatterElements of a constant axis; the mean, and reductions without the initial value, by several."""
    along, places = axis.require_ints("the axis")[0], as_index(ctx, indices)
    if reduction == "mean":
        return _mean(ctx, data, places, updates, along, use_init_val)
    if reduction == "none":
        return ctx.emit("ScatterElements", data, places, updates, axis=along)
    if not use_init_val:
        first = updates
        if reduction in ("sum", "prod"):
            first = ctx.emit("Expand", ctx.scalar(reduction == "prod", data), ctx.shape_of(places))
        data = ctx.emit("ScatterElements", data, places, first, axis=along)
    return _reduced(ctx, data, places, updates, along, reduction)


def _reduced(ctx: ExportContext, data: Tensor, indices: Tensor, updates: Tensor, axis: int, reduction: str) -> Tensor:
    def scatter(wide: Tensor, changes: Tensor, name: str) -> Tensor:
        return ctx.emit("ScatterElements", wide, indices, changes, axis=axis, reduction=name)

    return _widened(ctx, data, updates, reduction, scatter)


def _widened(
    ctx: ExportContext, data: Tensor, updates: Tensor, reduction: str, scatter: Callable[[Tensor, Tensor, str], Tensor]
) -> Tensor:
    """A reduction in a type that ONNX Runtime reduces in: f32 for f16 and bf16, i32 for booleans."""
    kind = data.element
    if kind is BOOLEAN:
        # A difference of booleans is an exclusive or: whether the sum is odd.
        total = scatter(ctx.cast(data, I32), ctx.cast(updates, I32), _REDUCTIONS[reduction])
        if reduction == "sub":
            total = ctx.emit("Mod", total, ctx.constant(2, I32))
        return ctx.cast(total, BOOLEAN)
    wide = F32 if kind in (F16, BF16) else kind
    changes = ctx.emit("Sub", ctx.scalar(0, updates), updates) if reduction == "sub" else updates
    return ctx.cast(scatter(ctx.cast(data, wide), ctx.cast(changes, wide), _REDUCTIONS[reduction]), kind)


def _mean(ctx: ExportContext, data: Tensor, indices: Tensor, updates: Tensor, axis: int, use_init_val: bool) -> Tensor:
    """The sum over the number of what is summed; of integers rounded down."""
    zero = ctx.scalar(0, data)
    sums, shape = data, ctx.shape_of(indices)
    if not use_init_val:
        sums = ctx.emit("ScatterElements", data, indices, ctx.emit("Expand", zero, shape), axis=axis)
    sums = _reduced(ctx, sums, indices, updates, axis, "sum")
    initial = ctx.emit("Expand", ctx.scalar(int(use_init_val), data), ctx.shape_of(data))
    counts = _reduced(ctx, initial, indices, ctx.emit("Expand", ctx.scalar(1, data), shape), axis, "sum")
    counts = ctx.emit("Max", counts, ctx.scalar(1, data))
    if data.element.kind == "signed":
        return floor_divide(ctx, sums, counts)
    return ctx.emit("Div", sums, counts)


@exact("ScatterNDUpdate")
def scatter_nd_update(
    ctx: ExportContext, data: Tensor, indices: Tensor, updates: Tensor, *, reduction: str = "none"
) -> Tensor:
    """ScatterND; differences add the negated updates."""
    places, updates = ctx.cast(indices, I64), _fitting(ctx, data, indices, updates)
    if reduction == "none":
        return ctx.emit("ScatterND", data, places, updates)

    def scatter(wide: Tensor, changes: Tensor, name: str) -> Tensor:
        return ctx.emit("ScatterND", wide, places, changes, reduction=name)

    return _widened(ctx, data, updates, reduction, scatter)


def _fitting(ctx: ExportContext, data: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """The updates; a single one, which IR allows to be a vector, as the scalar that ONNX expects."""
    if data.rank is None or indices.shape is None or not isinstance(indices.shape[-1], int):
        return updates
    expected = len(indices.shape) - 1 + data.rank - indices.shape[-1]
    return ctx.reshape(updates, []) if expected == 0 and updates.rank == 1 else updates


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
