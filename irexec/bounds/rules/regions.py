"""ROIAlign: means and maxima of points that are interpolated between pixels.

A bilinear interpolation is continuous: where the position of a point is known up to d along both axes, its value is
known up to 2 d L, with the largest difference L of two neighbouring pixels of the channel. Beyond one pixel outside of
the image it jumps to zero, and the number of points of a bin may follow from the size of the box: a box of which a
point, or the size, is within its bound of such an edge has no bound. A maximum and a mean are nowhere further apart
than their terms.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from irexec.bounds.algebra import floats, settled
from irexec.bounds.interval import Bound, Interval, Mask, Unbounded
from irexec.bounds.registry import Layer, rule
from irexec.reference.roi_align import Boxes, corner_boxes, positions, rotate, rotated_boxes

_POINTS = 32
"""The number of points of a bin along one axis up to which the points are looked at."""
_ROUNDINGS = 16.0
"""More roundings than a position has: a shift, a scale, a size, a part of it, an offset and two products of a rotation,
each relative to no more than the largest coordinate and the size of the box."""


@rule("ROIAlign", "ROIAlignRotated")
def roi_align(layer: Layer, x: Interval, rois: Interval, images: Interval) -> Bound:
    """See the module; values are weighted sums of four pixels, added up over the points of a bin."""
    if not x.exact.size or not images.exact.size or not np.isfinite(rois.exact).all():
        return Unbounded("no pixels, or boxes that are not finite")
    boxes, error = _boxes(layer, rois)
    counts, is_open = _counts(layer, boxes, error)
    if counts.max() > _POINTS or not np.isfinite(x.magnitude).all():
        return Unbounded("too many points, or pixels that are not finite")
    is_open |= _meets_edge(layer, boxes, counts, error, x.exact.shape[2:])
    exact = floats(layer.run(floats(x.exact), floats(rois.exact), images.exact)[0])
    chosen = images.exact.astype(np.int64)
    largest = x.magnitude.max((2, 3))[chosen]
    reach = 2 * error[:, None] * _steepest(floats(x.exact))[chosen] + 2 * x.reach
    points = counts.prod(0)[:, None]
    reach += (8 * layer.arithmetic.unit + points * layer.arithmetic.sum_unit) * (largest + reach)
    spread = np.broadcast_to(reach[:, :, None, None], exact.shape)
    found = layer.algebra.widened(settled(exact, exact, exact), spread)
    return found.open_where(np.broadcast_to(is_open[:, None, None, None], exact.shape))


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
    return boxes, _ROUNDINGS * layer.arithmetic.unit * size * (2 + turn) + own


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
            # A point of a bin that has fewer is its last one.
            y = _first(boxes.top, boxes.height, height, counts[0]) + _step(boxes.height, height, counts[0], i)
            x = _first(boxes.left, boxes.width, width, counts[1]) + _step(boxes.width, width, counts[1], j)
            yield rotate(y[:, :, None], x[:, None, :], boxes)


def _first(start: np.ndarray, length: np.ndarray, bins: int, counts: np.ndarray) -> np.ndarray:
    """The position [boxes, bins] of the first point of each bin."""
    return positions(start, length, bins, counts, np.zeros(1, np.int64))[:, 0]


def _step(length: np.ndarray, bins: int, counts: np.ndarray, point: int) -> np.ndarray:
    """The distance [boxes, 1] from the first point of a bin to another one."""
    return np.asarray(length / bins / counts * np.minimum(point, counts - 1))[:, None]


def _steepest(x: np.ndarray) -> np.ndarray:
    """The largest difference of two neighbours of each image and channel."""
    return np.maximum(
        np.abs(np.diff(x, axis=2)).max((2, 3), initial=0.0), np.abs(np.diff(x, axis=3)).max((2, 3), initial=0.0)
    )  # fmt: skip
