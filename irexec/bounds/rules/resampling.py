r"""Images resampled: positions between pixels, grids, regions of interest.

Positions are computed in f32 at least, ((g + 1) * size - 1) / 2 in any form: six roundings of size * (\|g\| + 1). The
weights are continuous in the position, across borders as well, with a largest slope; so that each of the pixels within
reach changes by the slope times the difference at most. The nearest pixel is open where the difference passes an edge.

Coordinates are computed in f32 at least, in whichever order: (x + 0.5) / scale - 0.5, by a reciprocal, or from sizes.
Two implementations differ by at most 8 roundings of the coordinate, none where the scale is a power of two. The
weights are continuous in the coordinate, with a largest slope; so that each of the taps within reach changes by the
slope times that difference at most. The nearest position is open where the difference passes an edge.

A bilinear interpolation is continuous: where the position of a point is known up to d along both axes, its value is
known up to 2 d L, with the largest difference L of two neighbouring pixels of the channel. Beyond one pixel outside of
the image it jumps to zero, and the number of points of a bin may follow from the size of the box: a box of which a
point, or the size, is within its bound of such an edge has no bound. A maximum and a mean are nowhere further apart
than their terms.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from irexec.bounds.interval import (
    Algebra,
    Bound,
    Interval,
    Mask,
    Unbounded,
    floats,
    integers_near,
    joined,
    settled,
    spanning,
)
from irexec.bounds.registry import Layer, rule
from irexec.bounds.rules.elementwise import INCREASING
from irexec.errors import check
from irexec.ir.facts import integers
from irexec.reference import resize
from irexec.reference.indexing import as_indices
from irexec.reference.resize import ResizeParams, SampleParams, Taps, pixel_of, position_of, scales_of
from irexec.reference.roi_align import Boxes, corner_boxes, positions, rotate, rotated_boxes
from irexec.schema.shape_rules import normalize_axes

_ROUNDINGS = 64.0
"""More roundings than any implementation has from the attributes to an edge of a box: a root, a ratio, products, a
centre and a division by the size of the image, in the reference kernel and in the implementation."""


@rule("PriorBox", "PriorBoxClustered")
def prior_boxes(layer: Layer, grid: Interval, image: Interval) -> Bound:
    """Edges of boxes are a centre plus and minus half a size, divided by the size of the image.

    The error of an edge is relative to both terms, neither of which is larger than twice the largest edge and the
    largest size. Clipping makes no error larger.
    """
    attributes = layer.attributes["attributes"]
    check(not getattr(attributes, "fixed_size", ()), "how boxes of a fixed size are placed is rounded to pixels")
    exact = floats(layer.run(grid, image)[0])
    size = float(np.abs(exact).max(initial=1.0)) + _largest_side(attributes) / max(1.0, float(image.exact.min()))
    return layer.algebra.widened(settled(exact, exact, exact), _ROUNDINGS * layer.arithmetic.unit * 2 * size)


def _largest_side(attributes: object) -> float:
    """The largest side of a box, in pixels."""
    names = ("min_size", "max_size", "width", "height")
    ratios = getattr(attributes, "aspect_ratio", ())
    stretch = max([1.0, *ratios, *(1 / one for one in ratios)]) ** 0.5
    return stretch * max([0.0, *(side for name in names for side in getattr(attributes, name, ()))])


@rule("ExperimentalDetectronPriorGridGenerator")
def prior_grid(layer: Layer, priors: Interval, feature_map: Interval, image: Interval) -> Bound:
    """A prior plus the centre of a cell, (i + 0.5) * stride: three roundings, each relative to at most both terms.

    The values after the boxes of a grid that is smaller than the feature map are not specified.
    """
    attributes = layer.attributes["attributes"]
    rows, columns = feature_map.exact.shape[2:]
    is_whole = (attributes.h or rows, attributes.w or columns) == (rows, columns)
    check(is_whole, "a grid of another size than the feature map")
    exact, reach = layer.function()(priors.exact, feature_map.exact, image.exact), priors.reach
    size = float(np.abs(exact).max(initial=0.0)) + float(priors.magnitude.max(initial=0.0))
    # The stride, a quotient, may be rounded too.
    return layer.algebra.widened(settled(exact, exact, exact), reach + 8 * layer.arithmetic.unit * 2 * size)


@rule("ExperimentalDetectronTopKROIs")
def top_rois(layer: Layer, rois: Interval, scores: Interval) -> Bound:
    """Rows are moved, if the order of the scores is the same in every implementation and there are enough of them."""
    count = layer.attributes["max_rois"]
    order = np.argsort(-floats(scores.exact), kind="stable")[: count + 1]
    low, high = floats(scores.low)[order], floats(scores.high)[order]
    if count > len(scores.exact) or np.isnan(scores.exact).any() or not (low[:-1] > high[1:]).all():
        return Unbounded("scores that are equal, or too few")
    rest = floats(scores.high).copy()
    rest[order] = -np.inf
    check(not (len(order) and (rest >= low[-1]).any()), "scores that may be in another order")
    return layer.certain(rois, scores)[0] if rois.is_certain else joined(layer.function(scores), rois)


@rule("RegionYolo")
def region_yolo(layer: Layer, x: Interval) -> Bound:
    """Sigmoids and softmax of channels, or channels as they are: each has a relative error of at most that of exp
    of twice the largest element, and of the sum of all channels; sigmoids have an absolute one as well."""
    check(x.is_certain and bool(np.isfinite(x.exact).all()), "elements that are not certain")
    exact = floats(layer.run(floats(x.exact))[0])
    largest = float(x.magnitude.max(initial=0.0))
    share = layer.arithmetic.unit * (32 + 8 * min(largest, 800.0))
    share += layer.arithmetic.sum_unit * x.exact.shape[1]
    size = np.abs(exact)
    reach = size * np.expm1(share) + layer.arithmetic.unit * INCREASING["Sigmoid"](size, size)
    return layer.algebra.widened(settled(exact, exact, exact), reach)


@rule("Col2Im")
def col2im(layer: Layer, x: Interval, size: Interval, kernel: Interval) -> Bound:
    """A sum of at most as many elements as a window has, in any order; each partial sum may be stored."""
    check(layer.is_float, "sums of integers that are not known")
    run = layer.function(size, kernel)
    with np.errstate(all="ignore"):
        exact = run(x.exact)
        reach = 0.0 if x.is_certain else run(x.radius)
        count = float(np.prod(integers(kernel.exact, "kernel_size")))
        of = Algebra(replace(layer.arithmetic, sum_unit=2 * layer.arithmetic.unit))
        return of.summed(settled(exact, exact - reach, exact + reach), run(x.magnitude), count)


@dataclass(frozen=True)
class _Axis:
    """One axis that is resized.

    Attributes:
        axis: its index.
        size, out: its size before and after.
        scale: the scale of its coordinates.
        doubt: relative doubt of the scale.
    """

    axis: int
    size: int
    out: int
    scale: float
    doubt: float

    @property
    def is_another_size(self) -> bool:
        """Whether the size follows from the scale, and a scale as far away as its doubt gives another one."""
        ends = (resize.scaled_size(self.size, self.scale * (1 + side * self.doubt)) for side in (-1, 1))
        return self.doubt > 0 and len(set(ends)) > 1

    def coordinates(self, mode: str) -> tuple[np.ndarray, np.ndarray]:
        """The coordinate of each position, and how much implementations differ there."""
        found = floats(resize.coordinates(mode, self.size, self.out, self.scale))
        is_exact = self.doubt == 0 and (self.size == self.out or math.frexp(self.scale)[0] == 0.5)
        if mode == "align_corners":
            is_exact = self.out == 1 or self.size == self.out
        error = 0.0 if is_exact else 8 * _F32 + self.doubt
        return found, error * (np.abs(found) + 1 + 0.5 / self.scale)


@rule("Interpolate", integers=True)
def interpolate(layer: Layer, x: Interval, *given: Interval | None) -> Bound:
    """See the docstring of the module; integers may be rounded in any direction after the sum."""
    attributes = layer.attributes["attributes"]
    if layer.definition.since == 1:
        axes_given: Interval | None = None
        axes = normalize_axes(attributes.axes, x.exact.ndim)
        params = attributes.params(axes, x.exact.ndim)
    else:
        axes_given = given[-1] if len(given) == (3 if layer.definition.since == 4 else 2) else None
        positions = range(x.exact.ndim) if axes_given is None else integers(axes_given.exact, "axes")
        axes, params = normalize_axes(positions, x.exact.ndim), attributes.params
    padded = x.moved(attributes.padded)
    if 0 in padded.exact.shape:
        return Interval.certain(layer.run(x, *given)[0])
    is_float, run = x.exact.dtype.kind == "f", layer.function(*given)
    with np.errstate(all="ignore"):
        exact = run(x.exact) if is_float else layer.run(x, *given)[0]
    table = _axes(layer, padded, axes, exact.shape, given)
    check(not any(one.is_another_size for one in table), "a size that follows from a scale near an edge")
    if params.mode == "nearest":
        return _nearest_taps(padded, exact, params, table)
    if is_float:
        return _axis_sums(layer.algebra, padded, exact, params, table)
    found = _axis_sums(layer.algebra, padded, run(x.exact), params, table)
    # Pillow rounds after each axis, whose weights add up to 2 at most.
    doubt = 2.0 * len(table) if params.is_pillow else 0.0
    return integers_near(layer.algebra.widened(found, doubt), exact)


def _axes(
    layer: Layer, x: Interval, axes: Sequence[int], shape: Sequence[int], given: Sequence[Interval | None]
) -> list[_Axis]:
    sizes = [shape[axis] for axis in axes]
    by_scales = getattr(layer.attributes["attributes"], "by_scales", False)
    scales, doubts = scales_of(x.exact.shape, axes, sizes), [0.0] * len(axes)
    source = given[1] if by_scales and layer.definition.since == 4 else given[0]
    if by_scales and source is not None:
        scales = [float(value) for value in source.exact.ravel()[: len(axes)]]
        doubts = [float(r) / scale for r, scale in zip(source.radius.ravel(), scales, strict=False)]
    return [
        _Axis(axis, x.exact.shape[axis], out, scale, doubt)
        for axis, out, scale, doubt in zip(axes, sizes, scales, doubts, strict=True)
    ]


def _nearest_taps(x: Interval, exact: np.ndarray, params: ResizeParams, table: Sequence[_Axis]) -> Interval:
    """The element at either end of the range of positions along each axis."""
    low, high = x.low, x.high
    for one in table:
        coordinates, error = one.coordinates(params.transformation)
        ends = [
            resize.nearest(coordinates + side, params.nearest, one.size, one.scale).index[:, 0]
            for side in (-error, error)
        ]
        if max(np.abs(ends[1] - ends[0]), default=0) > 1:
            return settled(exact, exact, exact).open_where(np.ones(exact.shape, bool))
        low = np.minimum(*(np.take(low, as_indices(index), one.axis) for index in ends))
        high = np.maximum(*(np.take(high, as_indices(index), one.axis) for index in ends))
    is_float = exact.dtype.kind == "f"
    return spanning(exact, low if is_float else np.minimum(low, exact), high if is_float else np.maximum(high, exact))


def _axis_sums(of: Algebra, x: Interval, exact: np.ndarray, params: ResizeParams, table: Sequence[_Axis]) -> Interval:
    """The sum along one axis after the other; the weights of each are rounded, and known up to a doubt."""
    size, reach, count = x.magnitude, x.radius, 1.0
    is_shrinking = min((one.scale for one in table), default=1) < 1
    base = size
    for one in table:
        weight, doubt = _weights(one, params, params.antialias and is_shrinking, of.arithmetic.unit)
        size, reach = _along(size, one.axis, weight + doubt), _along(reach, one.axis, weight + doubt)
        base = _along(base, one.axis, weight)
        count *= max(1.0, float((weight > 0).sum(0).max(initial=1)))
    with np.errstate(all="ignore"):
        reach = reach + np.maximum(size - base, 0) + 2 * of.arithmetic.unit * len(table) * size
        found = of.summed(settled(exact, exact - reach, exact + reach), size, count + 2 * len(table))
    return found.open_where(~np.isfinite(exact) | ~np.isfinite(size))


def _along(array: np.ndarray, axis: int, weight: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.moveaxis(np.tensordot(array, weight, (axis, 0)), -1, axis)


def _weights(one: _Axis, params: ResizeParams, antialias: bool, unit: float) -> tuple[np.ndarray, np.ndarray]:
    """The absolute weights (in, out) of an axis, and by how much each may differ, its rounding included."""
    make, slope = _maker(one, params, antialias)
    if params.is_pillow:
        taps = make(np.zeros(one.out))
        is_kept = one.size == one.out
        error = np.zeros(one.out) if is_kept else 8 * _F32 * (np.arange(one.out) * one.size / one.out + 1)
        weight = np.eye(one.size) if is_kept else _matrix(taps)
        touched = weight if is_kept else _matrix(taps, is_counted=True)
    else:
        coordinates, error = one.coordinates(params.transformation)
        weight = _matrix(make(coordinates))
        # At a border several taps are one element, each with a doubt of its own.
        touched = np.maximum.reduce(
            [_matrix(make(coordinates + e), is_counted=True) for e in (-error, 0 * error, error)]
        )
    doubt = touched * (slope * error + 8 * _F32 * (1 + slope)) + 2 * unit * weight
    total = weight.sum(0)
    if params.mode == "linear":
        # The weights are divided by their sum, which differs by the sum of their doubts.
        lost = np.minimum(doubt.sum(0), 1e300)
        scale = np.where(lost < total / 2, 1 / np.where(total == 0, 1, total - lost), np.inf)
        with np.errstate(all="ignore"):
            widened = (doubt + weight * (lost / np.where(total == 0, 1, total))) * scale
        doubt = np.where(touched > 0, np.where(np.isnan(widened), np.inf, widened), 0.0)
        weight = weight / np.where(total == 0, 1, total)
    return weight, doubt


def _maker(one: _Axis, params: ResizeParams, antialias: bool) -> tuple[Callable[[np.ndarray], Taps], float]:
    """The taps by coordinates, and the largest slope of a weight."""
    size = one.size
    if params.mode == "linear":
        factor = one.scale if antialias else 1.0
        return lambda c: resize.linear(c, size, one.scale, antialias), factor
    if params.mode == "linear_onnx":
        return lambda c: resize.linear_onnx(c, size), 1.0
    if params.mode == "cubic":
        return lambda c: resize.cubic(c, size, params.cube_coeff), cubic_slope(params.cube_coeff)
    if params.mode == "bilinear_pillow":
        return lambda c: resize.pillow(size, one.out, resize.triangle, 1.0), 1.0
    curve = resize.cubic_curve(params.cube_coeff)
    return lambda c: resize.pillow(size, one.out, curve, 2.0), cubic_slope(params.cube_coeff)


def cubic_slope(a: float) -> float:
    """The largest slope of Keys' kernel: that of (a + 2) x^3 - (a + 3) x^2 + 1, since beyond x = 1 it is less."""
    extreme = (a + 3) / (3 * (a + 2)) if a != -2 else -1.0
    return max(abs(a), (a + 3) ** 2 / abs(3 * (a + 2)) if 0 < extreme < 1 else 0.0)


