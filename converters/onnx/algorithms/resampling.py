"""Resizing by products: for each axis the matrix of weights that ONNX defines, computed in the graph.

It says everything that ONNX's Resize says, for sizes known or not; Interpolate says less. It
translates no operator of its own. Source: ONNX Resize-19 and its reference implementation, which
takes ``scale * size``, not rounded, for the length of the resized axis.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from converters.onnx.algorithms.expression import Expression, arange
from converters.onnx.context import Context
from irexec.dtypes.elements import F32, F64, I64, Element
from irexec.errors import OpError
from irexec.ir.graph import Value


@dataclass(frozen=True)
class Resizing:
    """The attributes of Resize."""

    mode: str = "nearest"
    transformation: str = "half_pixel"
    nearest: str = "round_prefer_floor"
    cubic: float = -0.75
    exclude_outside: bool = False
    extrapolation: float = 0.0
    antialias: bool = False


@dataclass(frozen=True)
class Stretch:
    """How one axis is resized, in scalars of the graph.

    Attributes:
        axis: which one.
        size, out: sizes before and after, f64.
        scale: how much longer it becomes, f64.
        roi: start and end of the region that tf_crop_and_resize takes, as shares of the axis, f64.
    """

    axis: int
    size: Expression
    out: Expression
    scale: Expression
    roi: tuple[Expression, Expression] | None = None


def resampled(b: Context, x: Value, how: Resizing, axes: list[Stretch]) -> Value:
    """``x`` resized along the axes, one after the other."""
    kind, result = b.element(x), x
    if how.mode != "nearest" and not kind.is_float:
        result = b.convert(x, F32)
    outside: Expression | None = None
    for axis in axes:
        where = coordinates(b, how, axis)
        result = _along(b, result, how, axis, where)
        if how.transformation == "tf_crop_and_resize":
            beyond = (where < 0) | (where > axis.size - 1)
            shaped = Expression(b, b.unsqueeze(beyond.value, [i for i in range(b.rank(x)) if i != axis.axis]))
            outside = shaped if outside is None else outside | shaped
    if outside is not None:
        result = outside.select(how.extrapolation, Expression(b, result)).value
    return b.convert(result, kind)


def coordinates(b: Context, how: Resizing, axis: Stretch) -> Expression:
    """Where in the data each place of the result lies: a vector of f64."""
    x = arange(b, 0, axis.out.to(I64), F64)
    size, scale, resized = axis.size, axis.scale, axis.scale * axis.size
    kind = how.transformation
    if kind == "asymmetric":
        return x / scale
    if kind == "align_corners":
        return resized.equals(1).select(0, x * (size - 1) / (resized - 1))
    if kind == "tf_crop_and_resize":
        return _cropped(x, axis, resized)
    half = (x + 0.5) / scale - 0.5
    if kind == "half_pixel":
        return half
    if kind == "pytorch_half_pixel":
        return axis.out.equals(1).select(0, half)
    if kind == "half_pixel_symmetric":
        return size * 0.5 * (1 - axis.out / resized) + half
    if kind == "tf_half_pixel_for_nn":
        return (x + 0.5) / scale
    raise OpError(f"coordinate_transformation_mode {kind!r} is not known")


def _cropped(x: Expression, axis: Stretch, resized: Expression) -> Expression:
    if axis.roi is None:
        raise OpError("tf_crop_and_resize needs roi")
    start, end = axis.roi
    span = (end - start) * (axis.size - 1)
    return resized.equals(1).select(span * 0.5, x * span / (resized - 1)) + start * (axis.size - 1)


def _along(b: Context, x: Value, how: Resizing, axis: Stretch, where: Expression) -> Value:
    if how.mode == "nearest":
        picked = _nearest(where, how.nearest).maximum(0).minimum(axis.size - 1)
        return b.emit("Gather", x, picked.to(I64).value, b.constant(axis.axis))
    if how.mode not in ("linear", "cubic"):
        raise OpError(f"mode {how.mode!r} is none of nearest, linear, cubic")
    matrix = _weights(b, how, axis, where, b.element(x))
    last = b.rank(x) - 1
    if axis.axis == last - 1:
        return b.emit("MatMul", matrix, x)
    order = [i for i in range(last + 1) if i != axis.axis] + [axis.axis]
    product = b.emit("MatMul", b.transpose(x, order), matrix, transpose_b=True)
    return b.transpose(product, [int(i) for i in np.argsort(order)])


def _nearest(where: Expression, rounding: str) -> Expression:
    if rounding == "round_prefer_floor":
        return (where - 0.5).ceil()
    if rounding == "round_prefer_ceil":
        return (where + 0.5).floor()
    if rounding in ("floor", "ceil"):
        return where.floor() if rounding == "floor" else where.ceil()
    raise OpError(f"nearest_mode {rounding!r} is not known")


def _weights(b: Context, how: Resizing, axis: Stretch, where: Expression, kind: Element) -> Value:
    """The matrix (out, size). Taps outside of the data count for its border, or not at all with exclude_outside."""
    narrow = axis.scale.minimum(1) if how.antialias else Expression(b, b.constant(1.0, F64))
    size = axis.size.to(I64)
    if how.exclude_outside:
        taps = arange(b, 0, size, F64)
    else:
        reach = ((2.0 if how.mode == "cubic" else 1.0) / narrow).ceil().to(I64) + 1
        taps = arange(b, -reach, size + reach, F64)
    distance = abs(where.column() - taps) * narrow
    curve = _cubic(distance, how.cubic) if how.mode == "cubic" else (1 - distance).maximum(0)
    if how.exclude_outside or how.antialias:
        curve = curve / curve.sum(1)
    if not how.exclude_outside:
        places = arange(b, 0, size, F64)
        curve = curve @ taps.maximum(0).minimum(axis.size - 1).column().equals(places).to(F64)
    return curve.to(kind).value


def _cubic(distance: Expression, a: float) -> Expression:
    """The cubic curve: one polynomial up to 1, another up to 2, and 0 beyond."""
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    zero = distance * 0
    return (distance < 1).select(near, (distance < 2).select(far, zero))
