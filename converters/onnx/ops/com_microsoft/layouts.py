"""com.ms.internal.nhwc and com.microsoft.nchwc: operators of ai.onnx as ONNX Runtime's layout optimiser writes them.

Of com.ms.internal.nhwc only input 0 and output 0 are (N, spatial..., C); weights, biases, pads and strides keep ONNX's
order. Of com.microsoft.nchwc, on blocks of channels, converters.onnx.blocked_layout has changed the weights, so that
all data is (N, C, H, W). Source: onnxruntime ``internal_nhwc_onnx_schemas.cc`` and ``nchwc_schema_defs.cc``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from converters.onnx.algorithms.windows import on_channels_last
from converters.onnx.context import TranslationContext
from converters.onnx.ops.ai_onnx.normalization import (
    batch_normalization_1,
    batch_normalization_14,
    instance_normalization,
)
from converters.onnx.ops.ai_onnx.resampling import resize_11
from converters.onnx.ops.ai_onnx.windows import (
    average_pool,
    conv,
    conv_transpose,
    global_average_pool,
    global_max_pool,
    max_pool,
)
from converters.onnx.ops.com_microsoft.elementwise import fused_activation
from converters.onnx.ops.com_microsoft.fused import fused_conv
from converters.onnx.registry import NCHWC, NHWC, add, translates
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
_add("MaxPool", 1, _max_pool, max_pool)
_add("BatchNormalization", 1, batch_normalization_1, without=["spatial", "is_test"])
_add("BatchNormalization", 14, batch_normalization_14)
_add("InstanceNormalization", 1, instance_normalization)
add("Conv", 1, NCHWC, fused_conv)
add("MaxPool", 1, NCHWC, max_pool)
for _operator, _pool in (
    ("AveragePool", average_pool), ("GlobalAveragePool", global_average_pool), ("GlobalMaxPool", global_max_pool),
):  # fmt: skip
    _add(_operator, 1, _pool)
    add(_operator, 1, NCHWC, _pool)


@translates("ReorderInput", domain=NCHWC)
def reorder_input(ctx: TranslationContext, x: Value, *, channels_last: int = 0) -> Value:
    return ctx.channels_first(x) if channels_last else x


@translates("ReorderOutput", domain=NCHWC)
def reorder_output(ctx: TranslationContext, x: Value, *, channels: int, channels_last: int = 0) -> Value:
    """The data without its padded channels, which are gone already."""
    return ctx.channels_last(x) if channels_last else x


@translates("Upsample", domain=NCHWC)
def upsample(
    ctx: TranslationContext, x: Value, *, scales: list[int] | None = None, mode: str = "nearest",
    coordinate_transformation_mode: str = "asymmetric",
) -> Value:  # fmt: skip
    """A Resize of ai.onnx; nearest rounds down."""
    factors = ctx.constant(np.array(scales or [1] * ctx.rank(x), np.float32))
    return resize_11(
        ctx, x, None, factors, mode=mode, coordinate_transformation_mode=coordinate_transformation_mode,
        nearest_mode="floor",
    )  # fmt: skip
