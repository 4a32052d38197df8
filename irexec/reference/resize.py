"""Resizing along one axis after the other: every mode is a table of taps and weights.

Coordinates are float32, as OpenVINO's reference has them: where a coordinate falls on a border, its
rounding decides. Sources: Interpolate-4 and -11, openvino ``reference/interpolate.cpp``.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from irexec.errors import check
from irexec.reference.indexing import as_indices
from irexec.reference.limits import check_time

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
    s, a = coordinates - base, F(coefficient)
    weight = np.stack(
        [
            ((a * (s + 1) - 5 * a) * (s + 1) + 8 * a) * (s + 1) - 4 * a,
            ((a + 2) * s - (a + 3)) * s * s + 1,
            ((a + 2) * (1 - s) - (a + 3)) * (1 - s) * (1 - s) + 1,
            ((a * (2 - s) - 5 * a) * (2 - s) + 8 * a) * (2 - s) - 4 * a,
        ],
        1,
    )
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
            return _by_product(x, axis, taps.matrix.astype(x.dtype, copy=False))
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


def _by_product(x: np.ndarray, axis: int, matrix: np.ndarray) -> np.ndarray:
    size, out = matrix.shape
    shape = (*x.shape[:axis], out, *x.shape[axis + 1 :])
    if axis == x.ndim - 1:
        return np.matmul(x.reshape(-1, size), matrix).reshape(shape)
    return np.matmul(matrix.T, x.reshape(math.prod(x.shape[:axis]), size, -1)).reshape(shape)


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
