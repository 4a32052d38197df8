"""Interpolate: weighted sums of taps, whose positions are coordinates that are rounded.

Coordinates are computed in f32 at least, in whichever order: (x + 0.5) / scale - 0.5, by a reciprocal, or from sizes.
Two implementations differ by at most 8 roundings of the coordinate, none where the scale is a power of two. The
weights are continuous in the coordinate, with a largest slope; so that each of the taps within reach changes by the
slope times that difference at most. The nearest position is open where the difference passes an edge.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from irexec.bounds.algebra import Algebra, floats, integers_near, settled
from irexec.bounds.interval import Bound, Interval
from irexec.bounds.registry import Layer, rule
from irexec.ir.integers import integers
from irexec.reference import resize
from irexec.reference.indexing import as_indices
from irexec.reference.resize import ResizeParams, Taps, scales_of
from irexec.schema.shape_rules import normalize_axes

_F32 = 2.0**-24


@dataclass(frozen=True)
class _Axis:
    """One axis that is resized.

    Attributes:
        axis: its index.
        size, out: its size before and after.
        scale: the scale of its coordinates.
        doubt: relative doubt of the scale.
    """

    axis: int
    size: int
    out: int
    scale: float
    doubt: float

    def coordinates(self, mode: str) -> tuple[np.ndarray, np.ndarray]:
        """The coordinate of each position, and how much implementations differ there."""
        found = floats(resize.coordinates(mode, self.size, self.out, self.scale))
        is_exact = self.doubt == 0 and (self.size == self.out or math.frexp(self.scale)[0] == 0.5)
        if mode == "align_corners":
            is_exact = self.out == 1 or self.size == self.out
        error = 0.0 if is_exact else 8 * _F32 + self.doubt
        return found, error * (np.abs(found) + 1 + 0.5 / self.scale)


@rule("Interpolate", integers=True)
def interpolate(layer: Layer, x: Interval, *given: Interval | None) -> Bound:
    """See the docstring of the module; integers may be rounded in any direction after the sum."""
    attributes = layer.attributes["attributes"]
    if layer.definition.since == 1:
        axes_given: Interval | None = None
        axes = normalize_axes(attributes.axes, x.exact.ndim)
        params = attributes.params(axes, x.exact.ndim)
    else:
        axes_given = given[-1] if len(given) == (3 if layer.definition.since == 4 else 2) else None
        positions = range(x.exact.ndim) if axes_given is None else integers(axes_given.exact, "axes")
        axes, params = normalize_axes(positions, x.exact.ndim), attributes.params
    others = [None if one is None else one.exact for one in given]
    padded = x.moved(attributes.padded)
    if 0 in padded.exact.shape:
        return Interval.certain(layer.run(x.exact, *others)[0])
    is_float = x.exact.dtype.kind == "f"
    with np.errstate(all="ignore"):
        exact = layer.run(floats(x.exact) if is_float else x.exact, *others)[0]
    table = _axes(layer, padded, axes, exact.shape, given)
    if params.mode == "nearest":
        return _nearest(padded, exact, params, table)
    if is_float:
        return _weighted(layer.algebra, padded, exact, params, table)
    found = _weighted(layer.algebra, padded, floats(layer.run(floats(x.exact), *others)[0]), params, table)
    # Pillow rounds after each axis, whose weights add up to 2 at most.
    doubt = 2.0 * len(table) if params.is_pillow else 0.0
    return integers_near(layer.algebra.widened(found, doubt), exact)


def _axes(
    layer: Layer, x: Interval, axes: Sequence[int], shape: Sequence[int], given: Sequence[Interval | None]
) -> list[_Axis]:
    sizes = [shape[axis] for axis in axes]
    by_scales = getattr(layer.attributes["attributes"], "by_scales", False)
    scales, doubts = scales_of(x.exact.shape, axes, sizes), [0.0] * len(axes)
    source = given[1] if by_scales and layer.definition.since == 4 else given[0]
    if by_scales and source is not None:
        scales = [float(value) for value in source.exact.ravel()[: len(axes)]]
        doubts = [float(r) / scale for r, scale in zip(source.radius.ravel(), scales, strict=False)]
    return [
        _Axis(axis, x.exact.shape[axis], out, scale, doubt)
        for axis, out, scale, doubt in zip(axes, sizes, scales, doubts, strict=True)
    ]


def _nearest(x: Interval, exact: np.ndarray, params: ResizeParams, table: Sequence[_Axis]) -> Interval:
    """The element at either end of the range of positions along each axis."""
    low, high = x.low, x.high
    for one in table:
        coordinates, error = one.coordinates(params.transformation)
        ends = [
            resize.nearest(coordinates + side, params.nearest, one.size, one.scale).index[:, 0]
            for side in (-error, error)
        ]
        if max(np.abs(ends[1] - ends[0]), default=0) > 1:
            return settled(exact, exact, exact).open_where(np.ones(exact.shape, bool))
        low = np.minimum(*(np.take(low, as_indices(index), one.axis) for index in ends))
        high = np.maximum(*(np.take(high, as_indices(index), one.axis) for index in ends))
    if exact.dtype.kind != "f":
        return Interval(exact, np.minimum(low, exact), np.maximum(high, exact))
    return settled(floats(exact), floats(low), floats(high))


def _weighted(of: Algebra, x: Interval, exact: np.ndarray, params: ResizeParams, table: Sequence[_Axis]) -> Interval:
    """The sum along one axis after the other; the weights of each are rounded, and known up to a doubt."""
    size, reach, count = x.magnitude, x.radius, 1.0
    is_shrinking = min((one.scale for one in table), default=1) < 1
    base = size
    for one in table:
        weight, doubt = _weights(one, params, params.antialias and is_shrinking, of.arithmetic.unit)
        size, reach = _along(size, one.axis, weight + doubt), _along(reach, one.axis, weight + doubt)
        base = _along(base, one.axis, weight)
        count *= max(1.0, float((weight > 0).sum(0).max(initial=1)))
    with np.errstate(all="ignore"):
        reach = reach + np.maximum(size - base, 0) + 2 * of.arithmetic.unit * len(table) * size
        found = of.summed(settled(exact, exact - reach, exact + reach), size, count + 2 * len(table))
    return found.open_where(~np.isfinite(exact) | ~np.isfinite(size))


def _along(array: np.ndarray, axis: int, weight: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.moveaxis(np.tensordot(array, weight, (axis, 0)), -1, axis)


def _weights(one: _Axis, params: ResizeParams, antialias: bool, unit: float) -> tuple[np.ndarray, np.ndarray]:
    """The absolute weights (in, out) of an axis, and by how much each may differ, its rounding included."""
    make, slope = _maker(one, params, antialias)
    if params.is_pillow:
        taps = make(np.zeros(one.out))
        is_kept = one.size == one.out
        error = np.zeros(one.out) if is_kept else 8 * _F32 * (np.arange(one.out) * one.size / one.out + 1)
        weight = np.eye(one.size) if is_kept else _matrix(taps)
        touched = weight if is_kept else _matrix(taps, is_counted=True)
    else:
        coordinates, error = one.coordinates(params.transformation)
        weight = _matrix(make(coordinates))
        # At a border several taps are one element, each with a doubt of its own.
        touched = np.maximum.reduce(
            [_matrix(make(coordinates + e), is_counted=True) for e in (-error, 0 * error, error)]
        )
    doubt = touched * (slope * error + 8 * _F32 * (1 + slope)) + 2 * unit * weight
    total = weight.sum(0)
    if params.mode == "linear":
        # The weights are divided by their sum, which differs by the sum of their doubts.
        lost = np.minimum(doubt.sum(0), 1e300)
        scale = np.where(lost < total / 2, 1 / np.where(total == 0, 1, total - lost), np.inf)
        with np.errstate(all="ignore"):
            widened = (doubt + weight * (lost / np.where(total == 0, 1, total))) * scale
        doubt = np.where(touched > 0, np.where(np.isnan(widened), np.inf, widened), 0.0)
        weight = weight / np.where(total == 0, 1, total)
    return weight, doubt


def _maker(one: _Axis, params: ResizeParams, antialias: bool) -> tuple[Callable[[np.ndarray], Taps], float]:
    """The taps by coordinates, and the largest slope of a weight."""
    size = one.size
    if params.mode == "linear":
        factor = one.scale if antialias else 1.0
        return lambda c: resize.linear(c, size, one.scale, antialias), factor
    if params.mode == "linear_onnx":
        return lambda c: resize.linear_onnx(c, size), 1.0
    if params.mode == "cubic":
        return lambda c: resize.cubic(c, size, params.cube_coeff), cubic_slope(params.cube_coeff)
    if params.mode == "bilinear_pillow":
        return lambda c: resize.pillow(size, one.out, resize.triangle, 1.0), 1.0
    curve = resize.cubic_curve(params.cube_coeff)
    return lambda c: resize.pillow(size, one.out, curve, 2.0), cubic_slope(params.cube_coeff)


def cubic_slope(a: float) -> float:
    """The largest slope of Keys' kernel: that of (a + 2) x^3 - (a + 3) x^2 + 1, since beyond x = 1 it is less."""
    extreme = (a + 3) / (3 * (a + 2)) if a != -2 else -1.0
    return max(abs(a), (a + 3) ** 2 / abs(3 * (a + 2)) if 0 < extreme < 1 else 0.0)


def _matrix(taps: Taps, is_counted: bool = False) -> np.ndarray:
    """The absolute weights of the taps, or the number of taps with a weight, added up for each position, as (in, out):
    taps may cancel where they meet."""
    matrix = np.zeros((taps.size, len(taps.index)))
    weight = np.ones(taps.index.shape) if taps.weight is None else np.abs(floats(taps.weight))
    np.add.at(matrix, (taps.index, np.arange(len(taps.index))[:, None]), weight > 0 if is_counted else weight)
    return matrix
