"""Interpolation of OpenVINO over any axes and element types, from the tables of irexec.reference.resize.

Sources: Interpolate-4 and -11, openvino ``reference/interpolate.cpp``, and its CPU plugin for 32- and 64-bit integers.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from irexec.reference import resize
from irexec.reference.resize import Taps
from irexec.reference.special import round_half_away


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
        return resize.pillow(size, out, resize.triangle, 1.0)
    if params.mode == "bicubic_pillow":
        return resize.pillow(size, out, resize.cubic_curve(params.cube_coeff), 2.0)
    coordinates = resize.coordinates(params.transformation, size, out, scale)
    if params.mode == "nearest":
        return resize.nearest(coordinates, params.nearest, size, scale)
    if params.mode == "linear_onnx":
        return resize.linear_onnx(coordinates, size)
    if params.mode == "linear":
        return resize.linear(coordinates, size, scale, params.antialias)
    return resize.cubic(coordinates, size, params.cube_coeff)


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
        return _rounded_to_even(_floats(data.astype(np.float64), params, axes, tables), data.dtype)
    if params.is_pillow:
        return _bytes_by_pillow(data, axes, tables)
    return _bytes(data, params, axes, tables, float(math.prod(map(np.float32, scales))))


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
        work = resize.apply(work, axis, taps)
    return work


def _floats(data: np.ndarray, params: ResizeParams, axes: Sequence[int], tables: Sequence[Taps]) -> np.ndarray:
    work = data.astype(np.float32) if data.dtype == np.float16 else data
    work = _resized(work, *_for_floats(params, axes, tables))
    return work.astype(data.dtype, copy=work is data)


def _rounded_to_even(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Rounding of the CPU plugin for 32 and 64 bits, which OpenVINO's reference does not implement."""
    limits = np.iinfo(dtype)
    return np.clip(np.rint(values), limits.min, limits.max).astype(dtype)


def _bytes(
    data: np.ndarray, params: ResizeParams, axes: Sequence[int], tables: Sequence[Taps], factor: float
) -> np.ndarray:
    """8-bit integers as OpenVINO's reference rounds them: linear to the nearest, others towards zero, wrapping on
    overflow."""
    start = np.asarray(factor if params.mode == "linear" and params.antialias else 1, np.float32)
    total, weights = resize.together(data.astype(np.float32), axes, tables, start)
    if params.mode == "linear":
        total = round_half_away(np.where(weights == 0, 0, total / np.where(weights == 0, 1, weights)))
    return np.trunc(total).astype(np.int64).astype(data.dtype)


def _bytes_by_pillow(data: np.ndarray, axes: Sequence[int], tables: Sequence[Taps]) -> np.ndarray:
    """The last axis given first, rounded and clipped after each, in double precision."""
    limits = np.iinfo(data.dtype)
    work = data.astype(np.float64)
    for axis, taps in _by_pillow(axes, tables):
        work = np.clip(round_half_away(resize.by_taps(work, axis, taps)), limits.min, limits.max)
    return work.astype(data.dtype)


def _by_pillow(axes: Sequence[int], tables: Sequence[Taps]) -> list[tuple[int, Taps]]:
    """The axes that change their size, the last one that is given first, with their tables."""
    steps = [(axis, taps) for axis, taps in zip(axes, tables, strict=True) if len(taps.index) != taps.size]
    return steps[::-1]
