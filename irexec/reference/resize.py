"""Interpolation: tables of positions and weights, images resized and sampled at the points of a grid.

Coordinates are float32, as OpenVINO's reference has them: where a coordinate falls on a border, its
rounding decides. Sources: Interpolate-4 and -11, openvino ``reference/interpolate.cpp``.

Sources: Interpolate-4 and -11, openvino ``reference/interpolate.cpp``, and its CPU plugin for 32- and 64-bit integers.

Pixels are taken as rows of all channels, so that a point costs one copy for each pixel around it.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from irexec.errors import check
from irexec.reference.indexing import as_indices
from irexec.reference.limits import check_time
from irexec.reference.special import round_half_away

F = np.float32

# Positions per tap up to which one product with a matrix that is mostly zeros is faster than tap by tap.
_DENSE = 64


@dataclass(frozen=True, eq=False)
class Taps:
    """Positions of the data that contribute to each position of the result, and their weights.

    Attributes:
        index: (out, taps), all within the data.
        weight: (out, taps); None where the value is copied (one tap).
        size: the size of the data along the axis.
    """

    index: np.ndarray
    weight: np.ndarray | None
    size: int

    @functools.cached_property
    def normalized(self) -> Taps:
        """The weights of each position divided by their sum; where that is 0, they are 0."""
        if self.weight is None:
            return self
        total = self.weight.sum(1, keepdims=True)
        return Taps(self.index, self.weight / np.where(total == 0, total.dtype.type(1), total), self.size)

    @functools.cached_property
    def matrix(self) -> np.ndarray:
        """The weights as a matrix (in, out)."""
        matrix = np.zeros((self.size, len(self.index)), F if self.weight is None else self.weight.dtype)
        np.add.at(matrix, (self.index, np.arange(len(self.index))[:, None]), 1 if self.weight is None else self.weight)
        return matrix


# OpenVINO adds this to a scale before it multiplies a size by the scale and rounds down.
_SCALE_EPSILON = F(1e-6)


def scaled_size(size: int, scale: float) -> int:
    """The size times the scale in float32, rounded down, after an addition that undoes the rounding of the scale."""
    if scale == 1 or size >= 1 << 53:
        return size if scale == 1 else math.floor(size * scale)
    product = F(size) * (F(scale) + _SCALE_EPSILON)
    check(bool(np.isfinite(product)), f"scale {scale:g} of an axis of {size} gives no size")
    return int(product)


def coordinates(mode: str, size: int, out: int, scale: float) -> np.ndarray:
    """The coordinate in the data of each position of the result, by the coordinate transformation mode."""
    x, s = np.arange(out, dtype=F), F(scale)
    if s == 1 or size == out:
        return x
    if mode == "asymmetric":
        return x / s
    if mode == "tf_half_pixel_for_nn":
        return (x + F(0.5)) / s
    if mode == "align_corners":
        return np.zeros(out, F) if out == 1 else x * F(size - 1) / F(out - 1)
    if mode == "pytorch_half_pixel" and out <= 1:
        return np.zeros(out, F)
    return (x + F(0.5)) / s - F(0.5)


def nearest(coordinates: np.ndarray, mode: str, size: int, scale: float) -> Taps:
    """The nearest position, by the nearest mode."""
    if mode == "round_prefer_floor":
        picked = np.ceil(coordinates - F(0.5))
    elif mode == "round_prefer_ceil":
        picked = np.where(coordinates - np.floor(coordinates) < F(0.5), np.floor(coordinates), np.ceil(coordinates))
    elif mode == "floor":
        picked = np.floor(coordinates)
    elif mode == "ceil":
        picked = np.ceil(coordinates)
    else:
        picked = np.ceil(coordinates) if scale < 1 else np.trunc(coordinates)
    return Taps(np.clip(picked.astype(np.int64), 0, size - 1)[:, None], None, size)


def linear_onnx(coordinates: np.ndarray, size: int) -> Taps:
    """The two neighbours, weighted by nearness; positions outside are clamped to the border."""
    inside = np.clip(coordinates, F(0), F(size - 1))
    first = np.minimum(inside.astype(np.int64), size - 1)
    second = np.minimum(first + 1, size - 1)
    to_first, to_second = np.abs(inside - first.astype(F)), np.abs(inside - second.astype(F))
    same = first == second
    weight = np.stack([np.where(same, F(0.5), to_second), np.where(same, F(0.5), to_first)], 1)
    return Taps(np.stack([first, second], 1), weight.astype(F), size)


def linear(coordinates: np.ndarray, size: int, scale: float, antialias: bool) -> Taps:
    """A triangle around the coordinate, of the scale's width if ``antialias``; weights are not divided by their sum
    yet.

    Positions outside the data have weight 0.
    """
    factor = F(scale) if antialias else F(1)
    radius = 2 if scale > 1 else math.ceil(F(2) / factor)
    centre = np.floor(coordinates + F(0.5)).astype(np.int64)
    index = centre[:, None] + np.arange(-radius, radius + 1)
    weight = np.maximum(F(0), F(1) - np.abs(factor * (coordinates[:, None] - index.astype(F))))
    inside = (index >= 0) & (index < size)
    # Taps of weight 0 read a position inside, so that no infinity or NaN times 0 comes in.
    return Taps(np.where(inside, index, np.clip(centre, 0, size - 1)[:, None]), np.where(inside, weight, F(0)), size)


def cubic(coordinates: np.ndarray, size: int, coefficient: float) -> Taps:
    """Four neighbours on a cubic curve; positions outside are clamped to the border."""
    base = np.floor(coordinates)
    weight = np.stack(_cubic(coordinates - base, F(coefficient)), 1)
    index = base.astype(np.int64)[:, None] + np.arange(-1, 3)
    return Taps(np.clip(index, 0, size - 1), weight.astype(F), size)


def pillow(size: int, out: int, curve: Callable[[np.ndarray], np.ndarray], support: float) -> Taps:
    """The filter of the Pillow library: a curve around the centre, widened when the axis shrinks; float64 weights."""
    scale = size / out
    wide = max(scale, 1.0)
    radius = support * wide
    centre = (np.arange(out) + 0.5) * scale
    first = np.maximum((centre - radius + 0.5).astype(np.int64), 0)
    last = np.minimum((centre + radius + 0.5).astype(np.int64), size)
    index = first[:, None] + np.arange(max(int((last - first).max(initial=1)), 1))
    weight = np.where(index < last[:, None], curve((index - centre[:, None] + 0.5) * (1.0 / wide)), 0.0)
    total = weight.sum(1, keepdims=True)
    weight = weight / np.where(total == 0, 1.0, total)
    return Taps(np.where(index < last[:, None], index, first[:, None]), weight, size)


def triangle(x: np.ndarray) -> np.ndarray:
    """1 - |x| where it is positive."""
    return np.maximum(0.0, 1.0 - np.abs(x))


def cubic_curve(a: float) -> Callable[[np.ndarray], np.ndarray]:
    """Keys' cubic convolution kernel with coefficient ``a``."""

    def curve(x: np.ndarray) -> np.ndarray:
        x = np.abs(x)
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = (((x - 5) * x + 8) * x - 4) * a
        return np.where(x < 1, near, np.where(x < 2, far, 0.0))

    return curve


