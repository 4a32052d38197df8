"""Transposed convolution."""

from __future__ import annotations

from dataclasses import replace

from converters.onnx.algorithms.convolution import add_bias, conv_windows, grouped_weights
from converters.onnx.algorithms.expression import Expression
from converters.onnx.algorithms.windows import WindowAttributes, Windows, broadcast_to_axes
from converters.onnx.context import TranslationContext
from converters.onnx.registry import translates
from irexec.errors import OpError
from irexec.ir.graph import Value


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
            # There is no padding if the kernel is smaller than the stride, even with output_padding.
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
