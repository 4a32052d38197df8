"""Pooling of boxes that are cut into bins, each bin sampled at regular points, linearly between pixels.

Pixels are taken as rows of all channels, so that a point costs one copy for each of the four around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from irexec.errors import check

# The most points of one bin: more is no box of any feature map, but a number gone astray.
_MOST_POINTS = 1 << 20

# About how many numbers are pooled at once, so that they stay in the cache.
_BLOCK = 1 << 17


@dataclass(frozen=True)
class Boxes:
    """Boxes in pixels of the feature map, one number of each for every box.

    Attributes:
        left, top, width, height: where the box begins and how large it is; may be negative.
        turn: None, or (x, y, cosine, sine): a box begins relative to that centre and is turned about it.
    """

    left: np.ndarray
    top: np.ndarray
    width: np.ndarray
    height: np.ndarray
    turn: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None = None

    def some(self, which: np.ndarray | slice) -> Boxes:
        """The boxes of those numbers."""
        turn = None if self.turn is None else (self.turn[0][which], self.turn[1][which], self.turn[2][which], self.turn[3][which])
        return Boxes(self.left[which], self.top[which], self.width[which], self.height[which], turn)


@np.errstate(invalid="ignore", over="ignore")
def corner_boxes(rois: np.ndarray, spatial_scale: float, aligned_mode: str = "asymmetric") -> Boxes:
    """Boxes of (R, 4) corners x1, y1, x2, y2; with ``asymmetric`` none is smaller than a pixel.

    Args:
        aligned_mode: a corner c becomes c*scale (asymmetric), c*scale - 0.5 (half_pixel_for_nn) or
            (c + 0.5)*scale - 0.5 (half_pixel).
    """
    number = rois.dtype.type
    before, behind = {"asymmetric": (0, 0), "half_pixel_for_nn": (0, 0.5), "half_pixel": (0.5, 0.5)}[aligned_mode]
    left, top, right, bottom = ((rois + number(before)) * number(spatial_scale) - number(behind)).T
    width, height = right - left, bottom - top
    if aligned_mode == "asymmetric":
        width, height = np.maximum(width, number(1)), np.maximum(height, number(1))
    return Boxes(left, top, width, height)


@np.errstate(invalid="ignore", over="ignore")
def turned_boxes(rois: np.ndarray, spatial_scale: float, clockwise: bool) -> Boxes:
    """Boxes of (R, 5) centre x and y, width, height and angle in radians; centres are moved half a pixel back."""
    number = rois.dtype.type
    x, y, width, height = (rois[:, :4] * number(spatial_scale)).T
    angle = -rois[:, 4] if clockwise else rois[:, 4]
    turn = (x - number(0.5), y - number(0.5), np.cos(angle), np.sin(angle))
    return Boxes(-width / number(2), -height / number(2), width, height, turn)


@np.errstate(invalid="ignore", over="ignore")
def pool_boxes(
    features: np.ndarray, boxes: Boxes, batch_indices: np.ndarray, pooled: tuple[int, int], sampling_ratio: int, mode: str
) -> np.ndarray:
    """(N, C, H, W) at R boxes as (R, C, pooled height, pooled width).

    A point up to one pixel beyond the border counts as the border, one further off as 0. The maximum is
    taken of the points and 0, and NaN is no maximum. A bin without points is 0.

    Args:
        batch_indices: (R,) integers, the image of each box.
        sampling_ratio: points along each axis of a bin; 0 for as many as it has pixels, rounded up.
        mode: avg or max.

    Raises:
        OpError: an index is no image, or a bin has no number of points.
    """
    n, channels, *sizes = features.shape
    wrong = (batch_indices < 0) | (batch_indices >= n)
    check(not wrong.any(), f"batch index {batch_indices[wrong][:1].tolist()} is out of range for a batch of {n}")
    result = np.zeros((len(batch_indices), *pooled, channels), features.dtype)
    if result.size and 0 not in sizes:
        rows = np.ascontiguousarray(np.moveaxis(features, 1, -1)).reshape(-1, channels)
        starts = batch_indices.astype(np.int64) * (sizes[0] * sizes[1])
        for part in blocks(len(result), result[0].size):
            _pool_some(result[part], rows, starts[part], sizes, boxes.some(part), sampling_ratio, mode)
    return np.ascontiguousarray(np.moveaxis(result, -1, 1))


def blocks(count: int, each: int) -> Iterator[slice]:
    """Slices of ``count`` boxes, each with as many as fit the cache where a box has ``each`` numbers."""
    step = max(_BLOCK // max(each, 1), 1)
    for begin in range(0, count, step):
        yield slice(begin, min(begin + step, count))


def _pool_some(
    result: np.ndarray, rows: np.ndarray, starts: np.ndarray, sizes: Sequence[int], boxes: Boxes, sampling_ratio: int, mode: str
) -> None:
    """Pool boxes into zeros of (R, height, width, C), one point of every bin at a time."""
    down = _points(boxes.height, result.shape[1], sampling_ratio)
    across = _points(boxes.width, result.shape[2], sampling_ratio)
    points = down * across
    check(int(points.max()) <= _MOST_POINTS, f"a bin has {int(points.max())} points, expected {_MOST_POINTS} at most")
    amount = points.astype(result.dtype)
    for which, i, j in _each_point(down, across):
        some = boxes.some(which)
        y = _along(some.top, some.height, result.shape[1], down[which], i)[:, :, None]
        x = _along(some.left, some.width, result.shape[2], across[which], j)[:, None, :]
        values = _sample(rows, starts[which], sizes, *_turned(y, x, some))
        if mode == "max":
            result[which] = np.fmax(result[which], values)
        else:
            values /= amount[which, None, None, None]
            result[which] += values


def _each_point(down: np.ndarray, across: np.ndarray) -> Iterator[tuple[np.ndarray | slice, int, int]]:
    """The boxes that have a point, without copying where all have, and the point's number along each axis."""
    across = np.where(down > 0, across, 0)
    down = np.where(across > 0, down, 0)
    for i in range(int(down.max())):
        has_line = down > i
        for j in range(int(across[has_line].max())):
            has = has_line & (across > j)
            yield slice(None) if has.all() else np.flatnonzero(has), i, j


