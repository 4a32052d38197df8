"""Pooling of boxes (image, x1, y1, x2, y2): ROIPooling, PSROIPooling, DeformablePSROIPooling.

Position-sensitive pooling takes each bin of a box from channels of its own: from maps of their own, of which
every image has as many as there are bins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.graph import Tensor
from converters.ir_to_onnx.ops.movement import reshape_to, sizes_of
from converters.ir_to_onnx.ops.roi import (
    FeatureMaps,
    below,
    column,
    feature_maps,
    largest,
    over_points,
    round_half_away,
    wide_element,
)
from converters.ir_to_onnx.registry import composed
from irexec.dtypes.elements import I64


@composed("ROIPooling")
def roi_pooling(
    ctx: ExportContext, data: Tensor, rois: Tensor, *, pooled_h: int, pooled_w: int, spatial_scale: float, method: str
) -> Tensor:
    """A Loop over the pixels of a bin, which gathers one of each bin and takes the maximum; bilinear, the four pixels
    around one point of each bin, gathered and weighted."""
    kind, wide = data.element, wide_element(data, rois)
    features, boxes = feature_maps(ctx, ctx.cast(data, wide)), ctx.cast(rois, wide)
    maps = ctx.unsqueeze(_images(ctx, boxes), 2)
    if method == "max":
        corners = round_half_away(ctx, ctx.emit("Mul", boxes, ctx.scalar(spatial_scale, boxes)))
        vertical = _pixel_windows(ctx, corners, 1, pooled_h, features.height)
        horizontal = _pixel_windows(ctx, corners, 0, pooled_w, features.width)
        found = _max_of_windows(ctx, features, maps, vertical, horizontal)
    else:
        y = _bin_positions(ctx, column(ctx, boxes, 2), column(ctx, boxes, 4), pooled_h, features.height)
        x = _bin_positions(ctx, column(ctx, boxes, 1), column(ctx, boxes, 3), pooled_w, features.width)
        found = _points_inside(ctx, features, maps, ctx.unsqueeze(y, 2), ctx.unsqueeze(x, 1))
    return ctx.cast(ctx.transpose(_before_end(ctx, boxes, found), [0, 3, 1, 2]), kind)


@composed("PSROIPooling")
def psroi_pooling(ctx: ExportContext, data: Tensor, rois: Tensor, *, attributes: Any) -> Tensor:
    """A Loop over the pixels of a bin, which gathers one of each bin and adds it; bilinear, the mean of the points of
    all parts, each the weighted sum of four gathered pixels."""
    kind, wide, bins = data.element, wide_element(data, rois), attributes.group_size
    data, boxes = ctx.cast(data, wide), ctx.cast(rois, wide)
    scale = ctx.scalar(attributes.spatial_scale, boxes)
    if attributes.mode == "average":
        features = _maps_of_bins(ctx, data, 1, attributes.output_dim, bins)
        # The last pixel of a box belongs to it.
        ends = ctx.emit("Add", boxes, ctx.constant([0, 0, 0, 1, 1], wide))
        corners = ctx.emit("Mul", round_half_away(ctx, ends), scale)
        vertical = _touched_windows(ctx, corners, 1, bins, features.height)
        horizontal = _touched_windows(ctx, corners, 0, bins, features.width)
        maps = _maps(ctx, ctx.unsqueeze(_images(ctx, boxes), 2), [bins, bins])
        found = _mean_of_windows(ctx, features, maps, vertical, horizontal)
    else:
        found = _mean_of_parts(ctx, data, boxes, ctx.emit("Mul", boxes, scale), attributes)
    return ctx.cast(ctx.transpose(_before_end(ctx, boxes, found), [0, 3, 1, 2]), kind)


@composed("DeformablePSROIPooling")
def deformable_psroi_pooling(
    ctx: ExportContext, data: Tensor, rois: Tensor, offsets: Tensor | None = None, *, attributes: Any
) -> Tensor:
    """A Loop over the points of a bin, which gathers the four pixels around each and adds their weighted sum."""
    kind, wide, bins = data.element, wide_element(data, rois), attributes.group_size
    boxes, classes, moves = ctx.cast(rois, wide), 1, [ctx.constant([[[[0.0]]]], wide)] * 2
    if offsets is not None:
        classes = offsets.require_known(1, "the channels of the offsets") // 2
        moves = _moves(ctx, ctx.cast(offsets, wide), classes, attributes)
    each = attributes.output_dim // classes
    features = _maps_of_bins(ctx, ctx.cast(data, wide), classes, each, bins)
    maps = _maps(ctx, ctx.unsqueeze(_images(ctx, boxes), 2, 3), [classes, bins, bins])
    y, step_y = _moved_bins(ctx, boxes, 2, moves[1], attributes, attributes.spatial_bins_y)
    x, step_x = _moved_bins(ctx, boxes, 1, moves[0], attributes, attributes.spatial_bins_x)

    def step(inner: ExportContext, i: Tensor, j: Tensor, total: Tensor) -> Tensor:
        own_y, own_x = (
            inner.emit("Add", first, inner.emit("Mul", inner.cast(number, wide), distance))
            for first, distance, number in ((y, step_y, i), (x, step_x, j))
        )
        is_inside = features.is_within(inner, own_y, own_x, 0.5, -0.5)
        values = inner.where(is_inside, features.points(inner, maps, own_y, own_x), inner.scalar(0, total))
        # The last channel counts the points.
        return inner.emit("Add", total, inner.concat(values, inner.cast(is_inside, wide), axis=-1))

    shape = ctx.concat(sizes_of(ctx, boxes)[0], ctx.ints(classes, bins, bins, each + 1))
    start = ctx.emit("Expand", ctx.scalar(0, boxes), shape)
    down, across = (ctx.constant(count) for count in attributes.parts)
    total = over_points(ctx, down, across, start, step)
    count = ctx.emit("Max", ctx.slice(total, -1, None, 4), ctx.scalar(1, total))
    found = ctx.transpose(ctx.emit("Div", ctx.slice(total, 0, -1, 4), count), [0, 2, 3, 1, 4])
    flat = reshape_to(ctx, found, [sizes_of(ctx, boxes)[0], bins, bins, attributes.output_dim])
    return ctx.cast(ctx.transpose(_before_end(ctx, boxes, flat), [0, 3, 1, 2]), kind)


def _images(ctx: ExportContext, boxes: Tensor) -> Tensor:
    """The image of each box, (R, 1); 0 for a box that marks the end."""
    return ctx.emit("Max", ctx.cast(column(ctx, boxes, 0), I64), ctx.constant(0))


def _before_end(ctx: ExportContext, boxes: Tensor, found: Tensor) -> Tensor:
    """Pooled features (R, height, width, C), 0 from the first box of image -1 on."""
    image = ctx.cast(column(ctx, boxes, 0), I64)
    ended = ctx.emit("CumSum", ctx.cast(ctx.emit("Equal", image, ctx.constant(-1)), I64), ctx.constant(0))
    is_before = ctx.unsqueeze(ctx.emit("Equal", ended, ctx.constant(0)), 2, 3)
    return ctx.where(is_before, found, ctx.scalar(0, found))


def _maps_of_bins(ctx: ExportContext, data: Tensor, classes: int, outputs: int, bins: int) -> FeatureMaps:
    """Images (N, classes * outputs * bins * bins, H, W) as a map of the outputs for each bin of each class."""
    images, _, height, width = sizes_of(ctx, data)
    apart = reshape_to(ctx, data, [images, classes, outputs, bins * bins, height, width])
    rows = reshape_to(ctx, ctx.transpose(apart, [0, 1, 3, 4, 5, 2]), [-1, outputs])
    return FeatureMaps(rows, ctx.reshape(height, []), ctx.reshape(width, []))


def _maps(ctx: ExportContext, images: Tensor, bins: list[int]) -> Tensor:
    """The map of each bin of each box, (R, *bins), of the images of the boxes, with as many axes."""
    numbers = np.arange(int(np.prod(bins))).reshape(bins)
    return ctx.emit("Add", ctx.emit("Mul", images, ctx.constant(numbers.size)), ctx.constant(numbers))


@dataclass(frozen=True)
class _Windows:
    """The pixels of bins along an axis: the first of each, and the one after its last, i64 (R, bins)."""

    starts: Tensor
    stops: Tensor

    def lengths(self, ctx: ExportContext) -> Tensor:
        return ctx.emit("Max", ctx.emit("Sub", self.stops, self.starts), ctx.constant(0))

    def pixel(self, ctx: ExportContext, number: Tensor) -> Tensor:
        """The index of a pixel of each bin; that of the last one where there are fewer."""
        last = ctx.emit("Max", ctx.emit("Sub", self.stops, ctx.constant(1)), ctx.constant(0))
        return ctx.emit("Min", ctx.emit("Add", self.starts, number), last)


def _clipped_windows(ctx: ExportContext, starts: Tensor, stops: Tensor, size: Tensor) -> _Windows:
    def inside(edge: Tensor) -> Tensor:
        return ctx.emit("Min", ctx.emit("Max", edge, ctx.constant(0)), size)

    return _Windows(inside(starts), inside(stops))


def _to_integer(ctx: ExportContext, x: Tensor) -> Tensor:
    """Floats as i64, limited so that sums of them do not overflow."""
    return ctx.cast(ctx.emit("Clip", x, ctx.scalar(-(2.0**30), x), ctx.scalar(2.0**30, x)), I64)


def _pixel_windows(ctx: ExportContext, corners: Tensor, axis: int, bins: int, size: Tensor) -> _Windows:
    """Windows of boxes of whole pixels; a box has at least one pixel, and bins that share a pixel overlap."""
    first, last = (_to_integer(ctx, column(ctx, corners, 1 + axis + i)) for i in (0, 2))
    length = ctx.emit("Max", ctx.emit("Add", ctx.emit("Sub", last, first), ctx.constant(1)), ctx.constant(1))
    number, count = np.arange(bins), ctx.constant(bins)
    starts = ctx.emit("Div", ctx.emit("Mul", length, ctx.constant(number)), count)
    above = ctx.emit("Add", ctx.emit("Mul", length, ctx.constant(number + 1)), ctx.constant(bins - 1))
    stops = ctx.emit("Div", above, count)
    return _clipped_windows(ctx, ctx.emit("Add", starts, first), ctx.emit("Add", stops, first), size)


def _touched_windows(ctx: ExportContext, corners: Tensor, axis: int, bins: int, size: Tensor) -> _Windows:
    """Windows of every pixel that a bin touches; a box is a tenth of a pixel long at least."""
    first, last = (column(ctx, corners, 1 + axis + i) for i in (0, 2))
    whole = ctx.emit("Max", ctx.emit("Sub", last, first), ctx.scalar(0.1, first))
    length = ctx.emit("Div", whole, ctx.scalar(bins, whole))
    edges = ctx.emit("Add", ctx.emit("Mul", below(ctx, bins + 1, length), length), first)
    starts = _to_integer(ctx, ctx.emit("Floor", ctx.slice(edges, 0, -1, 1)))
    stops = _to_integer(ctx, ctx.emit("Ceil", ctx.slice(edges, 1, None, 1)))
    return _clipped_windows(ctx, starts, stops, size)


def _areas(ctx: ExportContext, vertical: _Windows, horizontal: _Windows) -> Tensor:
    """The number of pixels of each window, (R, height, width, 1)."""
    heights, widths = ctx.unsqueeze(vertical.lengths(ctx), 2, 3), ctx.unsqueeze(horizontal.lengths(ctx), 1, 3)
    return ctx.emit("Mul", heights, widths)


def _over_windows(
    ctx: ExportContext, features: FeatureMaps, maps: Tensor, windows: tuple[_Windows, _Windows], first: float, kind: str
) -> Tensor:
    """The maximum or the sum of windows, (R, height, width, C), one pixel of each at a time; ``first`` of none."""
    vertical, horizontal = windows
    areas = _areas(ctx, vertical, horizontal)
    channels = ctx.slice(ctx.shape_of(features.rows), 1, 2, 0)
    start = ctx.scalar(first, features.rows)
    shape = ctx.concat(ctx.slice(ctx.emit("Shape", areas), 0, 3, 0), channels)

    def step(inner: ExportContext, i: Tensor, j: Tensor, total: Tensor) -> Tensor:
        line, place = inner.unsqueeze(vertical.pixel(inner, i), 2), inner.unsqueeze(horizontal.pixel(inner, j), 1)
        values = features.pixels(inner, maps, line, place)
        if kind == "Max":
            # A smaller window repeats its last pixel.
            return inner.emit("Max", total, values)
        has_row = inner.unsqueeze(inner.emit("Less", i, vertical.lengths(inner)), 2, 3)
        has_column = inner.unsqueeze(inner.emit("Less", j, horizontal.lengths(inner)), 1, 3)
        return inner.emit("Add", total, inner.where(inner.emit("And", has_row, has_column), values, start))

    rows, columns = (largest(ctx, axis.lengths(ctx)) for axis in windows)
    return over_points(ctx, rows, columns, ctx.emit("Expand", start, shape), step)


def _max_of_windows(
    ctx: ExportContext, features: FeatureMaps, maps: Tensor, vertical: _Windows, horizontal: _Windows
) -> Tensor:
    found = _over_windows(ctx, features, maps, (vertical, horizontal), -np.inf, "Max")
    is_empty = ctx.emit("Equal", _areas(ctx, vertical, horizontal), ctx.constant(0))
    return ctx.where(is_empty, ctx.scalar(0, found), found)


def _mean_of_windows(
    ctx: ExportContext, features: FeatureMaps, maps: Tensor, vertical: _Windows, horizontal: _Windows
) -> Tensor:
    found = _over_windows(ctx, features, maps, (vertical, horizontal), 0, "Add")
    areas = ctx.emit("Max", _areas(ctx, vertical, horizontal), ctx.constant(1))
    return ctx.emit("Div", found, ctx.cast(areas, found.element))


def _bin_positions(ctx: ExportContext, start: Tensor, stop: Tensor, bins: int, size: Tensor) -> Tensor:
    """One position of each bin, in pixels, from ``start`` to ``stop`` (R, 1), which are relative to the size: (R,
    bins); the middle for a single bin."""
    last = ctx.cast(ctx.emit("Sub", size, ctx.constant(1)), start.element)
    if bins == 1:
        half = ctx.emit("Mul", ctx.emit("Add", start, stop), ctx.scalar(0.5, start))
        return ctx.emit("Mul", half, last)
    length = ctx.emit("Mul", ctx.emit("Sub", stop, start), last)
    distance = ctx.emit("Div", length, ctx.scalar(bins - 1, length))
    steps = ctx.emit("Mul", below(ctx, bins - 1, distance), distance)
    # Rounding must not move the last one outside the image.
    return ctx.concat(ctx.emit("Add", steps, ctx.emit("Mul", start, last)), ctx.emit("Mul", stop, last), axis=-1)


def _points_inside(ctx: ExportContext, features: FeatureMaps, maps: Tensor, y: Tensor, x: Tensor) -> Tensor:
    """The features at points; 0 outside the outermost pixels."""
    values = features.points(ctx, maps, y, x)
    return ctx.where(features.is_within(ctx, y, x, 0, -1), values, ctx.scalar(0, values))


def _mean_of_parts(ctx: ExportContext, data: Tensor, boxes: Tensor, scaled: Tensor, attributes: Any) -> Tensor:
    """The mean over the parts of boxes, each pooled by interpolated points from maps of its own: (R, bins, bins,
    outputs)."""
    (lines, columns), outputs, bins = attributes.parts, attributes.output_dim, attributes.group_size
    images, _, height, width = sizes_of(ctx, data)
    apart = reshape_to(ctx, data, [images, lines * columns, outputs, height, width])
    rows = reshape_to(ctx, ctx.transpose(apart, [0, 1, 3, 4, 2]), [-1, outputs])
    features = FeatureMaps(rows, ctx.reshape(height, []), ctx.reshape(width, []))
    left, top, right, bottom = (ctx.unsqueeze(column(ctx, scaled, i), 2) for i in range(1, 5))
    y = _bin_positions(ctx, *_parts(ctx, top, bottom, lines), bins, features.height)
    x = _bin_positions(ctx, *_parts(ctx, left, right, columns), bins, features.width)
    maps = ctx.unsqueeze(_maps(ctx, ctx.unsqueeze(_images(ctx, boxes), 2), [lines, columns]), 3, 4)
    # Axes: boxes, parts along y and x, bins along y and x.
    values = _points_inside(ctx, features, maps, ctx.unsqueeze(y, 2, 4), ctx.unsqueeze(x, 1, 3))
    return ctx.reduce("ReduceMean", values, [1, 2])


def _parts(ctx: ExportContext, start: Tensor, stop: Tensor, parts: int) -> tuple[Tensor, Tensor]:
    """The borders (R, parts, 1) of equal parts of intervals (R, 1, 1)."""
    length = ctx.emit("Div", ctx.emit("Sub", stop, start), ctx.scalar(parts, start))
    numbers = np.arange(parts)[:, None]
    first, last = (
        ctx.emit("Add", start, ctx.emit("Mul", ctx.constant(number, length.element), length))
        for number in (numbers, numbers + 1)
    )
    return first, last


def _moves(ctx: ExportContext, offsets: Tensor, classes: int, attributes: Any) -> list[Tensor]:
    """The offsets of each bin relative to the box along x and y, (R, classes, bins, bins) each."""
    size = attributes.part_size
    part = np.arange(attributes.group_size) * size // attributes.group_size
    for axis in (2, 3):
        offsets = ctx.emit("Gather", offsets, ctx.constant(part), axis=axis)
    scaled = ctx.emit("Mul", offsets, ctx.scalar(attributes.trans_std, offsets))
    return [ctx.emit("Gather", scaled, ctx.constant(np.arange(classes) * 2 + i), axis=1) for i in (0, 1)]


def _moved_bins(
    ctx: ExportContext, boxes: Tensor, index: int, moves: Tensor, attributes: Any, points: int
) -> tuple[Tensor, Tensor]:
    """Where bins start along one axis, (R, classes, bins, bins), and the distance of their points, both shaped to
    broadcast; ``index`` is that of the first corner in a box."""
    bins = attributes.group_size
    half, scale = ctx.scalar(0.5, boxes), ctx.scalar(attributes.spatial_scale, boxes)
    start, stop = (round_half_away(ctx, ctx.unsqueeze(column(ctx, boxes, i), 2, 3)) for i in (index, index + 2))
    first = ctx.emit("Sub", ctx.emit("Mul", start, scale), half)
    last = ctx.emit("Sub", ctx.emit("Mul", ctx.emit("Add", stop, ctx.scalar(1, stop)), scale), half)
    length = ctx.emit("Max", ctx.emit("Sub", last, first), ctx.scalar(0.1, first))
    each = ctx.emit("Div", length, ctx.scalar(bins, length))
    numbers = np.arange(bins) if index == 1 else np.arange(bins)[:, None]
    steps = ctx.emit("Mul", ctx.constant(numbers, each.element), each)
    starts = ctx.emit("Add", ctx.emit("Add", steps, first), ctx.emit("Mul", moves, length))
    return starts, ctx.emit("Div", each, ctx.scalar(points, each))
