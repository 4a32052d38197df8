"""DetectionOutput and MulticlassNms: NonMaxSuppression between selections of the best scores by TopK."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.registry import composed
from converters.ir_to_onnx.tensors import Tensor
from irexec.dtypes.elements import BOOLEAN, F32, F64, I64
from irexec.errors import check
from irexec.ir.dims import ANY

_LOWEST = float(np.finfo(np.float32).min)
_ALL = int(np.iinfo(np.int64).max)


def _known(size: Any, what: str) -> int:
    check(isinstance(size, int), f"{what} is not known")
    return int(size)


def _size(ctx: ExportContext, tensor: Tensor, axis: int) -> Tensor:
    """A size as a vector of one element."""
    sizes = ctx.shape_of(tensor)
    return ctx.ints(int(sizes.value[axis])) if sizes.value is not None else ctx.slice(sizes, axis, axis + 1, 0)


def _only_best(ctx: ExportContext, scores: Tensor, count: int, axis: int = -1) -> Tensor:
    """Scores of which all but the best ``count`` along the last axis are -infinity; all of them if it is negative."""
    if count < 0:
        return scores
    limit = ctx.emit("Min", ctx.ints(count), ctx.slice(ctx.emit("Shape", scores), -1, None, 0))
    values, places = ctx.emit_all("TopK", 2, scores, limit, axis=axis)
    return ctx.emit("ScatterElements", _filled(ctx, scores, -np.inf), places, values, axis=axis)


def _filled(ctx: ExportContext, like: Tensor, value: float) -> Tensor:
    return ctx.emit("Expand", ctx.scalar(value, like), ctx.shape_of(like))


def _suppressed(ctx: ExportContext, boxes: Tensor, scores: Tensor, overlap: float, limit: int, classes: int) -> Tensor:
    """Triplets (image, class, box) in this order, and by descending score within a class.

    Args:
        ctx: the context.
        boxes: (images, boxes, 1 or classes, 4).
        scores: (images, classes, boxes), -infinity for a box that is no candidate.
        overlap: a box that overlaps a better one by more is dropped.
        limit: of boxes of a class.
        classes: the number of classes.
    """
    check(overlap >= 0, "ONNX's threshold of overlaps is not negative")
    overlap = min(overlap, 1.0)
    first, last = (ctx.slice(ctx.cast(boxes, F32), i, i + 2, 3) for i in (0, 2))
    # ONNX puts corners in order; in IR a box with corners the wrong way round overlaps nothing, as one without area.
    wide, rated = ctx.concat(first, ctx.emit("Max", first, last), axis=3), ctx.cast(scores, F32)
    options = (ctx.ints(limit), ctx.constant([overlap], F32), ctx.constant([_LOWEST], F32))
    if boxes.require_shape("the boxes")[2] == 1:
        return ctx.emit("NonMaxSuppression", ctx.squeeze(wide, 2), rated, *options)
    apart = ctx.emit("Reshape", ctx.transpose(wide, [0, 2, 1, 3]),
                     ctx.concat(ctx.ints(-1), _size(ctx, scores, 2), ctx.ints(4)))  # fmt: skip
    each = ctx.emit("Reshape", rated, ctx.concat(ctx.ints(-1, 1), _size(ctx, scores, 2)))
    found = ctx.emit("NonMaxSuppression", apart, each, *options)
    group, box = ctx.slice(found, 0, 1, 1), ctx.slice(found, 2, 3, 1)
    image = ctx.emit("Div", group, ctx.ints(classes))
    number = ctx.emit("Sub", group, ctx.emit("Mul", image, ctx.ints(classes)))
    return ctx.concat(image, number, box, axis=1)


def _best_of_images(ctx: ExportContext, triplets: Tensor, scores: Tensor, count: int, order: Sequence[int]) -> Tensor:
    """The triplets with the best ``count`` scores of each image, in their order; all if it is negative.

    ``order`` are the axes of ``scores`` (images, classes, boxes) by which boxes of equal scores are ranked.
    """
    if count < 0:
        return triplets
    moved = ctx.transpose(scores, order)
    places = ctx.emit("Gather", triplets, ctx.ints(*order), axis=1)
    values = ctx.emit("GatherND", scores, triplets)
    dense = ctx.emit("ScatterND", _filled(ctx, moved, -np.inf), places, values)
    sizes = ctx.emit("Shape", moved)
    flat = ctx.emit("Reshape", dense, ctx.concat(ctx.slice(sizes, 0, 1, 0), ctx.ints(-1)))
    best = ctx.emit("Reshape", _only_best(ctx, flat, count), sizes)
    is_kept = ctx.emit("Greater", ctx.emit("GatherND", best, places), ctx.scalar(-np.inf, best))
    return ctx.emit("Compress", triplets, is_kept, axis=0)


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
        total = _known(class_preds.require_shape("the scores")[1], "the number of scores")
        classes = total // (_known(count, "the number of proposals") // each)
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
    triplets = _suppressed(ctx, boxes, rated, attributes.nms_threshold, _ALL, classes)
    triplets = _best_of_images(ctx, triplets, rated, attributes.keep_top_k[0], [0, 2, 1])
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
            size = _known(proposals.require_shape("the proposals")[2], "the number of proposals")
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
        return _only_best(ctx, rated, attributes.top_k)
    best = ctx.emit("ArgMax", rated, axis=1, keepdims=1)
    is_best = ctx.emit("Equal", best, ctx.constant(np.arange(classes)[:, None]))
    is_enough = ctx.emit("And", ctx.emit("GreaterOrEqual", rated, threshold),
                         ctx.emit("Greater", rated, ctx.scalar(-1, rated)))  # fmt: skip
    rated = ctx.where(ctx.emit("And", is_best, is_enough), rated, none)
    sizes = ctx.emit("Shape", rated)
    flat = ctx.emit("Reshape", rated, ctx.concat(ctx.slice(sizes, 0, 1, 0), ctx.ints(-1)))
    return ctx.emit("Reshape", _only_best(ctx, flat, attributes.top_k), sizes)


def _detections(ctx: ExportContext, triplets: Tensor, scores: Tensor, boxes: Tensor, attributes: Any) -> Tensor:
    """Rows of image, class, score and corners."""
    image, number = ctx.slice(triplets, 0, 1, 1), ctx.slice(triplets, 1, 2, 1)
    label = ctx.emit("Sub", number, ctx.ints(1)) if attributes.decrease_label_id else number
    values = ctx.unsqueeze(ctx.emit("GatherND", scores, triplets), 1)
    corners = _corners(ctx, boxes, triplets, attributes.share_location)
    if attributes.clip_after_nms:
        corners = _to_unit(ctx, corners)
    return ctx.concat(*(ctx.cast(part, values.element) for part in (image, label, values, corners)), axis=1)


def _corners(ctx: ExportContext, boxes: Tensor, triplets: Tensor, shared: bool) -> Tensor:
    if shared:
        return ctx.emit("GatherND", ctx.squeeze(boxes, 2), ctx.emit("Gather", triplets, ctx.ints(0, 2), axis=1))
    return ctx.emit("GatherND", boxes, ctx.emit("Gather", triplets, ctx.ints(0, 2, 1), axis=1))


def _with_end(
    ctx: ExportContext, rows: Tensor, images: Tensor, scores: Tensor, classes: int, attributes: Any
) -> Tensor:
    """The rows, then one that is marked by -1, then zeros: as many as the result has, (1, 1, rows, 7)."""
    keep, top = attributes.keep_top_k[0], attributes.top_k
    each = ctx.ints(keep if keep > 0 else classes * top)
    if keep <= 0 and not (keep == -1 and top > 0):
        each = ctx.emit("Mul", _size(ctx, scores, 1), ctx.ints(classes))
    total = ctx.emit("Mul", _size(ctx, images, 0), each)
    end = ctx.constant(np.array([[-1, 0, 0, 0, 0, 0, 0]]), rows.element)
    rest = ctx.emit("Expand", ctx.scalar(0, rows), ctx.concat(total, ctx.ints(7)))
    whole = ctx.concat(rows, end, rest, axis=0)
    return ctx.unsqueeze(ctx.emit("Slice", whole, ctx.ints(0), total, ctx.ints(0)), 0, 1)


@composed("MulticlassNms")
def multiclass_nms(
    ctx: ExportContext, boxes: Tensor, scores: Tensor, roisnum: Tensor | None = None, *, attributes: Any
) -> tuple[Tensor, ...]:
    """TopK of each class, NonMaxSuppression, TopK of each image, and sorting by TopK."""
    check(attributes.nms_eta >= 1 or attributes.iou_threshold <= 0.5, "ONNX's threshold does not change (nms_eta)")
    kind, boxes, rated = boxes.element, ctx.cast(boxes, F32), ctx.cast(scores, F32)
    classes = _known(scores.require_shape("the scores")[1 if roisnum is None else 0], "the number of classes")
    if roisnum is None:
        images, placed = _size(ctx, boxes, 0), ctx.unsqueeze(boxes, 2)
    else:
        images = ctx.emit("Shape", roisnum)
        placed, rated = _of_images(ctx, boxes, rated, roisnum, images, classes)
    rated = _rated(ctx, rated, classes, attributes)
    # IR drops a box whose overlap is equal to the threshold too; at 0 every box is equal.
    threshold = max(np.float32(attributes.iou_threshold), np.float32(0))
    below = float(np.nextafter(threshold, np.float32(0)))
    corners = placed
    if not attributes.normalized:
        corners = ctx.emit("Add", placed, ctx.constant(np.array([0, 0, 1, 1]), F32), shape=placed.shape)
    triplets = _suppressed(ctx, corners, rated, below, _ALL if threshold > 0 else 1, classes)
    triplets = _best_of_images(ctx, triplets, rated, attributes.keep_top_k, [0, 1, 2])
    triplets = _sorted(ctx, triplets, rated, attributes)
    values = ctx.unsqueeze(ctx.emit("GatherND", rated, triplets), 1)
    image, number, box = (ctx.slice(triplets, i, i + 1, 1) for i in range(3))
    rows = ctx.concat(ctx.cast(number, F32), values, _corners(ctx, placed, triplets, roisnum is None), axis=1)
    if roisnum is None:
        flat = ctx.emit("Add", ctx.emit("Mul", image, _size(ctx, boxes, 1)), box)
    else:
        flat = ctx.emit("Add", ctx.emit("Mul", box, ctx.ints(classes)), number)
    batch = ctx.emit("Range", ctx.constant(0), ctx.reshape(images, []), ctx.constant(1))
    counts = ctx.reduce("ReduceSum", ctx.cast(ctx.emit("Equal", image, batch), I64), [0])
    return ctx.cast(rows, kind), flat, counts


def _rated(ctx: ExportContext, scores: Tensor, classes: int, attributes: Any) -> Tensor:
    """Scores (images, classes, boxes) with -infinity where a box is no candidate."""
    allowed = ctx.constant(np.arange(classes)[:, None] != attributes.background_class, BOOLEAN)
    threshold = ctx.scalar(float(np.float32(attributes.score_threshold)), scores)
    is_candidate = ctx.emit("And", ctx.emit("GreaterOrEqual", scores, threshold), allowed)
    return _only_best(ctx, ctx.where(is_candidate, scores, ctx.scalar(-np.inf, scores)), attributes.nms_top_k)


def _of_images(
    ctx: ExportContext, boxes: Tensor, scores: Tensor, roisnum: Tensor, images: Tensor, classes: int
) -> tuple[Tensor, Tensor]:
    """Boxes (images, boxes, classes, 4) and scores (images, classes, boxes) from those of all images, (classes, boxes,
    4) and (classes, boxes): the scores of boxes of other images are -infinity."""
    counts = ctx.cast(roisnum, I64)
    stops = ctx.emit("CumSum", counts, ctx.constant(0))
    starts, stops = (ctx.unsqueeze(x, 1) for x in (ctx.emit("Sub", stops, counts), stops))
    index = ctx.emit("Range", ctx.constant(0), ctx.reshape(_size(ctx, boxes, 1), []), ctx.constant(1))
    is_own = ctx.emit("And", ctx.emit("GreaterOrEqual", index, starts), ctx.emit("Less", index, stops))
    rated = ctx.where(ctx.unsqueeze(is_own, 1), ctx.unsqueeze(scores, 0), ctx.scalar(-np.inf, scores))
    together = ctx.unsqueeze(ctx.transpose(boxes, [1, 0, 2]), 0)
    placed = ctx.emit("Expand", together, ctx.concat(images, ctx.ints(1, 1, 1)), shape=(ANY, ANY, classes, 4))
    return placed, rated


def _sorted(ctx: ExportContext, triplets: Tensor, scores: Tensor, attributes: Any) -> Tensor:
    """Triplets in the order that is asked for; they are in that of images, classes, descending scores."""

    def by(keys: Tensor, largest: bool, rows: Tensor) -> Tensor:
        # TopK takes the first of equal ones.
        _, order = ctx.emit_all("TopK", 2, keys, ctx.emit("Shape", keys), axis=0, largest=int(largest))
        return ctx.emit("Gather", rows, order, axis=0)

    if attributes.order_across_batch == "classid":
        return by(ctx.squeeze(ctx.slice(triplets, 1, 2, 1), 1), False, triplets)
    if attributes.order == "classid" and not attributes.sort_result_across_batch:
        return triplets
    found = by(ctx.emit("GatherND", scores, triplets), True, triplets)
    if attributes.order_across_batch == "score":
        return found
    return by(ctx.squeeze(ctx.slice(found, 0, 1, 1), 1), False, found)
