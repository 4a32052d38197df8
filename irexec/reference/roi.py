"""Pooling of boxes (image, x1, y1, x2, y2): ROIPooling and its position-sensitive forms.

Position-sensitive pooling takes each bin of a box from channels of its own. Features are rows of all channels
that are pooled alike; boxes are pooled in blocks that fit the cache.
Names of sizes: N images, C channels, H and W of the feature map, R boxes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np

from irexec.errors import check
from irexec.reference.indexing import as_indices
from irexec.reference.limits import blocks, check_time
from irexec.reference.roi_align import BLOCK, as_rows, interpolate
from irexec.reference.special import round_half_away

# The pixels of bins along one axis: the first of each, and the one after its last, (R, bins).
Windows = tuple[np.ndarray, np.ndarray]


def boxes_before_end(rois: np.ndarray, images: int) -> np.ndarray:
    """The boxes before the first of image -1, which marks the end.

    Raises:
        OpError: the image of a box is out of range.
    """
    batch = np.trunc(rois[:, 0])
    marked = np.flatnonzero(batch == -1)
    boxes = rois[: marked[0]] if len(marked) else rois
    wrong = ~((batch >= 0) & (batch < images))[: len(boxes)]
    first = batch[: len(boxes)][wrong][:1].tolist()
    check(not wrong.any(), f"batch index {first} is out of range for a batch of {images}")
    return boxes


@np.errstate(invalid="ignore", over="ignore")
def pool_max(features: np.ndarray, rois: np.ndarray, pooled: tuple[int, int], spatial_scale: float) -> np.ndarray:
    """The maximum of the whole pixels of every bin: features (N, C, H, W) and boxes (R, 5) to (R, C, *pooled); 0 for an
    empty bin."""

    def pool(rows: np.ndarray, starts: np.ndarray, rois: np.ndarray) -> np.ndarray:
        corners = _to_int(round_half_away(rois[:, 1:] * rois.dtype.type(spatial_scale)))
        vertical = _pixel_windows(corners[:, 1], corners[:, 3], pooled[0], features.shape[2])
        horizontal = _pixel_windows(corners[:, 0], corners[:, 2], pooled[1], features.shape[3])
        return _max_of_windows(rows, starts, vertical, horizontal, features.shape[3])

    return _pool_blocks(features, rois, pooled, pool)


@np.errstate(invalid="ignore", over="ignore")
def pool_bilinear(features: np.ndarray, rois: np.ndarray, pooled: tuple[int, int]) -> np.ndarray:
    """One interpolated point of every bin, of boxes relative to the size of the image; 0 for a point outside the
    image."""

    def pool(rows: np.ndarray, starts: np.ndarray, rois: np.ndarray) -> np.ndarray:
        y = bin_positions(rois[:, 2], rois[:, 4], pooled[0], features.shape[2])[:, :, None]
        x = bin_positions(rois[:, 1], rois[:, 3], pooled[1], features.shape[3])[:, None, :]
        return _interpolate_inside(rows, starts, features.shape[2:], y, x)

    return _pool_blocks(features, rois, pooled, pool)


# Rows of features, the row where each box's image starts, and boxes (R, 5), to (R, height, width, C).
Pool = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def _pool_blocks(features: np.ndarray, rois: np.ndarray, pooled: tuple[int, int], pool: Pool) -> np.ndarray:
    """Pool boxes of which every bin takes all channels: (R, C, *pooled); ``pool`` pools a block of boxes."""
    n, channels, height, width = features.shape
    result = np.zeros((len(rois), *pooled, channels), features.dtype)
    if result.size and height * width:
        rows = as_rows(features, 1)
        for block in blocks(len(boxes_before_end(rois, n)), result[0].size, BLOCK):
            result[block] = pool(rows, _starts(rois[block], (1, 1), height * width), rois[block])
    return np.ascontiguousarray(np.moveaxis(result, -1, 1))


def _to_int(x: np.ndarray) -> np.ndarray:
    """Values as i64, limited so that sums of them do not overflow; NaN is 0."""
    return np.clip(np.where(np.isnan(x), 0, x), -(2.0**30), 2.0**30).astype(np.int64)


def _pixel_windows(first: np.ndarray, last: np.ndarray, bins: int, size: int) -> Windows:
    """Windows of boxes of whole pixels; a box has at least one pixel, and bins that share a pixel overlap."""
    length = np.maximum(last - first + 1, 1)[:, None]
    index = np.arange(bins)
    starts, stops = index * length // bins, -(-(index + 1) * length // bins)
    return np.clip(starts + first[:, None], 0, size), np.clip(stops + first[:, None], 0, size)


def _max_of_windows(
    rows: np.ndarray, starts: np.ndarray, vertical: Windows, horizontal: Windows, width: int
) -> np.ndarray:
    """The maximum of windows, one pixel of each at a time; a smaller window repeats its last pixel."""
    last_row, last_column = (np.maximum(stops - 1, 0) for _, stops in (vertical, horizontal))
    result = np.full((*_grid(vertical, horizontal), rows.shape[1]), -np.inf, rows.dtype)
    for i in range(_longest(vertical)):
        line = starts + np.minimum(vertical[0] + i, last_row)[:, :, None] * width
        for j in range(_longest(horizontal)):
            check_time()
            pixels = as_indices(line + np.minimum(horizontal[0] + j, last_column)[:, None, :])
            np.maximum(result, rows.take(pixels, axis=0), out=result)
    result[_areas(vertical, horizontal) == 0] = 0
    return result


def _mean_of_windows(
    rows: np.ndarray, starts: np.ndarray, vertical: Windows, horizontal: Windows, width: int
) -> np.ndarray:
    """The mean of windows, one pixel of each at a time; 0 for an empty one."""
    last_row, last_column = (np.maximum(stops - 1, 0) for _, stops in (vertical, horizontal))
    result = np.zeros((*_grid(vertical, horizontal), rows.shape[1]), rows.dtype)
    for i in range(_longest(vertical)):
        line = starts + np.minimum(vertical[0] + i, last_row)[:, :, None] * width
        has_row = (vertical[0] + i < vertical[1])[:, :, None]
        for j in range(_longest(horizontal)):
            check_time()
            pixels = as_indices(line + np.minimum(horizontal[0] + j, last_column)[:, None, :])
            values = rows.take(pixels, axis=0)
            values[~(has_row & (horizontal[0] + j < horizontal[1])[:, None, :])] = 0
            result += values
    return result / np.maximum(_areas(vertical, horizontal), 1).astype(rows.dtype)[..., None]


def _longest(windows: Windows) -> int:
    return int((windows[1] - windows[0]).max(initial=0))


def _grid(vertical: Windows, horizontal: Windows) -> tuple[int, int, int]:
    return (*vertical[0].shape, horizontal[0].shape[1])


def _areas(vertical: Windows, horizontal: Windows) -> np.ndarray:
    """The number of pixels of each window, (R, height, width)."""
    heights, widths = (np.maximum(stops - starts, 0) for starts, stops in (vertical, horizontal))
    return heights[:, :, None] * widths[:, None, :]


def bin_positions(start: np.ndarray, stop: np.ndarray, bins: int, size: int) -> np.ndarray:
    """One position for each bin, in pixels, from ``start`` to ``stop`` (relative to the size), (R, bins); the middle
    for a single bin."""
    number = start.dtype.type
    last = number(size - 1)
    if bins == 1:
        return (number(0.5) * (start + stop) * last)[:, None]
    distance = (stop - start) * last / number(bins - 1)
    positions = np.arange(bins, dtype=start.dtype) * distance[:, None] + (start * last)[:, None]
    # Rounding must not move the last one outside the image.
    positions[:, -1] = stop * last
    return positions


def _interpolate_inside(
    rows: np.ndarray, starts: np.ndarray, sizes: tuple[int, ...], y: np.ndarray, x: np.ndarray
) -> np.ndarray:
    """The features at points; 0 outside the outermost pixels and for NaN."""
    inside = (y >= 0) & (y <= sizes[0] - 1) & (x >= 0) & (x <= sizes[1] - 1)
    values = interpolate(rows, starts, sizes, y, x)
    values[~inside] = 0
    return values


@np.errstate(invalid="ignore", over="ignore")
def pool_sensitive(features: np.ndarray, rois: np.ndarray, outputs: int, bins: int, spatial_scale: float) -> np.ndarray:
    """The mean of every bin from channels of its own: (N, outputs * bins * bins, H, W) and (R, 5) to (R, outputs, bins,
    bins)."""
    n, _, height, width = features.shape
    rows = as_rows(features.reshape(n, outputs, bins, bins, height, width), 1)
    result = np.zeros((len(rois), bins, bins, outputs), features.dtype)
    for block in blocks(len(boxes_before_end(rois, n)) if height * width else 0, bins * bins * outputs, BLOCK):
        first = round_half_away(rois[block, 1:3]) * rois.dtype.type(spatial_scale)
        last = round_half_away(rois[block, 3:] + 1) * rois.dtype.type(spatial_scale)
        vertical = _touched_windows(first[:, 1], last[:, 1], bins, height)
        horizontal = _touched_windows(first[:, 0], last[:, 0], bins, width)
        starts = _starts(rois[block], (bins, bins), height * width)
        result[block] = _mean_of_windows(rows, starts, vertical, horizontal, width)
    return np.ascontiguousarray(np.moveaxis(result, -1, 1))


def _starts(rois: np.ndarray, bins: tuple[int, ...], pixels: int) -> np.ndarray:
    """The row of features where the pixels of each bin of each box start, (R, *bins)."""
    count = math.prod(bins)
    images = rois[:, 0].astype(np.int64).reshape(-1, *(1,) * len(bins))
    return (images * count + np.arange(count).reshape(bins)) * pixels


def _touched_windows(start: np.ndarray, stop: np.ndarray, bins: int, size: int) -> Windows:
    """Windows of every pixel that a bin touches."""
    number = start.dtype.type
    length = np.maximum(stop - start, number(0.1)) / number(bins)
    edges = np.arange(bins + 1, dtype=start.dtype) * length[:, None] + start[:, None]
    return np.clip(_to_int(np.floor(edges[:, :-1])), 0, size), np.clip(_to_int(np.ceil(edges[:, 1:])), 0, size)


@np.errstate(invalid="ignore", over="ignore")
def pool_sensitive_bilinear(
    features: np.ndarray, rois: np.ndarray, outputs: int, pooled: int, parts: tuple[int, int], spatial_scale: float
) -> np.ndarray:
    """The mean over the parts of a box, each pooled by interpolated points from channels of its own.

    (N, parts * outputs, H, W) and boxes (R, 5), relative to the size of the image, to (R, outputs, pooled, pooled).
    """
    n, _, height, width = features.shape
    lines, columns = parts
    rows = as_rows(features.reshape(n, lines * columns, outputs, height, width), 2)
    result = np.zeros((len(rois), pooled, pooled, outputs), features.dtype)
    for block in blocks(len(boxes_before_end(rois, n)) if height * width else 0, pooled * pooled * outputs, BLOCK):
        images = rois[block, 0].astype(np.int64)[:, None, None] * (lines * columns)
        left, top, right, bottom = (rois[block, 1:] * rois.dtype.type(spatial_scale)).T
        for part in range(lines * columns):
            check_time()
            y = bin_positions(*part_of(top, bottom, part // columns, lines), pooled, height)[:, :, None]
            x = bin_positions(*part_of(left, right, part % columns, columns), pooled, width)[:, None, :]
            result[block] += _interpolate_inside(rows, (images + part) * (height * width), (height, width), y, x)
    return np.ascontiguousarray(np.moveaxis(result, -1, 1)) / features.dtype.type(lines * columns)


def part_of(start: np.ndarray, stop: np.ndarray, part: int, parts: int) -> tuple[np.ndarray, np.ndarray]:
    """The borders of one of equal parts of an interval."""
    number = start.dtype.type
    length = (stop - start) / number(parts)
    return start + number(part) * length, start + number(part + 1) * length


@np.errstate(invalid="ignore", over="ignore")
def pool_deformable(
    features: np.ndarray,
    rois: np.ndarray,
    offsets: np.ndarray | None,
    outputs: int,
    bins: int,
    parts: tuple[int, int],
    spatial_scale: float,
) -> np.ndarray:
    """The mean over interpolated points of every bin, from channels of its own, of bins moved by offsets relative to
    the box.

    (N, outputs * bins * bins, H, W) and (R, 5) to (R, outputs, bins, bins). Points more than half a pixel
    outside the image do not count.

    Args:
        offsets: (R, classes, 2, bins, bins), x before y; ``outputs`` is a multiple of the number of classes.
        parts: the number of points of a bin along y and x.
    """
    n, _, height, width = features.shape
    classes = 1 if offsets is None else offsets.shape[1]
    each = outputs // classes
    rows = as_rows(features.reshape(n, classes, each, bins, bins, height, width), 2)
    result = np.zeros((len(rois), classes, bins, bins, each), features.dtype)
    for block in blocks(len(boxes_before_end(rois, n)) if height * width else 0, outputs * bins * bins, BLOCK):
        moves = np.zeros((1, 1, 2, 1, 1), rois.dtype) if offsets is None else offsets[block].astype(rois.dtype)
        left, top, right, bottom = rois[block, 1:].T
        index = np.arange(bins)
        y, step_y = moved_bins(top, bottom, index[:, None], spatial_scale, moves[:, :, 1], bins * parts[0])
        x, step_x = moved_bins(left, right, index, spatial_scale, moves[:, :, 0], bins * parts[1])
        points = ((y + i * step_y, x + j * step_x) for i, j in np.ndindex(*parts))
        starts = _starts(rois[block], (classes, bins, bins), height * width)
        result[block] = _mean_of_points(rows, starts, (height, width), points)
    return np.ascontiguousarray(np.moveaxis(result, -1, 2)).reshape(len(rois), outputs, bins, bins)


def moved_bins(
    start: np.ndarray, stop: np.ndarray, indices: np.ndarray, spatial_scale: float, moves: np.ndarray, points: int
) -> tuple[np.ndarray, np.ndarray]:
    """Where bins start along one axis (R, classes, bins, bins), and the distance of their points, both shaped to
    broadcast."""
    number = start.dtype.type
    first = round_half_away(start) * number(spatial_scale) - number(0.5)
    last = (round_half_away(stop) + number(1)) * number(spatial_scale) - number(0.5)
    length = np.maximum(last - first, number(0.1))[:, None, None, None]
    bin_length = length / number(indices.size)
    starts = indices.astype(start.dtype) * bin_length + first[:, None, None, None] + moves * length
    return starts, bin_length / number(points // indices.size)


def _mean_of_points(
    rows: np.ndarray, starts: np.ndarray, sizes: tuple[int, int], points: Iterable[tuple[np.ndarray, np.ndarray]]
) -> np.ndarray:
    """The mean of the features at points; those more than half a pixel outside the image do not count."""
    total = np.zeros((*starts.shape, rows.shape[1]), rows.dtype)
    count = np.zeros(starts.shape, rows.dtype)
    for y, x in points:
        check_time()
        inside = (y >= -0.5) & (y <= sizes[0] - 0.5) & (x >= -0.5) & (x <= sizes[1] - 0.5)
        inside = np.broadcast_to(inside, starts.shape)
        values = interpolate(rows, starts, sizes, y, x)
        values[~inside] = 0
        total += values
        count += inside
    return total / np.maximum(count, 1)[..., None]
