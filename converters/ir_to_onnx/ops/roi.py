"""Regions of interest aligned: points in their bins gathered, weighted and reduced.

Features of regions of interest: pixels and points between them are gathered, one of every bin in each iteration of
a Loop.

Names of sizes: R boxes, C channels; M maps, which are images or, where bins have channels of their own, parts of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from converters.ir_to_onnx.bodies import loop
from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.graph import Tensor
from converters.ir_to_onnx.ops.generation import as_i64
from converters.ir_to_onnx.ops.movement import reshape_to, sizes_of
from converters.ir_to_onnx.registry import composed, exact
from irexec.dtypes.elements import F32, F64, I64, Element

Step = Callable[[ExportContext, Tensor, Tensor, Tensor], Tensor]
"""Takes the row and column of a point, scalars of i64, and the total so far; returns the total with the point."""


def wide_element(*tensors: Tensor) -> Element:
    """The element type in which positions are computed: f64 if one of the tensors has it, else f32."""
    return F64 if any(tensor.element is F64 for tensor in tensors) else F32


@dataclass(frozen=True)
class FeatureMaps:
    """Maps of one size, as rows of the channels of a pixel.

    Attributes:
        rows: (M * height * width, C), floats.
        height, width: of a map, scalars of i64.
    """

    rows: Tensor
    height: Tensor
    width: Tensor

    def pixels(self, ctx: ExportContext, maps: Tensor, line: Tensor, column: Tensor) -> Tensor:
        """The channels (P..., C) of pixels; indices of i64 that broadcast to P."""
        first = ctx.emit("Add", ctx.emit("Mul", maps, self.height), line)
        return ctx.emit("Gather", self.rows, ctx.emit("Add", ctx.emit("Mul", first, self.width), column), axis=0)

    def points(self, ctx: ExportContext, maps: Tensor, y: Tensor, x: Tensor) -> Tensor:
        """The channels (P..., C) at positions by bilinear interpolation; outside a map as on its border."""
        parts = []
        for line, line_weight in _nearest_two(ctx, y, self.height):
            for column, column_weight in _nearest_two(ctx, x, self.width):
                weight = ctx.unsqueeze(ctx.emit("Mul", line_weight, column_weight), -1)
                parts.append(ctx.emit("Mul", self.pixels(ctx, maps, line, column), weight))
        return ctx.emit("Sum", *parts)

    def is_within(self, ctx: ExportContext, y: Tensor, x: Tensor, margin: float, beyond: float) -> Tensor:
        """Whether positions are at ``-margin`` at least and at the size plus ``beyond`` at most, with a last axis of
        1."""
        parts = []
        for position, size in ((y, self.height), (x, self.width)):
            last = ctx.emit("Add", ctx.cast(size, position.element), ctx.scalar(beyond, position))
            parts.append(ctx.emit("GreaterOrEqual", position, ctx.scalar(-margin, position)))
            parts.append(ctx.emit("LessOrEqual", position, last))
        rows, columns = ctx.emit("And", *parts[:2]), ctx.emit("And", *parts[2:])
        return ctx.unsqueeze(ctx.emit("And", rows, columns), -1)


def _nearest_two(ctx: ExportContext, position: Tensor, size: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """The pixels before and after a position, each with its weight."""
    last = ctx.emit("Sub", size, ctx.constant(1))
    inside = ctx.emit("Min", ctx.emit("Max", position, ctx.scalar(0, position)), ctx.cast(last, position.element))
    is_number = ctx.emit("Equal", inside, inside)
    before = ctx.cast(ctx.where(is_number, inside, ctx.scalar(0, inside)), I64)
    fraction = ctx.emit("Sub", inside, ctx.cast(before, inside.element))
    yield before, ctx.emit("Sub", ctx.scalar(1, fraction), fraction)
    yield ctx.emit("Min", ctx.emit("Add", before, ctx.constant(1)), last), fraction


def over_points(ctx: ExportContext, rows: Tensor, columns: Tensor, start: Tensor, step: Step) -> Tensor:
    """The total of ``rows`` by ``columns`` points, scalars of i64: ``start``, and what ``step`` makes of it."""

    # ONNX Runtime computes constants in advance, and refuses a division by 0 although no iteration makes it.
    divisor = ctx.emit("Max", columns, ctx.constant(1))

    def body(inner: ExportContext, number: Tensor, total: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        return [step(inner, inner.emit("Div", number, divisor), inner.emit("Mod", number, divisor), total)], []

    (found,), _ = loop(ctx, ctx.emit("Mul", rows, columns), [start], body, fixed=False)
    return found


def largest(ctx: ExportContext, counts: Tensor) -> Tensor:
    """The largest of counts of i64, a scalar; 0 of none."""
    return ctx.emit("ReduceMax", ctx.concat(ctx.reshape(counts, [-1]), ctx.ints(0)), keepdims=0)


def below(ctx: ExportContext, count: int, like: Tensor) -> Tensor:
    """The numbers 0 to ``count`` - 1 in the element type of another tensor."""
    return ctx.constant(np.arange(count), like.element)


def round_half_away(ctx: ExportContext, x: Tensor) -> Tensor:
    """The nearest integers; ties are rounded away from zero."""
    size = ctx.emit("Abs", x)
    whole = ctx.emit("Floor", size)
    is_up = ctx.emit("GreaterOrEqual", ctx.emit("Sub", size, whole), ctx.scalar(0.5, x))
    return ctx.emit("Mul", ctx.emit("Sign", x), ctx.emit("Add", whole, ctx.cast(is_up, x.element)))


def column(ctx: ExportContext, boxes: Tensor, index: int) -> Tensor:
    """One value of each box, (R, 1)."""
    return ctx.slice(boxes, index, index + 1, 1)


@exact("ROIAlign", since=3)
def roi_align_3(ctx: ExportContext, data: Tensor, rois: Tensor, batch_indices: Tensor, *, attributes: Any) -> Tensor:
    """RoiAlign with the coordinates of asymmetric mode; the maximum by a Loop over points."""
    return _aligned(ctx, data, rois, batch_indices, attributes, "asymmetric")


@exact("ROIAlign", since=9)
def roi_align_9(ctx: ExportContext, data: Tensor, rois: Tensor, batch_indices: Tensor, *, attributes: Any) -> Tensor:
    """RoiAlign; the maximum, and before opset 16 half pixels, by a Loop over points."""
    return _aligned(ctx, data, rois, batch_indices, attributes, attributes.aligned_mode)


def _aligned(
    ctx: ExportContext, data: Tensor, rois: Tensor, batch_indices: Tensor, attributes: Any, mode: str
) -> Tensor:
    kind, wide = data.element, wide_element(data)
    data, rois, indices = ctx.cast(data, wide), ctx.cast(rois, wide), as_i64(ctx, batch_indices)
    if mode == "half_pixel":
        # ONNX subtracts half a pixel after scaling; IR adds half a pixel before that as well.
        rois = ctx.emit("Add", rois, ctx.scalar(0.5, rois))
    is_half = mode != "asymmetric"
    # ONNX's maximum is that of weighted pixels, and IR's that of points.
    if attributes.mode == "max" or (is_half and ctx.opset < 16):
        return ctx.cast(_pooled(ctx, data, _corner_boxes(ctx, rois, attributes, is_half), indices, attributes), kind)
    named = "half_pixel" if is_half else "output_half_pixel"
    a = attributes
    found = region_means(ctx, data, rois, indices, a.pooled, a.sampling_ratio, named, a.spatial_scale)
    return ctx.cast(found, kind)


def region_means(
    ctx: ExportContext, data: Tensor, rois: Tensor, images: Tensor, pooled: tuple[int, int], sampling_ratio: int,
    mode: str, spatial_scale: float = 1.0,
) -> Tensor:  # fmt: skip
    """RoiAlign of means; ``mode`` is ONNX's of coordinates, and the others as the attributes of ROIAlign."""
    return ctx.emit(
        "RoiAlign", data, rois, images, mode="avg", output_height=pooled[0], output_width=pooled[1],
        sampling_ratio=sampling_ratio, spatial_scale=spatial_scale,
        coordinate_transformation_mode=mode if ctx.opset >= 16 else None,
    )  # fmt: skip


