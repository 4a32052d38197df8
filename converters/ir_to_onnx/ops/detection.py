"""DetectionOutput: NonMaxSuppression between selections of the best scores by TopK."""

from __future__ import annotations

from typing import Any

import numpy as np

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.ops.selection import (
    ALL,
    best_of_images,
    corners_of,
    known,
    only_best,
    size_of,
    suppressed_triplets,
)
from converters.ir_to_onnx.registry import composed
from converters.ir_to_onnx.tensors import Tensor
from irexec.dtypes.elements import BOOLEAN, F32, F64, I64
from irexec.ir.dims import ANY


@composed("DetectionOutput")
def detection_output(
    ctx: ExportContext, box_logits: Tensor, class_preds: Tensor, proposals: Tensor,
    aux_class_preds: Tensor | None = None, aux_box_preds: Tensor | None = None, *, attributes: Any,
) -> Tensor:  # fmt: skip
    """Decoded boxes, TopK of each class, NonMaxSuppression, TopK of each image, and the row that marks the end."""
    kind, each = box_logits.element, attributes.box_values
    wide = F64 if kind is F64 else F32
    given = (box_logits, class_preds, proposals)
    box_logits, class_preds, proposals = (ctx.cast(tensor, wide) for tensor in given)
    count = proposals.require_shape("the proposals")[2]
    classes = getattr(attributes, "num_classes", None)
    if classes is None:
        total = known(class_preds.require_shape("the scores")[1], "the number of scores")
        classes = total // (known(count, "the number of proposals") // each)
    marks, boxes = _decoded(ctx, proposals, [
        ctx.reshape(ctx.cast(x, wide), [0, -1, 1 if attributes.share_location else classes, 4])
        for x in (aux_box_preds, box_logits) if x is not None
    ], attributes)  # fmt: skip
    boxes.shape = (ANY, ANY, 1 if attributes.share_location else classes, 4)
    scores = ctx.reshape(class_preds, [0, -1, classes])
    if aux_class_preds is not None:
        pairs = ctx.reshape(ctx.cast(aux_class_preds, wide), [0, -1, 2])
        low = ctx.emit(
            "Less", ctx.slice(pairs, 1, 2, 2), ctx.scalar(float(np.float32(attributes.objectness_score)), pairs)
        )
        background = np.arange(classes) == attributes.background_label_id
        scores = ctx.where(low, ctx.constant(background.astype(np.float32), wide), scores)
    rated = _candidates(ctx, ctx.transpose(scores, [0, 2, 1]), marks, classes, attributes)
    triplets = suppressed_triplets(ctx, boxes, rated, attributes.nms_threshold, ALL, classes)
    triplets = best_of_images(ctx, triplets, rated, attributes.keep_top_k[0], [0, 2, 1])
    rows = _detections(ctx, triplets, rated, boxes, attributes)
    return ctx.cast(_with_end(ctx, rows, box_logits, scores, classes, attributes), kind)