def _matrix(taps: Taps, is_counted: bool = False) -> np.ndarray:
    """The absolute weights of the taps, or the number of taps with a weight, added up for each position, as (in, out):
    taps may cancel where they meet."""
    matrix = np.zeros((taps.size, len(taps.index)))
    weight = np.ones(taps.index.shape) if taps.weight is None else np.abs(floats(taps.weight))
    np.add.at(matrix, (taps.index, np.arange(len(taps.index))[:, None]), weight > 0 if is_counted else weight)
    return matrix


_SLOPES = {"bilinear": 1.0, "bicubic": cubic_slope(-0.75)}
_F32 = 2.0**-24

Gather = Callable[[np.ndarray], np.ndarray]


@rule("GridSample")
def grid_sample(layer: Layer, x: Interval, grid: Interval) -> Bound:
    """See the docstring of the module; sampled integers may be rounded in any direction."""
    attributes = layer.attributes["attributes"]
    params = SampleParams(attributes.mode, attributes.padding_mode, attributes.align_corners)
    check(0 not in x.exact.shape and 0 not in grid.exact.shape, "nothing is sampled")
    points = [_positions(grid, 1 - axis, size, params) for axis, size in enumerate(x.exact.shape[2:])]
    is_kept = params.mode == "nearest" and x.exact.dtype.kind != "f"
    with np.errstate(all="ignore"):
        exact = layer.run(x.exact if is_kept else floats(x.exact), floats(grid.exact))[0]
        is_nearest, of = params.mode == "nearest", layer.algebra
        found = _nearest(x, exact, points, params) if is_nearest else _weighted(of, x, exact, points, params)
    if x.exact.dtype.kind != "f" and not is_kept:
        found = integers_near(found, layer.run(x.exact, floats(grid.exact))[0])
    # A position that may be off by half a pixel has pixels out of reach.
    is_open = np.logical_or(*(~(np.isfinite(position) & (error < 0.25)) for position, error in points))
    return found.open_where(is_open[:, None] | ~np.isfinite(floats(exact)))


