"""Reductions along axes."""

from __future__ import annotations

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.ops.shape import as_i64, as_vector
from converters.ir_to_onnx.registry import add, composed
from converters.ir_to_onnx.tensors import Tensor
from irexec.dtypes.elements import BOOLEAN, F64, U8
from irexec.errors import check

_REDUCTIONS = {
    "ReduceSum": "ReduceSum", "ReduceMean": "ReduceMean", "ReduceProd": "ReduceProd", "ReduceMax": "ReduceMax",
    "ReduceMin": "ReduceMin", "ReduceL1": "ReduceL1", "ReduceL2": "ReduceL2",
}  # fmt: skip


def _reduction(type: str, onnx: str) -> None:
    def translate(ctx: ExportContext, data: Tensor, axes: Tensor, *, keep_dims: bool) -> Tensor:
        if type == "ReduceL2" and not data.element.is_float:
            return ctx.cast(_reduced(ctx, onnx, ctx.cast(data, F64), axes, keep_dims), data.element)
        if type == "ReduceMean" and data.element.is_integer:
            return _integer_mean(ctx, data, axes, keep_dims)
        return _reduced(ctx, onnx, data, axes, keep_dims)

    add(type, "exact", onnx, translate)


@composed("ReduceLogicalAnd", "ReduceLogicalOr")
def reduce_logical(ctx: ExportContext, data: Tensor, axes: Tensor, *, keep_dims: bool) -> Tensor:
    """ReduceMin, ReduceMax of bytes."""
    type = "ReduceMin" if ctx.node.type == "ReduceLogicalAnd" else "ReduceMax"
    return ctx.cast(_reduced(ctx, type, ctx.cast(data, U8), axes, keep_dims), BOOLEAN)


def _integer_mean(ctx: ExportContext, data: Tensor, axes: Tensor, keep: bool) -> Tensor:
    """The sum, which wraps, divided by the number of elements; 0 for no elements."""
    shape = data.require_shape("the data")
    chosen = axes.require_ints("the axes") if shape else ()
    total = _reduced(ctx, "ReduceSum", data, axes, keep)
    count = ctx.constant(1)
    for axis in sorted({axis % len(shape) for axis in chosen}):
        size = shape[axis]
        known = isinstance(size, int)
        part = ctx.constant(size) if known else ctx.emit("Gather", ctx.emit("Shape", data), ctx.constant(axis))
        count = ctx.emit("Mul", count, part)
    return ctx.emit("Div", total, ctx.cast(ctx.emit("Max", count, ctx.constant(1)), data.element))


def _reduced(ctx: ExportContext, type: str, data: Tensor, axes: Tensor, keep: bool) -> Tensor:
    as_input = ctx.opset >= (13 if type == "ReduceSum" else 18)
    if axes.value is None:
        check(as_input, f"the axes are computed when the model runs, and ONNX's {type} takes them from opset 18 on")
        vector = as_vector(ctx, as_i64(ctx, axes))
        return ctx.emit(type, data, vector, keepdims=int(keep), noop_with_empty_axes=1)
    given = axes.require_ints("the axes")
    if not given or data.shape == ():
        # ONNX reduces all axes where none is given.
        return ctx.emit("Abs" if type in ("ReduceL1", "ReduceL2") else "Identity", data)
    rank = data.rank
    is_spatial = rank is not None and 2 < rank < 6 and sorted(axis % rank for axis in given) == list(range(2, rank))
    if type == "ReduceMean" and keep and is_spatial and data.element.is_float and not data.is_known_empty():
        return ctx.emit("GlobalAveragePool", data)
    return ctx.reduce(type, data, given if rank is None else sorted({axis % rank for axis in given}), keep)


for _type, _onnx in _REDUCTIONS.items():
    _reduction(_type, _onnx)
