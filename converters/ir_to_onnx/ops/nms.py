"""NonMaxSuppression, and selections of boxes that are compositions of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.ops.shape import as_i64
from converters.ir_to_onnx.registry import exact, inexpressible
from converters.ir_to_onnx.tensors import Tensor
from irexec.dtypes.elements import F32
from irexec.errors import check

_ALL = int(np.iinfo(np.int64).max)


@exact("NonMaxSuppression")
def non_max_suppression(
    ctx: ExportContext, boxes: Tensor, scores: Tensor, max_output_boxes_per_class: Tensor | None = None,
    iou_threshold: Tensor | None = None, score_threshold: Tensor | None = None, soft_nms_sigma: Tensor | None = None, *,
    attributes: Any,
) -> tuple[Tensor, ...]:  # fmt: skip
    """NonMaxSuppression; sorted over all classes by TopK and Gather, the scores by GatherND."""
    if soft_nms_sigma is not None:
        sigma = soft_nms_sigma.require_value("soft_nms_sigma")
        check(bool((sigma <= 0).all()), "ONNX's NonMaxSuppression does not lower scores (soft_nms_sigma)")
    boxes, scores = ctx.cast(boxes, F32), ctx.cast(scores, F32)
    zero = ctx.constant([0.0], F32)
    iou, score = (zero if x is None else ctx.reshape(ctx.cast(x, F32), [1]) for x in (iou_threshold, score_threshold))
    triplets = ctx.emit("NonMaxSuppression", boxes, scores, _limit(ctx, max_output_boxes_per_class), iou, score,
                        center_point_box=int(attributes.box_encoding == "center"))  # fmt: skip
    if not attributes.sort_result_descending and len(ctx.node.outputs) == 1:
        return (triplets,)
    values = ctx.emit("GatherND", scores, triplets)
    if attributes.sort_result_descending:
        # TopK takes the first of equal scores, as IR does: by batch, then by class, then by box.
        values, order = ctx.emit_all("TopK", 2, values, ctx.emit("Shape", values), axis=0)
        triplets = ctx.emit("Gather", triplets, order, axis=0)
    lead = ctx.cast(ctx.slice(triplets, 0, 2, 1), F32)
    rows = ctx.concat(lead, ctx.unsqueeze(values, 1), axis=1)
    return triplets, rows, ctx.emit("Shape", values)


def _limit(ctx: ExportContext, limit: Tensor | None) -> Tensor:
    """The maximum number of boxes of a class; a negative one of IR does not limit."""
    if limit is None:
        return ctx.ints(0)
    if limit.value is not None:
        value = int(limit.value.ravel()[0])
        return ctx.ints(_ALL if value < 0 else value)
    count = ctx.reshape(as_i64(ctx, limit), [1])
    result: Tensor = ctx.where(ctx.emit("Less", count, ctx.ints(0)), ctx.ints(_ALL), count)
    return result


inexpressible("NMSRotated", reason="ONNX has no overlap of rotated boxes")
