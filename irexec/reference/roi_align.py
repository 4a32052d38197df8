"""Regions of interest sampled: values at points between pixels, averaged or maximal in each bin.

Features are rows of all channels of a pixel, so that a point costs one copy for each of the four pixels around it.

The mean of a bin of a box that is not rotated is a product of three matrices: the weights that its points give to the
rows of the image, the image, and the weights that they give to its columns. It takes the time of the points of two
axes, not of their product. The maximum, and boxes that are rotated, take many points at a time.

Bins of few points are pooled for all boxes at once, one point after the other. How many points a bin has may follow
from the size of its box: bins of many points are pooled box by box, by irexec.reference.roi_align.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from irexec.errors import check
from irexec.reference.indexing import as_indices
from irexec.reference.limits import blocks, check_time

# The number of values pooled at once, so that they stay in the cache.
BLOCK = 1 << 17


@dataclass(frozen=True)
class Boxes:
    """Boxes in pixels of the feature map; every attribute has one value for each box.

    Attributes:
        left, top, width, height: the first corner and the size; may be negative.
        rotation: None, or (x, y, cosine, sine): the corner is relative to the centre (x, y), about which the box is
            rotated.
    """

    left: np.ndarray
    top: np.ndarray
    width: np.ndarray
    height: np.ndarray
    rotation: tuple[np.ndarray, ...] | None = None

    def take(self, indices: np.ndarray | slice) -> Boxes:
        """The boxes of those indices."""
        rotation = None if self.rotation is None else tuple(part[indices] for part in self.rotation)
        return Boxes(self.left[indices], self.top[indices], self.width[indices], self.height[indices], rotation)


@dataclass(frozen=True)
class BoxPooling:
    """Boxes, the images that they are pooled from, and how each of their bins is sampled.

    Attributes:
        rows: (pixels, C), the pixels of all images with their channels.
        starts: the row where the image of each box starts, (R,).
        sizes: height and width of an image.
        boxes: R boxes.
        rows_per_bin, columns_per_bin: the number of points of each box along both axes of a bin, (R,).
        mode: avg or max.
    """

    rows: np.ndarray
    starts: np.ndarray
    sizes: Sequence[int]
    boxes: Boxes
    rows_per_bin: np.ndarray
    columns_per_bin: np.ndarray
    mode: str

    @property
    def points(self) -> np.ndarray:
        """The number of points of a bin of each box, (R,)."""
        return self.rows_per_bin * self.columns_per_bin

    def take(self, indices: np.ndarray | slice) -> BoxPooling:
        """The pooling of the boxes of those indices."""
        return replace(
            self,
            starts=self.starts[indices],
            boxes=self.boxes.take(indices),
            rows_per_bin=self.rows_per_bin[indices],
            columns_per_bin=self.columns_per_bin[indices],
        )


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


def positions(start: np.ndarray, length: np.ndarray, bins: int, points: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """The positions of some points of each bin of R boxes along an axis, (R, chosen, bins).

    Args:
        start, length: of the boxes, (R,).
        points: number of points in a bin of each box, (R,).
        chosen: indices of points.
    """
    bin_length = length / start.dtype.type(bins)
    distance = bin_length / points.astype(start.dtype)
    starts = start[:, None] + np.arange(bins, dtype=start.dtype) * bin_length[:, None]
    return starts[:, None] + (distance[:, None] * (chosen + 0.5).astype(start.dtype))[..., None]


def positions_of_box(
    start: np.floating[Any], length: np.floating[Any], bins: int, points: int, chosen: np.ndarray
) -> np.ndarray:
    """The positions of some points of each bin of one box along an axis, (bins, chosen); the same as those of
    ``positions``."""
    number = start.dtype.type
    bin_length = length / number(bins)
    offsets = (bin_length / number(points)) * (chosen + 0.5).astype(start.dtype)
    return (start + np.arange(bins, dtype=start.dtype) * bin_length)[:, None] + offsets


def rotate(y: np.ndarray, x: np.ndarray, boxes: Boxes) -> tuple[np.ndarray, np.ndarray]:
    """Positions (R, height, width) relative to the centres of boxes, as positions in the image."""
    if boxes.rotation is None:
        return y, x
    centre_x, centre_y, cosine, sine = (part[:, None, None] for part in boxes.rotation)
    return y * cosine - x * sine + centre_y, y * sine + x * cosine + centre_x


def sample(rows: np.ndarray, starts: np.ndarray, sizes: Sequence[int], y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Values as ``interpolate`` returns them; 0 for points more than one pixel outside the image."""
    outside = (y < -1) | (y > sizes[0]) | (x < -1) | (x > sizes[1])
    values = interpolate(rows, starts, sizes, y, x)
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
    columns = [*nearest_two(x, sizes[1])]
    for line, line_weight in nearest_two(y, sizes[0]):
        for column, column_weight in columns:
            part = rows.take(as_indices(starts + line * sizes[1] + column), axis=0)
            part *= (line_weight * column_weight)[..., None]
            total += part
    return total


