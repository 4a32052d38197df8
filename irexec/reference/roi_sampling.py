"""Boxes on feature maps, and values at points between pixels by bilinear interpolation.

Features are rows of all channels of a pixel, so that a point costs one copy for each of the four pixels around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from irexec.reference.indexing import as_indices

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
    rotation: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None = None

    def take(self, indices: np.ndarray | slice) -> Boxes:
        """The boxes of those indices."""
        rotation = (
            None
            if self.rotation is None
            else (
                self.rotation[0][indices],
                self.rotation[1][indices],
                self.rotation[2][indices],
                self.rotation[3][indices],
            )
        )
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
