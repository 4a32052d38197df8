"""NonMaxSuppression, and selections of boxes that are compositions of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.ops.rotated_boxes import rotated_overlaps
from converters.ir_to_onnx.ops.selection import ALL
from converters.ir_to_onnx.ops.shape import as_i64
from converters.ir_to_onnx.ops.suppression import AlignedBoxes, Kept, Rule, SoftRule, softly_suppressed, suppressed
from converters.ir_to_onnx.registry import composed, exact
from converters.ir_to_onnx.tensors import Tensor
from irexec.dtypes.elements import F32
from irexec.ir.dims import ANY


@exact("NonMaxSuppression")
def non_max_suppression(
    ctx: ExportContext, boxes: Tensor, scores: Tensor, max_output_boxes_per_class: Tensor | None = None,
    iou_threshold: Tensor | None = None, score_threshold: Tensor | None = None, soft_nms_sigma: Tensor | None = None, *,
    attributes: Any,
) -> tuple[Tensor, ...]:  # fmt: skip
    """NonMaxSuppression; sorted over all classes by TopK and Gather, the scores by GatherND; soft, a Loop that keeps
    one box of each class in each iteration and lowers the scores of others."""
    boxes, scores = ctx.cast(boxes, F32), ctx.cast(scores, F32)
    iou, score = (_threshold(ctx, x) for x in (iou_threshold, score_threshold))
    limit = _limit(ctx, max_output_boxes_per_class)
    sigma = 0.0 if soft_nms_sigma is None else float(soft_nms_sigma.require_value("soft_nms_sigma").ravel()[0])
    if sigma > 0:
        rule = SoftRule(sigma, ctx.reshape(score, []), ctx.reshape(limit, []))
        aligned = AlignedBoxes(_corners(ctx, boxes, scores, attributes.box_encoding == "center"))
        rated = _candidates(ctx, scores, score)
        triplets, values = _triplets(ctx, softly_suppressed(ctx, rated, aligned.overlaps(ctx), rule), scores)
        return _outputs(ctx, triplets, values, attributes)
    iou, limit = _in_range(ctx, iou, limit)
    triplets = ctx.emit("NonMaxSuppression", boxes, scores, limit, iou, score,
                        center_point_box=int(attributes.box_encoding == "center"))  # fmt: skip
    if not attributes.sort_result_descending and len(ctx.node.outputs) == 1:
        return (triplets,)
    return _outputs(ctx, triplets, ctx.emit("GatherND", scores, triplets), attributes)


@composed("NMSRotated")
def nms_rotated(
    ctx: ExportContext, boxes: Tensor, scores: Tensor, max_output_boxes_per_class: Tensor, iou_threshold: Tensor,
    score_threshold: Tensor, *, attributes: Any,
) -> tuple[Tensor, ...]:  # fmt: skip
    """A Loop that keeps one box of each class in each iteration, and computes its overlaps with all others; sorted by
    TopK."""
    boxes, scores = ctx.cast(boxes, F32), ctx.cast(scores, F32)
    limit, iou = _limit(ctx, max_output_boxes_per_class), _threshold(ctx, iou_threshold)
    rated = _candidates(ctx, scores, _threshold(ctx, score_threshold))
    overlaps = rotated_overlaps(ctx, _of_classes(ctx, boxes, scores, 5), attributes.clockwise)
    rule = Rule(ctx.reshape(iou, []), ctx.reshape(limit, []))
    return _outputs(ctx, *_triplets(ctx, suppressed(ctx, rated, overlaps, rule), scores), attributes)


def _threshold(ctx: ExportContext, value: Tensor | None) -> Tensor:
    """A vector of one f32; 0 where it is absent."""
    return ctx.constant([0.0], F32) if value is None else ctx.reshape(ctx.cast(value, F32), [1])


def _in_range(ctx: ExportContext, iou: Tensor, limit: Tensor) -> tuple[Tensor, Tensor]:
    """The threshold of overlaps from 0 to 1, and the limit: a class has one box where the threshold is negative."""
    if iou.value is not None and 0 <= iou.value.ravel()[0] <= 1:
        return iou, limit
    zero, one = ctx.constant(0.0, F32), ctx.constant(1.0, F32)
    single = ctx.emit("Min", limit, ctx.ints(1))
    return ctx.emit("Clip", iou, zero, one), ctx.where(ctx.emit("Less", iou, zero), single, limit)


def _candidates(ctx: ExportContext, scores: Tensor, minimum: Tensor) -> Tensor:
    """Scores (images, classes, n) as (images * classes, n), -infinity where they are not above a minimum."""
    rated = ctx.where(ctx.emit("Greater", scores, minimum), scores, ctx.scalar(-np.inf, scores))
    return ctx.emit("Flatten", rated, axis=2)


def _of_classes(ctx: ExportContext, boxes: Tensor, scores: Tensor, values: int) -> Tensor:
    """Boxes (images, n, values) for each class of ``scores`` (images, classes, n): (images * classes, n, values)."""
    shape = ctx.concat(ctx.shape_of(scores), ctx.ints(values))
    each = ctx.emit("Expand", ctx.unsqueeze(boxes, 1), shape)
    flat = ctx.concat(ctx.ints(-1), ctx.slice(ctx.shape_of(scores), 2, None, 0), ctx.ints(values))
    return ctx.emit("Reshape", each, flat, shape=(ANY, ANY, values))


def _corners(ctx: ExportContext, boxes: Tensor, scores: Tensor, is_centre: bool) -> tuple[Tensor, ...]:
    """The coordinates of the first and the last corner of the boxes of each class."""
    whole = _of_classes(ctx, boxes, scores, 4)
    a, b, c, d = (ctx.squeeze(ctx.slice(whole, i, i + 1, 2), 2) for i in range(4))
    if is_centre:
        halves = [ctx.emit("Mul", side, ctx.scalar(0.5, side)) for side in (c, d)]
        return tuple(ctx.emit(sign, x, half) for sign in ("Sub", "Add") for x, half in zip((a, b), halves, strict=True))
    return tuple(ctx.emit(type, *pair) for type in ("Min", "Max") for pair in ((a, c), (b, d)))


def _triplets(ctx: ExportContext, kept: Kept, scores: Tensor) -> tuple[Tensor, Tensor]:
    """Image, class and box of each kept box, class by class, and its score."""
    triplets = kept.triplets(ctx, ctx.slice(ctx.shape_of(scores), 1, 2, 0))
    return triplets, ctx.emit("GatherND", kept.scores, kept.places(ctx))


def _outputs(ctx: ExportContext, triplets: Tensor, values: Tensor, attributes: Any) -> tuple[Tensor, ...]:
    """Triplets (image, class, box), rows (image, class, score) and their number, sorted if that is asked for."""
    if attributes.sort_result_descending:
        # TopK takes the first of equal scores, as IR does: by batch, then by class, then by box.
        values, order = ctx.emit_all("TopK", 2, values, ctx.emit("Shape", values), axis=0)
        triplets = ctx.emit("Gather", triplets, order, axis=0)
    lead = ctx.cast(ctx.slice(triplets, 0, 2, 1), F32)
    return triplets, ctx.concat(lead, ctx.unsqueeze(values, 1), axis=1), ctx.emit("Shape", values)


def _limit(ctx: ExportContext, limit: Tensor | None) -> Tensor:
    """The maximum number of boxes of a class; a negative one of IR does not limit."""
    if limit is None:
        return ctx.ints(0)
    if limit.value is not None:
        value = int(limit.value.ravel()[0])
        return ctx.ints(ALL if value < 0 else value)
    count = ctx.reshape(as_i64(ctx, limit), [1])
    result: Tensor = ctx.where(ctx.emit("Less", count, ctx.ints(0)), ctx.ints(ALL), count)
    return result