def _points(lengths: np.ndarray, bins: int, sampling_ratio: int) -> np.ndarray:
    """How many points each box has along an axis of a bin (i64)."""
    if sampling_ratio:
        return np.full(lengths.shape, min(sampling_ratio, _MOST_POINTS + 1), np.int64)
    counts = np.ceil(lengths / lengths.dtype.type(bins))
    check(bool(np.isfinite(counts).all()), "a box has no finite size, from which to tell how many points it needs")
    return np.clip(counts, 0, _MOST_POINTS + 1).astype(np.int64)


def _along(begin: np.ndarray, length: np.ndarray, bins: int, points: np.ndarray, point: int) -> np.ndarray:
    """Where the given point of each bin lies, (R, bins)."""
    number = begin.dtype.type
    step = length / number(bins)
    distance = step / points.astype(begin.dtype)
    return begin[:, None] + np.arange(bins, dtype=begin.dtype) * step[:, None] + (distance * number(point + 0.5))[:, None]


def _turned(y: np.ndarray, x: np.ndarray, boxes: Boxes) -> tuple[np.ndarray, np.ndarray]:
    if boxes.turn is None:
        return y, x
    centre_x, centre_y, cosine, sine = (part[:, None, None] for part in boxes.turn)
    return y * cosine - x * sine + centre_y, y * sine + x * cosine + centre_x


def _sample(rows: np.ndarray, starts: np.ndarray, sizes: Sequence[int], y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The features at points whose positions broadcast to (R, height, width), as (R, height, width, C)."""
    beyond = (y < -1) | (y > sizes[0]) | (x < -1) | (x > sizes[1])
    values = between(rows, starts[:, None, None], sizes, y, x)
    if beyond.any():
        values[beyond] = 0
    return values


def between(rows: np.ndarray, starts: np.ndarray, sizes: Sequence[int], y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Pixels and what lies between them, linearly; beyond the border as on it.

    Args:
        rows: (pixels, C), the pixels of all images with their channels.
        starts: where the image of each point begins; it broadcasts with ``y`` and ``x`` to P.
        sizes: height and width of an image.

    Returns:
        (P..., C).
    """
    total = np.zeros((*np.broadcast_shapes(starts.shape, y.shape, x.shape), rows.shape[1]), rows.dtype)
    for line, down in _nearest_two(y, sizes[0]):
        for column, across in _nearest_two(x, sizes[1]):
            part = rows.take((starts + line * sizes[1]) + column, axis=0)
            part *= (down * across)[..., None]
            total += part
    return total


def _nearest_two(position: np.ndarray, size: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The pixels before and behind, each with what it counts; beyond the border both are the border."""
    inside = np.clip(position, 0, position.dtype.type(size - 1))
    before = np.where(np.isnan(inside), 0, inside).astype(np.int64)
    part = inside - before.astype(inside.dtype)
    yield before, 1 - part
    yield np.minimum(before + 1, size - 1), part
