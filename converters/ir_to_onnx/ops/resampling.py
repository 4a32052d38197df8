"""Images resampled and recoloured: Interpolate, GridSample, conversions between RGB and YUV."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.graph import Tensor
from converters.ir_to_onnx.ops.convolution import known_sizes
from converters.ir_to_onnx.ops.elementwise import rounded_cast
from converters.ir_to_onnx.ops.generation import as_i64
from converters.ir_to_onnx.ops.movement import multiplied, reshape_to, sizes_of
from converters.ir_to_onnx.ops.roi import round_half_away
from converters.ir_to_onnx.registry import composed, exact
from irexec.dtypes.elements import F32, F64, I32, Element
from irexec.errors import check
from irexec.reference.resize import ResizeParams, Taps, float_steps, scales_of

_MODES = {"nearest": "nearest", "linear_onnx": "linear", "linear": "linear", "cubic": "cubic"}
_TRANSFORMATIONS = ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners")


@exact("Interpolate", since=1)
def interpolate_1(ctx: ExportContext, data: Tensor, target_spatial_shape: Tensor, *, attributes: Any) -> Tensor:
    """Resize, or the steps of Interpolate-4."""
    check(attributes.mode != "area", "no implementation computes mode area")
    rank = data.require_rank("the data")
    axes = [axis % rank for axis in attributes.axes]
    return _interpolated(ctx, _padded(ctx, data, attributes), attributes.params(axes, rank), axes,
                         target_spatial_shape, None)  # fmt: skip


@exact("Interpolate", since=4)
def interpolate_4(
    ctx: ExportContext, data: Tensor, output_shape: Tensor, scales: Tensor, axes: Tensor | None = None, *,
    attributes: Any,
) -> Tensor:  # fmt: skip
    """Resize; of modes, coordinates and ranks that it lacks, Gather or MatMul with constant weights for each axis."""
    return interpolate_11(ctx, data, scales if attributes.by_scales else output_shape, axes, attributes=attributes)


@exact("Interpolate", since=11)
def interpolate_11(
    ctx: ExportContext, data: Tensor, scales_or_sizes: Tensor, axes: Tensor | None = None, *, attributes: Any
) -> Tensor:
    """Resize; of modes, coordinates and ranks that it lacks, Gather or MatMul with constant weights for each axis."""
    rank = data.require_rank("the data")
    chosen = list(range(rank)) if axes is None else [axis % rank for axis in axes.require_ints("the axes")]
    sizes, scales = (None, scales_or_sizes) if attributes.by_scales else (scales_or_sizes, None)
    return _interpolated(ctx, _padded(ctx, data, attributes), attributes.params, chosen, sizes, scales)


def _padded(ctx: ExportContext, data: Tensor, attributes: Any) -> Tensor:
    begins, ends = attributes.pads(data.require_rank("the data"))
    if not any((*begins, *ends)):
        return data
    shape = None if data.shape is None else attributes.padded_shape(data.shape)
    return ctx.emit("Pad", data, ctx.ints(*begins, *ends), shape=shape)


def _interpolated(
    ctx: ExportContext, data: Tensor, params: ResizeParams, axes: Sequence[int], sizes: Tensor | None,
    scales: Tensor | None,
) -> Tensor:  # fmt: skip
    """The data resized; integers of other modes than nearest are computed in floats and rounded."""
    kind = data.element
    if params.mode == "nearest" or kind.is_float:
        return _floats(ctx, data, params, axes, sizes, scales)
    x = ctx.cast(data, F32 if kind.bits <= 16 and not params.is_pillow else F64)
    x.shape = data.shape
    if kind.bits > 8:
        return rounded_cast(ctx, ctx.emit("Round", _floats(ctx, x, params, axes, sizes, scales)), kind)
    result = _floats(ctx, x, params, axes, sizes, scales, kind)
    if params.is_pillow or params.mode == "linear":
        return ctx.cast(_rounded(ctx, result, kind), kind)
    ctx.remark("bytes are rounded towards zero: a sum that is nearly an integer may be one less, or one more")
    # A sum beyond the type wraps around, as it does from i32.
    return ctx.cast(ctx.cast(result, I32), kind)


def _rounded(ctx: ExportContext, x: Tensor, kind: Element) -> Tensor:
    """The nearest integers of the type, as floats; ties are rounded away from zero."""
    limits = np.iinfo(kind.carrier)
    return ctx.emit("Clip", round_half_away(ctx, x), ctx.scalar(limits.min, x), ctx.scalar(limits.max, x))


def _floats(
    ctx: ExportContext, data: Tensor, params: ResizeParams, axes: Sequence[int], sizes: Tensor | None,
    scales: Tensor | None, bytes: Element | None = None,
) -> Tensor:  # fmt: skip
    """The data resized, as floats; ``bytes`` is the type of bytes that the data were, which Pillow rounds to."""
    rank, spatial, out = data.require_rank("the data"), known_sizes(data.shape, 0), known_sizes(ctx.facts[0].shape, 0)
    factors = None if scales is None or scales.value is None else [float(x) for x in scales.value.ravel()][: len(axes)]
    if spatial is not None and out is not None and (scales is None or factors is not None):
        given = factors or scales_of(spatial, axes, [out[axis] for axis in axes])
        params = _resolved(params, given)
        changed = [axis for axis in axes if out[axis] != spatial[axis]]
        if not _is_direct(params, rank, changed) or not _same_sizes(spatial, out, axes, factors):
            steps = float_steps(spatial, params, axes, [out[axis] for axis in axes], given, bytes is not None)
            return _stepwise(ctx, data, rank, steps, bytes if params.is_pillow else None)
    elif factors is not None:
        params = _resolved(params, factors)
    # Where scales are not known, axes before the last two keep their size, or ONNX Runtime refuses to run.
    changed = [axis for axis in axes if axis >= rank - 2]
    if factors is not None:
        changed = [axis for axis, factor in zip(axes, factors, strict=True) if factor != 1]
    check(
        _is_direct(params, rank, changed),
        f"the sizes are not known, and ONNX's Resize has no {params.mode} of {params.transformation}",
    )
    return _resized(ctx, data, params, axes, sizes, scales, rank)


def _resolved(params: ResizeParams, scales: Sequence[float]) -> ResizeParams:
    """The nearest mode "simple" as one of ONNX, where all axes agree."""
    if params.mode != "nearest" or params.nearest != "simple":
        return params
    changed = [scale for scale in scales if scale != 1]
    if all(scale > 1 for scale in changed) and params.transformation in ("asymmetric", "align_corners"):
        return ResizeParams(params.mode, params.transformation, "floor", params.antialias, params.cube_coeff)
    if changed and all(scale < 1 for scale in changed):
        return ResizeParams(params.mode, params.transformation, "ceil", params.antialias, params.cube_coeff)
    return params


def _is_direct(params: ResizeParams, rank: int, axes: Sequence[int]) -> bool:
    """Whether ONNX's Resize means the same, and ONNX Runtime has it for these axes."""
    if params.mode not in _MODES or params.transformation not in _TRANSFORMATIONS:
        return False
    if params.mode == "nearest":
        return params.nearest != "simple"
    if params.antialias:
        return False
    last = set(range(rank - 2, rank))
    return set(axes) <= last and rank in ((2, 4) if params.mode == "cubic" else (2, 3, 4))


