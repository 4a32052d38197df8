"""Pooling of boxes (image, x1, y1, x2, y2), plain and position-sensitive.

Position-sensitive pooling takes each bin of a box from channels of its own. Pixels are taken as rows of
all channels that are pooled alike; boxes are pooled some at a time, so that they stay in the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from irexec.errors import check
from irexec.reference.roi_points import between, blocks
from irexec.reference.special import round_half_away

# Windows of bins along one axis: the first pixel of each, and the one behind its last, (R, bins).
Windows = tuple[np.ndarray, np.ndarray]


def real_boxes(rois: np.ndarray, images: int) -> np.ndarray:
    """The boxes before the first of image -1, which says that no more follow.

    Raises:
        OpError: a box is of an image that is not there.
    """
    batch = np.trunc(rois[:, 0])
    ends = np.flatnonzero(batch == -1)
    real = rois[: ends[0]] if len(ends) else rois
    wrong = ~((batch >= 0) & (batch < images))[: len(real)]
    check(not wrong.any(), f"batch index {batch[: len(real)][wrong][:1].tolist()} is out of range for a batch of {images}")
    return real


@np.errstate(invalid="ignore", over="ignore")
def pool_greatest(features: np.ndarray, rois: np.ndarray, pooled: tuple[int, int], spatial_scale: float) -> np.ndarray:
    """The greatest number of every bin of whole pixels: (N, C, H, W) at (R, 5) as (R, C, pooled). An empty bin is 0."""

    def some(rows: np.ndarray, starts: np.ndarray, rois: np.ndarray) -> np.ndarray:
        corners = _whole(round_half_away(rois[:, 1:] * rois.dtype.type(spatial_scale)))
        down = _whole_windows(corners[:, 1], corners[:, 3], pooled[0], features.shape[2])
        across = _whole_windows(corners[:, 0], corners[:, 2], pooled[1], features.shape[3])
        return _greatest(rows, starts, down, across, features.shape[3])

    return _by_blocks(features, rois, pooled, some)


@np.errstate(invalid="ignore", over="ignore")
def pool_between(features: np.ndarray, rois: np.ndarray, pooled: tuple[int, int]) -> np.ndarray:
    """One point of every bin, between pixels linearly, of boxes in parts of the image; 0 for a point beyond the border."""

    def some(rows: np.ndarray, starts: np.ndarray, rois: np.ndarray) -> np.ndarray:
        y = _spread(rois[:, 2], rois[:, 4], pooled[0], features.shape[2])[:, :, None]
        x = _spread(rois[:, 1], rois[:, 3], pooled[1], features.shape[3])[:, None, :]
        return _inside(rows, starts, features.shape[2:], y, x)

    return _by_blocks(features, rois, pooled, some)


Pool = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def _by_blocks(features: np.ndarray, rois: np.ndarray, pooled: tuple[int, int], some: Pool) -> np.ndarray:
    """Pool boxes, which all take the same channels everywhere; ``some`` gives (R, height, width, C) of R of them."""
    n, channels, height, width = features.shape
    result = np.zeros((len(rois), *pooled, channels), features.dtype)
    if result.size and height * width:
        rows = np.ascontiguousarray(np.moveaxis(features, 1, -1)).reshape(-1, channels)
        for part in blocks(len(real_boxes(rois, n)), result[0].size):
            starts = rois[part, 0].astype(np.int64)[:, None, None] * (height * width)
            result[part] = some(rows, starts, rois[part])
    return np.ascontiguousarray(np.moveaxis(result, -1, 1))


def _whole(x: np.ndarray) -> np.ndarray:
    """Whole numbers as i64, cut to what leaves room to add them; NaN is 0."""
    return np.clip(np.where(np.isnan(x), 0, x), -(2.0**30), 2.0**30).astype(np.int64)


def _whole_windows(first: np.ndarray, last: np.ndarray, bins: int, size: int) -> Windows:
    """Windows of boxes of whole pixels; a box is one pixel at least, and bins that share a pixel overlap."""
    length = np.maximum(last - first + 1, 1)[:, None]
    place = np.arange(bins)
    begins, ends = place * length // bins, -(-(place + 1) * length // bins)
    return np.clip(begins + first[:, None], 0, size), np.clip(ends + first[:, None], 0, size)


def _greatest(rows: np.ndarray, starts: np.ndarray, down: Windows, across: Windows, width: int) -> np.ndarray:
    """The greatest of windows, one pixel of each at a time; a smaller window repeats its last."""
    lasts = [np.maximum(ends - 1, 0) for _, ends in (down, across)]
    tall, wide = (int((ends - begins).max(initial=0)) for begins, ends in (down, across))
    result = np.full((*_grid(down, across), rows.shape[1]), -np.inf, rows.dtype)
    for i in range(tall):
        line = starts + np.minimum(down[0] + i, lasts[0])[:, :, None] * width
        for j in range(wide):
            np.maximum(result, rows.take(line + np.minimum(across[0] + j, lasts[1])[:, None, :], axis=0), out=result)
    result[_areas(down, across) == 0] = 0
    return result


def _mean(rows: np.ndarray, starts: np.ndarray, down: Windows, across: Windows, width: int) -> np.ndarray:
    """The means of windows, one pixel of each at a time; of none 0."""
    tall, wide = (int((ends - begins).max(initial=0)) for begins, ends in (down, across))
    result = np.zeros((*_grid(down, across), rows.shape[1]), rows.dtype)
    for i in range(tall):
        line = starts + np.minimum(down[0] + i, np.maximum(down[1] - 1, 0))[:, :, None] * width
        has_line = (down[0] + i < down[1])[:, :, None]
        for j in range(wide):
            taken = rows.take(line + np.minimum(across[0] + j, np.maximum(across[1] - 1, 0))[:, None, :], axis=0)
            taken[~(has_line & (across[0] + j < across[1])[:, None, :])] = 0
            result += taken
    return result / np.maximum(_areas(down, across), 1).astype(rows.dtype)[..., None]


def _grid(down: Windows, across: Windows) -> tuple[int, int, int]:
    return (*down[0].shape, across[0].shape[1])


def _areas(down: Windows, across: Windows) -> np.ndarray:
    """How many pixels each window has, (R, height, width)."""
    tall, wide = (np.maximum(ends - begins, 0) for begins, ends in (down, across))
    return tall[:, :, None] * wide[:, None, :]


def _spread(begin: np.ndarray, end: np.ndarray, bins: int, size: int) -> np.ndarray:
    """As many points as bins from the begin to the end, given in parts of the image, (R, bins); a single one in the middle."""
    number = begin.dtype.type
    last = number(size - 1)
    if bins == 1:
        return (number(0.5) * (begin + end) * last)[:, None]
    step = (end - begin) * last / number(bins - 1)
    points = np.arange(bins, dtype=begin.dtype) * step[:, None] + (begin * last)[:, None]
    # Rounding must not carry the last one beyond the border.
    points[:, -1] = end * last
    return points


def _inside(rows: np.ndarray, starts: np.ndarray, sizes: tuple[int, ...], y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """What lies at points, 0 beyond the outermost pixels and for NaN."""
    inside = (y >= 0) & (y <= sizes[0] - 1) & (x >= 0) & (x <= sizes[1] - 1)
    values = between(rows, starts, sizes, y, x)
    values[~inside] = 0
    return values


@np.errstate(invalid="ignore", over="ignore")
def pool_sensitive_mean(features: np.ndarray, rois: np.ndarray, outputs: int, bins: int, spatial_scale: float) -> np.ndarray:
    """The mean of every bin from channels of its own: (N, outputs*bins*bins, H, W) at (R, 5) as (R, outputs, bins, bins)."""
    n, _, height, width = features.shape
    rows = _rows_by_bin(features, outputs, bins)
    result = np.zeros((len(rois), bins, bins, outputs), features.dtype)
    for part in blocks(len(real_boxes(rois, n)) if height * width else 0, bins * bins * outputs):
        begins = round_half_away(rois[part, 1:3]) * rois.dtype.type(spatial_scale)
        ends = round_half_away(rois[part, 3:] + 1) * rois.dtype.type(spatial_scale)
        down = _cut_windows(begins[:, 1], ends[:, 1], bins, height)
        across = _cut_windows(begins[:, 0], ends[:, 0], bins, width)
        result[part] = _mean(rows, _starts_by_bin(rois[part], bins, height * width), down, across, width)
    return np.ascontiguousarray(np.moveaxis(result, -1, 1))


def _rows_by_bin(features: np.ndarray, outputs: int, bins: int) -> np.ndarray:
    """Pixels of (N, outputs*bins*bins, H, W) as rows of the outputs: by image, line and column of the bin, line, column."""
    n, _, height, width = features.shape
    return np.ascontiguousarray(np.moveaxis(features.reshape(n, outputs, bins, bins, height, width), 1, -1)).reshape(-1, outputs)


def _starts_by_bin(rois: np.ndarray, bins: int, pixels: int) -> np.ndarray:
    """Where among the rows the pixels of each bin begin, (R, bins, bins)."""
    places = np.arange(bins * bins).reshape(bins, bins)
    return (rois[:, 0].astype(np.int64)[:, None, None] * (bins * bins) + places) * pixels


def _cut_windows(begin: np.ndarray, end: np.ndarray, bins: int, size: int) -> Windows:
    """Windows of every pixel that a bin touches."""
    number = begin.dtype.type
    step = np.maximum(end - begin, number(0.1)) / number(bins)
    edges = np.arange(bins + 1, dtype=begin.dtype) * step[:, None] + begin[:, None]
    return np.clip(_whole(np.floor(edges[:, :-1])), 0, size), np.clip(_whole(np.ceil(edges[:, 1:])), 0, size)


@np.errstate(invalid="ignore", over="ignore")
def pool_sensitive_between(
    features: np.ndarray, rois: np.ndarray, outputs: int, pooled: int, parts: tuple[int, int], spatial_scale: float
) -> np.ndarray:
    """The mean over the parts of a box, each pooled by points between pixels from channels of its own.

    (N, parts*outputs, H, W) at (R, 5), in parts of the image, as (R, outputs, pooled, pooled).
    """
    n, _, height, width = features.shape
    lines, columns = parts
    rows = np.ascontiguousarray(np.moveaxis(features.reshape(n, lines * columns, outputs, height, width), 2, -1)).reshape(-1, outputs)
    result = np.zeros((len(rois), pooled, pooled, outputs), features.dtype)
    for block in blocks(len(real_boxes(rois, n)) if height * width else 0, pooled * pooled * outputs):
        images = rois[block, 0].astype(np.int64)[:, None, None] * (lines * columns)
        left, top, right, bottom = (rois[block, 1:] * rois.dtype.type(spatial_scale)).T
        for part in range(lines * columns):
            y = _spread(*_part(top, bottom, part // columns, lines), pooled, height)[:, :, None]
            x = _spread(*_part(left, right, part % columns, columns), pooled, width)[:, None, :]
            result[block] += _inside(rows, (images + part) * (height * width), (height, width), y, x)
    return np.ascontiguousarray(np.moveaxis(result, -1, 1)) / features.dtype.type(lines * columns)


def _part(begin: np.ndarray, end: np.ndarray, part: int, parts: int) -> tuple[np.ndarray, np.ndarray]:
    number = begin.dtype.type
    step = (end - begin) / number(parts)
    return begin + number(part) * step, begin + number(part + 1) * step


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
    """The mean over points of every bin, from channels of its own, of bins moved by offsets in parts of the box.

    (N, outputs*bins*bins, H, W) at (R, 5) as (R, outputs, bins, bins). Points further than half a pixel
    beyond the border do not count.

    Args:
        offsets: (R, classes, 2, bins, bins), x before y; the outputs divide into the classes.
        parts: points down and across a bin.
    """
    n, _, height, width = features.shape
    classes = 1 if offsets is None else offsets.shape[1]
    each = outputs // classes
    rows = np.ascontiguousarray(np.moveaxis(features.reshape(n, classes, each, bins, bins, height, width), 2, -1)).reshape(-1, each)
    result = np.zeros((len(rois), classes, bins, bins, each), features.dtype)
    for block in blocks(len(real_boxes(rois, n)) if height * width else 0, outputs * bins * bins):
        moves = np.zeros((1, 1, 2, 1, 1), rois.dtype) if offsets is None else offsets[block].astype(rois.dtype)
        y, down = _moved(rois[block, 2], rois[block, 4], np.arange(bins)[:, None], spatial_scale, moves[:, :, 1], bins * parts[0])
        x, across = _moved(rois[block, 1], rois[block, 3], np.arange(bins), spatial_scale, moves[:, :, 0], bins * parts[1])
        points = ((y + i * down, x + j * across) for i, j in np.ndindex(*parts))
        result[block] = _mean_of_points(rows, _starts_by_class(rois[block], classes, bins, height * width), (height, width), points)
    return np.ascontiguousarray(np.moveaxis(result, -1, 2)).reshape(len(rois), outputs, bins, bins)


def _moved(
    begin: np.ndarray, end: np.ndarray, places: np.ndarray, spatial_scale: float, moves: np.ndarray, points: int
) -> tuple[np.ndarray, np.ndarray]:
    """Where bins begin along one axis, (R, classes, bins, bins), and how far apart their points are, all shaped to broadcast."""
    number = begin.dtype.type
    first = round_half_away(begin) * number(spatial_scale) - number(0.5)
    last = (round_half_away(end) + number(1)) * number(spatial_scale) - number(0.5)
    length = np.maximum(last - first, number(0.1))[:, None, None, None]
    step = length / number(places.size)
    begins = places.astype(begin.dtype) * step + first[:, None, None, None] + moves * length
    return begins, step / number(points // places.size)


def _starts_by_class(rois: np.ndarray, classes: int, bins: int, pixels: int) -> np.ndarray:
    """Where among the rows the pixels of each bin begin, (R, classes, bins, bins)."""
    places = np.arange(classes * bins * bins).reshape(classes, bins, bins)
    return (rois[:, 0].astype(np.int64)[:, None, None, None] * places.size + places) * pixels


def _mean_of_points(
    rows: np.ndarray, starts: np.ndarray, sizes: tuple[int, int], points: Iterable[tuple[np.ndarray, np.ndarray]]
) -> np.ndarray:
    """The mean over points of what lies there; those more than half a pixel beyond the border do not count."""
    total = np.zeros((*starts.shape, rows.shape[1]), rows.dtype)
    number = np.zeros(starts.shape, rows.dtype)
    for y, x in points:
        inside = (y >= -0.5) & (y <= sizes[0] - 0.5) & (x >= -0.5) & (x <= sizes[1] - 0.5)
        inside = np.broadcast_to(inside, starts.shape)
        values = between(rows, starts, sizes, y, x)
        values[~inside] = 0
        total += values
        number += inside
    return total / np.maximum(number, 1)[..., None]
