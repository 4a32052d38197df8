"""Convolutions: forward, transposed, deformable; and ONNX Runtime's fused one."""

from __future__ import annotations

import warnings
from dataclasses import replace

from converters.onnx.context import Context
from converters.onnx.expression import Expression
from converters.onnx.ops.activation import activated
from converters.onnx.ops.windows import Windows, one_each
from converters.onnx.registry import translates
from irexec.errors import OpError
from irexec.ir.graph import Value


def conv_windows(
    b: Context, w: Value, kernel_shape: list[int] | None, strides: list[int] | None, dilations: list[int] | None, pads: list[int] | None,
    auto_pad: str,
) -> Windows:  # fmt: skip
    """The windows of weights, whose spatial sizes kernel_shape may only repeat."""
    sizes = b.sizes(w, "the weights")
    if len(sizes) < 3:
        raise OpError(f"the weights {b.fact(w)} have no spatial axes")
    if kernel_shape and any(isinstance(size, int) and size != k for size, k in zip(sizes[2:], kernel_shape, strict=False)):
        raise OpError(f"kernel_shape is {list(kernel_shape)}, the weights are {b.fact(w)}")
    kernel = kernel_shape or list(b.static(w, "the weights")[2:])
    return Windows.of(one_each(kernel, len(sizes) - 2, 1, "kernel_shape"), strides, dilations, pads, auto_pad)