@composed("ROIAlignRotated")
def roi_align_rotated(
    ctx: ExportContext, data: Tensor, rois: Tensor, batch_indices: Tensor, *, attributes: Any
) -> Tensor:
    """A Loop over the points of a bin, which rotates them, gathers the four pixels around each and adds their weighted
    sum."""
    kind, wide = data.element, wide_element(data)
    boxes = _rotated_boxes(ctx, ctx.cast(rois, wide), attributes)
    return ctx.cast(_pooled(ctx, ctx.cast(data, wide), boxes, as_i64(ctx, batch_indices), attributes), kind)


@dataclass(frozen=True)
class _Boxes:
    """Boxes in pixels of the features, each attribute (R, 1).

    Attributes:
        left, top, width, height: the first corner and the size.
        rotation: None, or x and y of the centre, cosine and sine: the corner is relative to the centre.
    """

    left: Tensor
    top: Tensor
    width: Tensor
    height: Tensor
    rotation: tuple[Tensor, ...] | None = None


def _corner_boxes(ctx: ExportContext, rois: Tensor, attributes: Any, is_half: bool) -> _Boxes:
    """Boxes of corners; those that are not moved by half a pixel are one pixel wide and high at least."""
    scaled = ctx.emit("Mul", rois, ctx.scalar(attributes.spatial_scale, rois))
    moved = ctx.emit("Sub", scaled, ctx.scalar(0.5 if is_half else 0, scaled))
    left, top, right, bottom = (column(ctx, moved, i) for i in range(4))
    width, height = ctx.emit("Sub", right, left), ctx.emit("Sub", bottom, top)
    if not is_half:
        width, height = (ctx.emit("Max", size, ctx.scalar(1, size)) for size in (width, height))
    return _Boxes(left, top, width, height)