def apply(x: np.ndarray, axis: int, taps: Taps) -> np.ndarray:
    """The array resized along one axis; floats stay of their type.

    Many taps for few positions are one product with a matrix, unless that would spread an infinity or NaN.
    """
    if taps.weight is None:
        return np.take(x, as_indices(taps.index[:, 0]), axis)
    with np.errstate(all="ignore"):
        if taps.size <= _DENSE * taps.index.shape[1] and np.isfinite(x.sum()):
            matrix = taps.matrix.astype(x.dtype, copy=False)
            size, out = matrix.shape
            shape = (*x.shape[:axis], out, *x.shape[axis + 1 :])
            if axis == x.ndim - 1:
                return np.matmul(x.reshape(-1, size), matrix).reshape(shape)
            return np.matmul(matrix.T, x.reshape(math.prod(x.shape[:axis]), size, -1)).reshape(shape)
        return by_taps(x, axis, taps)


def by_taps(x: np.ndarray, axis: int, taps: Taps) -> np.ndarray:
    """The same, tap by tap in their order."""
    result = np.zeros((*x.shape[:axis], len(taps.index), *x.shape[axis + 1 :]), x.dtype)
    for tap in range(taps.index.shape[1]):
        check_time()
        part = np.take(x, as_indices(taps.index[:, tap]), axis)
        part *= _weight(taps, tap, axis, x.ndim).astype(x.dtype, copy=False)
        result += part
    return result


