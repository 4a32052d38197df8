"""Sampling of images at points that a grid names, between pixels nearest, linear or cubic.

Pixels are taken as rows of all channels, so that a point costs one copy for each pixel around it.
"""

from __future__ import annotations

import numpy as np

# For each axis the pixels around every point, as whole numbers in the points' type, with what each counts.
Taps = list[tuple[np.ndarray, np.ndarray | None]]

_CUBIC = -0.75


def sample_grid(data: np.ndarray, grid: np.ndarray, align_corners: bool, mode: str, padding_mode: str) -> np.ndarray:
    """(N, C, H, W) at points (N, h, w, 2), each x and y of -1 to 1, as (N, C, h, w) in the type of what was computed.

    Args:
        grid: f32 or f64, in which positions and weights are computed.
        align_corners: -1 and 1 are the centres of the outermost pixels, not their outer edges.
        mode: nearest (ties go to the even pixel), bilinear, bicubic.
        padding_mode: what lies beyond the border: zeros, border, reflection.
    """
    n, channels, *sizes = data.shape
    if 0 in sizes:
        return np.zeros((n, channels, *grid.shape[1:3]), data.dtype)
    rows = np.moveaxis(data, 1, -1).reshape(-1, channels)
    with np.errstate(invalid="ignore", over="ignore"):
        points = [_position(grid[..., axis], size, align_corners) for axis, size in ((1, sizes[0]), (0, sizes[1]))]
    down, across = (_taps(point, mode) for point in points)
    first = np.arange(n).reshape(n, 1, 1) * sizes[0]
    total = None
    for y, weight in down:
        line, there = _pixel(y, sizes[0], align_corners, padding_mode)
        along = _across(rows, (first + line) * sizes[1], there, across, sizes[1], align_corners, padding_mode)
        part = _weighted(along, weight)
        total = part if total is None else total + part
    return np.moveaxis(np.asarray(total), -1, 1)


def _across(
    rows: np.ndarray, starts: np.ndarray, there: np.ndarray, across: Taps, size: int, align_corners: bool, padding_mode: str
) -> np.ndarray:
    """What the taps along one line give, (N, h, w, C); ``starts`` is where each point's line begins."""
    total = None
    for x, weight in across:
        column, inside = _pixel(x, size, align_corners, padding_mode)
        taken = rows.take(starts + column, axis=0)
        counts = inside & there
        if not counts.all():
            taken[~counts] = 0
        part = _weighted(taken, weight)
        total = part if total is None else total + part
    return np.asarray(total)


def _weighted(rows: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    if weight is None:
        return rows
    with np.errstate(invalid="ignore"):
        return rows.astype(np.result_type(weight, rows) if rows.dtype.kind == "f" else weight.dtype, copy=False) * weight[..., None]


def _position(points: np.ndarray, size: int, align_corners: bool) -> np.ndarray:
    """-1 to 1 as a position among the pixels."""
    number = points.dtype.type
    if align_corners:
        return (points + number(1)) * number(size - 1) / number(2)
    return ((points + number(1)) * number(size) - number(1)) / number(2)


def _taps(position: np.ndarray, mode: str) -> Taps:
    if mode == "nearest":
        return [(np.rint(position), None)]
    floor = np.floor(position)
    with np.errstate(invalid="ignore"):
        part = position - floor
    if mode == "bilinear":
        return [(floor, 1 - part), (floor + 1, part)]
    return [(floor + step, weight) for step, weight in zip((-1, 0, 1, 2), _cubic(part), strict=True)]


def _cubic(r: np.ndarray) -> list[np.ndarray]:
    """What the four pixels around count, by how far the point is behind the second."""
    a = _CUBIC
    outer = [((a * x - 5 * a) * x + 8 * a) * x - 4 * a for x in (r + 1, 2 - r)]
    inner = [((a + 2) * x - (a + 3)) * x * x + 1 for x in (r, 1 - r)]
    return [outer[0], inner[0], inner[1], outer[1]]


def _pixel(whole: np.ndarray, size: int, align_corners: bool, padding_mode: str) -> tuple[np.ndarray, np.ndarray]:
    """Which pixel a whole number means (i64), and whether it counts. NaN and what reflects for ever mean the first."""
    last = whole.dtype.type(size - 1)
    inside = np.ones(whole.shape, np.bool_)
    if padding_mode == "zeros":
        inside = (whole >= 0) & (whole <= last)
    elif padding_mode == "reflection":
        whole = _reflected(whole, size, align_corners)
    return np.clip(np.where(np.isnan(whole), 0, whole), 0, last).astype(np.int64), inside


def _reflected(whole: np.ndarray, size: int, align_corners: bool) -> np.ndarray:
    """Reflected at the centres of the outermost pixels, or at their outer edges, as often as it takes."""
    period = whole.dtype.type(max(2 * (size - 1), 1) if align_corners else 2 * size)
    with np.errstate(invalid="ignore"):
        rest = np.mod(whole, period)
    return np.minimum(rest, period - rest) if align_corners else np.minimum(rest, period - 1 - rest)
