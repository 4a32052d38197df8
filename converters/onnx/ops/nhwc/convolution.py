"""com.ms.internal.nhwc: convolution of channels-last data, with an activation fused into it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from converters.onnx.algorithms.channels_last import add_channels_last
from converters.onnx.context import TranslationContext
from converters.onnx.ops.ai_onnx.conv_transpose import conv_transpose
from converters.onnx.ops.ai_onnx.convolution import conv
from converters.onnx.ops.com_microsoft.activation import fused_activation
from irexec.ir.graph import Value

_ACTIVATION = {"activation": ("STRING",), "activation_params": ("FLOATS",)}


def _activated(convolution: Callable[..., Value]) -> Callable[..., Value]:
    """The convolution, followed by the activation of the node."""

    def translate(
        ctx: TranslationContext,
        *inputs: Value | None,
        activation: str = "",
        activation_params: list[float] | None = None,
        **attributes: Any,
    ) -> Value:
        return fused_activation(ctx, convolution(ctx, *inputs, **attributes), activation, activation_params)

    return translate


add_channels_last("Conv", 1, _activated(conv), schema=conv, more=_ACTIVATION)
add_channels_last("ConvTranspose", 1, _activated(conv_transpose), schema=conv_transpose, more=_ACTIVATION)