def _positions(grid: Interval, coordinate: int, size: int, params: SampleParams) -> tuple[np.ndarray, np.ndarray]:
    """Positions (N, h, w) among the pixels of one axis, and how much implementations differ there."""
    points, radius = floats(grid.exact)[..., coordinate], grid.radius[..., coordinate]
    error = 12 * _F32 * size * (np.abs(points) + 1) + radius * size / 2
    return position_of(points, size, params.align_corners), error


def _pixels(x: Interval, whole: tuple[np.ndarray, np.ndarray], params: SampleParams) -> tuple[Gather, np.ndarray]:
    """A function that gathers (N, C, h, w) of a tensor at integral positions (N, h, w), and where they count."""
    (rows, has_row), (columns, has_column) = (
        pixel_of(position, size, params) for position, size in zip(whole, x.exact.shape[2:], strict=True)
    )
    images = np.arange(len(rows)).reshape(-1, 1, 1)
    return lambda array: np.moveaxis(array[images, :, rows, columns], -1, 1), has_row & has_column


def _nearest(
    x: Interval, exact: np.ndarray, points: list[tuple[np.ndarray, np.ndarray]], params: SampleParams
) -> Interval:
    low, high = exact, exact
    for sides in itertools.product((-1, 1), repeat=2):
        whole = tuple(np.rint(at + side * error) for (at, error), side in zip(points, sides, strict=True))
        gather, counts = _pixels(x, (whole[0], whole[1]), params)
        inside = counts[:, None]
        low = np.minimum(low, np.where(inside, gather(x.low), 0))
        high = np.maximum(high, np.where(inside, gather(x.high), 0))
    return spanning(exact, low, high)


