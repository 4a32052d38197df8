"""Broadcast, Tile and Pad."""

from __future__ import annotations

import numpy as np

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.ops.movement import flipped
from converters.ir_to_onnx.ops.shape import as_i64
from converters.ir_to_onnx.registry import exact
from converters.ir_to_onnx.tensors import Tensor
from irexec.errors import check
from irexec.schema.broadcasting import pdpd_start

_END = int(np.iinfo(np.int64).max)


@exact("Broadcast")
def broadcast(
    ctx: ExportContext,
    data: Tensor,
    target_shape: Tensor,
    axes_mapping: Tensor | None = None,
    *,
    mode: str,
    mode_axis: int | None = None,
) -> Tensor:
    """Expand; with axes_mapping after Transpose and Unsqueeze."""
    target = as_i64(ctx, target_shape)
    if mode in ("explicit", "none") and axes_mapping is not None:
        axes = axes_mapping.require_ints("axes_mapping")
        data = _placed(ctx, data, axes, _length(target))
    elif mode == "pdpd":
        rank = data.require_rank("the data")
        end = _length(target) - pdpd_start(_length(target), rank, mode_axis)
        data = ctx.unsqueeze(data, *range(rank, end)) if end > rank else data
    return ctx.emit("Expand", data, target)


def _length(vector: Tensor) -> int:
    shape = vector.require_shape("the target shape")
    check(len(shape) == 1 and isinstance(shape[0], int), "the rank of the target shape is not known")
    assert isinstance(shape[0], int)
    return shape[0]


def _placed(ctx: ExportContext, data: Tensor, axes: tuple[int, ...], rank: int) -> Tensor:
    """The axes of the data at the given ones of ``rank``."""
    order = [int(axis) for axis in np.argsort(axes)]
    if order != sorted(order):
        data = ctx.transpose(data, order)
    new = [axis for axis in range(rank) if axis not in axes]
    return ctx.unsqueeze(data, *new) if new else data


@exact("Tile")
def tile(ctx: ExportContext, data: Tensor, repeats: Tensor) -> Tensor:
    """Tile; of the data and the repeats the shorter gets ones in front."""
    given, rank, count = as_i64(ctx, repeats), data.require_rank("the data"), _length(repeats)
    given = ctx.emit("Max", given, ctx.ints(0)) if given.value is None or (given.value < 0).any() else given
    if count > rank:
        data = ctx.unsqueeze(data, *range(count - rank))
    elif count < rank:
        given = ctx.concat(ctx.ints(*[1] * (rank - count)), given)
    return ctx.emit("Tile", data, given)


@exact("Pad")
def pad(
    ctx: ExportContext, data: Tensor, pads_begin: Tensor, pads_end: Tensor, pad_value: Tensor | None = None, *,
    pad_mode: str,
) -> Tensor:  # fmt: skip
    """Pad; symmetric by Concat of reversed slices, negative pads of modes other than constant by a Slice."""
    if data.shape == ():
        return ctx.emit("Identity", data)
    if pad_mode == "symmetric":
        begin, end = pads_begin.require_ints("pads_begin"), pads_end.require_ints("pads_end")
        return _cropped(ctx, _symmetric(ctx, data, begin, end), begin, end)
    if pads_begin.value is None or pads_end.value is None or pad_mode == "constant":
        begins, ends = as_i64(ctx, pads_begin), as_i64(ctx, pads_end)
        if pad_mode == "constant":
            return _padded(ctx, data, ctx.concat(begins, ends), pad_value, pad_mode)
        return _cropped_by(
            ctx, _padded(ctx, data, _positive(ctx, ctx.concat(begins, ends)), None, pad_mode), begins, ends
        )
    begin, end = pads_begin.require_ints("pads_begin"), pads_end.require_ints("pads_end")
    grown = _padded(ctx, data, ctx.ints(*(max(pad, 0) for pad in (*begin, *end))), pad_value, pad_mode)
    return _cropped(ctx, grown, begin, end)


def _padded(ctx: ExportContext, data: Tensor, pads: Tensor, value: Tensor | None, mode: str) -> Tensor:
    scalar = None if value is None or mode != "constant" else value if value.rank == 0 else ctx.reshape(value, [])
    return ctx.emit("Pad", data, pads, scalar, mode=mode)


def _positive(ctx: ExportContext, pads: Tensor) -> Tensor:
    return ctx.emit("Max", pads, ctx.ints(0))


def _cropped_by(ctx: ExportContext, data: Tensor, begins: Tensor, ends: Tensor) -> Tensor:
    """The data without the elements that negative pads, computed when the model runs, remove."""
    axes = ctx.ints(*range(data.require_rank("the data") if data.shape is not None else _length(begins)))
    starts = _positive(ctx, ctx.emit("Neg", begins))
    is_cut = ctx.emit("Less", ends, ctx.ints(0))
    return ctx.emit("Slice", data, starts, ctx.where(is_cut, ends, ctx.ints(_END)), axes)


def _cropped(ctx: ExportContext, data: Tensor, begin: tuple[int, ...], end: tuple[int, ...]) -> Tensor:
    """The data without the elements that negative pads remove."""
    axes = [i for i, pair in enumerate(zip(begin, end, strict=True)) if min(pair) < 0]
    if not axes:
        return data
    stops = [min(end[i], 0) or _END for i in axes]
    return ctx.emit("Slice", data, ctx.ints(*(max(-begin[i], 0) for i in axes)), ctx.ints(*stops), ctx.ints(*axes))


def _symmetric(ctx: ExportContext, data: Tensor, begin: tuple[int, ...], end: tuple[int, ...]) -> Tensor:
    """Reflected with the edge: the first elements reversed in front, the last ones reversed behind."""
    result = data
    for axis, (first, last) in enumerate(zip(begin, end, strict=True)):
        parts = [flipped(ctx, ctx.slice(result, 0, first, axis), [axis])] if first > 0 else []
        parts += [result]
        parts += [flipped(ctx, ctx.slice(result, -last, None, axis), [axis])] if last > 0 else []
        result = ctx.concat(*parts, axis=axis)
    return result if result is not data else ctx.cast(ctx.emit("Identity", data), data.element)
