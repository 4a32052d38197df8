"""Windows of images: convolution, plain, with offsets and transposed, and pooling."""

from __future__ import annotations

import functools
import math
import operator
from dataclasses import replace
from typing import Annotated, Any, Literal

from converters.onnx.algorithms.expression import Expression
from converters.onnx.algorithms.windows import (
    PoolAttributes,
    WindowAttributes,
    Windows,
    add_bias,
    broadcast_to_axes,
    causal_convolution,
    conv_windows,
    convolve,
    grouped_weights,
)
from converters.onnx.context import TranslationContext
from converters.onnx.registry import translates
from irexec.dtypes.elements import I64
from irexec.errors import OpError
from irexec.ir.graph import Value
from irexec.messages import counted
from irexec.schema.opdef import Rank


@translates("Conv")
def conv(
    ctx: TranslationContext, x: Value, w: Value, bias: Value | None = None, *, group: int = 1, given: WindowAttributes
) -> Value:
    windows = conv_windows(ctx, w, given)
    return add_bias(ctx, convolve(ctx, x, w, group, windows), bias, ctx.rank(w))


@translates("CausalConvWithState", since=27)
def causal_conv_with_state(
    ctx: TranslationContext, x: Annotated[Value, Rank(3)], w: Annotated[Value, Rank(3)],
    bias: Annotated[Value, Rank(1)] | None = None, past_state: Annotated[Value, Rank(3)] | None = None, *,
    activation: Literal["none", "silu", "swish"] = "none",
) -> tuple[Value, ...]:  # fmt: skip
    """A depthwise convolution over the past state and the data; the last values of both are the new state."""
    return causal_convolution(ctx, x, w, bias, past_state, activation)[:2]


@translates("DeformConv", since=19, without=["auto_pad"])
def deform_conv(
    ctx: TranslationContext, x: Value, w: Value, offset: Value, bias: Value | None = None, mask: Value | None = None, *,
    given: WindowAttributes, group: int = 1, offset_group: int = 1,
) -> Value:  # fmt: skip
    """DeformableConvolution-8 for two spatial axes, else irexec's own operation."""
    windows = conv_windows(ctx, w, given)
    rank = len(windows.kernel)
    if rank != 2:
        kind = f"DeformConv {ctx.name!r} over {rank} spatial axes"
        ctx.warn(f"{kind} becomes an operation of irexec's own, which OpenVINO does not load")
    y = ctx.emit(
        "DeformableConvolution", x, offset, w, mask, version=8 if rank == 2 else "irexec", group=group,
        deformable_group=offset_group, bilinear_interpolation_pad=True, **windows.attributes(),
    )  # fmt: skip
    return add_bias(ctx, y, bias, rank + 2)


@translates("ConvTranspose")
def conv_transpose(
    ctx: TranslationContext, x: Value, w: Value, bias: Value | None = None, *, group: int = 1, given: WindowAttributes,
    output_padding: list[int] | None = None, output_shape: list[int] | None = None,
) -> Value:  # fmt: skip
    """ConvolutionBackpropData, always with explicit pads: runtimes disagree about automatic ones."""
    windows = conv_windows(ctx, w, given)
    rank = len(windows.kernel)
    extra = broadcast_to_axes(output_padding, rank, 0, "output_padding")
    for tail, stride, dilation in zip(extra, windows.strides, windows.dilations, strict=True):
        if tail >= max(stride, dilation):
            raise OpError(f"output_padding {tail} is not less than stride {stride} or dilation {dilation}")
    # In some models output_shape includes batch and channels.
    wanted = broadcast_to_axes(output_shape[-rank:], rank, 0, "output_shape") if output_shape else []
    weights = w if group == 1 else grouped_weights(ctx, w, group, transposed=True)
    if not wanted and not windows.auto_pad.startswith("same"):
        y = _transposed(ctx, x, weights, windows, extra)
    else:
        sizes = _spatial_sizes(ctx, x, rank) if wanted else []
        if sizes is None or not (given.kernel_shape or _spatial_sizes(ctx, w, rank)):
            y = _fitted(ctx, x, weights, windows, extra, wanted)
        else:
            y = _transposed(ctx, x, weights, *_resolved(windows, extra, wanted, sizes))
    return add_bias(ctx, y, bias, rank + 2)


