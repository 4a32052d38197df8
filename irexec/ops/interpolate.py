"""Interpolate, in its three versions."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from irexec.errors import check
from irexec.ir.dims import ANY, Dim, PartialShape, Shape, Size, span
from irexec.ir.facts import Fact
from irexec.reference import resize
from irexec.reference.resize import Taps
from irexec.reference.windows import pad
from irexec.schema.attributes import Ints, NonNegatives
from irexec.schema.registry import op
from irexec.schema.rules import normalize_axes

Mode1 = Literal["nearest", "linear", "cubic", "area"]
Mode4 = Literal["nearest", "linear", "linear_onnx", "cubic"]
Mode11 = Literal["nearest", "linear", "linear_onnx", "cubic", "bilinear_pillow", "bicubic_pillow"]
Calculation = Literal["sizes", "scales"]
Transformation = Literal["half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners"]
Nearest = Literal["round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple"]

# What OpenVINO adds to a scale before it multiplies a size by it and rounds down.
_SCALE_EPSILON = np.float32(1e-6)


@dataclass(frozen=True)
class Way:
    """How to interpolate."""

    mode: str
    transformation: str = "half_pixel"
    nearest: str = "round_prefer_floor"
    antialias: bool = False
    cube_coeff: float = -0.75

    @property
    def is_pillow(self) -> bool:
        return self.mode.endswith("pillow")


@functools.lru_cache(maxsize=128)
def _taps(way: Way, size: int, out: int, scale: float) -> Taps:
    """The table for one axis."""
    if way.mode == "bilinear_pillow":
        return resize.pillow(size, out, resize.triangle, 1.0)
    if way.mode == "bicubic_pillow":
        return resize.pillow(size, out, resize.cubic_curve(way.cube_coeff), 2.0)
    where = resize.coordinates(way.transformation, size, out, scale)
    if way.mode == "nearest":
        return resize.nearest(where, way.nearest, size, scale)
    if way.mode == "linear_onnx":
        return resize.linear_onnx(where, size)
    if way.mode == "linear":
        return resize.linear(where, size, scale, way.antialias)
    return resize.cubic(where, size, way.cube_coeff)


def _interpolate(data: np.ndarray, way: Way, axes: Sequence[int], sizes: Sequence[int], scales: Sequence[float] | None) -> np.ndarray:
    if 0 in data.shape or 0 in sizes:
        shape = list(data.shape)
        for axis, size in zip(axes, sizes, strict=True):
            shape[axis] = size
        return np.zeros(shape, data.dtype)
    if scales is None:
        scales = [float(np.float32(out) / np.float32(data.shape[axis])) for axis, out in zip(axes, sizes, strict=True)]
    # The triangle is widened along every axis as soon as one shrinks.
    way = dataclasses.replace(way, antialias=way.antialias and min(scales, default=1) < 1)
    tables = [_taps(way, data.shape[axis], out, scale) for axis, out, scale in zip(axes, sizes, scales, strict=True)]
    if way.mode == "nearest":
        return _resized(data, axes, tables).copy() if not axes else _resized(data, axes, tables)
    if data.dtype.kind == "f":
        return _floats(data, way, axes, tables)
    if data.dtype.itemsize > 1:
        return _rounded_to_even(_floats(data.astype(np.float64), way, axes, tables), data.dtype)
    if way.is_pillow:
        return _bytes_by_pillow(data, axes, tables)
    return _bytes(data, way, axes, tables, float(math.prod(map(np.float32, scales))))


def _resized(work: np.ndarray, axes: Sequence[int], tables: Sequence[Taps]) -> np.ndarray:
    """One axis after the other, those that grow least first; of equals the last axis first."""
    for axis, taps in sorted(zip(axes, tables, strict=True), key=lambda one: (len(one[1].index) / one[1].size, -one[0])):
        work = resize.apply(work, axis, taps)
    return work


def _floats(data: np.ndarray, way: Way, axes: Sequence[int], tables: Sequence[Taps]) -> np.ndarray:
    work = data.astype(np.float32) if data.dtype == np.float16 else data
    if way.is_pillow:
        kept = [len(taps.index) != taps.size for taps in tables]
        axes = [axis for axis, used in zip(axes, kept, strict=True) if used]
        tables = [taps for taps, used in zip(tables, kept, strict=True) if used]
    work = _resized(work, axes, [taps.normal for taps in tables] if way.mode == "linear" else tables)
    return work.astype(data.dtype, copy=work is data)


def _rounded_to_even(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """As the CPU plugin has it for 32 and 64 bits, which the reference does not know."""
    limits = np.iinfo(dtype)
    return np.clip(np.rint(values), limits.min, limits.max).astype(dtype)


def _half_away(values: np.ndarray) -> np.ndarray:
    return np.trunc(values + np.copysign(0.5, values))


def _bytes(data: np.ndarray, way: Way, axes: Sequence[int], tables: Sequence[Taps], factor: float) -> np.ndarray:
    """8-bit integers as the reference rounds them: linear to the nearest, all else towards zero, and wrapped where it overshoots."""
    start = np.asarray(factor if way.mode == "linear" and way.antialias else 1, np.float32)
    total, weights = resize.together(data.astype(np.float32), axes, tables, start)
    if way.mode == "linear":
        total = _half_away(np.where(weights == 0, 0, total / np.where(weights == 0, 1, weights)))
    return np.trunc(total).astype(np.int64).astype(data.dtype)


def _bytes_by_pillow(data: np.ndarray, axes: Sequence[int], tables: Sequence[Taps]) -> np.ndarray:
    """The last axis given first, rounded and cut after each, in double precision."""
    limits = np.iinfo(data.dtype)
    work = data.astype(np.float64)
    for axis, taps in reversed([(axis, taps) for axis, taps in zip(axes, tables, strict=True) if len(taps.index) != taps.size]):
        work = np.clip(_half_away(resize.by_taps(work, axis, taps)), limits.min, limits.max)
    return work.astype(data.dtype)


def _padded(data: np.ndarray, begins: Sequence[int], ends: Sequence[int]) -> np.ndarray:
    return pad(data, (_full(begins, data.ndim), _full(ends, data.ndim)))


def _full(pads: Sequence[int], rank: int) -> tuple[int, ...]:
    """One pad for each axis: OpenVINO cuts or fills the list with zeros."""
    return (*pads, *(0,) * (rank - len(pads)))[:rank]


def _padded_shape(shape: Shape, begins: Sequence[int], ends: Sequence[int]) -> Shape:
    return tuple(size + (b + e) for size, b, e in zip(shape, _full(begins, len(shape)), _full(ends, len(shape)), strict=True))


def _resized_shape(
    data: Fact, begins: Sequence[int], ends: Sequence[int], axes: Sequence[int] | None, sizes: Fact | None, scales: Fact | None
) -> PartialShape:
    """The shape with the sizes of the axes replaced; None for axes that are not known."""
    if data.shape is None:
        return None
    shape = list(_padded_shape(data.shape, begins, ends))
    if axes is None:
        return (ANY,) * len(shape)
    places = normalize_axes(axes, len(shape))
    check(len(set(places)) == len(places), f"axes {list(axes)} name an axis twice")
    given = scales if scales is not None else sizes
    check(given is None or given.rank in (None, 1), f"sizes or scales have shape {given}, expected rank 1")
    length = given.shape[0] if given is not None and given.shape else None
    check(not isinstance(length, int) or length >= len(places), f"there are {length} sizes or scales for {len(places)} axes")
    for i, axis in enumerate(places):
        shape[axis] = _scaled(shape[axis], scales, i) if scales is not None else _sized(sizes, i)
    return tuple(shape)


def _sized(sizes: Fact | None, i: int) -> Size:
    known = None if sizes is None else sizes.sizes()
    if known is None:
        return ANY
    size = known[i]
    check(not isinstance(size, int) or size >= 0, f"size {size} is negative")
    return Dim(0, size.hi) if isinstance(size, Dim) and size.lo < 0 else size


def _scaled(size: Size, scales: Fact, i: int) -> Size:
    known = scales.known
    if known is None:
        return ANY
    scale = float(known.ravel()[i])
    check(math.isfinite(scale) and scale > 0, f"scale {scale:g} is not a positive number")
    if isinstance(size, int):
        return scaled_size(size, scale)
    return span(scaled_size(size.lo, scale), None if size.hi is None else scaled_size(size.hi, scale))


def scaled_size(size: int, scale: float) -> int:
    """The size times the scale in float32, rounded down, after a nudge that undoes the rounding of the scale."""
    if scale == 1 or size >= 1 << 53:
        return size if scale == 1 else math.floor(size * scale)
    return int(np.float32(size) * (np.float32(scale) + _SCALE_EPSILON))


@op("Interpolate", since=1, tolerance=1e-5)
def interpolate_1(
    data: np.ndarray,
    target_spatial_shape: np.ndarray,
    *,
    axes: Ints,
    mode: Mode1,
    align_corners: bool = True,
    antialias: bool = False,
    pads_begin: NonNegatives = (),
    pads_end: NonNegatives = (),
) -> np.ndarray:
    """``data`` resized along ``axes`` to the shape given.

    As OpenVINO makes an Interpolate-4 of it: nearest by simple, linear as linear_onnx up to rank 4, coordinates
    of the corners, or asymmetric; but half_pixel for linear without padding, unless over the axes 2 and 3 of
    rank 4. Source: Interpolate-1, openvino ``convert_interpolate1_to_interpolate4.cpp``.
    """
    padded = _padded(data, pads_begin, pads_end)
    places = normalize_axes(axes, data.ndim)
    way = "linear_onnx" if mode == "linear" and data.ndim < 5 else mode
    usual = any(pads_begin) or any(pads_end) or (data.ndim == 4 and set(places) == {2, 3})
    transformation = "align_corners" if align_corners else "half_pixel" if mode == "linear" and not usual else "asymmetric"
    sizes = [int(size) for size in target_spatial_shape.ravel().tolist()]
    return _interpolate(padded, Way(way, transformation, "simple", antialias), places, sizes, None)


@interpolate_1.shape_rule
def _interpolate_1_facts(
    data: Fact,
    target_spatial_shape: Fact,
    *,
    axes: Ints,
    mode: str,
    align_corners: bool = True,
    antialias: bool = False,
    pads_begin: NonNegatives = (),
    pads_end: NonNegatives = (),
) -> Fact:
    check(mode != "area", "mode area is defined by no implementation")
    if target_spatial_shape.shape is not None and all(isinstance(size, int) for size in target_spatial_shape.shape):
        count = math.prod(size for size in target_spatial_shape.shape if isinstance(size, int))
        check(count == len(axes), f"target_spatial_shape has {count} numbers for {len(axes)} axes")
    return Fact(data.element, _resized_shape(data, pads_begin, pads_end, axes, target_spatial_shape, None))


def _axes(axes: Fact | None, data: Fact) -> Sequence[int] | None:
    if axes is not None:
        return axes.ints()
    return None if data.shape is None else range(len(data.shape))


def _by_sizes_or_scales(data: np.ndarray, way: Way, axes: np.ndarray | None, numbers: np.ndarray, by_scales: bool) -> np.ndarray:
    """The data resized along the axes, all of them unless given, to numbers that are sizes or scales."""
    places = normalize_axes(range(data.ndim) if axes is None else [int(axis) for axis in axes.ravel().tolist()], data.ndim)
    given = numbers.ravel().tolist()[: len(places)]
    if not by_scales:
        return _interpolate(data, way, places, [int(size) for size in given], None)
    scales = [float(scale) for scale in given]
    sizes = [scaled_size(data.shape[axis], scale) for axis, scale in zip(places, scales, strict=True)]
    return _interpolate(data, way, places, sizes, scales)


@op("Interpolate", since=4, tolerance=1e-5)
def interpolate_4(
    data: np.ndarray,
    output_shape: np.ndarray,
    scales: np.ndarray,
    axes: np.ndarray | None = None,
    *,
    mode: Mode4,
    shape_calculation_mode: Calculation,
    coordinate_transformation_mode: Transformation = "half_pixel",
    nearest_mode: Nearest = "round_prefer_floor",
    antialias: bool = False,
    pads_begin: NonNegatives = (),
    pads_end: NonNegatives = (),
    cube_coeff: float = -0.75,
) -> np.ndarray:
    """``data`` resized along ``axes`` (all unless given), to sizes or by scales. Source: Interpolate-4."""
    way = Way(mode, coordinate_transformation_mode, nearest_mode, antialias, cube_coeff)
    by_scales = shape_calculation_mode == "scales"
    return _by_sizes_or_scales(_padded(data, pads_begin, pads_end), way, axes, scales if by_scales else output_shape, by_scales)


@interpolate_4.shape_rule
def _interpolate_4_facts(
    data: Fact,
    output_shape: Fact,
    scales: Fact,
    axes: Fact | None = None,
    *,
    mode: str,
    shape_calculation_mode: str,
    coordinate_transformation_mode: str = "half_pixel",
    nearest_mode: str = "round_prefer_floor",
    antialias: bool = False,
    pads_begin: NonNegatives = (),
    pads_end: NonNegatives = (),
    cube_coeff: float = -0.75,
) -> Fact:
    by_scales = scales if shape_calculation_mode == "scales" else None
    return Fact(data.element, _resized_shape(data, pads_begin, pads_end, _axes(axes, data), output_shape, by_scales))


@op("Interpolate", since=11, tolerance=1e-5)
def interpolate_11(
    data: np.ndarray,
    scales_or_sizes: np.ndarray,
    axes: np.ndarray | None = None,
    *,
    mode: Mode11,
    shape_calculation_mode: Calculation,
    coordinate_transformation_mode: Transformation = "half_pixel",
    nearest_mode: Nearest = "round_prefer_floor",
    antialias: bool = False,
    pads_begin: NonNegatives = (),
    pads_end: NonNegatives = (),
    cube_coeff: float = -0.75,
) -> np.ndarray:
    """``data`` resized along ``axes`` (all unless given), to sizes or by scales; also by the filters of Pillow.

    bicubic_pillow honours cube_coeff, as the reference does. Source: Interpolate-11.
    """
    way = Way(mode, coordinate_transformation_mode, nearest_mode, antialias, cube_coeff)
    return _by_sizes_or_scales(_padded(data, pads_begin, pads_end), way, axes, scales_or_sizes, shape_calculation_mode == "scales")


@interpolate_11.shape_rule
def _interpolate_11_facts(
    data: Fact,
    scales_or_sizes: Fact,
    axes: Fact | None = None,
    *,
    mode: str,
    shape_calculation_mode: str,
    coordinate_transformation_mode: str = "half_pixel",
    nearest_mode: str = "round_prefer_floor",
    antialias: bool = False,
    pads_begin: NonNegatives = (),
    pads_end: NonNegatives = (),
    cube_coeff: float = -0.75,
) -> Fact:
    by_scales = scales_or_sizes if shape_calculation_mode == "scales" else None
    return Fact(data.element, _resized_shape(data, pads_begin, pads_end, _axes(axes, data), scales_or_sizes, by_scales))
