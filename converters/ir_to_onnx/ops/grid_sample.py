"""GridSample."""

from __future__ import annotations

from typing import Any

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.ops.elementwise import rounded_cast
from converters.ir_to_onnx.registry import exact
from converters.ir_to_onnx.tensors import Tensor
from irexec.dtypes.elements import F32, F64


@exact("GridSample")
def grid_sample(ctx: ExportContext, data: Tensor, grid: Tensor, *, attributes: Any) -> Tensor:
    """GridSample; integers in floats, truncated."""
    mode = attributes.mode
    if ctx.opset >= 20:
        # The modes have had other names since then.
        mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    kind = data.element
    work = F64 if F64 in (kind, grid.element) or kind.bits > 32 else F32
    points = ctx.cast(grid, work)
    sampled = ctx.emit(
        "GridSample", ctx.cast(data, work), points, mode=mode, padding_mode=attributes.padding_mode,
        align_corners=int(attributes.align_corners),
    )  # fmt: skip
    return rounded_cast(ctx, sampled, kind) if kind.is_integer else ctx.cast(sampled, kind)