def _transposed(
    ctx: TranslationContext, x: Value, weights: Value, windows: Windows, output_padding: list[int]
) -> Value:
    grouped = ctx.rank(weights) > len(windows.kernel) + 2
    attributes = replace(windows, auto_pad="explicit").attributes() | {"output_padding": output_padding}
    layer: Value = ctx.emit(f"{'Group' if grouped else ''}ConvolutionBackpropData", x, weights, **attributes)
    return layer


def _resolved(windows: Windows, extra: list[int], wanted: list[int], sizes: list[int]) -> tuple[Windows, list[int]]:
    """Explicit pads and output_padding with the effect of auto_pad or output_shape.

    The total padding, output_padding included, leaves a size of input * stride, or output_shape. Its odd element is at
    the end for SAME_UPPER, else at the start. Where output_shape exceeds the transposed convolution, zeros follow at
    the end. Source: ONNX ConvTranspose-22 and its runtimes.
    """
    begins, ends, tails = [], [], []
    for i, (stride, kernel) in enumerate(zip(windows.strides, windows.effective_kernel, strict=True)):
        if wanted:
            spare = stride * (sizes[i] - 1) + kernel - wanted[i]
            total = max(0, spare + extra[i])
        else:
            # Nothing is padded if the kernel is smaller than the stride, even with output_padding.
            total = max(0, kernel - stride + extra[i])
            spare = total - extra[i]
        begins.append(total // 2 if windows.auto_pad == "same_upper" else total - total // 2)
        ends.append(max(spare - begins[i], 0))
        tails.append(max(begins[i] - spare, 0))
    return replace(windows, pads_begin=begins, pads_end=ends), tails


def _fitted(
    ctx: TranslationContext, x: Value, weights: Value, windows: Windows, extra: list[int], wanted: list[int]
) -> Value:
    """The same for sizes that are known only when the model runs: the whole result, cut or padded afterwards."""
    rank = len(windows.kernel)
    none = [0] * rank
    whole = _transposed(ctx, x, weights, replace(windows, pads_begin=none, pads_end=none), none)
    size = _spatial_shape(ctx, whole, rank)
    added = Expression(ctx, ctx.constant(extra))
    if wanted:
        spare = size - Expression(ctx, ctx.constant(wanted))
        total = (spare + added).maximum(0)
    else:
        strided = _spatial_shape(ctx, x, rank) * Expression(ctx, ctx.constant(windows.strides))
        total = (size - strided + added).maximum(0)
        spare = total - added
    half = Expression(ctx, ctx.emit("Divide", total.value, ctx.constant(2)))
    begin = half if windows.auto_pad == "same_upper" else total - half
    ends = [ctx.emit("Concat", [0, 0], pads.value, axis=0) for pads in (-begin, begin - spare)]
    fitted: Value = ctx.emit("Pad", whole, *ends, ctx.constant(0, whole), pad_mode="constant")
    return fitted


def _spatial_shape(ctx: TranslationContext, x: Value, rank: int) -> Expression:
    return Expression(ctx, ctx.emit("Slice", ctx.shape_of(x), [2], [2 + rank], [1], [0]))


def _spatial_sizes(ctx: TranslationContext, x: Value, rank: int) -> list[int] | None:
    """The spatial sizes; None unless all of them are known.

    Raises:
        OpError: the number of axes does not fit.
    """
    sizes = ctx.sizes(x, "the data")[2:]
    if len(sizes) != rank:
        raise OpError(f"the data {ctx.fact(x)} does not have the {rank} spatial axes of the weights")
    known = [int(size) for size in sizes if isinstance(size, int)]
    return known if len(known) == rank else None


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
