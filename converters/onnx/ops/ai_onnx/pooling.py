"""Pooling."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
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
        indices = _column_major(ctx, indices, ctx.static(x, "the data"))
    return values, indices


def _column_major(ctx: TranslationContext, indices: Value, shape: tuple[int, ...]) -> Value:
    """Indices into row-major data as indices into column-major data."""
    area = math.prod(shape[2:])
    inner = ctx.emit("FloorMod", indices, ctx.constant(area))
    result: Value = ctx.emit("Subtract", indices, inner)
    row, column = area, 1
    for size in shape[2:]:
        row //= size
        index = ctx.emit("FloorMod", ctx.emit("Divide", inner, ctx.constant(row)), ctx.constant(size))
        result = ctx.emit("Add", result, ctx.emit("Multiply", index, ctx.constant(column)))
        column *= size
    return result


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
    sizes = _spatial_sizes(ctx, x, windows)
    axes = _axes_rounded_up(windows, sizes)
    # End padding that only an omitted window would cover is left out: rounding up then gives the same count.
    ends = [
        max(0, min(end, (count - 1) * stride + kernel - size - begin))
        for size, count, stride, kernel, begin, end in axes
    ]
    padded = _padded(ctx, x, windows.pads_begin, ends)
    none = [0] * len(ends)
    return _average(ctx, padded, replace(windows, pads_begin=none, pads_end=none), rounding, exclude_pad=True)


def _axes_rounded_up(windows: Windows, sizes: Sequence[int]) -> Iterator[tuple[int, int, int, int, int, int]]:
    """Size, number of windows rounded up, stride, effective kernel size and pads of each axis."""
    counts = windows.counts_rounded_up(sizes)
    return zip(
        sizes, counts, windows.strides, windows.effective_kernel, windows.pads_begin, windows.pads_end, strict=True
    )


def _spatial_sizes(ctx: TranslationContext, x: Value, windows: Windows) -> tuple[int, ...]:
    sizes = ctx.static(x, "the data")[2:]
    if len(sizes) != len(windows.kernel):
        raise OpError(
            f"the data {ctx.fact(x)} does not have the {counted(len(windows.kernel), 'spatial axis')} of the kernel"
        )
    return sizes


def _padded(ctx: TranslationContext, x: Value, begins: list[int], ends: list[int]) -> Value:
    if not any(begins) and not any(ends):
        return x
    return ctx.emit("Pad", x, [0, 0, *begins], [0, 0, *ends], ctx.constant(0, x), pad_mode="constant")


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
    if _rounding(windows, given.ceil_mode) != "floor":
        sizes = _spatial_sizes(ctx, x, windows)
        axes = _axes_rounded_up(windows, sizes)
        ends = [
            max(end, (count - 1) * stride + kernel - size - begin) for size, count, stride, kernel, begin, end in axes
        ]
        windows = replace(windows, pads_end=ends)
    means = _average(ctx, _powers(ctx, x, p), windows, "floor", exclude_pad=False)
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
