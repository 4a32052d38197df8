"""com.microsoft: images sampled at points."""

from __future__ import annotations

from converters.onnx.context import Context
from converters.onnx.ops.ai_onnx.grid_sample import grid_sample_16
from converters.onnx.registry import COM_MICROSOFT, translates
from irexec.ir.graph import Value


@translates("GridSample", domain=COM_MICROSOFT)
def contrib_grid_sample(
    b: Context, x: Value, grid: Value, *, align_corners: int = 0, mode: str = "bilinear", padding_mode: str = "zeros"
) -> Value:
    return grid_sample_16(b, x, grid, mode=mode, padding_mode=padding_mode, align_corners=align_corners)
