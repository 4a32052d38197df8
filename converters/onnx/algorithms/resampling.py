"""Resizing by matrix products: the graph computes a matrix of weights for each axis.

All options of ONNX's Resize are supported, also for dynamic sizes; Interpolate supports fewer. Source: ONNX Resize-19
and its reference implementation, where the length of a resized axis is ``scale * size``, not rounded.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from converters.onnx.algorithms.expression import Expression, arange
from converters.onnx.context import TranslationContext
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
    """The resizing of one axis, as scalars of the graph.

    Attributes:
        axis: its index.
        size, out: sizes before and after, f64.
        scale: the ratio of the sizes, f64.
        roi: start and end of the region for tf_crop_and_resize, as fractions of the axis, f64.
    """

    axis: int
    size: Expression
    out: Expression
    scale: Expression
    roi: tuple[Expression, Expression] | None = None


def resampled(ctx: TranslationContext, x: Value, how: Resizing, axes: list[Stretch]) -> Value:
    """``x`` resized along the axes, one at a time."""
    kind, result = ctx.element(x), x
    if how.mode != "nearest" and not kind.is_float:
        result = ctx.convert(x, F32)
    outside: Expression | None = None
    for axis in axes:
        position = coordinates(ctx, how, axis)
        result = _along(ctx, result, how, axis, position)
        if how.transformation == "tf_crop_and_resize":
            is_outside = (position < 0) | (position > axis.size - 1)
            shaped = Expression(ctx, ctx.unsqueeze(is_outside.value, [i for i in range(ctx.rank(x)) if i != axis.axis]))
            outside = shaped if outside is None else outside | shaped
    if outside is not None:
        result = outside.select(how.extrapolation, Expression(ctx, result)).value
    return ctx.convert(result, kind)


def exact_nearest(
    ctx: TranslationContext, how: Resizing, size: Expression, out: Expression, ratio: tuple[Expression, Expression]
) -> Expression | None:
    """The index in the data of each index of the result in exact arithmetic, for modes that round to the nearest.

    None for other modes: floor and ceil are computed in f32 by ONNX Runtime 1.32 as by IR.

    Args:
        ctx: the context.
        how: the attributes.
        size, out: the sizes before and after, scalars of f64.
        ratio: numerator and denominator of the scale, integers of f64.
    """
    if how.mode != "nearest" or how.nearest not in ("round_prefer_floor", "round_prefer_ceil"):
        return None
    is_half = how.transformation in ("half_pixel", "pytorch_half_pixel")
    if not is_half and how.transformation not in ("asymmetric", "tf_half_pixel_for_nn"):
        return None
    i, (up, down) = arange(ctx, 0, out.to(I64), I64) * 2, ratio
    # The position times twice the numerator is an integer; half a pixel is one numerator. OpenVINO 2026.4 does not end
    # compiling two sums of f64 in sequence that depend on a ShapeOf, so the first is of i64.
    position = (i if how.transformation == "asymmetric" else i + 1).to(F64) * down
    shift = (-1 if how.nearest == "round_prefer_floor" else 1) - is_half
    index = (position + up * shift if shift else position) / (up * 2)
    index = index.ceil() if how.nearest == "round_prefer_floor" else index.floor()
    if how.transformation == "pytorch_half_pixel":
        index = out.equals(1).select(0, index)
    return index.maximum(0).minimum(size - 1)


def coordinates(ctx: TranslationContext, how: Resizing, axis: Stretch) -> Expression:
    """The position in the data of each index of the result: a vector of f64."""
    x = arange(ctx, 0, axis.out.to(I64), F64)
    size, scale, resized = axis.size, axis.scale, axis.scale * axis.size
    kind = how.transformation
    if kind == "asymmetric":
        return x / scale
    if kind == "align_corners":
        return resized.equals(1).select(0, x * (size - 1) / (resized - 1))
    if kind == "tf_crop_and_resize":
        if axis.roi is None:
            raise OpError("tf_crop_and_resize needs roi")
        start, end = axis.roi
        span = (end - start) * (axis.size - 1)
        return resized.equals(1).select(span * 0.5, x * span / (resized - 1)) + start * (axis.size - 1)
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


def _along(ctx: TranslationContext, x: Value, how: Resizing, axis: Stretch, position: Expression) -> Value:
    if how.mode == "nearest":
        nearest = _nearest(position, how.nearest, axis.scale).maximum(0).minimum(axis.size - 1)
        return ctx.emit("Gather", x, nearest.to(I64).value, ctx.constant(axis.axis))
    if how.mode not in ("linear", "cubic"):
        raise OpError(f"mode is {how.mode!r}, expected nearest, linear or cubic")
    matrix = _weights(ctx, how, axis, position, ctx.element(x))
    last = ctx.rank(x) - 1
    if axis.axis == last - 1:
        return ctx.emit("MatMul", matrix, x)
    order = [i for i in range(last + 1) if i != axis.axis] + [axis.axis]
    product = ctx.emit("MatMul", ctx.transpose(x, order), matrix, transpose_b=True)
    return ctx.transpose(product, [int(i) for i in np.argsort(order)])


def _nearest(position: Expression, rounding: str, scale: Expression) -> Expression:
    """The nearest index; "simple" is that of Resize-10, rounded up along an axis that shrinks, otherwise down."""
    if rounding == "round_prefer_floor":
        return (position - 0.5).ceil()
    if rounding == "round_prefer_ceil":
        return (position + 0.5).floor()
    if rounding in ("floor", "ceil"):
        return position.floor() if rounding == "floor" else position.ceil()
    if rounding == "simple":
        return (scale < 1).select(position.ceil(), position.floor())
    raise OpError(f"nearest_mode {rounding!r} is not known")


def _weights(ctx: TranslationContext, how: Resizing, axis: Stretch, position: Expression, kind: Element) -> Value:
    """The matrix of weights, (out, size). Taps outside the data read its border, or are excluded."""
    filter_scale = axis.scale.minimum(1) if how.antialias else Expression(ctx, ctx.constant(1.0, F64))
    size = axis.size.to(I64)
    if how.exclude_outside:
        taps = arange(ctx, 0, size, F64)
    else:
        radius = ((2.0 if how.mode == "cubic" else 1.0) / filter_scale).ceil().to(I64) + 1
        taps = arange(ctx, -radius, size + radius, F64)
    distance = abs(position.column() - taps) * filter_scale
    weights = _cubic(distance, how.cubic) if how.mode == "cubic" else (1 - distance).maximum(0)
    if how.exclude_outside or how.antialias:
        weights = weights / weights.sum(1)
    if not how.exclude_outside:
        indices = arange(ctx, 0, size, F64)
        weights = weights @ taps.maximum(0).minimum(axis.size - 1).column().equals(indices).to(F64)
    return weights.to(kind).value


def _cubic(distance: Expression, a: float) -> Expression:
    """The cubic kernel: one polynomial up to distance 1, another up to 2, then 0."""
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    zero = distance * 0
    return (distance < 1).select(near, (distance < 2).select(far, zero))