def _weighted(
    of: Algebra, x: Interval, exact: np.ndarray, points: list[tuple[np.ndarray, np.ndarray]], params: SampleParams
) -> Interval:
    """The error of the weights and of a sum of at most 16 products, from the magnitudes of the pixels within reach."""
    size, reach, base = np.zeros(exact.shape), np.zeros(exact.shape), np.zeros(exact.shape)
    slope, unit = _SLOPES[params.mode], of.arithmetic.unit
    for down, across in itertools.product(*(list(_taps(at, error, params)) for at, error in points)):
        gather, counts = _pixels(x, (down[0], across[0]), params)
        doubts = [
            slope * error + 16 * _F32 * (1 + slope) + 4 * unit * one[1]
            for one, (_, error) in zip((down, across), points, strict=True)
        ]
        weight = np.where(counts, down[1] * across[1], 0)[:, None]
        doubted = np.where(counts, (down[1] + doubts[0]) * (across[1] + doubts[1]), 0)[:, None]
        magnitude = gather(x.magnitude)
        size, base = size + doubted * magnitude, base + weight * magnitude
        reach = reach + doubted * gather(x.radius)
    reach = reach + np.maximum(size - base, 0)
    return of.summed(settled(exact, exact - reach, exact + reach), size, 16.0 + 4)


