"""Pooling of regions of interest."""

from __future__ import annotations

from typing import Any

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.ops.shape import as_i64
from converters.ir_to_onnx.registry import exact
from converters.ir_to_onnx.tensors import Tensor
from irexec.dtypes.elements import F32, F64
from irexec.errors import check


@exact("ROIAlign", since=3)
def roi_align_3(ctx: ExportContext, data: Tensor, rois: Tensor, batch_indices: Tensor, *, attributes: Any) -> Tensor:
    """RoiAlign with the coordinates of asymmetric mode."""
    return _aligned(ctx, data, rois, batch_indices, attributes, "output_half_pixel")


@exact("ROIAlign", since=9)
def roi_align_9(ctx: ExportContext, data: Tensor, rois: Tensor, batch_indices: Tensor, *, attributes: Any) -> Tensor:
    """RoiAlign, from opset 16 on with half pixels."""
    is_half = attributes.aligned_mode != "asymmetric"
    if attributes.aligned_mode == "half_pixel":
        # ONNX subtracts half a pixel after scaling; IR adds half a pixel before that as well.
        rois = ctx.emit("Add", rois, ctx.scalar(0.5, rois))
    return _aligned(ctx, data, rois, batch_indices, attributes, "half_pixel" if is_half else "output_half_pixel")


def _aligned(
    ctx: ExportContext, data: Tensor, rois: Tensor, batch_indices: Tensor, attributes: Any, mode: str
) -> Tensor:
    has_mode = ctx.opset >= 16
    check(has_mode or mode == "output_half_pixel", f"ONNX's RoiAlign of opset {ctx.opset} has no half pixels")
    check(attributes.mode == "avg", "ONNX's RoiAlign takes the maximum of weighted pixels, IR that of points")
    kind, wide = data.element, F64 if data.element is F64 else F32
    found = ctx.emit(
        "RoiAlign", ctx.cast(data, wide), ctx.cast(rois, wide), as_i64(ctx, batch_indices), mode="avg",
        output_height=attributes.pooled_h, output_width=attributes.pooled_w,
        sampling_ratio=attributes.sampling_ratio, spatial_scale=attributes.spatial_scale,
        coordinate_transformation_mode=mode if has_mode else None,
    )  # fmt: skip
    return ctx.cast(found, kind)
