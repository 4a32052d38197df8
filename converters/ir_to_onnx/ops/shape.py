"""Operations that read or change the shape."""

from __future__ import annotations

import numpy as np

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.registry import exact
from converters.ir_to_onnx.tensors import Tensor
from irexec.dtypes.elements import I64
from irexec.errors import check
from irexec.ir.dims import may_equal


@exact("ShapeOf")
def shape_of(ctx: ExportContext, data: Tensor, *, output_type: str = "i64") -> Tensor:
    """Shape; i32 by a Cast."""
    return ctx.emit("Shape", data)


def as_i64(ctx: ExportContext, tensor: Tensor) -> Tensor:
    """Integers as i64, of which ONNX's shapes and axes are."""
    if tensor.element is I64:
        return tensor
    if tensor.value is not None:
        return ctx.constant(tensor.value.astype(np.int64))
    return ctx.cast(tensor, I64)


def as_vector(ctx: ExportContext, tensor: Tensor) -> Tensor:
    """A tensor of one element as a vector of it; a vector is left as it is."""
    if tensor.rank == 1:
        return tensor
    if tensor.value is not None:
        return ctx.constant(tensor.value.reshape(-1), tensor.element)
    return ctx.reshape(tensor, [-1])


@exact("Reshape")
def reshape(ctx: ExportContext, data: Tensor, shape: Tensor, *, special_zero: bool) -> Tensor:
    """Reshape, with allowzero where zeros are sizes; -1 beside a 0 is computed from the shape."""
    pattern = as_i64(ctx, shape)
    known = None if shape.value is None else shape.require_ints("the shape")
    if special_zero:
        return ctx.emit("Reshape", data, pattern)
    if known is not None and 0 not in known:
        return ctx.emit("Reshape", data, pattern)
    if known is not None and -1 in known:
        sizes = ctx.facts[0].shape
        check(sizes is not None and all(isinstance(size, int) for size in sizes),
              f"the shape {list(known)} has -1 beside a size of 0, and the result is not known")  # fmt: skip
        assert sizes is not None
        return ctx.emit("Reshape", data, ctx.ints(*(int(s) for s in sizes if isinstance(s, int))), allowzero=1)
    if known is None and ctx.opset < 14:
        return ctx.emit("Reshape", data, pattern)
    return ctx.emit("Reshape", data, pattern, allowzero=1)


@exact("Squeeze")
def squeeze(ctx: ExportContext, data: Tensor, axes: Tensor | None = None, *, allow_axis_skip: bool = False) -> Tensor:
    """Squeeze; axes of another size than 1 are left out, as IR keeps them: where that is known when the model runs, the
    sizes that stay are selected, and the data gets them by a Reshape."""
    if data.shape == ():
        return ctx.emit("Identity", data)
    if axes is None:
        return ctx.emit("Squeeze", data)
    if axes.value is None:
        return _squeezed_where_1(ctx, data, as_vector(ctx, as_i64(ctx, axes)))
    given = axes.require_ints("the axes")
    if not given:
        return ctx.emit("Squeeze", data)
    if data.shape is None:
        return ctx.emit("Squeeze", data, ctx.ints(*given))
    rank = len(data.shape)
    kept = sorted({axis % rank for axis in given if may_equal(data.shape[axis], 1)})
    unknown = [axis for axis in kept if data.shape and not isinstance(data.shape[axis], int)]
    if unknown and allow_axis_skip:
        return _squeezed_where_1(ctx, data, ctx.ints(*kept))
    if not kept:
        return ctx.emit("Identity", data)
    return ctx.emit("Squeeze", data, ctx.ints(*kept))


def _squeezed_where_1(ctx: ExportContext, data: Tensor, axes: Tensor) -> Tensor:
    """The data without those of the axes that have size 1 when the model runs."""
    sizes = ctx.emit("Shape", data)
    none, chosen = (ctx.emit("Sub", tensor, tensor) for tensor in (sizes, axes))
    marked = ctx.emit("ScatterElements", none, axes, ctx.emit("Add", chosen, ctx.ints(1)))
    is_removed = ctx.emit("And", ctx.emit("Equal", sizes, ctx.ints(1)), ctx.emit("Equal", marked, ctx.ints(1)))
    left = ctx.emit("Compress", sizes, ctx.emit("Not", is_removed), axis=0)
    return ctx.emit("Reshape", data, left, allowzero=1 if ctx.opset >= 14 else None)


@exact("Unsqueeze")
def unsqueeze(ctx: ExportContext, data: Tensor, axes: Tensor) -> Tensor:
    """Unsqueeze."""
    vector = as_vector(ctx, as_i64(ctx, axes))
    return ctx.emit("Unsqueeze", data, vector)
