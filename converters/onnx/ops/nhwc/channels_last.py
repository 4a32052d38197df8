"""com.ms.internal.nhwc: operators of ai.onnx on channels-last data, as ONNX Runtime's layout optimiser writes them.

Only input 0 and output 0 are (N, spatial..., C); weights, biases, pads and strides keep ONNX's order.
Source: onnxruntime ``internal_nhwc_onnx_schemas.cc``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from converters.onnx.algorithms.windows import on_channels_last
from converters.onnx.context import TranslationContext
from converters.onnx.ops.ai_onnx.normalization import (
    batch_normalization_1,
    batch_normalization_14,
    instance_normalization,
)
from converters.onnx.ops.ai_onnx.windows import (
    average_pool,
    conv,
    conv_transpose,
    global_average_pool,
    global_max_pool,
    max_pool,
)
from converters.onnx.ops.com_microsoft.elementwise import fused_activation
from converters.onnx.registry import NHWC, add
from irexec.errors import ConversionError
from irexec.ir.graph import Value


def _add(
    operator: str, since: int, function: Callable[..., Any], *schemas: Callable[..., Any], without: Sequence[str] = ()
) -> None:
    """Register ``function`` between two transpositions; see ``registry.add``."""
    add(operator, since, NHWC, on_channels_last(function, 0), *(schemas or (function,)), without=without)


def _activated(convolution: Callable[..., Value]) -> Callable[..., Value]:
    """The convolution, followed by the activation of the node."""

    def translate(
        ctx: TranslationContext, *inputs: Value | None, activation: str = "",
        activation_params: list[float] | None = None, **attributes: Any,
    ) -> Value:  # fmt: skip
        return fused_activation(ctx, convolution(ctx, *inputs, **attributes), activation, activation_params)

    return translate


def _max_pool(ctx: TranslationContext, x: Value, **attributes: Any) -> Any:
    """The values alone: indices into channels-first data would be wrong."""
    if ctx.needs_output(1):
        raise ConversionError("the indices of a channels-last MaxPool are not supported", unsupported=True)
    return max_pool(ctx, x, **attributes)[:1]


_conv, _conv_transpose = _activated(conv), _activated(conv_transpose)
_add("Conv", 1, _conv, conv, _conv)
_add("ConvTranspose", 1, _conv_transpose, conv_transpose, _conv_transpose)
_add("AveragePool", 1, average_pool)
_add("MaxPool", 1, _max_pool, max_pool)
_add("GlobalAveragePool", 1, global_average_pool)
_add("GlobalMaxPool", 1, global_max_pool)
_add("BatchNormalization", 1, batch_normalization_1, without=["spatial", "is_test"])
_add("BatchNormalization", 14, batch_normalization_14)
_add("InstanceNormalization", 1, instance_normalization)
