"""com.microsoft: images sampled at points."""

from __future__ import annotations

from converters.onnx.context import TranslationContext
from converters.onnx.ops.ai_onnx.grid_sample import grid_sample_16
from converters.onnx.registry import COM_MICROSOFT, translates
from irexec.ir.graph import Value


@translates("GridSample", domain=COM_MICROSOFT)
def contrib_grid_sample(
    ctx: TranslationContext,
    x: Value,
    grid: Value,
    *,
    align_corners: int = 0,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
) -> Value:
    return grid_sample_16(ctx, x, grid, mode=mode, padding_mode=padding_mode, align_corners=align_corners)
