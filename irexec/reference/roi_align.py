"""Pooling of boxes that are divided into bins, each bin sampled at regular points by bilinear interpolation.

Bins of few points are pooled for all boxes at once, one point after the other. How many points a bin has may follow
from the size of its box: bins of many points are pooled box by box, by irexec.reference.roi_large_boxes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from irexec.errors import check
from irexec.reference.limits import check_time
from irexec.reference.roi_large_boxes import are_separable, pool_large_boxes
from irexec.reference.roi_sampling import BLOCK, Boxes, BoxPooling, positions, rotate, sample

# The maximum number of points of one bin: no box of a feature map has more, only a corrupt value.
MAX_POINTS = 1 << 20

# Bins of as many points are pooled for all boxes at once; with many boxes, of so many more for each of them, up to a
# maximum.
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
                rows=np.ascontiguousarray(np.moveaxis(features, 1, -1)).reshape(-1, channels),
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
    check(
        values <= _MAX_VALUES,
        f"the bins of the boxes have {points} points, {values} values, expected {_MAX_VALUES} at most",
    )
    for part in blocks(len(result), result[0].size):
        check_time()
        block = pooling.take(part)
        passes = int(block.rows_per_bin.max()) * int(block.columns_per_bin.max())
        if passes <= max(_FEW_POINTS, min(_FEW_PER_BOX * len(result[part]), _MAX_PASSES)):
            _pool_block(result[part], block)
        else:
            pool_large_boxes(result[part], block, separable[part])


def blocks(count: int, each: int) -> Iterator[slice]:
    """Slices of ``count`` boxes of ``each`` values, each with as many boxes as fit the cache."""
    step = max(BLOCK // max(each, 1), 1)
    for begin in range(0, count, step):
        yield slice(begin, min(begin + step, count))


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
    check(
        bool(np.isfinite(counts).all()),
        "the size of a box is not finite, so that the number of points of its bins is not known",
    )
    return np.clip(counts, 0, MAX_POINTS + 1).astype(np.int64)
