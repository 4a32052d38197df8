"""com.microsoft: convolution with the sum and the activation after it."""

from __future__ import annotations

from converters.onnx.algorithms.convolution import add_bias, conv_windows, convolve
from converters.onnx.context import TranslationContext
from converters.onnx.ops.com_microsoft.activation import fused_activation
from converters.onnx.registry import translates
from irexec.ir.graph import Value


@translates("FusedConv", domain="com.microsoft")
def fused_conv(
    ctx: TranslationContext, x: Value, w: Value, bias: Value | None = None, z: Value | None = None, *,
    activation: str = "", activation_params: list[float] | None = None, auto_pad: str = "NOTSET",
    dilations: list[int] | None = None, group: int = 1, kernel_shape: list[int] | None = None,
    pads: list[int] | None = None, strides: list[int] | None = None,
) -> Value:  # fmt: skip
    """The activation of a convolution plus bias plus Z."""
    windows = conv_windows(ctx, w, kernel_shape, strides, dilations, pads, auto_pad)
    y = add_bias(ctx, convolve(ctx, x, w, group, windows), bias, ctx.rank(w))
    return fused_activation(ctx, y if z is None else ctx.emit("Add", y, z), activation, activation_params)
