"""ScatterUpdate, ScatterElementsUpdate, ScatterNDUpdate."""

from __future__ import annotations

from collections.abc import Callable

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.ops.elementwise import floor_divide
from converters.ir_to_onnx.ops.gather import as_index
from converters.ir_to_onnx.registry import composed, exact
from converters.ir_to_onnx.tensors import Tensor
from irexec.dtypes.elements import BF16, BOOLEAN, F16, F32, I32, I64

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