def _rotated_boxes(ctx: ExportContext, rois: Tensor, attributes: Any) -> _Boxes:
    scaled = ctx.emit("Mul", rois, ctx.scalar(attributes.spatial_scale, rois))
    x, y, width, height = (column(ctx, scaled, i) for i in range(4))
    angle = column(ctx, rois, 4)
    if attributes.clockwise_mode:
        angle = ctx.emit("Neg", angle)
    half = ctx.scalar(0.5, rois)
    rotation = (
        ctx.emit("Sub", x, half), ctx.emit("Sub", y, half), ctx.emit("Cos", angle), ctx.emit("Sin", angle),
    )  # fmt: skip
    left, top = (ctx.emit("Mul", size, ctx.scalar(-0.5, rois)) for size in (width, height))
    return _Boxes(left, top, width, height, rotation)


def feature_maps(ctx: ExportContext, data: Tensor) -> FeatureMaps:
    """Images (N, C, H, W) as maps."""
    _, channels, height, width = sizes_of(ctx, data)
    rows = reshape_to(ctx, ctx.transpose(data, [0, 2, 3, 1]), [-1, channels])
    return FeatureMaps(rows, ctx.reshape(height, []), ctx.reshape(width, []))


def _pooled(ctx: ExportContext, data: Tensor, boxes: _Boxes, images: Tensor, attributes: Any) -> Tensor:
    """Features pooled over boxes, (R, C, pooled height, pooled width). A bin without points is 0."""
    features, maps = feature_maps(ctx, data), ctx.unsqueeze(images, 1, 2)
    rows, columns = (
        _point_counts(ctx, size, bins, attributes.sampling_ratio, images)
        for size, bins in zip((boxes.height, boxes.width), attributes.pooled, strict=True)
    )
    count = ctx.unsqueeze(ctx.cast(ctx.emit("Mul", rows, columns), data.element), 2, 3)
    shape = ctx.concat(ctx.emit("Shape", images), ctx.ints(*attributes.pooled), sizes_of(ctx, data)[1])

    def step(inner: ExportContext, i: Tensor, j: Tensor, total: Tensor) -> Tensor:
        y = inner.unsqueeze(_positions(inner, boxes.top, boxes.height, attributes.pooled_h, rows, i), 2)
        x = inner.unsqueeze(_positions(inner, boxes.left, boxes.width, attributes.pooled_w, columns, j), 1)
        y, x = _rotated(inner, y, x, boxes)
        is_point = inner.emit("And", inner.emit("Less", i, rows), inner.emit("Less", j, columns))
        counts = inner.emit("And", features.is_within(inner, y, x, 1, 0), inner.unsqueeze(is_point, 2, 3))
        values = inner.where(counts, features.points(inner, maps, y, x), inner.scalar(0, total))
        if getattr(attributes, "mode", "avg") == "max":
            return inner.where(inner.emit("Greater", values, total), values, total)
        return inner.emit("Add", total, inner.where(counts, inner.emit("Div", values, count), inner.scalar(0, total)))

    zeros = ctx.emit("Expand", ctx.scalar(0, data), shape)
    found = over_points(ctx, largest(ctx, rows), largest(ctx, columns), zeros, step)
    return ctx.transpose(found, [0, 3, 1, 2])


