"""Pooling of boxes that are divided into bins, each bin sampled at regular points by bilinear interpolation.

Features are rows of all channels of a pixel, so that a point costs one copy for each of the four pixels around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from irexec.errors import check

# The maximum number of points of one bin: no box of a feature map has more, only a corrupt value.
_MAX_POINTS = 1 << 20

# The number of values pooled at once, so that they stay in the cache.
_BLOCK = 1 << 17


@dataclass(frozen=True)
class Boxes:
    """Boxes in pixels of the feature map; every attribute has one value for each box.

    Attributes:
        left, top, width, height: the first corner and the size; may be negative.
        rotation: None, or (x, y, cosine, sine): the corner is relative to the centre (x, y), about which the box is rotated.
    """

    left: np.ndarray
    top: np.ndarray
    width: np.ndarray
    height: np.ndarray
    rotation: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None = None

    def take(self, indices: np.ndarray | slice) -> Boxes:
        """The boxes of those indices."""
        rotation = (
            None
            if self.rotation is None
            else (self.rotation[0][indices], self.rotation[1][indices], self.rotation[2][indices], self.rotation[3][indices])
        )
        return Boxes(self.left[indices], self.top[indices], self.width[indices], self.height[indices], rotation)


@np.errstate(invalid="ignore", over="ignore")
def corner_boxes(rois: np.ndarray, spatial_scale: float, aligned_mode: str = "asymmetric") -> Boxes:
    """Boxes of (R, 4) corners x1, y1, x2, y2; with ``asymmetric`` they are at least one pixel wide and high.

    Args:
        aligned_mode: a corner c becomes c*scale (asymmetric), c*scale - 0.5 (half_pixel_for_nn) or
            (c + 0.5)*scale - 0.5 (half_pixel).
    """
    number = rois.dtype.type
    shift, half = {"asymmetric": (0, 0), "half_pixel_for_nn": (0, 0.5), "half_pixel": (0.5, 0.5)}[aligned_mode]
    left, top, right, bottom = ((rois + number(shift)) * number(spatial_scale) - number(half)).T
    width, height = right - left, bottom - top
    if aligned_mode == "asymmetric":
        width, height = np.maximum(width, number(1)), np.maximum(height, number(1))
    return Boxes(left, top, width, height)


@np.errstate(invalid="ignore", over="ignore")
def rotated_boxes(rois: np.ndarray, spatial_scale: float, clockwise: bool) -> Boxes:
    """Boxes of (R, 5) centre x and y, width, height and angle in radians; half a pixel is subtracted from centres."""
    number = rois.dtype.type
    x, y, width, height = (rois[:, :4] * number(spatial_scale)).T
    angle = -rois[:, 4] if clockwise else rois[:, 4]
    rotation = (x - number(0.5), y - number(0.5), np.cos(angle), np.sin(angle))
    return Boxes(-width / number(2), -height / number(2), width, height, rotation)


@np.errstate(invalid="ignore", over="ignore")
def pool_boxes(
    features: np.ndarray, boxes: Boxes, batch_indices: np.ndarray, pooled: tuple[int, int], sampling_ratio: int, mode: str
) -> np.ndarray:
    """Features (N, C, H, W) pooled over R boxes: (R, C, pooled height, pooled width).

    A point up to one pixel outside the image has the value of the border, one further away is 0. The maximum is
    taken of the points and 0, and ignores NaN. A bin without points is 0.

    Args:
        batch_indices: (R,) integers, the image of each box.
        sampling_ratio: number of points along each axis of a bin; 0 for as many as it has pixels, rounded up.
        mode: avg or max.

    Raises:
        OpError: an index is out of range, or the number of points of a bin is not finite or too large.
    """
    n, channels, *sizes = features.shape
    wrong = (batch_indices < 0) | (batch_indices >= n)
    check(not wrong.any(), f"batch index {batch_indices[wrong][:1].tolist()} is out of range for a batch of {n}")
    result = np.zeros((len(batch_indices), *pooled, channels), features.dtype)
    if result.size and 0 not in sizes:
        rows = np.ascontiguousarray(np.moveaxis(features, 1, -1)).reshape(-1, channels)
        starts = batch_indices.astype(np.int64) * (sizes[0] * sizes[1])
        for part in blocks(len(result), result[0].size):
            _pool_block(result[part], rows, starts[part], sizes, boxes.take(part), sampling_ratio, mode)
    return np.ascontiguousarray(np.moveaxis(result, -1, 1))


def blocks(count: int, each: int) -> Iterator[slice]:
    """Slices of ``count`` boxes of ``each`` values, each with as many boxes as fit the cache."""
    step = max(_BLOCK // max(each, 1), 1)
    for begin in range(0, count, step):
        yield slice(begin, min(begin + step, count))


def _pool_block(
    result: np.ndarray, rows: np.ndarray, starts: np.ndarray, sizes: Sequence[int], boxes: Boxes, sampling_ratio: int, mode: str
) -> None:
    """Pool boxes into zeros of (R, height, width, C), one point of every bin at a time."""
    rows_per_bin = _point_counts(boxes.height, result.shape[1], sampling_ratio)
    columns_per_bin = _point_counts(boxes.width, result.shape[2], sampling_ratio)
    points = rows_per_bin * columns_per_bin
    check(int(points.max()) <= _MAX_POINTS, f"a bin has {int(points.max())} points, expected {_MAX_POINTS} at most")
    count = points.astype(result.dtype)
    for indices, i, j in _each_point(rows_per_bin, columns_per_bin):
        chosen = boxes.take(indices)
        y = _positions(chosen.top, chosen.height, result.shape[1], rows_per_bin[indices], i)[:, :, None]
        x = _positions(chosen.left, chosen.width, result.shape[2], columns_per_bin[indices], j)[:, None, :]
        values = _sample(rows, starts[indices], sizes, *_rotate(y, x, chosen))
        if mode == "max":
            result[indices] = np.fmax(result[indices], values)
        else:
            values /= count[indices, None, None, None]
            result[indices] += values


def _each_point(rows: np.ndarray, columns: np.ndarray) -> Iterator[tuple[np.ndarray | slice, int, int]]:
    """For each point of a bin: the boxes that have it (a slice where all have), and its indices along both axes."""
    columns = np.where(rows > 0, columns, 0)
    rows = np.where(columns > 0, rows, 0)
    for i in range(int(rows.max())):
        has_row = rows > i
        for j in range(int(columns[has_row].max())):
            has_point = has_row & (columns > j)
            yield slice(None) if has_point.all() else np.flatnonzero(has_point), i, j


def _point_counts(lengths: np.ndarray, bins: int, sampling_ratio: int) -> np.ndarray:
    """The number of points of each box along an axis of a bin (i64)."""
    if sampling_ratio:
        return np.full(lengths.shape, min(sampling_ratio, _MAX_POINTS + 1), np.int64)
    counts = np.ceil(lengths / lengths.dtype.type(bins))
    check(bool(np.isfinite(counts).all()), "the size of a box is not finite, so that the number of points of its bins is not known")
    return np.clip(counts, 0, _MAX_POINTS + 1).astype(np.int64)


def _positions(start: np.ndarray, length: np.ndarray, bins: int, points: np.ndarray, point: int) -> np.ndarray:
    """The positions of the given point of each bin, (R, bins)."""
    number = start.dtype.type
    bin_length = length / number(bins)
    distance = bin_length / points.astype(start.dtype)
    return start[:, None] + np.arange(bins, dtype=start.dtype) * bin_length[:, None] + (distance * number(point + 0.5))[:, None]


def _rotate(y: np.ndarray, x: np.ndarray, boxes: Boxes) -> tuple[np.ndarray, np.ndarray]:
    if boxes.rotation is None:
        return y, x
    centre_x, centre_y, cosine, sine = (part[:, None, None] for part in boxes.rotation)
    return y * cosine - x * sine + centre_y, y * sine + x * cosine + centre_x


def _sample(rows: np.ndarray, starts: np.ndarray, sizes: Sequence[int], y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The features at points whose positions broadcast to (R, height, width), as (R, height, width, C)."""
    outside = (y < -1) | (y > sizes[0]) | (x < -1) | (x > sizes[1])
    values = interpolate(rows, starts[:, None, None], sizes, y, x)
    if outside.any():
        values[outside] = 0
    return values


def interpolate(rows: np.ndarray, starts: np.ndarray, sizes: Sequence[int], y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Bilinear interpolation of pixels at points; outside the image as on its border.

    Args:
        rows: (pixels, C), the pixels of all images with their channels.
        starts: the row where the image of each point starts; it broadcasts with ``y`` and ``x`` to P.
        sizes: height and width of an image.

    Returns:
        (P..., C).
    """
    total = np.zeros((*np.broadcast_shapes(starts.shape, y.shape, x.shape), rows.shape[1]), rows.dtype)
    for line, line_weight in _nearest_two(y, sizes[0]):
        for column, column_weight in _nearest_two(x, sizes[1]):
            part = rows.take((starts + line * sizes[1]) + column, axis=0)
            part *= (line_weight * column_weight)[..., None]
            total += part
    return total


def _nearest_two(position: np.ndarray, size: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The pixels before and after a position, each with its weight; outside the image both are the border."""
    inside = np.clip(position, 0, position.dtype.type(size - 1))
    before = np.where(np.isnan(inside), 0, inside).astype(np.int64)
    fraction = inside - before.astype(inside.dtype)
    yield before, 1 - fraction
    yield np.minimum(before + 1, size - 1), fraction
