"""Pooling."""

from __future__ import annotations

import functools
import math
import operator
from dataclasses import replace
from typing import Any

from converters.onnx.algorithms.expression import Expression
from converters.onnx.algorithms.windows import PoolAttributes, Windows, broadcast_to_axes
from converters.onnx.context import TranslationContext
from converters.onnx.registry import translates
from irexec.dtypes.elements import I64
from irexec.errors import OpError
from irexec.ir.graph import Value
from irexec.messages import counted


def _rounding(windows: Windows, ceil_mode: int) -> str:
    """The rounding type of IR. With ceil_mode no window starts in the end padding; auto_pad leaves nothing to round."""
    return "ceil_torch" if ceil_mode and windows.auto_pad == "explicit" else "floor"


@translates("MaxPool")
def max_pool(ctx: TranslationContext, x: Value, *, given: PoolAttributes, storage_order: int = 0) -> tuple[Value, ...]:
    """The maxima, and their indices in the flattened data."""
    windows = Windows.of(given.kernel_shape, given)
    values, indices = ctx.emit(
        "MaxPool", x, version=14, kernel=windows.kernel, rounding_type=_rounding(windows, given.ceil_mode),
        index_element_type="i64", axis=0, **windows.attributes(),
    )  # fmt: skip
    if storage_order and ctx.needs_output(1):
        indices = _column_major(ctx, indices, x)
    return values, indices


def _column_major(ctx: TranslationContext, indices: Value, x: Value) -> Value:
    """Indices into row-major data as indices into column-major data."""
    sizes = [Expression(ctx, ctx.size(x, axis)) for axis in _spatial_axes(ctx, x)]
    area = functools.reduce(operator.mul, sizes).settled()
    whole = Expression(ctx, indices)
    inner = whole.modulo(area)
    result, row, column = whole - inner, area, Expression(ctx, ctx.constant(1))
    for size in sizes:
        row = (row / size).settled()
        result = result + (inner / row).modulo(size.settled()) * column
        column = (column * size).settled()
    return result.value


@translates("AveragePool")
def average_pool(ctx: TranslationContext, x: Value, *, given: PoolAttributes, count_include_pad: int = 0) -> Value:
    """Means of the windows.

    With count_include_pad ONNX counts the padding, but no elements beyond it, which windows have with ceil_mode; IR
    counts the whole window. In that case a Pad replaces the padding, and IR's own padding is not counted.
    """
    windows = Windows.of(given.kernel_shape, given)
    rounding = _rounding(windows, given.ceil_mode)
    if not count_include_pad or rounding == "floor" or not windows.is_padded:
        return _average(ctx, x, windows, rounding, exclude_pad=not count_include_pad)
    # End padding that only an omitted window would cover is left out: rounding up then gives the same count.
    ends = _reach(ctx, x, windows).minimum(Expression(ctx, ctx.constant(windows.pads_end))).maximum(0)
    return _average(ctx, *_padded(ctx, x, windows, ends), rounding, exclude_pad=True)


def _reach(ctx: TranslationContext, x: Value, windows: Windows) -> Expression:
    """The number of elements after the data, along each spatial axis, that the last window covers.

    The number of windows is rounded up; the last may not start in the padding at the end.
    """
    axes = len(windows.kernel)
    if ctx.rank(x, "the data") != 2 + axes:
        raise OpError(f"the data {ctx.fact(x)} does not have the {counted(axes, 'spatial axis')} of the kernel")
    strides, kernel, begins, ends = (
        Expression(ctx, ctx.constant(each))
        for each in (windows.strides, windows.effective_kernel, windows.pads_begin, windows.pads_end)
    )
    sizes = begins + Expression(ctx, ctx.emit("Slice", ctx.shape_of(x), [2], [2 + axes], [1], [0]))
    steps = (sizes + ends - kernel + strides - 1) / strides
    steps = (steps * strides >= sizes).select(steps - 1, steps)
    return steps * strides + kernel - sizes


def _padded(ctx: TranslationContext, x: Value, windows: Windows, ends: Expression) -> tuple[Value, Windows]:
    """The data with zeros around it, and the windows without padding."""
    none = [0] * len(windows.kernel)
    begins = [0, 0, *windows.pads_begin]
    all_ends = Expression(ctx, ctx.emit("Concat", [0, 0], ends.value, axis=0)).settled().value
    if any(begins) or ctx.ints_if_known(all_ends) != (0, 0, *none):
        x = ctx.emit("Pad", x, begins, all_ends, ctx.constant(0, x), pad_mode="constant")
    return x, replace(windows, pads_begin=none, pads_end=none)