def _taps(position: np.ndarray, error: np.ndarray, params: SampleParams) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The integral positions within reach of a position, and the absolute weight of each; 0 beyond the taps."""
    count = 2 if params.mode == "bilinear" else 4
    base = np.floor(position - error)
    for step in range(1 - count // 2, count // 2 + 2):
        distance = np.abs(position - (base + step))
        yield base + step, _curve(distance) if count == 4 else np.maximum(0, 1 - distance)


def _curve(x: np.ndarray) -> np.ndarray:
    """The absolute weight of cubic interpolation at a distance from the point."""
    a = -0.75
    near, far = ((a + 2) * x - (a + 3)) * x * x + 1, ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.abs(np.where(x < 1, near, np.where(x < 2, far, 0)))


_POINTS = 32
"""The number of points of a bin along one axis up to which the points are looked at."""
_REGION_ROUNDINGS = 16.0
"""More roundings than a position has: a shift, a scale, a size, a part of it, an offset and two products of a rotation,
each relative to at most the largest coordinate and the size of the box."""


@rule("ROIAlign", "ROIAlignRotated")
def roi_align(layer: Layer, x: Interval, rois: Interval, images: Interval) -> Bound:
    """See the module; values are weighted sums of four pixels, added up over the points of a bin."""
    is_finite = bool(np.isfinite(rois.exact).all())
    check(x.exact.size > 0 and images.exact.size > 0 and is_finite, "no pixels, or boxes that are not finite")
    boxes, error = _boxes(layer, rois)
    counts, is_open = _counts(layer, boxes, error)
    if counts.max() > _POINTS or not np.isfinite(x.magnitude).all():
        return Unbounded("too many points, or pixels that are not finite")
    is_open |= _meets_edge(layer, boxes, counts, error, x.exact.shape[2:])
    exact = floats(layer.run(floats(x.exact), floats(rois.exact), images.exact)[0])
    chosen = images.exact.astype(np.int64)
    largest = x.magnitude.max((2, 3))[chosen]
    reach = 2 * error[:, None] * steepest(floats(x.exact))[chosen] + 2 * x.reach
    points = counts.prod(0)[:, None]
    reach += (8 * layer.arithmetic.unit + points * layer.arithmetic.sum_unit) * (largest + reach)
    found = layer.algebra.widened(settled(exact, exact, exact), reach[:, :, None, None])
    return found.open_where(is_open[:, None, None, None])


def _boxes(layer: Layer, rois: Interval) -> tuple[Boxes, np.ndarray]:
    """The boxes, and the error of a position and of a size of each."""
    attributes, given = layer.attributes["attributes"], floats(rois.exact)
    scale = attributes.spatial_scale
    if layer.definition.type == "ROIAlign":
        boxes = corner_boxes(given, scale, getattr(attributes, "aligned_mode", "asymmetric"))
        turn = np.zeros(len(given))
    else:
        boxes = rotated_boxes(given, scale, attributes.clockwise_mode)
        turn = np.abs(given[:, 4])
    size = np.abs(given[:, :4]).max(1) * abs(scale) + np.abs(boxes.width) + np.abs(boxes.height) + 1
    own = 0.0 if rois.is_certain else rois.radius.max(1) * (2 * abs(scale) + size)
    return boxes, _REGION_ROUNDINGS * layer.arithmetic.unit * size * (2 + turn) + own


def _counts(layer: Layer, boxes: Boxes, error: np.ndarray) -> tuple[np.ndarray, Mask]:
    """The number of points [2, boxes] of a bin along both axes, and a mask of the boxes for which it is open."""
    attributes = layer.attributes["attributes"]
    is_open = np.zeros(len(error), bool)
    if attributes.sampling_ratio:
        return np.full((2, len(error)), attributes.sampling_ratio), is_open
    counts = []
    for length, bins in zip((boxes.height, boxes.width), attributes.pooled, strict=True):
        # A size that is raised to one pixel is one exactly.
        least = 1.0 if getattr(attributes, "aligned_mode", None) in (None, "asymmetric") and not boxes.rotation else 0.0
        ends = [np.ceil(np.maximum(length + sign * error, least) / bins) for sign in (-1, 1)]
        is_open |= (ends[0] != ends[1]) | (ends[0] < 1)
        counts.append(ends[1])
    return np.maximum(np.array(counts), 1).astype(np.int64), is_open


def _meets_edge(
    layer: Layer, boxes: Boxes, counts: np.ndarray, error: np.ndarray, sizes: tuple[int, ...]
) -> Mask:  # fmt: skip
    """Mask of the boxes with a point that may be on either side of the edge beyond which values are zero."""
    found = np.zeros(len(error), bool)
    for y, x in _points(layer, boxes, counts):
        for position, size in ((y, sizes[0]), (x, sizes[1])):
            away = np.minimum(np.abs(position + 1), np.abs(position - size))
            found |= (away <= error[:, None, None]).any((1, 2))
    return found


def _points(layer: Layer, boxes: Boxes, counts: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The positions [boxes, rows, columns] of each point of all bins; those of boxes with fewer points come again."""
    height, width = layer.attributes["attributes"].pooled
    for i in range(int(counts[0].max())):
        for j in range(int(counts[1].max())):
            y = _position(boxes.top, boxes.height, height, counts[0], i)
            x = _position(boxes.left, boxes.width, width, counts[1], j)
            yield rotate(y[:, :, None], x[:, None, :], boxes)


def _position(start: np.ndarray, length: np.ndarray, bins: int, counts: np.ndarray, point: int) -> np.ndarray:
    """The position [boxes, bins] of a point of each bin along an axis; the last one of a bin that has fewer."""
    first = positions(start, length, bins, counts, np.zeros(1, np.int64))[:, 0]
    return first + np.asarray(length / bins / counts * np.minimum(point, counts - 1))[:, None]


def steepest(x: np.ndarray) -> np.ndarray:
    """The largest difference of two neighbours of each image and channel."""
    return np.maximum(
        np.abs(np.diff(x, axis=2)).max((2, 3), initial=0.0), np.abs(np.diff(x, axis=3)).max((2, 3), initial=0.0)
    )  # fmt: skip