def _grouped(b: Context, w: Value, group: int, *, transposed: bool) -> Value:
    """Weights with an axis of groups in front: (G, M/G, C/G, ...), or (G, C/G, M/G, ...) transposed."""
    first, *rest = b.static(w, "the weights")
    if group < 1 or first % group:
        raise OpError(f"{first} {'input' if transposed else 'output'} channels cannot be split into {group} groups")
    return b.reshape(w, [group, first // group, *rest])


def with_bias(b: Context, y: Value, bias: Value | None, rank: int) -> Value:
    """Plus one number for each channel; ``rank`` is that of the data."""
    return y if bias is None else b.emit("Add", y, b.along_channels(bias, rank))


def convolved(b: Context, x: Value, w: Value, group: int, windows: Windows) -> Value:
    """Convolution, or GroupConvolution where there is more than one group."""
    if group == 1:
        return b.emit("Convolution", x, w, **windows.attributes())
    return b.emit("GroupConvolution", x, _grouped(b, w, group, transposed=False), **windows.attributes())


@translates("Conv")
def conv(
    b: Context, x: Value, w: Value, bias: Value | None = None, *, auto_pad: str = "NOTSET", dilations: list[int] | None = None,
    group: int = 1, kernel_shape: list[int] | None = None, pads: list[int] | None = None, strides: list[int] | None = None,
) -> Value:  # fmt: skip
    windows = conv_windows(b, w, kernel_shape, strides, dilations, pads, auto_pad)
    return with_bias(b, convolved(b, x, w, group, windows), bias, b.rank(w))


@translates("FusedConv", domain="com.microsoft")
def fused_conv(
    b: Context, x: Value, w: Value, bias: Value | None = None, z: Value | None = None, *, activation: str = "",
    activation_params: list[float] | None = None, auto_pad: str = "NOTSET", dilations: list[int] | None = None, group: int = 1,
    kernel_shape: list[int] | None = None, pads: list[int] | None = None, strides: list[int] | None = None,
) -> Value:  # fmt: skip
    """The activation of a convolution plus bias plus Z."""
    windows = conv_windows(b, w, kernel_shape, strides, dilations, pads, auto_pad)
    y = with_bias(b, convolved(b, x, w, group, windows), bias, b.rank(w))
    return activated(b, y if z is None else b.emit("Add", y, z), activation, activation_params)


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
    for i, (stride, reach) in enumerate(zip(windows.strides, windows.reaches, strict=True)):
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
    return replace(windows, begins=begins, ends=ends), tails


@translates("ConvTranspose")
def conv_transpose(
    b: Context, x: Value, w: Value, bias: Value | None = None, *, auto_pad: str = "NOTSET", dilations: list[int] | None = None,
    group: int = 1, kernel_shape: list[int] | None = None, output_padding: list[int] | None = None, output_shape: list[int] | None = None,
    pads: list[int] | None = None, strides: list[int] | None = None,
) -> Value:  # fmt: skip
    """ConvolutionBackpropData with explicit pads, whatever the ONNX model says."""
    windows = conv_windows(b, w, kernel_shape, strides, dilations, pads, auto_pad)
    rank = len(windows.kernel)
    tails = one_each(output_padding, rank, 0, "output_padding")
    for tail, stride, dilation in zip(tails, windows.strides, windows.dilations, strict=True):
        if tail >= max(stride, dilation):
            raise OpError(f"output_padding {tail} is not below stride {stride} or dilation {dilation}")
    # Some models put batch and channels in front.
    wanted = one_each(output_shape[-rank:], rank, 0, "output_shape") if output_shape else []
    windows, tails = _resolved(b, x, windows, tails, wanted)
    attributes = replace(windows, auto_pad="explicit").attributes() | {"output_padding": tails}
    if group == 1:
        y = b.emit("ConvolutionBackpropData", x, w, **attributes)
    else:
        y = b.emit("GroupConvolutionBackpropData", x, _grouped(b, w, group, transposed=True), **attributes)
    return with_bias(b, y, bias, rank + 2)


def _spatial_sizes(b: Context, x: Value, rank: int) -> list[int]:
    sizes = b.sizes(x, "the data")[2:]
    if len(sizes) != rank:
        raise OpError(f"the data {b.fact(x)} has not {rank} spatial axes, as the weights have")
    if not all(isinstance(size, int) for size in sizes):
        raise OpError(f"the spatial sizes of the data, {b.fact(x)}, must be known to resolve output_shape: give them with --input")
    return [int(size) for size in sizes if isinstance(size, int)]


@translates("DeformConv", since=19)
def deform_conv(
    b: Context, x: Value, w: Value, offset: Value, bias: Value | None = None, mask: Value | None = None, *,
    dilations: list[int] | None = None, group: int = 1, kernel_shape: list[int] | None = None, offset_group: int = 1,
    pads: list[int] | None = None, strides: list[int] | None = None,
) -> Value:  # fmt: skip
    """DeformableConvolution-8, or irexec's own operation where there are not two spatial axes."""
    windows = conv_windows(b, w, kernel_shape, strides, dilations, pads, "NOTSET")
    rank = len(windows.kernel)
    if rank != 2:
        text = f"DeformConv {b.name!r} over {rank} spatial axes becomes an operation of irexec's own, which OpenVINO does not load"
        warnings.warn(text, stacklevel=2)
    y = b.emit(
        "DeformableConvolution", x, offset, w, mask, version=8 if rank == 2 else "irexec", group=group, deformable_group=offset_group,
        bilinear_interpolation_pad=True, **windows.attributes(),
    )  # fmt: skip
    return with_bias(b, y, bias, rank + 2)


@translates("CausalConvWithState", since=27)
def causal_conv_with_state(
    b: Context, x: Value, w: Value, bias: Value | None = None, past_state: Value | None = None, *, activation: str = "none"
) -> tuple[Value, ...]:
    """Each channel by itself, along the past state and the data; the end of both is the state to come."""
    if activation not in ("none", "silu", "swish"):
        raise OpError(f"activation is {activation!r}, expected none, silu or swish")
    channels, _, kernel = b.static(w, "the weights")
    if past_state is not None:
        padded = b.emit("Concat", past_state, x, axis=2)
    else:
        padded = b.emit("Pad", x, [0, 0, kernel - 1], [0, 0, 0], b.constant(0, x), pad_mode="constant")
    windows = Windows.of([kernel], None, None, None, "NOTSET")
    y = with_bias(b, convolved(b, padded, w, channels, windows), bias, 3)
    y = y if activation == "none" else b.emit("Swish", y)
    length = Expression(b, b.size(padded, 2)).unsqueezed(0)
    return y, b.emit("Slice", padded, (length - (kernel - 1)).value, length.value, [1], [2])
