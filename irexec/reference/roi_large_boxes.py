"""Pooling of boxes with many points in a bin, box by box.

The mean of a bin of a box that is not rotated is a product of three matrices: the weights that its points give to the
rows of the image, the image, and the weights that they give to its columns. It takes the time of the points of two
axes, not of their product. The maximum, and boxes that are rotated, take many points at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from irexec.reference.indexing import as_indices
from irexec.reference.limits import check_time
from irexec.reference.roi_sampling import BLOCK, BoxPooling, nearest_two, positions_of_box, rotate, sample

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
            _pool_points(result[index], box)


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


def _pool_points(result: np.ndarray, one: BoxPooling) -> None:
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
