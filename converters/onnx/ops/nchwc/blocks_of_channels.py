"""com.microsoft.nchwc: operators of ai.onnx on blocks of channels, as ONNX Runtime's layout optimiser writes them.

converters.onnx.blocked_layout has changed the weights, so that all data is (N, C, H, W). Source: onnxruntime
``nchwc_schema_defs.cc``.
"""

from __future__ import annotations

import numpy as np

from converters.onnx.context import TranslationContext
from converters.onnx.ops.ai_onnx.resampling import resize_11
from converters.onnx.ops.ai_onnx.windows import average_pool, global_average_pool, global_max_pool, max_pool
from converters.onnx.ops.com_microsoft.fused import fused_conv
from converters.onnx.registry import NCHWC, translates
from irexec.ir.graph import Value

translates("Conv", domain=NCHWC)(fused_conv)
translates("MaxPool", domain=NCHWC)(max_pool)
translates("AveragePool", domain=NCHWC)(average_pool)
translates("GlobalMaxPool", domain=NCHWC)(global_max_pool)
translates("GlobalAveragePool", domain=NCHWC)(global_average_pool)


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