def _decoded(
    ctx: ExportContext, proposals: Tensor, offsets: list[Tensor], attributes: Any
) -> tuple[Tensor | None, Tensor]:
    """The marks of unused boxes (n, boxes), if there are any, and the boxes (images, boxes, classes or 1, 4)."""
    each = attributes.box_values
    first = ctx.reshape(ctx.slice(proposals, 0, 1, 1), [0, -1, 1, each])
    boxes, marks = first, None
    if not attributes.normalized:
        marks = ctx.squeeze(ctx.slice(first, 0, 1, 3), 2, 3)
        boxes = ctx.slice(first, 1, 5, 3)
    variances = None
    if not attributes.variance_encoded_in_target:
        second = ctx.slice(proposals, 1, 2, 1)
        if not attributes.normalized:
            size = known(proposals.require_shape("the proposals")[2], "the number of proposals")
            second = ctx.slice(second, 0, 4 * (size // 5), 2)
        variances = ctx.reshape(second, [0, -1, 1, 4])
    sizes = ctx.constant(np.array([attributes.input_width, attributes.input_height] * 2), boxes.element)
    for offset in offsets:
        priors = boxes if attributes.normalized else ctx.emit("Div", boxes, sizes)
        moved = offset if variances is None else ctx.emit("Mul", variances, offset)
        boxes = _moved(ctx, priors, moved, attributes.code_type.endswith("CORNER"))
        if attributes.clip_before_nms:
            boxes = _to_unit(ctx, boxes)
    return marks, boxes


def _moved(ctx: ExportContext, priors: Tensor, moved: Tensor, is_corner: bool) -> Tensor:
    if is_corner:
        return ctx.emit("Add", priors, moved)
    half = ctx.scalar(0.5, priors)
    first, last = ctx.slice(priors, 0, 2, 3), ctx.slice(priors, 2, 4, 3)
    sizes = ctx.emit("Sub", last, first)
    middle = ctx.emit("Mul", ctx.emit("Add", first, last), half)
    centres = ctx.emit("Add", ctx.emit("Mul", ctx.slice(moved, 0, 2, 3), sizes), middle)
    halves = ctx.emit("Mul", ctx.emit("Mul", ctx.emit("Exp", ctx.slice(moved, 2, 4, 3)), sizes), half)
    return ctx.concat(ctx.emit("Sub", centres, halves), ctx.emit("Add", centres, halves), axis=3)


def _to_unit(ctx: ExportContext, boxes: Tensor) -> Tensor:
    return ctx.emit("Clip", boxes, ctx.scalar(0, boxes), ctx.scalar(1, boxes), shape=boxes.shape)


def _candidates(ctx: ExportContext, scores: Tensor, marks: Tensor | None, classes: int, attributes: Any) -> Tensor:
    """Scores (images, classes, boxes) with -infinity where a box is no candidate."""
    none, threshold = (
        ctx.scalar(-np.inf, scores),
        ctx.scalar(float(np.float32(attributes.confidence_threshold)), scores),
    )
    allowed = np.arange(classes)[:, None] != attributes.background_label_id
    if attributes.decrease_label_id:
        allowed &= np.arange(classes)[:, None] != 0
    rated = ctx.where(ctx.constant(allowed, BOOLEAN), scores, none)
    if marks is not None:
        ended = ctx.cast(ctx.emit("Equal", marks, ctx.scalar(-1, marks)), I64)
        is_used = ctx.emit("Equal", ctx.emit("CumSum", ended, ctx.constant(1)), ctx.constant(0))
        rated = ctx.where(ctx.unsqueeze(is_used, 1), rated, none)
    if not attributes.decrease_label_id:
        rated = ctx.where(ctx.emit("Greater", rated, threshold), rated, none)
        return only_best(ctx, rated, attributes.top_k)
    best = ctx.emit("ArgMax", rated, axis=1, keepdims=1)
    is_best = ctx.emit("Equal", best, ctx.constant(np.arange(classes)[:, None]))
    is_enough = ctx.emit("And", ctx.emit("GreaterOrEqual", rated, threshold),
                         ctx.emit("Greater", rated, ctx.scalar(-1, rated)))  # fmt: skip
    rated = ctx.where(ctx.emit("And", is_best, is_enough), rated, none)
    sizes = ctx.emit("Shape", rated)
    flat = ctx.emit("Reshape", rated, ctx.concat(ctx.slice(sizes, 0, 1, 0), ctx.ints(-1)))
    return ctx.emit("Reshape", only_best(ctx, flat, attributes.top_k), sizes)


def _detections(ctx: ExportContext, triplets: Tensor, scores: Tensor, boxes: Tensor, attributes: Any) -> Tensor:
    """Rows of image, class, score and corners."""
    image, number = ctx.slice(triplets, 0, 1, 1), ctx.slice(triplets, 1, 2, 1)
    label = ctx.emit("Sub", number, ctx.ints(1)) if attributes.decrease_label_id else number
    values = ctx.unsqueeze(ctx.emit("GatherND", scores, triplets), 1)
    corners = corners_of(ctx, boxes, triplets, attributes.share_location)
    if attributes.clip_after_nms:
        corners = _to_unit(ctx, corners)
    return ctx.concat(*(ctx.cast(part, values.element) for part in (image, label, values, corners)), axis=1)


def _with_end(
    ctx: ExportContext, rows: Tensor, images: Tensor, scores: Tensor, classes: int, attributes: Any
) -> Tensor:
    """The rows, then one that is marked by -1, then zeros: as many as the result has, (1, 1, rows, 7)."""
    keep, top = attributes.keep_top_k[0], attributes.top_k
    each = ctx.ints(keep if keep > 0 else classes * top)
    if keep <= 0 and not (keep == -1 and top > 0):
        each = ctx.emit("Mul", size_of(ctx, scores, 1), ctx.ints(classes))
    total = ctx.emit("Mul", size_of(ctx, images, 0), each)
    end = ctx.constant(np.array([[-1, 0, 0, 0, 0, 0, 0]]), rows.element)
    rest = ctx.emit("Expand", ctx.scalar(0, rows), ctx.concat(total, ctx.ints(7)))
    whole = ctx.concat(rows, end, rest, axis=0)
    return ctx.unsqueeze(ctx.emit("Slice", whole, ctx.ints(0), total, ctx.ints(0)), 0, 1)
