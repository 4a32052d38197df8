"""Deformable convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.ops.convolution import known_sizes, window_attributes
from converters.ir_to_onnx.registry import exact
from converters.ir_to_onnx.tensors import Tensor
from irexec.dtypes.elements import BOOLEAN
from irexec.errors import check


@exact("DeformableConvolution", since=1)
def deformable_convolution(
    ctx: ExportContext, data: Tensor, offsets: Tensor, filter: Tensor, mask: Tensor | None = None, *, attributes: Any
) -> Tensor:
    """DeformConv, from opset 19 on; without bilinear_interpolation_pad, with positions beyond the last pixel moved."""
    check(ctx.has("DeformConv"), f"ONNX's DeformConv is not in opset {ctx.opset}")
    if not getattr(attributes, "bilinear_interpolation_pad", False):
        offsets, mask = _inside(ctx, data, offsets, filter, mask, attributes)
    return _deform_conv(ctx, data, offsets, filter, mask, attributes)


@exact("DeformableConvolution", since="irexec")
def deformable_convolution_of_any_rank(
    ctx: ExportContext, data: Tensor, offsets: Tensor, filter: Tensor, mask: Tensor | None = None, *, attributes: Any
) -> Tensor:
    """DeformConv, from opset 19 on."""
    check(attributes.bilinear_interpolation_pad, "ONNX pads with zeros")
    return _deform_conv(ctx, data, offsets, filter, mask, attributes)


def _deform_conv(
    ctx: ExportContext, data: Tensor, offsets: Tensor, filter: Tensor, mask: Tensor | None, attributes: Any
) -> Tensor:
    rank = data.require_rank("the data") - 2
    options = window_attributes(attributes, data.shape, known_sizes(filter.shape, 2), rank)
    check("pads" in options, "the pads depend on sizes that are not known")
    return ctx.emit(
        "DeformConv", data, filter, offsets, None, mask, group=attributes.group,
        offset_group=attributes.deformable_group, **options,
    )  # fmt: skip


def _inside(
    ctx: ExportContext, data: Tensor, offsets: Tensor, filter: Tensor, mask: Tensor | None, attributes: Any
) -> tuple[Tensor, Tensor]:
    """Offsets whose positions are at most the last pixel, and a mask that is 0 where they were beyond the image."""
    spatial, kernel = known_sizes(data.shape, 2), known_sizes(filter.shape, 2)
    check(spatial is not None and kernel is not None, "the sizes of the data and of the filter are not known")
    assert spatial is not None and kernel is not None
    base = _positions(attributes, spatial, kernel)
    groups = attributes.deformable_group
    points = ctx.emit("Reshape", offsets, ctx.ints(0, groups * base.shape[0], 2, *base.shape[2:]))
    tiled = ctx.constant(np.tile(base, (groups, 1, 1, 1)), offsets.element)
    places = ctx.emit("Add", points, tiled)
    last = ctx.constant(np.array(spatial).reshape(2, 1, 1) - 1, offsets.element)
    zero, one = ctx.scalar(0, offsets), ctx.scalar(1, offsets)
    beyond = ctx.emit(
        "Or", ctx.emit("Less", places, zero), ctx.emit("GreaterOrEqual", places, ctx.emit("Add", last, one))
    )
    outside = ctx.reduce("ReduceMax", ctx.where(beyond, one, zero), [2])
    kept = ctx.emit("Not", ctx.cast(outside, BOOLEAN))
    weights = ctx.cast(kept, data.element)
    moved = ctx.emit("Sub", ctx.emit("Min", places, last), tiled)
    flat = ctx.emit("Reshape", moved, ctx.ints(0, 2 * groups * base.shape[0], *base.shape[2:]))
    return flat, weights if mask is None else ctx.emit("Mul", weights, mask)


def _positions(attributes: Any, spatial: tuple[int, ...], kernel: tuple[int, ...]) -> np.ndarray:
    """Row and column of each point of the kernel in each window: (points, 2, rows, columns)."""
    placed = attributes.windows(spatial, kernel)
    lines = [
        np.arange(count)[None] * stride + np.arange(size)[:, None] * dilation - begin
        for count, stride, size, dilation, begin in zip(
            placed.counts, placed.strides, kernel, placed.dilations, placed.pads_begin, strict=True
        )
    ]
    shape = (kernel[0], kernel[1], placed.counts[0], placed.counts[1])
    rows = np.broadcast_to(lines[0][:, None, :, None], shape)
    columns = np.broadcast_to(lines[1][None, :, None, :], shape)
    stacked = np.stack([rows, columns], 2).reshape(kernel[0] * kernel[1], 2, *placed.counts)
    return stacked.astype(np.float64)
