"""Suppression of boxes that overlap boxes of a higher score."""

from __future__ import annotations

from converters.onnx.context import TranslationContext
from converters.onnx.registry import translates
from irexec.dtypes.elements import I64
from irexec.ir.graph import Value


@translates("NonMaxSuppression", since=10)
def non_max_suppression(
    ctx: TranslationContext, boxes: Value, scores: Value, max_output_boxes_per_class: Value | None = None,
    iou_threshold: Value | None = None, score_threshold: Value | None = None, *, center_point_box: int = 0,
) -> Value:  # fmt: skip
    """Without score_threshold every score is high enough; without max_output_boxes_per_class no box is selected."""
    max_boxes = ctx.constant(0)
    if max_output_boxes_per_class is not None:
        max_boxes = ctx.scalar(ctx.convert(max_output_boxes_per_class, I64))
    max_overlap = ctx.constant(0, boxes) if iou_threshold is None else ctx.scalar(iou_threshold)
    min_score = ctx.constant(float("-inf"), boxes) if score_threshold is None else ctx.scalar(score_threshold)
    results: tuple[Value, ...] = ctx.emit(
        "NonMaxSuppression", boxes, scores, max_boxes, max_overlap, min_score, sort_result_descending=False,
        box_encoding="center" if center_point_box else "corner", output_type="i64",
    )  # fmt: skip
    return results[0]