def _average(ctx: TranslationContext, x: Value, windows: Windows, rounding: str, *, exclude_pad: bool) -> Value:
    """AvgPool in its oldest sufficient version."""
    attributes: dict[str, Any] = windows.attributes()
    version = 16 if any(dilation != 1 for dilation in windows.dilations) else 14 if rounding == "ceil_torch" else 1
    if version < 16:
        del attributes["dilations"]
    attributes |= {"kernel": windows.kernel, "exclude_pad": exclude_pad, "rounding_type": rounding}
    return ctx.emit("AvgPool", x, version=version, **attributes)


def _spatial_axes(ctx: TranslationContext, x: Value) -> list[int]:
    return list(range(2, ctx.rank(x, "the data")))


@translates("GlobalAveragePool")
def global_average_pool(ctx: TranslationContext, x: Value) -> Value:
    return ctx.emit("ReduceMean", x, _spatial_axes(ctx, x), keep_dims=True)


@translates("GlobalMaxPool")
def global_max_pool(ctx: TranslationContext, x: Value) -> Value:
    return ctx.emit("ReduceMax", x, _spatial_axes(ctx, x), keep_dims=True)


@translates("GlobalLpPool")
def global_lp_pool(ctx: TranslationContext, x: Value, *, p: float | int = 2) -> Value:
    """sum(abs(x) ** p) ** (1 / p)."""
    return _root(ctx, ctx.emit("ReduceSum", _powers(ctx, x, p), _spatial_axes(ctx, x), keep_dims=True), p)


def _powers(ctx: TranslationContext, x: Value, p: float) -> Value:
    if p <= 0:
        raise OpError(f"p is {p:g}, expected a positive value")
    if p == 2:
        return ctx.emit("Multiply", x, x)
    size: Value = ctx.emit("Abs", x)
    return size if p == 1 else ctx.emit("Power", size, ctx.constant(p, x))


def _root(ctx: TranslationContext, x: Value, p: float) -> Value:
    if p == 2:
        return ctx.emit("Sqrt", x)
    return x if p == 1 else ctx.emit("Power", x, ctx.constant(1 / p, x))


@translates("LpPool")
def lp_pool(ctx: TranslationContext, x: Value, *, given: PoolAttributes, p: float | int = 2) -> Value:
    """(mean(abs(x) ** p) * window size) ** (1 / p), with a padding of 0."""
    windows = Windows.of(given.kernel_shape, given)
    powers = _powers(ctx, x, p)
    if _rounding(windows, given.ceil_mode) != "floor":
        ends = _reach(ctx, x, windows).maximum(Expression(ctx, ctx.constant(windows.pads_end)))
        powers, windows = _padded(ctx, powers, windows, ends)
    means = _average(ctx, powers, windows, "floor", exclude_pad=False)
    return _root(ctx, ctx.emit("Multiply", means, ctx.constant(float(math.prod(given.kernel_shape)), x)), p)


@translates("MaxUnpool", since=9)
def max_unpool(
    ctx: TranslationContext, x: Value, indices: Value, output_shape: Value | None = None, *, kernel_shape: list[int],
    pads: list[int] | None = None, strides: list[int] | None = None,
) -> Value:  # fmt: skip
    """Values at their indices in the flattened tensor before pooling; zeros fill a larger output_shape at the end.

    Source: ONNX MaxUnpool-22 and its reference.
    """
    axes = len(kernel_shape)
    strides, pads = broadcast_to_axes(strides, axes, 1, "strides"), broadcast_to_axes(pads, 2 * axes, 0, "pads")
    pooled = ctx.shape_of(x)
    spatial = Expression(ctx, ctx.emit("Slice", pooled, [2], [2 + axes], [1], [0]))
    cut = [pads[i] + pads[axes + i] + strides[i] - kernel_shape[i] for i in range(axes)]
    sizes = spatial * Expression(ctx, ctx.constant(strides)) - Expression(ctx, ctx.constant(cut))
    shape = ctx.emit("Concat", ctx.emit("Slice", pooled, [0], [2], [1], [0]), sizes.value, axis=0)
    total = ctx.emit("ReduceProd", shape, [0], keep_dims=True)
    flat = [ctx.emit("Reshape", part, [-1], special_zero=False) for part in (indices, x)]
    flat_result = ctx.emit(
        "ScatterElementsUpdate", ctx.full(ctx.constant(0, x), total), *flat, ctx.constant(0), version=3
    )
    whole = ctx.emit("Reshape", flat_result, shape, special_zero=False)
    if output_shape is None:
        return whole
    more = ctx.emit("Subtract", ctx.convert(output_shape, I64), shape)
    return ctx.emit("Pad", whole, [0] * (axes + 2), more, ctx.constant(0, x), pad_mode="constant")
