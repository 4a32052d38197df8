"""Convolutions: forward, transposed, deformable; and ONNX Runtime's fused one."""

from __future__ import annotations

import warnings

from converters.onnx.context import Context
from converters.onnx.ops.activations import activated
from converters.onnx.ops.windows import ir_auto_pad
from converters.onnx.registry import translates
from irexec.errors import OpError
from irexec.ir.elements import F32, I32
from irexec.ir.graph import Value


def _list(numbers: list[int] | None, count: int, default: int, what: str) -> list[int]:
    found = [default] * count if not numbers else list(numbers)
    if len(found) != count:
        raise OpError(f"{what} has {len(found)} numbers, expected {count}")
    return found


def _grouped(b: Context, w: Value, group: int, *, transposed: bool) -> Value:
    """Weights with an axis of groups in front: (G, M/G, C/G, ...), or (G, C/G, M/G, ...) transposed."""
    first, second, *kernel = b.static(w, "the weights")
    if first % group:
        raise OpError(f"{first} {'input' if transposed else 'output'} channels cannot be split into {group} groups")
    return b.emit("Reshape", w, [group, first // group, second, *kernel], special_zero=False)


def with_bias(b: Context, y: Value, bias: Value | None) -> Value:
    """Plus one number a channel."""
    if bias is None:
        return y
    return b.emit("Add", y, b.emit("Reshape", bias, [1, -1] + [1] * (b.rank(y) - 2), special_zero=False))


@translates("Conv")
def conv(
    b: Context, x: Value, w: Value, bias: Value | None = None, *, auto_pad: str = "NOTSET", dilations: list[int] | None = None,
    group: int = 1, kernel_shape: list[int] | None = None, pads: list[int] | None = None, strides: list[int] | None = None,
) -> Value:  # fmt: skip
    """Convolution, or GroupConvolution where there is more than one group."""
    rank = b.rank(w) - 2
    both = _list(pads, 2 * rank, 0, "pads")
    if kernel_shape and list(kernel_shape) != list(b.sizes(w)[2:]):
        raise OpError(f"kernel_shape is {list(kernel_shape)}, the weights are {b.fact(w)}")
    texts = {
        "strides": _list(strides, rank, 1, "strides"), "dilations": _list(dilations, rank, 1, "dilations"),
        "pads_begin": both[:rank], "pads_end": both[rank:], "auto_pad": ir_auto_pad(auto_pad),
    }  # fmt: skip
    if group == 1:
        return with_bias(b, b.emit("Convolution", x, w, **texts), bias)
    return with_bias(b, b.emit("GroupConvolution", x, _grouped(b, w, group, transposed=False), **texts), bias)


@translates("FusedConv", domain="com.microsoft")
def fused_conv(
    b: Context, x: Value, w: Value, bias: Value | None = None, z: Value | None = None, *, activation: str = "",
    activation_params: list[float] | None = None, auto_pad: str = "NOTSET", dilations: list[int] | None = None, group: int = 1,
    kernel_shape: list[int] | None = None, pads: list[int] | None = None, strides: list[int] | None = None,
) -> Value:  # fmt: skip
    """The activation of a convolution plus bias plus Z."""
    texts = {"auto_pad": auto_pad, "dilations": dilations, "group": group, "kernel_shape": kernel_shape, "pads": pads, "strides": strides}
    y = conv(b, x, w, bias, **texts)  # type: ignore[arg-type]
    y = y if z is None else b.emit("Add", y, z)
    return activated(b, y, activation, activation_params)


@translates("ConvInteger", since=10)
def conv_integer(
    b: Context, x: Value, w: Value, x_zero: Value | None = None, w_zero: Value | None = None, *, auto_pad: str = "NOTSET",
    dilations: list[int] | None = None, group: int = 1, kernel_shape: list[int] | None = None, pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Value:  # fmt: skip
    """A convolution of what remains after the zero points, in i32."""
    wide = b.emit("Convert", x, destination_type=F32)
    if x_zero is not None:
        wide = b.emit("Subtract", wide, b.emit("Convert", x_zero, destination_type=F32))
    weights = b.emit("Convert", w, destination_type=F32)
    if w_zero is not None:
        zero = b.emit("Convert", w_zero, destination_type=F32)
        if b.rank(zero):
            zero = b.emit("Reshape", zero, [-1] + [1] * (b.rank(w) - 1), special_zero=False)
        weights = b.emit("Subtract", weights, zero)
    y = conv(b, wide, weights, auto_pad=auto_pad, dilations=dilations, group=group, kernel_shape=kernel_shape, pads=pads, strides=strides)
    return b.emit("Convert", y, destination_type=I32)


def explicit_pads(
    sizes: list[int], kernel: list[int], strides: list[int], dilations: list[int], extra: list[int], auto_pad: str, output_shape: list[int]
) -> tuple[list[int], list[int], list[int]]:
    """(begins, ends, output_padding) that give an ONNX ConvTranspose what its auto_pad or output_shape asks for.

    The odd half of the padding goes by ONNX's rules: to the end for SAME_UPPER, to the start for
    everything else; where the result is larger than what there is, zeros are added at its end.
    """
    begins, ends, tails = [], [], []
    for i, size in enumerate(sizes):
        natural = strides[i] * (size - 1) + dilations[i] * (kernel[i] - 1) + 1
        reach = dilations[i] * (kernel[i] - 1) + 1
        # Where the kernel does not even reach the next stride, runtimes give the natural size.
        out = output_shape[i] if output_shape else size * strides[i] if reach >= strides[i] else natural
        total = max(0, natural - out + extra[i])
        begin = total // 2 if auto_pad == "SAME_UPPER" else total - total // 2
        end = natural - out - begin
        begins.append(begin)
        ends.append(max(end, 0))
        tails.append(max(-end, 0))
    return begins, ends, tails


@translates("ConvTranspose")
def conv_transpose(
    b: Context, x: Value, w: Value, bias: Value | None = None, *, auto_pad: str = "NOTSET", dilations: list[int] | None = None,
    group: int = 1, kernel_shape: list[int] | None = None, output_padding: list[int] | None = None, output_shape: list[int] | None = None,
    pads: list[int] | None = None, strides: list[int] | None = None,
) -> Value:  # fmt: skip
    """ConvolutionBackpropData with explicit pads, whatever the ONNX model says."""
    ir_auto_pad(auto_pad)
    rank = b.rank(w) - 2
    if kernel_shape and list(kernel_shape) != list(b.sizes(w)[2:]):
        raise OpError(f"kernel_shape is {list(kernel_shape)}, the weights are {b.fact(w)}")
    steps, apart = _list(strides, rank, 1, "strides"), _list(dilations, rank, 1, "dilations")
    tails = _list(output_padding, rank, 0, "output_padding")
    for tail, step, dilation in zip(tails, steps, apart, strict=True):
        if tail >= max(step, dilation):
            raise OpError(f"output_padding {tail} is not below stride {step} or dilation {dilation}")
    both = _list(pads, 2 * rank, 0, "pads")
    begins, ends = both[:rank], both[rank:]
    if output_shape or auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        kernel = list(b.static(w, "the weights")[2:])
        sizes = _spatial_sizes(b, x)
        wanted = _list(list(output_shape)[-rank:], rank, 0, "output_shape") if output_shape else []
        begins, ends, tails = explicit_pads(sizes, kernel, steps, apart, tails, auto_pad, wanted)
    elif auto_pad == "VALID":
        begins, ends = [0] * rank, [0] * rank
    texts = {"strides": steps, "dilations": apart, "pads_begin": begins, "pads_end": ends, "output_padding": tails, "auto_pad": "explicit"}
    if group == 1:
        return with_bias(b, b.emit("ConvolutionBackpropData", x, w, **texts), bias)
    y = b.emit("GroupConvolutionBackpropData", x, _grouped(b, w, group, transposed=True), **texts)
    return with_bias(b, y, bias)


def _spatial_sizes(b: Context, x: Value) -> list[int]:
    sizes = b.sizes(x)[2:]
    if not all(isinstance(size, int) for size in sizes):
        raise OpError(f"the spatial sizes of {b.fact(x)} must be known to resolve auto_pad or output_shape: give them with --input")
    return [int(size) for size in sizes if isinstance(size, int)]


@translates("DeformConv", since=19)
def deform_conv(
    b: Context, x: Value, w: Value, offset: Value, bias: Value | None = None, mask: Value | None = None, *, dilations: list[int] | None = None,
    group: int = 1, kernel_shape: list[int] | None = None, offset_group: int = 1, pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Value:  # fmt: skip
    """DeformableConvolution-8, or irexec's own operation where there are not two spatial axes."""
    rank = b.rank(w) - 2
    both = _list(pads, 2 * rank, 0, "pads")
    texts = {
        "strides": _list(strides, rank, 1, "strides"), "dilations": _list(dilations, rank, 1, "dilations"), "pads_begin": both[:rank],
        "pads_end": both[rank:], "auto_pad": "explicit", "group": group, "deformable_group": offset_group,
        "bilinear_interpolation_pad": True,
    }  # fmt: skip
    if rank != 2:
        warnings.warn(
            f"DeformConv over {rank} spatial axes becomes an operation of irexec's own, which OpenVINO does not load", stacklevel=2
        )
    y = b.emit("DeformableConvolution", x, offset, w, mask, version=8 if rank == 2 else "irexec", **texts)
    return with_bias(b, y, bias)