def _same_sizes(
    spatial: Sequence[int], out: Sequence[int], axes: Sequence[int], factors: Sequence[float] | None
) -> bool:
    """Whether scales give the same sizes in ONNX, which does not undo the rounding of a scale."""
    if factors is None:
        return True
    return all(
        int(np.floor(np.float32(spatial[axis]) * np.float32(factor))) == out[axis]
        for axis, factor in zip(axes, factors, strict=True)
    )


def _resized(
    ctx: ExportContext, data: Tensor, params: ResizeParams, axes: Sequence[int], sizes: Tensor | None,
    scales: Tensor | None, rank: int,
) -> Tensor:  # fmt: skip
    options: dict[str, Any] = {"mode": _MODES[params.mode], "coordinate_transformation_mode": params.transformation}
    if params.mode == "nearest":
        options["nearest_mode"] = params.nearest
    if params.mode == "cubic":
        options["cubic_coeff_a"] = params.cube_coeff
    if scales is not None:
        one = ctx.constant([1.0], F32)
        return ctx.emit("Resize", data, None, _spread(ctx, ctx.cast(scales, F32), [one] * rank, axes), **options)
    assert sizes is not None
    whole = ctx.shape_of(data)
    own = [ctx.slice(whole, axis, axis + 1, 0) if whole.value is None else ctx.ints(int(whole.value[axis]))
           for axis in range(rank)]  # fmt: skip
    return ctx.emit("Resize", data, None, None, _spread(ctx, as_i64(ctx, sizes), own, axes), **options)


def _spread(ctx: ExportContext, values: Tensor, others: list[Tensor], axes: Sequence[int]) -> Tensor:
    """A vector with ``values`` at the axes and ``others`` elsewhere."""
    parts = list(others)
    for i, axis in enumerate(axes):
        parts[axis] = (
            ctx.constant(values.value.ravel()[i : i + 1], values.element)
            if values.value is not None
            else ctx.slice(values, i, i + 1, 0)
        )
    if all(part.value is not None for part in parts):
        flat = [part.value.ravel()[0] for part in parts if part.value is not None]
        return ctx.constant(np.array(flat, values.element.carrier), values.element)
    return ctx.concat(*parts)


def _stepwise(
    ctx: ExportContext, data: Tensor, rank: int, steps: Sequence[tuple[int, Taps]], bytes: Element | None
) -> Tensor:
    """One axis after the other: copies by Gather, weighted sums by a product with a constant matrix.

    Halves are computed in f32. ``bytes`` is a type that each step is rounded to; None to keep fractions.
    """
    source = ctx.cast(data, F32) if data.element.bits < F32.bits else data
    result = source
    for axis, taps in steps:
        if taps.weight is None:
            result = ctx.emit("Gather", result, ctx.constant(taps.index[:, 0]), axis=axis)
            continue
        order = [i for i in range(rank) if i != axis] + [axis]
        moved = result if axis == rank - 1 else ctx.transpose(result, order)
        product = ctx.emit("MatMul", moved, ctx.constant(taps.matrix, source.element))
        product = product if bytes is None else _rounded(ctx, product, bytes)
        result = product if axis == rank - 1 else ctx.transpose(product, [order.index(i) for i in range(rank)])
    return ctx.cast(result, data.element) if result is not source else ctx.emit("Identity", data)


@exact("GridSample")
def grid_sample(ctx: ExportContext, data: Tensor, grid: Tensor, *, attributes: Any) -> Tensor:
    """GridSample; integers in floats, truncated."""
    mode = attributes.mode
    if ctx.opset >= 20:
        # The modes have had other names since then.
        mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    kind = data.element
    work = F64 if F64 in (kind, grid.element) or kind.bits > 32 else F32
    points = ctx.cast(grid, work)
    sampled = ctx.emit(
        "GridSample", ctx.cast(data, work), points, mode=mode, padding_mode=attributes.padding_mode,
        align_corners=int(attributes.align_corners),
    )  # fmt: skip
    return rounded_cast(ctx, sampled, kind) if kind.is_integer else ctx.cast(sampled, kind)


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
