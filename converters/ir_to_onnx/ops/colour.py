"""Conversions of colours between RGB and YUV."""

from __future__ import annotations

from collections.abc import Sequence

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.ops.movement import multiplied, reshape_to, sizes_of
from converters.ir_to_onnx.registry import composed
from converters.ir_to_onnx.tensors import Tensor
from irexec.dtypes.elements import F32, Element


@composed("NV12toRGB", "NV12toBGR")
def from_nv12(ctx: ExportContext, arg_y: Tensor, arg_uv: Tensor | None = None) -> Tensor:
    """Slice, Expand for the squares of U and V, then a weighted sum for each channel and Clip."""
    if arg_uv is None:
        luma, rest, half = _split(ctx, arg_y)
        arg_uv = reshape_to(ctx, rest, [*half, 2])
    else:
        luma = ctx.squeeze(arg_y, -1)
    u, v = (ctx.squeeze(ctx.slice(arg_uv, i, i + 1, -1), -1) for i in range(2))
    return _rgb(ctx, luma, u, v, arg_y.element)


@composed("I420toRGB", "I420toBGR")
def from_i420(ctx: ExportContext, arg_y: Tensor, arg_u: Tensor | None = None, arg_v: Tensor | None = None) -> Tensor:
    """Slice, Expand for the squares of U and V, then a weighted sum for each channel and Clip."""
    if arg_u is None or arg_v is None:
        luma, rest, half = _split(ctx, arg_y)
        planes = reshape_to(ctx, rest, [half[0], 2, *half[1:]])
        u, v = (ctx.squeeze(ctx.slice(planes, i, i + 1, 1), 1) for i in range(2))
    else:
        luma, u, v = (ctx.squeeze(plane, -1) for plane in (arg_y, arg_u, arg_v))
    return _rgb(ctx, luma, u, v, arg_y.element)


def _split(ctx: ExportContext, whole: Tensor) -> tuple[Tensor, Tensor, list[Tensor]]:
    """One plane (N, H * 3/2, W, 1): the Y (N, H, W), the rows after it, and the sizes (N, H/2, W/2)."""
    batch, rows, width, _ = sizes_of(ctx, whole)
    third = multiplied(ctx, rows, 3, divide=True)
    height = multiplied(ctx, third, 2)
    flat = ctx.squeeze(whole, -1)
    one = ctx.ints(1)
    luma = ctx.emit("Slice", flat, ctx.ints(0), height, one)
    rest = ctx.emit("Slice", flat, height, rows, one)
    return luma, rest, [batch, third, multiplied(ctx, width, 2, divide=True)]


def _rgb(ctx: ExportContext, luma: Tensor, u: Tensor, v: Tensor, kind: Element) -> Tensor:
    def number(value: float) -> Tensor:
        return ctx.constant(value, F32)

    def weighted(weight: float, x: Tensor) -> Tensor:
        return ctx.emit("Mul", number(weight), x)

    bright = weighted(1.164, ctx.emit("Sub", ctx.cast(luma, F32), number(16)))
    blue, red = (_doubled(ctx, ctx.emit("Sub", ctx.cast(plane, F32), number(128))) for plane in (u, v))
    green = ctx.emit("Sub", ctx.emit("Sub", bright, weighted(0.391, blue)), weighted(0.813, red))
    channels = [ctx.emit("Add", bright, weighted(1.596, red)), green, ctx.emit("Add", bright, weighted(2.018, blue))]
    if ctx.node.type.endswith("BGR"):
        channels.reverse()
    return _bytes(ctx, _stacked(ctx, channels), kind, "Round")


def _stacked(ctx: ExportContext, planes: Sequence[Tensor]) -> Tensor:
    return ctx.concat(*(ctx.unsqueeze(plane, -1) for plane in planes), axis=-1)


def _doubled(ctx: ExportContext, plane: Tensor) -> Tensor:
    """Each value of (N, H, W) for a square of four: (N, 2H, 2W)."""
    wide = ctx.emit("Tile", ctx.unsqueeze(plane, 2, 4), ctx.ints(1, 1, 2, 1, 2))
    return ctx.emit("Reshape", wide, ctx.emit("Mul", ctx.emit("Shape", plane), ctx.ints(1, 2, 2)))


def _bytes(ctx: ExportContext, values: Tensor, kind: Element, nearest: str) -> Tensor:
    """Clipped to 0 to 255; integers are rounded."""
    if not kind.is_float:
        values = ctx.emit("Round", values) if nearest == "Round" else _half_up(ctx, values)
    return ctx.cast(ctx.emit("Clip", values, ctx.constant(0, F32), ctx.constant(255, F32)), kind)


def _half_up(ctx: ExportContext, values: Tensor) -> Tensor:
    return ctx.emit("Floor", ctx.emit("Add", values, ctx.constant(0.5, F32)))


_YUV = ((0.257, 0.504, 0.098, 16.0), (-0.148, -0.291, 0.439, 128.0), (0.439, -0.368, -0.071, 128.0))
"""Weights of red, green and blue, and the offset, of Y, U and V."""


@composed("RGBtoNV12", "BGRtoNV12", since=17)
def to_nv12(ctx: ExportContext, data: Tensor, *, single_plane: bool) -> Tensor | tuple[Tensor, ...]:
    """A weighted sum of the channels for each plane, the mean of squares of U and V, Clip, Concat."""
    channels = [ctx.cast(ctx.squeeze(ctx.slice(data, i, i + 1, -1), -1), F32) for i in range(3)]
    if ctx.node.type.startswith("BGR"):
        channels.reverse()
    y, u, v = (_plane(ctx, channels, weights) for weights in _YUV)
    kind = data.element
    pairs = ctx.cast(_bytes(ctx, _stacked(ctx, [u, v]), kind, "half up"), F32)
    batch, height, width, _ = sizes_of(ctx, data)
    half = [multiplied(ctx, size, 2, divide=True) for size in (height, width)]
    squares = reshape_to(ctx, pairs, [batch, half[0], 2, half[1], 2, 2])
    uv = _bytes(ctx, ctx.reduce("ReduceMean", squares, [2, 4]), kind, "half up")
    luma = _bytes(ctx, y, kind, "half up")
    if not single_plane:
        return ctx.unsqueeze(luma, -1), uv
    rows = reshape_to(ctx, uv, [batch, half[0], width])
    return ctx.unsqueeze(ctx.concat(luma, rows, axis=1), -1)


def _plane(ctx: ExportContext, channels: Sequence[Tensor], weights: Sequence[float]) -> Tensor:
    parts = [ctx.emit("Mul", ctx.constant(w, F32), x) for w, x in zip(weights, channels, strict=False)]
    total = ctx.emit("Add", ctx.emit("Add", parts[0], parts[1]), parts[2])
    return ctx.emit("Add", total, ctx.constant(weights[3], F32))
