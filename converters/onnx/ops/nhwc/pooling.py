"""com.ms.internal.nhwc: pooling of channels-last data."""

from __future__ import annotations

from typing import Any

from converters.onnx.algorithms.channels_last import add_channels_last
from converters.onnx.context import TranslationContext
from converters.onnx.ops.ai_onnx.pooling import average_pool, global_average_pool, global_max_pool, max_pool
from irexec.errors import ConversionError
from irexec.ir.graph import Value


def _max_pool(ctx: TranslationContext, x: Value, **attributes: Any) -> Any:
    """The values alone: indices into channels-first data would be wrong."""
    if ctx.needs_output(1):
        raise ConversionError("the indices of a channels-last MaxPool are not supported", unsupported=True)
    return max_pool(ctx, x, **attributes)[:1]


add_channels_last("AveragePool", 1, average_pool)
add_channels_last("MaxPool", 1, _max_pool, schema=max_pool)
add_channels_last("GlobalAveragePool", 1, global_average_pool)
add_channels_last("GlobalMaxPool", 1, global_max_pool)
