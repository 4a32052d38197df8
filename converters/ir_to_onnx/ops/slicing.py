"""Slice, StridedSlice and SliceScatter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.ops.shape import as_i64
from converters.ir_to_onnx.registry import composed, exact
from converters.ir_to_onnx.tensors import Tensor
from irexec.errors import check

_FIRST, _LAST = int(np.iinfo(np.int64).min), int(np.iinfo(np.int64).max)


@exact("Slice")
def slice_(
    ctx: ExportContext, data: Tensor, start: Tensor, stop: Tensor, step: Tensor, axes: Tensor | None = None
) -> Tensor:
    """Slice."""
    bounds = [as_i64(ctx, bound) for bound in (start, stop, step)]
    order = None if axes is None else as_i64(ctx, axes)
    if order is None:
        check(bounds[0].shape is not None and isinstance(bounds[0].shape[0], int), "the number of axes is not known")
        assert bounds[0].shape is not None
        count = bounds[0].shape[0]
        assert isinstance(count, int)
        order = ctx.ints(*range(count))
    return ctx.emit("Slice", data, bounds[0], _stop(ctx, bounds[1], bounds[2]), order, bounds[2])


def _stop(ctx: ExportContext, stops: Tensor, steps: Tensor) -> Tensor:
    """The stops of slices; ONNX Runtime takes INT32_MAX and INT64_MAX as the end of the slice for any step, and for a
    negative one they are beyond its start."""
    if steps.value is not None and (steps.value > 0).all():
        return stops
    largest = np.iinfo(np.int32).max - 1
    if stops.value is None or steps.value is None:
        clipped = ctx.emit("Min", stops, ctx.constant(largest))
        return ctx.where(ctx.emit("Less", steps, ctx.constant(0)), clipped, stops)
    return ctx.ints(*np.where(steps.value < 0, np.minimum(stops.value, largest), stops.value).tolist())


def _has(mask: Sequence[int], i: int) -> bool:
    return i < len(mask) and bool(mask[i])


@exact("StridedSlice")
def strided_slice(
    ctx: ExportContext, data: Tensor, begin: Tensor, end: Tensor, strides: Tensor | None = None, *,
    begin_mask: Sequence[int], end_mask: Sequence[int], new_axis_mask: Sequence[int],
    shrink_axis_mask: Sequence[int], ellipsis_mask: Sequence[int],
) -> Tensor:  # fmt: skip
    """Slice, then Squeeze of single indices and Unsqueeze of new axes; an ellipsis is resolved by the rank."""
    count = _count(begin)
    kinds = [
        "ellipsis" if _has(ellipsis_mask, i) else "new" if _has(new_axis_mask, i)
        else "index" if _has(shrink_axis_mask, i) else "slice"
        for i in range(count)
    ]  # fmt: skip
    sliced = sum(kind in ("slice", "index") for kind in kinds)
    hidden = data.require_rank("the data") - sliced if "ellipsis" in kinds else 0
    starts, stops, steps, axes, gone, new = [], [], [], list[int](), list[int](), list[int]()
    axis = place = 0
    for i, kind in enumerate(kinds):
        if kind == "ellipsis":
            axis, place = axis + hidden, place + hidden
        elif kind == "new":
            new.append(place)
            place += 1
        else:
            first, last, step = _entry(ctx, i, kind, begin, end, strides, begin_mask, end_mask)
            starts.append(first)
            stops.append(last)
            steps.append(step)
            axes.append(axis)
            gone += [axis] if kind == "index" else []
            axis, place = axis + 1, place + (kind == "slice")
    result = data
    if axes:
        parts = [ctx.concat(*bounds) for bounds in (starts, stops)]
        result = ctx.emit("Slice", data, parts[0], parts[1], ctx.ints(*axes), ctx.concat(*steps))
    if gone:
        result = ctx.squeeze(result, *gone)
    if new:
        result = ctx.unsqueeze(result, *new)
    return result if result is not data else ctx.emit("Identity", data)


def _count(begin: Tensor) -> int:
    shape = begin.require_shape("the start")
    check(len(shape) == 1 and isinstance(shape[0], int), "the number of axes that are sliced is not known")
    assert isinstance(shape[0], int)
    return shape[0]


def _entry(
    ctx: ExportContext, i: int, kind: str, begin: Tensor, end: Tensor, strides: Tensor | None,
    begin_mask: Sequence[int], end_mask: Sequence[int],
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Start, stop and step of one axis, each a vector of one element."""
    step = ctx.ints(1) if strides is None or kind == "index" else _element(ctx, strides, i)
    backwards = step.value is not None and int(step.value[0]) < 0
    is_open = kind == "slice" and (_has(begin_mask, i) or _has(end_mask, i))
    check(step.value is not None or not is_open, "a bound is left open, and the sign of the stride is not known")
    if kind == "index":
        # The mask of a bound does not count for a single index.
        first = _element(ctx, begin, i)
        return first, _after(ctx, first), ctx.ints(1)
    # The specification of Slice: INT_MAX is the end of the axis, and INT_MIN, for negative steps, its beginning.
    first = ctx.ints(_LAST if backwards else 0) if _has(begin_mask, i) else _element(ctx, begin, i)
    if _has(end_mask, i):
        return first, ctx.ints(_FIRST if backwards else _LAST), step
    return first, _stop(ctx, _element(ctx, end, i), step), step


def _after(ctx: ExportContext, first: Tensor) -> Tensor:
    """The stop of a slice of one element: the end of the axis for index -1."""
    if first.value is not None:
        return ctx.ints(int(first.value[0]) + 1 or _LAST)
    following = ctx.emit("Add", first, ctx.ints(1))
    result: Tensor = ctx.where(ctx.emit("Equal", following, ctx.ints(0)), ctx.ints(_LAST), following)
    return result


def _element(ctx: ExportContext, vector: Tensor, i: int) -> Tensor:
    if vector.value is not None:
        return ctx.ints(vector.require_ints("a bound")[i])
    if vector.shape == (1,):
        return as_i64(ctx, vector)
    return ctx.slice(as_i64(ctx, vector), i, i + 1, 0)


@composed("SliceScatter")
def slice_scatter(
    ctx: ExportContext, data: Tensor, updates: Tensor, start: Tensor, stop: Tensor, step: Tensor,
    axes: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The indices of all elements are sliced, and ScatterElements writes the updates to the flattened data there."""
    total = ctx.count(data)
    if total is not None:
        numbers = ctx.constant(np.arange(total).reshape([int(s) for s in data.require_shape("the data")]))
    else:
        count = ctx.emit("Size", data)
        line = ctx.emit("Range", ctx.constant(0), count, ctx.constant(1))
        numbers = ctx.emit("Reshape", line, ctx.emit("Shape", data))
    places = ctx.reshape(slice_(ctx, numbers, start, stop, step, axes), [-1])
    flat = ctx.emit("ScatterElements", ctx.reshape(data, [-1]), places, ctx.reshape(updates, [-1]), axis=0)
    return ctx.emit("Reshape", flat, ctx.shape_of(data), allowzero=1 if data.is_known_empty() else None)
