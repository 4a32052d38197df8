"""Transposed convolution."""

from __future__ import annotations

from dataclasses import replace

from converters.onnx.algorithms.convolution import add_bias, conv_windows, grouped_weights
from converters.onnx.algorithms.windows import WindowAttributes, Windows, broadcast_to_axes
from converters.onnx.context import TranslationContext
from converters.onnx.objections import NotKnownError
from converters.onnx.registry import translates
from irexec.errors import OpError
from irexec.ir.graph import Value


def _resolved(
    ctx: TranslationContext, x: Value, windows: Windows, extra: list[int], output_shape: list[int]
) -> tuple[Windows, list[int]]:
    """Explicit pads and output_padding with the effect of auto_pad or output_shape.

    The total padding, output_padding included, leaves a size of input * stride, or output_shape. Its odd element is at
    the end for SAME_UPPER, else at the start. Where output_shape exceeds the transposed convolution, zeros follow at
    the end. Source: ONNX ConvTranspose-22 and its runtimes.
    """
    if not output_shape and not windows.auto_pad.startswith("same"):
        return windows, extra
    sizes = _spatial_sizes(ctx, x, len(windows.kernel)) if output_shape else []
    begins, ends, tails = [], [], []
    for i, (stride, kernel) in enumerate(zip(windows.strides, windows.effective_kernel, strict=True)):
        if output_shape:
            spare = stride * (sizes[i] - 1) + kernel - output_shape[i]
            total = max(0, spare + extra[i])
        else:
            # There is no padding if the kernel is smaller than the stride, even with output_padding.
            total = max(0, kernel - stride + extra[i])
            spare = total - extra[i]
        begins.append(total // 2 if windows.auto_pad == "same_upper" else total - total // 2)
        ends.append(max(spare - begins[i], 0))
        tails.append(max(begins[i] - spare, 0))
    return replace(windows, pads_begin=begins, pads_end=ends), tails


@translates("ConvTranspose")
def conv_transpose(
    ctx: TranslationContext, x: Value, w: Value, bias: Value | None = None, *, group: int = 1, given: WindowAttributes,
    output_padding: list[int] | None = None, output_shape: list[int] | None = None,
) -> Value:  # fmt: skip
    """ConvolutionBackpropData, always with explicit pads: runtimes disagree about automatic ones."""
    # The pads for output_shape depend on the size of the kernel.
    kernel = given.kernel_shape or list(ctx.static(w, "the weights")[2:])
    windows = conv_windows(ctx, w, replace(given, kernel_shape=kernel))
    rank = len(windows.kernel)
    tails = broadcast_to_axes(output_padding, rank, 0, "output_padding")
    for tail, stride, dilation in zip(tails, windows.strides, windows.dilations, strict=True):
        if tail >= max(stride, dilation):
            raise OpError(f"output_padding {tail} is not less than stride {stride} or dilation {dilation}")
    # In some models output_shape includes batch and channels.
    wanted = broadcast_to_axes(output_shape[-rank:], rank, 0, "output_shape") if output_shape else []
    windows, tails = _resolved(ctx, x, windows, tails, wanted)
    attributes = replace(windows, auto_pad="explicit").attributes() | {"output_padding": tails}
    if group == 1:
        y = ctx.emit("ConvolutionBackpropData", x, w, **attributes)
    else:
        y = ctx.emit("GroupConvolutionBackpropData", x, grouped_weights(ctx, w, group, transposed=True), **attributes)
    return add_bias(ctx, y, bias, rank + 2)


def _spatial_sizes(ctx: TranslationContext, x: Value, rank: int) -> list[int]:
    sizes = ctx.sizes(x, "the data")[2:]
    if len(sizes) != rank:
        raise OpError(f"the data {ctx.fact(x)} does not have the {rank} spatial axes of the weights")
    if not all(isinstance(size, int) for size in sizes):
        raise NotKnownError(
            f"output_shape needs known spatial sizes of the data, {ctx.fact(x)}: give the input a shape"
        )
    return [int(size) for size in sizes if isinstance(size, int)]
