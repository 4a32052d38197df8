"""Interpolate, in its three versions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from irexec.errors import check
from irexec.ir.dims import ANY, Dim, PartialShape, Shape, Size, span
from irexec.ir.facts import Fact
from irexec.kernels import resize
from irexec.kernels.resize import Taps
from irexec.kernels.windows import pad
from irexec.ops.attributes import Ints, NonNegatives
from irexec.ops.registry import op
from irexec.ops.rules import normal_axes

Mode1 = Literal["nearest", "linear", "cubic", "area"]
Mode4 = Literal["nearest", "linear", "linear_onnx", "cubic"]
Mode11 = Literal["nearest", "linear", "linear_onnx", "cubic", "bilinear_pillow", "bicubic_pillow"]
Calculation = Literal["sizes", "scales"]
Transformation = Literal["half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners"]
Nearest = Literal["round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple"]

# What OpenVINO adds to a scale before it multiplies a size by it and rounds down.
_SCALE_EPSILON = 1e-6


@dataclass(frozen=True)
class Way:
    """How to interpolate."""

    mode: str
    transformation: str = "half_pixel"
    nearest: str = "round_prefer_floor"
    antialias: bool = False
    cube_coeff: float = -0.75

    def taps(self, size: int, out: int, scale: float) -> Taps:
        """The table for one axis."""
        if self.mode == "bilinear_pillow":
            return resize.pillow(size, out, resize.triangle, 1.0)
        if self.mode == "bicubic_pillow":
            return resize.pillow(size, out, resize.cubic_curve(self.cube_coeff), 2.0)
        where = resize.coordinates(self.transformation, size, out, scale)
        if self.mode == "nearest":
            return resize.nearest(where, self.nearest, size, scale)
        if self.mode == "linear_onnx":
            return resize.linear_onnx(where, size)
        if self.mode == "linear":
            return resize.linear(where, size, scale, self.antialias)
        return resize.cubic(where, size, self.cube_coeff)


def _interpolate(data: np.ndarray, way: Way, axes: Sequence[int], sizes: Sequence[int], scales: Sequence[float] | None) -> np.ndarray:
    if 0 in data.shape or 0 in sizes:
        shape = list(data.shape)
        for axis, size in zip(axes, sizes, strict=True):
            shape[axis] = size
        return np.zeros(shape, data.dtype)
    work = data if way.mode == "nearest" or data.dtype.kind == "f" else data.astype(np.float32)
    factors = (
        scales
        if scales is not None
        else [float(np.float32(out) / np.float32(data.shape[axis])) for axis, out in zip(axes, sizes, strict=True)]
    )
    # Pillow goes along the last axis first, and rounds integers after each.
    for axis, out, scale in sorted(zip(axes, sizes, factors, strict=True), key=lambda item: -item[0]):
        if data.shape[axis] == out and way.mode.endswith("pillow"):
            continue
        work = resize.apply(work, axis, way.taps(data.shape[axis], out, scale))
        if way.mode.endswith("pillow") and data.dtype.kind in "iu":
            work = _whole(work, data.dtype).astype(np.float32)
    return _whole(work, data.dtype) if data.dtype.kind in "iu" and work.dtype != data.dtype else work.astype(data.dtype, copy=False)


def _whole(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    limits = np.iinfo(dtype)
    return np.clip(np.floor(np.abs(values) + 0.5) * np.sign(values), limits.min, limits.max).astype(dtype)


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
    places = normal_axes(axes, len(shape))
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
    """The size times the scale, rounded down, after a nudge that undoes the rounding of the scale."""
    return math.floor(size * (scale + _SCALE_EPSILON))


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

    As OpenVINO makes an Interpolate-4 of it: coordinates asymmetric or of the corners, linear as
    linear_onnx up to rank 4, nearest by simple. Source: Interpolate-1, openvino ``convert_interpolate1_to_interpolate4.cpp``.
    """
    check(mode != "area", "mode area is defined by no implementation")
    padded = _padded(data, pads_begin, pads_end)
    way = "linear_onnx" if mode == "linear" and data.ndim < 5 else mode
    transformation = "align_corners" if align_corners else "asymmetric"
    sizes = [int(size) for size in target_spatial_shape.ravel().tolist()]
    return _interpolate(padded, Way(way, transformation, "simple", antialias), normal_axes(axes, data.ndim), sizes, None)


@interpolate_1.facts
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
    return Fact(data.element, _resized_shape(data, pads_begin, pads_end, axes, target_spatial_shape, None))


def _axes(axes: Fact | None, data: Fact) -> Sequence[int] | None:
    if axes is not None:
        return axes.ints()
    return None if data.shape is None else range(len(data.shape))


def _numbers(array: np.ndarray) -> list[float]:
    return [float(number) for number in array.ravel().tolist()]


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
    padded = _padded(data, pads_begin, pads_end)
    places = normal_axes(range(data.ndim) if axes is None else [int(axis) for axis in axes.ravel().tolist()], data.ndim)
    way = Way(mode, coordinate_transformation_mode, nearest_mode, antialias, cube_coeff)
    if shape_calculation_mode == "scales":
        factors = _numbers(scales)[: len(places)]
        sizes = [scaled_size(padded.shape[axis], scale) for axis, scale in zip(places, factors, strict=True)]
        return _interpolate(padded, way, places, sizes, factors)
    return _interpolate(padded, way, places, [int(size) for size in output_shape.ravel().tolist()][: len(places)], None)


@interpolate_4.facts
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
    padded = _padded(data, pads_begin, pads_end)
    places = normal_axes(range(data.ndim) if axes is None else [int(axis) for axis in axes.ravel().tolist()], data.ndim)
    way = Way(mode, coordinate_transformation_mode, nearest_mode, antialias, cube_coeff)
    if shape_calculation_mode == "scales":
        factors = _numbers(scales_or_sizes)[: len(places)]
        sizes = [scaled_size(padded.shape[axis], scale) for axis, scale in zip(places, factors, strict=True)]
        return _interpolate(padded, way, places, sizes, factors)
    return _interpolate(padded, way, places, [int(size) for size in scales_or_sizes.ravel().tolist()][: len(places)], None)


@interpolate_11.facts
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
