"""Gather, GatherElements, GatherND."""

from __future__ import annotations

import math

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.registry import composed, exact
from converters.ir_to_onnx.tensors import Tensor
from irexec.dtypes.elements import I32, I64
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