def nearest_two(position: np.ndarray, size: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The pixels before and after a position, each with its weight; outside the image both are the border."""
    inside = np.minimum(np.maximum(position, 0), position.dtype.type(size - 1))
    before = np.fmax(inside, 0).astype(np.int64)
    fraction = inside - before.astype(inside.dtype)
    yield before, 1 - fraction
    yield np.minimum(before + 1, size - 1), fraction


# The maximum number of weights of one axis: bins times pixels.
_MAX_WEIGHTS = 1 << 22


def pool_large_boxes(result: np.ndarray, pooling: BoxPooling, separable: np.ndarray) -> None:
    """Pool boxes into zeros.

    Args:
        result: (R, height, width, C), zeros.
        pooling: the pooling of R boxes.
        separable: the result of ``are_separable`` for each box, (R,).
    """
    for index in np.flatnonzero(pooling.points > 0).tolist():
        check_time()
        box = pooling.take(slice(index, index + 1))
        if separable[index]:
            result[index] = _mean(box, result.shape[1:3])
        else:
            _pool_box(result[index], box)


def are_separable(pooling: BoxPooling, pooled: Sequence[int]) -> np.ndarray:
    """True for boxes whose means are a product of matrices, which must be finite and not too large, (R,)."""
    boxes, sizes = pooling.boxes, pooling.sizes
    finite = np.isfinite(boxes.left) & np.isfinite(boxes.top) & np.isfinite(boxes.width) & np.isfinite(boxes.height)
    too_large = max(pooled[0] * sizes[0], pooled[1] * sizes[1]) > _MAX_WEIGHTS
    if pooling.mode != "avg" or boxes.rotation is not None or too_large or not np.isfinite(pooling.rows).all():
        return np.zeros(len(finite), np.bool_)
    return finite


def _mean(one: BoxPooling, pooled: Sequence[int]) -> np.ndarray:
    """The mean of each bin of one box, (height, width, C)."""
    rows, sizes, box = one.rows, one.sizes, one.boxes
    first_row, vertical = _axis_weights(box.top[0], box.height[0], pooled[0], int(one.rows_per_bin[0]), sizes[0])
    first_column, horizontal = _axis_weights(
        box.left[0], box.width[0], pooled[1], int(one.columns_per_bin[0]), sizes[1]
    )
    image = int(one.starts[0])
    pixels = rows[image : image + sizes[0] * sizes[1]].reshape(*sizes, -1)
    window = pixels[first_row : first_row + vertical.shape[1], first_column : first_column + horizontal.shape[1]]
    lines = np.tensordot(vertical.astype(rows.dtype), window, 1)
    return np.matmul(horizontal.astype(rows.dtype), lines)


def _axis_weights(
    start: np.floating[Any], length: np.floating[Any], bins: int, points: int, size: int
) -> tuple[int, np.ndarray]:
    """The weights of the pixels of an axis in the mean of each bin: the first pixel with a weight, and (bins, pixels)
    from it on."""
    total = np.zeros(bins * size)
    step = max(BLOCK // bins, 1)
    for begin in range(0, points, step):
        check_time()
        position = positions_of_box(start, length, bins, points, np.arange(begin, min(begin + step, points)))
        outside = (position < -1) | (position > size)
        for pixel, weight in nearest_two(position, size):
            index = pixel + np.arange(bins)[:, None] * size
            total += np.bincount(as_indices(index.ravel()), np.where(outside, 0, weight).ravel(), bins * size)
    weights = total.reshape(bins, size) / points
    used = np.flatnonzero(weights.any(0))
    first, last = (int(used[0]), int(used[-1])) if used.size else (0, 0)
    return first, weights[:, first : last + 1]


def _pool_box(result: np.ndarray, one: BoxPooling) -> None:
    """Pool one box into zeros of (height, width, C), as many points at a time as fit the cache."""
    height, width, _ = result.shape
    rows, columns, box = int(one.rows_per_bin[0]), int(one.columns_per_bin[0]), one.boxes
    total = np.zeros(result.shape)
    step = max(BLOCK // max(result.size, 1), 1)
    for begin in range(0, rows * columns, step):
        check_time()
        i, j = np.divmod(np.arange(begin, min(begin + step, rows * columns)), columns)
        # Points first, as boxes are for the other functions.
        y = positions_of_box(box.top[0], box.height[0], height, rows, i).T[:, :, None]
        x = positions_of_box(box.left[0], box.width[0], width, columns, j).T[:, None, :]
        values = sample(one.rows, one.starts, one.sizes, *rotate(y, x, box))
        if one.mode == "max":
            np.fmax(result, np.fmax.reduce(values, 0), out=result)
        else:
            total += values.sum(0, dtype=np.float64)
    if one.mode != "max":
        result[...] = total / (rows * columns)


# The maximum number of points of one bin: no box of a feature map has more, only a corrupt value.
MAX_POINTS = 1 << 20

# Points of the bins that are pooled for all boxes at once: at least this number, more for each box, up to a maximum.
_FEW_POINTS, _FEW_PER_BOX, _MAX_PASSES = 64, 4, 1024

# The maximum number of values that are interpolated one by one: some minutes.
_MAX_VALUES = 1 << 34


@np.errstate(invalid="ignore", over="ignore")
def pool_boxes(
    features: np.ndarray,
    boxes: Boxes,
    batch_indices: np.ndarray,
    pooled: tuple[int, int],
    sampling_ratio: int,
    mode: str,
) -> np.ndarray:
    """Features (N, C, H, W) pooled over R boxes: (R, C, pooled height, pooled width).

    A point up to one pixel outside the image has the value of the border, one further away is 0. The maximum is
    taken of the points and 0, and ignores NaN. A bin without points is 0.

    Args:
        batch_indices: (R,) integers, the image of each box.
        sampling_ratio: number of points along each axis of a bin; 0 for as many as it has pixels, rounded up.
        mode: avg or max.

    Raises:
        OpError: an index is out of range, or the number of points of a bin, or of all bins, is not finite or too large.
    """
    n, channels, *sizes = features.shape
    wrong = (batch_indices < 0) | (batch_indices >= n)
    check(not wrong.any(), f"batch index {batch_indices[wrong][:1].tolist()} is out of range for a batch of {n}")
    result = np.zeros((len(batch_indices), *pooled, channels), features.dtype)
    if result.size and 0 not in sizes:
        _pool(
            result,
            BoxPooling(
                rows=as_rows(features, 1),
                starts=batch_indices.astype(np.int64) * (sizes[0] * sizes[1]),
                sizes=sizes,
                boxes=boxes,
                rows_per_bin=_point_counts(boxes.height, pooled[0], sampling_ratio),
                columns_per_bin=_point_counts(boxes.width, pooled[1], sampling_ratio),
                mode=mode,
            ),
        )
    return np.ascontiguousarray(np.moveaxis(result, -1, 1))


def _pool(result: np.ndarray, pooling: BoxPooling) -> None:
    """Pool boxes into zeros of (R, height, width, C)."""
    per_bin = pooling.points
    maximum = int(per_bin.max())
    check(maximum <= MAX_POINTS, f"a bin has {maximum} points, expected {MAX_POINTS} at most")
    separable = are_separable(pooling, result.shape[1:3]) if maximum > _FEW_POINTS else np.zeros(len(result), np.bool_)
    points = int(per_bin[~separable].astype(object).sum())
    values = points * result[0].size
    text = f"the bins of the boxes have {points} points, {values} values, expected {_MAX_VALUES} at most"
    check(values <= _MAX_VALUES, text)
    for part in blocks(len(result), result[0].size, BLOCK):
        check_time()
        block = pooling.take(part)
        passes = int(block.rows_per_bin.max()) * int(block.columns_per_bin.max())
        if passes <= max(_FEW_POINTS, min(_FEW_PER_BOX * len(result[part]), _MAX_PASSES)):
            _pool_block(result[part], block)
        else:
            pool_large_boxes(result[part], block, separable[part])


def as_rows(features: np.ndarray, axis: int) -> np.ndarray:
    """Features as rows of all values along an axis, (pixels, values)."""
    return np.ascontiguousarray(np.moveaxis(features, axis, -1)).reshape(-1, features.shape[axis])


def _pool_block(result: np.ndarray, pooling: BoxPooling) -> None:
    """Pool boxes into zeros of (R, height, width, C): all points at once where these are few and every box has as many,
    else one point of every bin at a time."""
    rows, columns = pooling.rows_per_bin, pooling.columns_per_bin
    is_small = 0 < int(rows[0]) * int(columns[0]) * result.size <= BLOCK
    if is_small and (rows == rows[0]).all() and (columns == columns[0]).all():
        _pool_points(result, slice(None), pooling, np.arange(rows[0]), np.arange(columns[0]))
        return
    for indices, i, j in _each_point(rows, columns):
        _pool_points(result, indices, pooling.take(indices), np.array([i]), np.array([j]))


def _pool_points(
    result: np.ndarray, indices: np.ndarray | slice, pooling: BoxPooling, rows: np.ndarray, columns: np.ndarray
) -> None:
    """Add some points of each bin to the results of the boxes of those indices, or take the maximum with them."""
    boxes, count, (height, width, channels) = pooling.boxes, pooling.starts.size, result.shape[1:]
    down, across = len(rows) * height, len(columns) * width
    y = positions(boxes.top, boxes.height, height, pooling.rows_per_bin, rows).reshape(count, down, 1)
    x = positions(boxes.left, boxes.width, width, pooling.columns_per_bin, columns).reshape(count, 1, across)
    values = sample(pooling.rows, pooling.starts[:, None, None], pooling.sizes, *rotate(y, x, boxes))
    if pooling.mode == "avg":
        values /= pooling.points.astype(result.dtype)[:, None, None, None]
    points = values.reshape(count, len(rows), height, len(columns), width, channels)
    for i, j in np.ndindex(len(rows), len(columns)):
        check_time()
        one = points[:, i, :, j]
        result[indices] = np.fmax(result[indices], one) if pooling.mode == "max" else result[indices] + one


def _each_point(rows: np.ndarray, columns: np.ndarray) -> Iterator[tuple[np.ndarray | slice, int, int]]:
    """The boxes with each point of a bin (a slice if all have it), and the point's indices along both axes."""
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
        return np.full(lengths.shape, min(sampling_ratio, MAX_POINTS + 1), np.int64)
    counts = np.ceil(lengths / lengths.dtype.type(bins))
    are_finite = bool(np.isfinite(counts).all())
    check(are_finite, "the size of a box is not finite, so that the number of points of its bins is not known")
    return np.clip(counts, 0, MAX_POINTS + 1).astype(np.int64)
