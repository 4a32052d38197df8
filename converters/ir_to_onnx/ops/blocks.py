"""Blocks of images: SpaceToBatch, BatchToSpace, ExtractImagePatches, Col2Im."""

from __future__ import annotations

import itertools
import math
from typing import Any

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.ops.convolution import known_sizes
from converters.ir_to_onnx.ops.movement import multiplied, reshape_to, sizes_of
from converters.ir_to_onnx.registry import composed, exact
from converters.ir_to_onnx.tensors import Tensor
from irexec.errors import check
from irexec.schema.windows import known_sizes as sizes_known
from irexec.schema.windows import resolve_pads


@composed("SpaceToBatch")
def space_to_batch(
    ctx: ExportContext, data: Tensor, block_shape: Tensor, pads_begin: Tensor, pads_end: Tensor
) -> Tensor:
    """Pad, Reshape, Transpose, Reshape."""
    blocks = block_shape.require_ints("block_shape")[1:]
    begins, ends = pads_begin.require_ints("pads_begin"), pads_end.require_ints("pads_end")
    shape = data.require_shape("the data")
    padded = ctx.emit("Pad", data, ctx.ints(*begins, *ends)) if any((*begins, *ends)) else data
    padded.shape = tuple(size + begin + end for size, begin, end in zip(shape, begins, ends, strict=True))
    batch, *sizes = sizes_of(ctx, padded)
    outer = [multiplied(ctx, size, block, divide=True) for size, block in zip(sizes, blocks, strict=True)]
    split = reshape_to(ctx, padded, [batch, *(part for pair in zip(outer, blocks, strict=True) for part in pair)])
    axes = range(len(blocks))
    moved = ctx.transpose(split, [*(2 + 2 * i for i in axes), 0, *(1 + 2 * i for i in axes)])
    return reshape_to(ctx, moved, [multiplied(ctx, batch, math.prod(blocks)), *outer])


@composed("BatchToSpace")
def batch_to_space(
    ctx: ExportContext, data: Tensor, block_shape: Tensor, crops_begin: Tensor, crops_end: Tensor
) -> Tensor:
    """Reshape, Transpose, Reshape, Slice."""
    blocks = block_shape.require_ints("block_shape")[1:]
    batch, *sizes = sizes_of(ctx, data)
    rest = multiplied(ctx, batch, math.prod(blocks), divide=True)
    split = reshape_to(ctx, data, [*blocks, rest, *sizes])
    count = len(blocks)
    moved = ctx.transpose(split, [count, *(axis for i in range(count) for axis in (count + 1 + i, i))])
    grown = [multiplied(ctx, size, block) for size, block in zip(sizes, blocks, strict=True)]
    whole = reshape_to(ctx, moved, [rest, *grown])
    begins, ends = crops_begin.require_ints("crops_begin"), crops_end.require_ints("crops_end")
    cut = [axis for axis, pair in enumerate(zip(begins, ends, strict=True)) if any(pair)]
    if not cut:
        return whole
    stops = [-ends[axis] or (1 << 62) for axis in cut]
    return ctx.emit("Slice", whole, ctx.ints(*(begins[axis] for axis in cut)), ctx.ints(*stops), ctx.ints(*cut))


@composed("ExtractImagePatches")
def extract_image_patches(ctx: ExportContext, data: Tensor, *, attributes: Any) -> Tensor:
    """Pad, a Slice for each position of the patch, Concat along the channels."""
    a, spatial = attributes, known_sizes(data.shape, 2)
    check(spatial is not None, "the sizes of the images are not known")
    assert spatial is not None
    counts = sizes_known(a.counts(spatial))
    begins, ends = resolve_pads(a.auto_pad, spatial, a.sizes, a.strides, a.rates, (), ())
    padded = data
    if any((*begins, *ends)):
        padded = ctx.emit("Pad", data, ctx.ints(0, 0, *begins, 0, 0, *ends))
    parts = []
    for tap in itertools.product(*map(range, a.sizes)):
        starts = [position * rate for position, rate in zip(tap, a.rates, strict=True)]
        stops = [
            start + (count - 1) * stride + 1 if count else start
            for start, count, stride in zip(starts, counts, a.strides, strict=True)
        ]
        parts.append(
            ctx.emit("Slice", padded, ctx.ints(*starts), ctx.ints(*stops), ctx.ints(2, 3), ctx.ints(*a.strides))
        )
    return ctx.concat(*parts, axis=1)


@exact("Col2Im")
def col2im(ctx: ExportContext, data: Tensor, output_size: Tensor, kernel_size: Tensor, *, attributes: Any) -> Tensor:
    """Col2Im; columns without a batch are unsqueezed."""
    a, rank = attributes, data.require_rank("the columns")
    columns = ctx.unsqueeze(data, 0) if rank == 2 else data
    sizes, kernel = (
        ctx.ints(*x.require_ints("a size")) if x.value is not None else x for x in (output_size, kernel_size)
    )
    image = ctx.emit(
        "Col2Im", columns, sizes, kernel, strides=a.strides or None, dilations=a.dilations or None,
        pads=[*(a.pads_begin or (0, 0)), *(a.pads_end or (0, 0))],
    )  # fmt: skip
    return ctx.squeeze(image, 0) if rank == 2 else image
