"""Sampling of images at the points of a grid, with nearest, linear or cubic interpolation.

Pixels are taken as rows of all channels, so that a point costs one copy for each pixel around it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from irexec.reference.indexing import as_indices

# Along one axis, for each tap: the pixel beside every point (i64), whether it counts, and its weight (None: 1).
PointTaps = list[tuple[np.ndarray, np.ndarray, np.ndarray | None]]

_CUBIC = -0.75

# About how many values are sampled at once, so that they stay in the cache.
_BLOCK = 1 << 16


@dataclass(frozen=True)
class SampleParams:
    """How to sample.

    Attributes:
        mode: nearest (ties go to the even pixel), bilinear, bicubic.
        padding_mode: the values beyond the border: zeros, border, reflection.
        align_corners: -1 and 1 are the centres of the outermost pixels, not their outer edges.
    """

    mode: str
    padding_mode: str
    align_corners: bool


@np.errstate(invalid="ignore", over="ignore")
def sample_grid(data: np.ndarray, grid: np.ndarray, params: SampleParams) -> np.ndarray:
    """(N, C, H, W) at points (N, h, w, 2), each x and y of -1 to 1, as (N, C, h, w).

    Args:
        grid: f32 or f64, in which positions and weights are computed. The result has the type of the data where
            it is only copied or is of a floating-point type at least as wide as the grid's, else the grid's.
    """
    n, channels, height, width = data.shape
    dtype = (
        data.dtype if params.mode == "nearest" else np.result_type(data, grid) if data.dtype.kind == "f" else grid.dtype
    )
    result = np.zeros((*grid.shape[:3], channels), dtype)
    if data.size and result.size:
        rows = _rows(data, dtype)
        flat = result.reshape(-1, channels)
        points = grid.reshape(-1, 2)
        starts = np.repeat(np.arange(n) * (height * width), len(points) // n)
        step = max(_BLOCK // channels, 1)
        for begin in range(0, len(points), step):
            part = slice(begin, begin + step)
            flat[part] = _sampled(rows, starts[part], (height, width), points[part], params)
    return np.moveaxis(result, -1, 1)


def _rows(data: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The pixels of all images as rows of their channels, and a last row of zeros for what does not count."""
    n, channels, height, width = data.shape
    rows = np.zeros((n * height * width + 1, channels), dtype)
    rows[:-1].reshape(n, height, width, channels)[...] = np.moveaxis(data, 1, -1)
    return rows


def _sampled(
    rows: np.ndarray, starts: np.ndarray, sizes: tuple[int, int], points: np.ndarray, params: SampleParams
) -> np.ndarray:
    """The values (P, C) at points (P, 2), whose images begin at ``starts`` among the rows."""
    down, across = (
        _taps(position_of(points[:, 1 - axis], size, params.align_corners), size, params)
        for axis, size in enumerate(sizes)
    )
    parts = []
    for line, has_line, weight in down:
        begins = starts + line * sizes[1]
        pixels = [
            (as_indices(np.where(has_line & there, begins + column, len(rows) - 1)), counts)
            for column, there, counts in across
        ]
        parts.append(_weighted(_sum([_weighted(rows.take(pixel, axis=0), counts) for pixel, counts in pixels]), weight))
    return _sum(parts)


def _weighted(rows: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    return rows if weight is None else np.multiply(rows, weight[:, None], out=rows)


def _sum(parts: list[np.ndarray]) -> np.ndarray:
    total = parts[0]
    for part in parts[1:]:
        total += part
    return total


def position_of(points: np.ndarray, size: int, align_corners: bool) -> np.ndarray:
    """-1 to 1 as a position among the pixels."""
    scalar = points.dtype.type
    if align_corners:
        return (points + scalar(1)) * scalar(size - 1) / scalar(2)
    return ((points + scalar(1)) * scalar(size) - scalar(1)) / scalar(2)


def _taps(position: np.ndarray, size: int, params: SampleParams) -> PointTaps:
    if params.mode == "nearest":
        return [(*pixel_of(np.rint(position), size, params), None)]
    floor = np.floor(position)
    part = position - floor
    weights = [1 - part, part] if params.mode == "bilinear" else _cubic(part)
    return [
        (*pixel_of(floor + step, size, params), weight) for step, weight in enumerate(weights, 1 - len(weights) // 2)
    ]


def _cubic(r: np.ndarray) -> list[np.ndarray]:
    """The weights of the four pixels around, by the distance of the point from the second."""
    a = _CUBIC
    first, last = (((a * x - 5 * a) * x + 8 * a) * x - 4 * a for x in (r + 1, 2 - r))
    second, third = (((a + 2) * x - (a + 3)) * x * x + 1 for x in (r, 1 - r))
    return [first, second, third, last]


def pixel_of(whole: np.ndarray, size: int, params: SampleParams) -> tuple[np.ndarray, np.ndarray]:
    """The pixel of an integral position, and whether it counts. NaN and infinity under reflection give the first."""
    last = whole.dtype.type(size - 1)
    inside = np.ones(whole.shape, np.bool_)
    if params.padding_mode == "zeros":
        inside = (whole >= 0) & (whole <= last)
    elif params.padding_mode == "reflection":
        whole = _reflected(whole, size, params.align_corners)
    return np.minimum(np.fmax(whole, 0), last).astype(np.int64), inside


def _reflected(whole: np.ndarray, size: int, align_corners: bool) -> np.ndarray:
    """Reflected at the centres of the outermost pixels, or at their outer edges, as often as it takes."""
    period = whole.dtype.type(max(2 * (size - 1), 1) if align_corners else 2 * size)
    rest = np.mod(whole, period)
    return np.minimum(rest, period - rest) if align_corners else np.minimum(rest, period - 1 - rest)
