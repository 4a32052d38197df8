"""Transposed convolution."""

from __future__ import annotations

from dataclasses import replace

from converters.onnx.algorithms.convolution import add_bias, conv_windows, grouped_weights
from converters.onnx.algorithms.windows import Windows, broadcast_to_axes
from converters.onnx.context import Context
from converters.onnx.registry import translates
from irexec.errors import OpError
from irexec.ir.graph import Value


def _resolved(b: Context, x: Value, windows: Windows, extra: list[int], output_shape: list[int]) -> tuple[Windows, list[int]]:
    """(windows with explicit pads, output_padding) that give what auto_pad or output_shape asks for.

    The total padding leaves in*stride, or the size asked for; the output padding of the model enters
    it. Its odd half goes to the end for SAME_UPPER, to the start for everything else. Where the result
    is larger than what there is, zeros follow. Source: ONNX ConvTranspose-22 and its runtimes.
    """
    if not output_shape and not windows.auto_pad.startswith("same"):
        return windows, extra
    sizes = _spatial_sizes(b, x, len(windows.kernel)) if output_shape else []
    begins, ends, tails = [], [], []
    for i, (stride, reach) in enumerate(zip(windows.strides, windows.effective_kernel, strict=True)):
        if output_shape:
            spare = stride * (sizes[i] - 1) + reach - output_shape[i]
            total = max(0, spare + extra[i])
        else:
            # Where not even the output padding reaches the next stride, the result keeps its natural size.
            total = max(0, reach - stride + extra[i])
            spare = total - extra[i]
        begins.append(total // 2 if windows.auto_pad == "same_upper" else total - total // 2)
        ends.append(max(spare - begins[i], 0))
        tails.append(max(begins[i] - spare, 0))
    return replace(windows, pads_begin=begins, pads_end=ends), tails


@translates("ConvTranspose")
def conv_transpose(
    b: Context, x: Value, w: Value, bias: Value | None = None, *, auto_pad: str = "NOTSET", dilations: list[int] | None = None,
    group: int = 1, kernel_shape: list[int] | None = None, output_padding: list[int] | None = None, output_shape: list[int] | None = None,
    pads: list[int] | None = None, strides: list[int] | None = None,
) -> Value:  # fmt: skip
    """ConvolutionBackpropData with explicit pads, whatever the ONNX model says."""
    windows = conv_windows(b, w, kernel_shape, strides, dilations, pads, auto_pad)
    rank = len(windows.kernel)
    tails = broadcast_to_axes(output_padding, rank, 0, "output_padding")
    for tail, stride, dilation in zip(tails, windows.strides, windows.dilations, strict=True):
        if tail >= max(stride, dilation):
            raise OpError(f"output_padding {tail} is not below stride {stride} or dilation {dilation}")
    # Some models put batch and channels in front.
    wanted = broadcast_to_axes(output_shape[-rank:], rank, 0, "output_shape") if output_shape else []
    windows, tails = _resolved(b, x, windows, tails, wanted)
    attributes = replace(windows, auto_pad="explicit").attributes() | {"output_padding": tails}
    if group == 1:
        y = b.emit("ConvolutionBackpropData", x, w, **attributes)
    else:
        y = b.emit("GroupConvolutionBackpropData", x, grouped_weights(b, w, group, transposed=True), **attributes)
    return add_bias(b, y, bias, rank + 2)


def _spatial_sizes(b: Context, x: Value, rank: int) -> list[int]:
    sizes = b.sizes(x, "the data")[2:]
    if len(sizes) != rank:
        raise OpError(f"the data {b.fact(x)} has not {rank} spatial axes, as the weights have")
    if not all(isinstance(size, int) for size in sizes):
        raise OpError(f"the spatial sizes of the data, {b.fact(x)}, must be known to resolve output_shape: give them with --input")
    return [int(size) for size in sizes if isinstance(size, int)]