def _point_counts(ctx: ExportContext, lengths: Tensor, bins: int, sampling_ratio: int, boxes: Tensor) -> Tensor:
    """The number of points of each box along an axis of a bin, (R, 1), for as many boxes as ``boxes`` has elements."""
    if sampling_ratio:
        return ctx.emit("Expand", ctx.constant([[sampling_ratio]]), ctx.concat(ctx.emit("Shape", boxes), ctx.ints(1)))
    counts = ctx.cast(ctx.emit("Ceil", ctx.emit("Div", lengths, ctx.scalar(bins, lengths))), I64)
    return ctx.emit("Max", counts, ctx.constant(0))


def _positions(
    ctx: ExportContext, start: Tensor, length: Tensor, bins: int, counts: Tensor, point: Tensor
) -> Tensor:  # fmt: skip
    """The positions of one point of each bin along an axis, (R, bins); of boxes (R, 1) with ``counts`` points."""
    each = ctx.emit("Div", length, ctx.scalar(bins, length))
    distance = ctx.emit("Div", each, ctx.cast(counts, each.element))
    middle = ctx.emit("Add", ctx.cast(point, each.element), ctx.scalar(0.5, each))
    first = ctx.emit("Add", start, ctx.emit("Mul", below(ctx, bins, each), each))
    return ctx.emit("Add", first, ctx.emit("Mul", distance, middle))


def _rotated(ctx: ExportContext, y: Tensor, x: Tensor, boxes: _Boxes) -> tuple[Tensor, Tensor]:
    """Positions (R, height, 1) and (R, 1, width) relative to the centres of boxes, as positions in the image."""
    if boxes.rotation is None:
        return y, x
    centre_x, centre_y, cosine, sine = (ctx.unsqueeze(part, 2) for part in boxes.rotation)

    def turned(one: Tensor, other: Tensor, sign: str, centre: Tensor) -> Tensor:
        difference = ctx.emit(sign, ctx.emit("Mul", y, one), ctx.emit("Mul", x, other))
        return ctx.emit("Add", difference, centre)

    return turned(cosine, sine, "Sub", centre_y), turned(sine, cosine, "Add", centre_x)
