"""Resizing along one axis after the other: every mode is a table of taps and weights.

Coordinates are float32, as OpenVINO's reference has them: where a coordinate falls on a border, its
rounding decides. Sources: Interpolate-4 and -11, openvino ``reference/interpolate.cpp``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

F = np.float32


@dataclass(frozen=True)
class Taps:
    """For each place of the result which places of the data it is made of, and their weights.

    Attributes:
        index: (out, taps), all within the data.
        weight: (out, taps) float32; None where the number is simply taken (one tap).
    """

    index: np.ndarray
    weight: np.ndarray | None


def coordinates(mode: str, size: int, out: int, scale: float) -> np.ndarray:
    """Where in the data each place of the result lies, by the coordinate transformation mode."""
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


def nearest(where: np.ndarray, mode: str, size: int, scale: float) -> Taps:
    """The one place that is nearest, by the nearest mode."""
    if mode == "round_prefer_floor":
        picked = np.ceil(where - F(0.5))
    elif mode == "round_prefer_ceil":
        picked = np.floor(where + F(0.5))
    elif mode == "floor":
        picked = np.floor(where)
    elif mode == "ceil":
        picked = np.ceil(where)
    else:
        picked = np.ceil(where) if scale < 1 else np.trunc(where)
    return Taps(np.clip(picked.astype(np.int64), 0, size - 1)[:, None], None)


def linear_onnx(where: np.ndarray, size: int) -> Taps:
    """The two neighbours, weighted by nearness; places outside are those of the border."""
    inside = np.clip(where, F(0), F(size - 1))
    first = np.minimum(inside.astype(np.int64), size - 1)
    second = np.minimum(first + 1, size - 1)
    to_first, to_second = np.abs(inside - first.astype(F)), np.abs(inside - second.astype(F))
    same = first == second
    weight = np.stack([np.where(same, F(0.5), to_second), np.where(same, F(0.5), to_first)], 1)
    return Taps(np.stack([first, second], 1), weight.astype(F))


def linear(where: np.ndarray, size: int, scale: float, antialias: bool) -> Taps:
    """A triangle around the place, widened by downscaling if ``antialias``; what is outside does not count."""
    widen = antialias and scale < 1
    factor = F(scale) if antialias else F(1)
    reach = math.ceil(F(2) / F(scale)) if widen else 2
    centre = np.floor(where + F(0.5)).astype(np.int64)
    index = centre[:, None] + np.arange(-reach, reach + 1)
    weight = np.maximum(F(0), F(1) - np.abs(factor * (where[:, None] - index.astype(F))))
    weight = np.where((index >= 0) & (index < size), weight, F(0)).astype(F)
    total = weight.sum(1, keepdims=True)
    return Taps(np.clip(index, 0, size - 1), np.where(total == 0, F(0), weight / np.where(total == 0, F(1), total)).astype(F))


def cubic(where: np.ndarray, size: int, coefficient: float) -> Taps:
    """Four neighbours on a cubic curve; places outside are those of the border."""
    base = np.floor(where)
    s, a = where - base, F(coefficient)
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
    return Taps(np.clip(index, 0, size - 1), weight.astype(F))


def pillow(size: int, out: int, curve: Callable[[np.ndarray], np.ndarray], support: float) -> Taps:
    """The filter of the Pillow library: a curve around the centre, widened when the axis shrinks."""
    scale = size / out
    wide = max(scale, 1.0)
    reach = support * wide
    centre = (np.arange(out) + 0.5) * scale
    first = np.maximum((centre - reach + 0.5).astype(np.int64), 0)
    last = np.minimum((centre + reach + 0.5).astype(np.int64), size)
    index = first[:, None] + np.arange(max(int((last - first).max(initial=1)), 1))
    weight = np.where(index < last[:, None], curve((index - centre[:, None] + 0.5) / wide), 0.0)
    total = weight.sum(1, keepdims=True)
    weight = weight / np.where(total == 0, 1.0, total)
    return Taps(np.minimum(index, size - 1), weight.astype(F))


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
    """The array resized along one axis; float32 weights on an array of float type."""
    if taps.weight is None:
        return np.take(x, taps.index[:, 0], axis)
    along = (1,) * axis + (-1,) + (1,) * (x.ndim - axis - 1)
    if taps.index.shape[1] > 4:
        return _by_product(x, axis, taps)
    result = np.take(x, taps.index[:, 0], axis) * taps.weight[:, 0].reshape(along)
    for tap in range(1, taps.index.shape[1]):
        result += np.take(x, taps.index[:, tap], axis) * taps.weight[:, tap].reshape(along)
    return result


def _by_product(x: np.ndarray, axis: int, taps: Taps) -> np.ndarray:
    """Many taps: one product with the matrix (in, out) of their weights."""
    matrix = np.zeros((x.shape[axis], len(taps.index)), F)
    if taps.weight is not None:
        np.add.at(matrix, (taps.index, np.arange(len(taps.index))[:, None]), taps.weight)
    return np.moveaxis(np.matmul(np.moveaxis(x, axis, -1), matrix.astype(x.dtype)), -1, axis)
