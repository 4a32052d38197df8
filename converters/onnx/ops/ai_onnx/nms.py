"""Suppression of boxes that overlap better ones."""

from __future__ import annotations

from converters.onnx.context import Context
from converters.onnx.registry import translates
from irexec.dtypes.elements import I64
from irexec.ir.graph import Value


@translates("NonMaxSuppression", since=10)
def non_max_suppression(
    b: Context, boxes: Value, scores: Value, max_output_boxes_per_class: Value | None = None, iou_threshold: Value | None = None,
    score_threshold: Value | None = None, *, center_point_box: int = 0,
) -> Value:  # fmt: skip
    """Without a score threshold every box counts; without a number of boxes none is chosen."""
    most = b.constant(0) if max_output_boxes_per_class is None else b.scalar(b.convert(max_output_boxes_per_class, I64))
    overlap = b.constant(0, boxes) if iou_threshold is None else b.scalar(iou_threshold)
    least = b.constant(float("-inf"), boxes) if score_threshold is None else b.scalar(score_threshold)
    encoding = "center" if center_point_box else "corner"
    results = b.emit(
        "NonMaxSuppression", boxes, scores, most, overlap, least, box_encoding=encoding, sort_result_descending=False, output_type="i64"
    )
    chosen: Value = results[0]
    return chosen