def _weight(taps: Taps, tap: int, axis: int, rank: int) -> np.ndarray:
    """The weights of one tap, lying along an axis."""
    weight = np.ones(len(taps.index), F) if taps.weight is None else taps.weight[:, tap]
    return weight.reshape((1,) * axis + (-1,) + (1,) * (rank - axis - 1))


def together(
    x: np.ndarray, axes: Sequence[int], tables: Sequence[Taps], factor: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The weighted sum over all axes at once, and the sum of weights, each weight times ``factor``.

    In the order of OpenVINO's reference and in float32, for integers, where the last bit decides a rounding.
    """
    total, weights = np.zeros((), F), np.zeros((), F)
    for points in itertools.product(*(range(taps.index.shape[1]) for taps in tables)):
        check_time()
        weight, taken = factor, x
        for axis, taps, tap in zip(axes, tables, points, strict=True):
            weight = weight * _weight(taps, tap, axis, x.ndim)
            taken = np.take(taken, as_indices(taps.index[:, tap]), axis)
        total, weights = total + weight * taken, weights + weight
    return total, weights


@dataclass(frozen=True)
class ResizeParams:
    """How to interpolate; the fields are the attributes of Interpolate-11."""

    mode: str
    transformation: str = "half_pixel"
    nearest: str = "round_prefer_floor"
    antialias: bool = False
    cube_coeff: float = -0.75

    @property
    def is_pillow(self) -> bool:
        return self.mode.endswith("pillow")


@functools.lru_cache(maxsize=128)
def _taps(params: ResizeParams, size: int, out: int, scale: float) -> Taps:
    """The taps and weights of one axis."""
    if params.mode == "bilinear_pillow":
        return pillow(size, out, triangle, 1.0)
    if params.mode == "bicubic_pillow":
        return pillow(size, out, cubic_curve(params.cube_coeff), 2.0)
    positions = coordinates(params.transformation, size, out, scale)
    if params.mode == "nearest":
        return nearest(positions, params.nearest, size, scale)
    if params.mode == "linear_onnx":
        return linear_onnx(positions, size)
    if params.mode == "linear":
        return linear(positions, size, scale, params.antialias)
    return cubic(positions, size, params.cube_coeff)


def interpolate(
    data: np.ndarray,
    params: ResizeParams,
    axes: Sequence[int],
    sizes: Sequence[int],
    scales: Sequence[float] | None = None,
) -> np.ndarray:
    """``data`` resized along ``axes`` to ``sizes``; coordinates go by ``scales``, unless given by the sizes in
    float32."""
    if 0 in data.shape or 0 in sizes:
        shape = list(data.shape)
        for axis, size in zip(axes, sizes, strict=True):
            shape[axis] = size
        return np.zeros(shape, data.dtype)
    scales = scales_of(data.shape, axes, sizes) if scales is None else scales
    params = _widened_if_shrinking(params, scales)
    tables = [_taps(params, data.shape[axis], out, scale) for axis, out, scale in zip(axes, sizes, scales, strict=True)]
    if params.mode == "nearest":
        return _resized(data, axes, tables).copy() if not axes else _resized(data, axes, tables)
    if data.dtype.kind == "f":
        return _floats(data, params, axes, tables)
    if data.dtype.itemsize > 1:
        # Rounding of the CPU plugin for 32 and 64 bits, which OpenVINO's reference does not implement.
        values = _floats(data.astype(np.float64), params, axes, tables)
        limits = np.iinfo(data.dtype)
        return np.clip(np.rint(values), limits.min, limits.max).astype(data.dtype)
    if params.is_pillow:
        return _bytes_by_pillow(data, axes, tables)
    # 8-bit integers as OpenVINO's reference rounds them: linear to the nearest, others towards zero, wrapping on
    # overflow.
    start = np.asarray(
        float(math.prod(map(np.float32, scales))) if params.mode == "linear" and params.antialias else 1, np.float32
    )
    total, weights = together(data.astype(np.float32), axes, tables, start)
    if params.mode == "linear":
        total = round_half_away(np.where(weights == 0, 0, total / np.where(weights == 0, 1, weights)))
    return np.trunc(total).astype(np.int64).astype(data.dtype)


def scales_of(shape: Sequence[int], axes: Sequence[int], sizes: Sequence[int]) -> list[float]:
    """The scales by which coordinates go where only sizes are given."""
    return [float(np.float32(out) / np.float32(shape[axis])) for axis, out in zip(axes, sizes, strict=True)]


def _widened_if_shrinking(params: ResizeParams, scales: Sequence[float]) -> ResizeParams:
    """The triangle is widened along every axis as soon as one shrinks."""
    return dataclasses.replace(params, antialias=params.antialias and min(scales, default=1) < 1)


def float_steps(
    shape: Sequence[int], params: ResizeParams, axes: Sequence[int], sizes: Sequence[int], scales: Sequence[float],
    are_bytes: bool = False,
) -> list[tuple[int, Taps]]:  # fmt: skip
    """Steps of ``interpolate`` in order: an axis, and the taps and weights of its positions.

    Bytes in Pillow's modes are rounded after each step, in Pillow's order; all other values are floats.
    """
    params = _widened_if_shrinking(params, scales)
    tables = [_taps(params, shape[axis], out, scale) for axis, out, scale in zip(axes, sizes, scales, strict=True)]
    if are_bytes and params.is_pillow:
        return _by_pillow(axes, tables)
    return _in_order(*_for_floats(params, axes, tables))


def _in_order(axes: Sequence[int], tables: Sequence[Taps]) -> list[tuple[int, Taps]]:
    """Axes by the ratio of their sizes, the smallest first; among equals the last axis first."""
    return sorted(zip(axes, tables, strict=True), key=lambda one: (len(one[1].index) / one[1].size, -one[0]))


def _for_floats(
    params: ResizeParams, axes: Sequence[int], tables: Sequence[Taps]
) -> tuple[Sequence[int], Sequence[Taps]]:
    """The axes that are computed and their tables: Pillow leaves out those that keep their size."""
    if params.is_pillow:
        kept = [len(taps.index) != taps.size for taps in tables]
        axes = [axis for axis, used in zip(axes, kept, strict=True) if used]
        tables = [taps for taps, used in zip(tables, kept, strict=True) if used]
    return axes, [taps.normalized for taps in tables] if params.mode == "linear" else tables


def _resized(work: np.ndarray, axes: Sequence[int], tables: Sequence[Taps]) -> np.ndarray:
    """One axis after the other."""
    for axis, taps in _in_order(axes, tables):
        work = apply(work, axis, taps)
    return work


def _floats(data: np.ndarray, params: ResizeParams, axes: Sequence[int], tables: Sequence[Taps]) -> np.ndarray:
    work = data.astype(np.float32) if data.dtype == np.float16 else data
    work = _resized(work, *_for_floats(params, axes, tables))
    return work.astype(data.dtype, copy=work is data)


def _bytes_by_pillow(data: np.ndarray, axes: Sequence[int], tables: Sequence[Taps]) -> np.ndarray:
    """The last axis given first, rounded and clipped after each, in double precision."""
    limits = np.iinfo(data.dtype)
    work = data.astype(np.float64)
    for axis, taps in _by_pillow(axes, tables):
        work = np.clip(round_half_away(by_taps(work, axis, taps)), limits.min, limits.max)
    return work.astype(data.dtype)


def _by_pillow(axes: Sequence[int], tables: Sequence[Taps]) -> list[tuple[int, Taps]]:
    """The axes that change their size, the last one that is given first, with their tables."""
    steps = [(axis, taps) for axis, taps in zip(axes, tables, strict=True) if len(taps.index) != taps.size]
    return steps[::-1]


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
        _point_taps(position_of(points[:, 1 - axis], size, params.align_corners), size, params)
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


def _point_taps(position: np.ndarray, size: int, params: SampleParams) -> PointTaps:
    if params.mode == "nearest":
        return [(*pixel_of(np.rint(position), size, params), None)]
    floor = np.floor(position)
    part = position - floor
    weights = [1 - part, part] if params.mode == "bilinear" else _cubic(part, _CUBIC)
    return [
        (*pixel_of(floor + step, size, params), weight) for step, weight in enumerate(weights, 1 - len(weights) // 2)
    ]


def _cubic(r: np.ndarray, a: float | np.floating) -> list[np.ndarray]:
    """The weights of the four pixels around, by the distance of the point from the second."""
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
        # Reflected at the centres of the outermost pixels, or at their outer edges, as often as it takes.
        period = whole.dtype.type(max(2 * (size - 1), 1) if params.align_corners else 2 * size)
        rest = np.mod(whole, period)
        whole = np.minimum(rest, period - rest) if params.align_corners else np.minimum(rest, period - 1 - rest)
    return np.minimum(np.fmax(whole, 0), last).astype(np.int64), inside
