r"""Pooling of regions: ROIPooling, PSROIPooling, DeformablePSROIPooling.

Edges of bins and positions of points are sums and products of coordinates in f32 at least: a difference of less than 16
roundings of the largest coordinate in pixels, and the doubt of the coordinates themselves.

- Windows of whole pixels are certain unless an edge is within that difference of an integer, or of a half where it is
  rounded, and was not computed exactly: every order of the operations is exact where coordinates, their scale and the
  size of a bin are multiples of 2\ :sup:`-8` below 2\ :sup:`12`. Other windows are open. A maximum and a mean never
  decrease in any pixel, so that their ends are those of the ends of the pixels; a mean adds the error of its sum.
- A point is interpolated, which is continuous: known up to d along both axes, its value is known up to 2 d L, with the
  largest difference L of two neighbouring pixels. A bin with a point within d of the edge of the image, beyond which it
  is zero or does not count, is open, unless the point is at the edge and its coordinate is exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from irexec.bounds.interval import Bound, Interval, Mask, floats, joined, settled
from irexec.bounds.registry import Layer, rule
from irexec.bounds.rules.resampling import steepest
from irexec.errors import check
from irexec.reference.roi import bin_positions, boxes_before_end, moved_bins, part_of
from irexec.reference.special import round_half_away

_ROUNDINGS, _GRID, _LARGEST = 16.0, 2.0**8, 2.0**12
_MOST = 4096
"""The number of points of a box up to which the points are looked at."""
Points = Iterator[tuple[np.ndarray, np.ndarray]]


@rule("ROIPooling")
def roi_pooling(layer: Layer, x: Interval, rois: Interval) -> Bound:
    """A maximum of whole pixels, or one point of each bin; see the module."""
    attributes = layer.attributes
    bins, sizes = (attributes["pooled_h"], attributes["pooled_w"]), x.exact.shape[2:]
    boxes = _boxes(x, rois)
    if attributes["method"] == "max":
        scale = attributes["spatial_scale"]
        corners = boxes[:, 1:] * scale
        is_open = _near_half(corners, _doubt(layer, rois, boxes, scale))
        whole = round_half_away(corners)
        length = np.maximum(whole[:, 2:] - whole[:, :2] + 1, 1)
        edges = [_inner_edges(length[:, axis], bins[1 - axis]) for axis in (1, 0)]
        return _of_windows(layer, x, rois, _grid(is_open, *edges), 0)
    points = [
        (bin_positions(boxes[:, 2], boxes[:, 4], bins[0], sizes[0])[:, :, None],
         bin_positions(boxes[:, 1], boxes[:, 3], bins[1], sizes[1])[:, None, :])
    ]  # fmt: skip
    return _of_points(layer, [x, rois], iter(points), 1, _doubt(layer, rois, boxes, max(sizes)), 0.0)


@rule("PSROIPooling")
def psroi_pooling(layer: Layer, x: Interval, rois: Interval) -> Bound:
    """A mean of whole pixels, or of one point of each part; see the module."""
    attributes = layer.attributes["attributes"]
    bins, scale, sizes = attributes.group_size, attributes.spatial_scale, x.exact.shape[2:]
    boxes = _boxes(x, rois)
    if attributes.mode == "bilinear":
        lines, columns = attributes.parts
        found = boxes[:, 1:] * scale
        points = (
            (bin_positions(*part_of(found[:, 1], found[:, 3], i, lines), bins, sizes[0])[:, :, None],
             bin_positions(*part_of(found[:, 0], found[:, 2], j, columns), bins, sizes[1])[:, None, :])
            for i, j in np.ndindex(lines, columns)
        )  # fmt: skip
        check(lines * columns * bins * bins <= _MOST, "too many points")
        doubt = _doubt(layer, rois, boxes, scale * max(sizes))
        return _of_points(layer, [x, rois], points, lines * columns, doubt, 0.0)
    is_open = _near_half(boxes[:, 1:] + np.array([0, 0, 1, 1]), _doubt(layer, rois, boxes, 1.0, 0))
    first, last = round_half_away(boxes[:, 1:3]) * scale, round_half_away(boxes[:, 3:] + 1) * scale
    length = np.maximum(last - first, 0.1) / bins
    doubt = _doubt(layer, rois, boxes, scale) + _ROUNDINGS * layer.arithmetic.unit
    edges = np.arange(bins + 1)[:, None] * length[:, None] + first[:, None]
    doubted = np.where(_is_exact(length)[:, None] & _is_exact(first)[:, None], 0.0, doubt[:, None, None])
    open_edges = (np.abs(edges - np.rint(edges)) <= doubted) & (doubted > 0)
    of_bins = [open_edges[:, :-1, axis] | open_edges[:, 1:, axis] for axis in (1, 0)]
    longest = np.ceil(length.max(0, initial=0.0)[::-1]) + 2
    return _of_windows(layer, x, rois, _grid(is_open, *of_bins), float(np.minimum(longest, sizes).prod()))


@rule("DeformablePSROIPooling")
def deformable_psroi_pooling(layer: Layer, x: Interval, rois: Interval, offsets: Interval | None = None) -> Bound:
    """A mean of the points of each moved bin that are less than half a pixel outside of the image; see the module."""
    attributes = layer.attributes["attributes"]
    bins, scale, parts = attributes.group_size, attributes.spatial_scale, attributes.parts
    boxes = _boxes(x, rois)
    are_finite = offsets is None or bool(np.isfinite(offsets.exact).all())
    check(parts[0] * parts[1] * bins * bins <= _MOST and are_finite, "too many points, or offsets that are not finite")
    moves, own = np.zeros((1, 1, 2, 1, 1)), np.zeros(len(boxes))
    extent = (np.abs(boxes[:, 3:] - boxes[:, 1:3]).max(1, initial=0.0) + 2) * scale + 0.1
    if offsets is not None:
        part = np.arange(bins) * attributes.part_size // bins
        shape = (len(rois.exact), offsets.exact.shape[1] // 2, 2, attributes.part_size, attributes.part_size)
        moves = (floats(offsets.exact).reshape(shape) * attributes.trans_std)[: len(boxes), :, :, part[:, None], part]
        far = np.abs(moves).max((1, 2, 3, 4)) * _ROUNDINGS * layer.arithmetic.unit
        own = (far + offsets.reach * abs(attributes.trans_std)) * extent
    y, step_y = moved_bins(boxes[:, 2], boxes[:, 4], np.arange(bins)[:, None], scale, moves[:, :, 1], bins * parts[0])
    x_, step_x = moved_bins(boxes[:, 1], boxes[:, 3], np.arange(bins), scale, moves[:, :, 0], bins * parts[1])
    points = ((y + i * step_y, x_ + j * step_x) for i, j in np.ndindex(*parts))
    is_rounded = _near_half(boxes[:, 1:], _doubt(layer, rois, boxes, 1.0, 0))
    doubt = _doubt(layer, rois, boxes, scale) + own + _ROUNDINGS * layer.arithmetic.unit
    steps = np.concatenate([boxes[:, 1:] * scale, step_y[:, 0, 0], step_x[:, 0, 0]], 1)
    doubt[_is_exact(steps).all(1) & (not moves.any() and rois.is_certain)] = 0
    doubt[is_rounded] = np.inf
    return _of_points(layer, [x, rois, offsets], points, parts[0] * parts[1], doubt, 0.5)


def _boxes(x: Interval, rois: Interval) -> np.ndarray:
    """The boxes before the end of them, in f64."""
    are_finite = bool(np.isfinite(rois.exact).all() and np.isfinite(x.magnitude).all())
    check(x.exact.size > 0 and are_finite, "no pixels, or boxes or pixels that are not finite")
    check(not (np.abs(floats(rois.exact[:, 1:])) > _LARGEST * 16).any(), "boxes far outside of the image")
    return boxes_before_end(floats(rois.exact), len(x.exact))


def _doubt(layer: Layer, rois: Interval, boxes: np.ndarray, scale: float, roundings: float = _ROUNDINGS) -> np.ndarray:
    """How far implementations differ in a position of each box, in pixels."""
    own = 0.0 if rois.is_certain else rois.radius[: len(boxes), 1:].max(1, initial=0.0) * 4
    largest = np.abs(boxes[:, 1:]).max(1, initial=0.0) + 1
    return np.asarray(abs(scale) * (roundings * layer.arithmetic.unit * largest + own))


def _is_exact(values: np.ndarray) -> Mask:
    """Mask of values that every order of a few sums and products in f32 has exactly."""
    return np.asarray((np.rint(values * _GRID) == values * _GRID) & (np.abs(values) < _LARGEST))


def _near_half(values: np.ndarray, doubt: np.ndarray) -> Mask:
    """Mask of the boxes with a value that may be rounded to either of two integers."""
    away = np.abs(values - np.floor(values) - 0.5)
    exact = _is_exact(values) & (doubt[:, None] < 0.25 / _GRID)
    return np.asarray(((away <= doubt[:, None]) & (doubt[:, None] > 0) & ~exact).any(1))


def _inner_edges(length: np.ndarray, bins: int) -> Mask:
    """Mask [boxes, bins] of the bins with an edge i * length / bins that is an integer, and that f32 has beside it in
    one of the orders of the operations."""
    index, single = np.arange(bins + 1, dtype=np.float32), length[:, None].astype(np.float32)
    size = np.float32(bins)
    orders = index * (single / size), index * single / size, index * (single * (np.float32(1) / size))
    edges = np.arange(bins + 1) * length[:, None] / bins
    beside = np.logical_or.reduce([one != edges for one in orders]) & (edges == np.rint(edges))
    return np.asarray(beside[:, :-1] | beside[:, 1:])


def _grid(boxes: Mask, rows: Mask, columns: Mask) -> Mask:
    return np.asarray(boxes[:, None, None] | rows[:, :, None] | columns[:, None, :])


def _of_windows(layer: Layer, x: Interval, rois: Interval, is_open: Mask, area: float) -> Bound:
    """The result of windows of whole pixels: open where a window is; an area of 0 is a maximum."""
    run = layer.function(floats(rois.exact))
    found = joined(run, x)
    found = layer.algebra.summed(found, run(x.magnitude), area + 3) if area else layer.algebra.rounded(found)
    return found.open_where(_of_all(is_open[:, None], found.exact.shape))


def _of_points(
    layer: Layer, inputs: Sequence[Interval | None], points: Points, count: int, doubt: np.ndarray, beyond: float
) -> Bound:  # fmt: skip
    """The mean of interpolated points.

    Args:
        layer, inputs: the layer and its inputs.
        points: positions of one point of all bins [boxes, rows, columns], or [boxes, classes, rows, columns].
        count: their number.
        doubt: how far each box's positions may differ.
        beyond: how far outside of the outermost pixels a point counts.
    """
    x, rois = inputs[0], inputs[1]
    assert x is not None and rois is not None
    sizes = x.exact.shape[2:]
    exact = floats(layer.run(*(None if one is None else floats(one.exact) for one in inputs))[0])
    is_open: Mask = np.zeros(1, bool)
    for point in points:
        for position, size in zip(point, sizes, strict=True):
            ends = -beyond, size - 1 + beyond
            near = np.minimum(np.abs(position - ends[0]), np.abs(position - ends[1]))
            of_boxes = doubt.reshape(-1, *[1] * (position.ndim - 1))
            is_open = is_open | ((near <= of_boxes) & (position != ends[0]))
    if is_open.ndim == 1:
        is_open = np.zeros((len(doubt), 1, 1, 1), bool)
    is_open = is_open if is_open.ndim == 4 else is_open[:, None]
    is_open = np.repeat(is_open, exact.shape[1] // is_open.shape[1], 1)
    images = np.zeros(len(exact), np.int64)
    images[: len(doubt)] = rois.exact[: len(doubt), 0].astype(np.int64)
    slope, largest = steepest(floats(x.exact)).max(1)[images], x.magnitude.max((1, 2, 3))[images]
    reach = np.zeros(len(exact))
    reach[: len(doubt)] = np.where(np.isfinite(doubt), doubt, 0)
    reach = 2 * reach * slope + 2 * x.reach
    reach += (8 * layer.arithmetic.unit + count * layer.arithmetic.sum_unit) * (largest + reach)
    found = layer.algebra.widened(settled(exact, exact, exact), reach[:, None, None, None])
    return found.open_where(_of_all(is_open, exact.shape))


def _of_all(is_open: Mask, shape: tuple[int, ...]) -> Mask:
    """The mask of the boxes before their end, as one of all: those that follow are zeros."""
    found = np.zeros(shape, bool)
    found[: len(is_open)] = is_open
    return found
