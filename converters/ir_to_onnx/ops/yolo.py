"""The heads of YOLO: RegionYolo and ReorgYolo."""

from __future__ import annotations

from typing import Any

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.ops.movement import reshape_to, sizes_of
from converters.ir_to_onnx.registry import composed
from converters.ir_to_onnx.tensors import Tensor
from irexec.errors import check


@composed("RegionYolo")
def region_yolo(ctx: ExportContext, data: Tensor, *, attributes: Any) -> Tensor:
    """Reshape to regions, Sigmoid and Softmax of their channels, Concat, Reshape."""
    regions, each, coords = attributes.regions, attributes.region_channels, attributes.coords
    n, channels, height, width = sizes_of(ctx, data)
    used = data if channels.value is not None and channels.value[0] == regions * each else ctx.slice(
        data, 0, regions * each, 1)  # fmt: skip
    parts = reshape_to(ctx, used, [n, regions, each, height, width])
    check(coords >= 2, "coordinates share channels with the score")

    def channels_of(first: int, last: int) -> Tensor:
        return ctx.slice(parts, first, last, 2)

    pieces = [ctx.emit("Sigmoid", channels_of(0, 2))]
    if coords > 2:
        pieces.append(channels_of(2, coords))
    if not attributes.do_softmax:
        pieces.append(ctx.emit("Sigmoid", channels_of(coords, each)))
    else:
        pieces.append(ctx.emit("Sigmoid", channels_of(coords, coords + 1)))
        if attributes.classes:
            pieces.append(ctx.emit("Softmax", channels_of(coords + 1, each), axis=2))
    result = reshape_to(ctx, ctx.concat(*pieces, axis=2), [n, regions * each, height, width])
    if not attributes.do_softmax:
        return result
    if used is not data:
        result = ctx.concat(result, ctx.slice(data, regions * each, None, 1), axis=1)
    first, last = attributes.axis % 4, attributes.end_axis % 4
    sizes = [n, channels, height, width]
    return result if last <= first else reshape_to(ctx, result, [*sizes[:first], -1, *sizes[last + 1 :]])


@composed("ReorgYolo")
def reorg_yolo(ctx: ExportContext, data: Tensor, *, stride: Any) -> Tensor:
    """Reshape, Transpose, Reshape: each image is read as if it had fewer channels and larger sides."""
    step = stride[0]
    n, channels, height, width = sizes_of(ctx, data)
    check(channels.value is not None and int(channels.value[0]) % (step * step) == 0,
          "the number of channels is not known to be a multiple of the squared stride")  # fmt: skip
    assert channels.value is not None
    depth = int(channels.value[0]) // (step * step)
    read = reshape_to(ctx, data, [n, depth, height, step, width, step])
    moved = ctx.transpose(read, [0, 3, 5, 1, 2, 4])
    # The result has as many channels as the squared stride times those of the data, and smaller sides.
    down, across = (ctx.emit("Div", size, ctx.ints(step)) for size in (height, width))
    return reshape_to(ctx, moved, [n, int(channels.value[0]) * step * step, down, across])
