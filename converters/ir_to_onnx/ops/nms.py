"""NonMaxSuppression, MulticlassNms, MatrixNms, and selections of boxes by TopK that detectors share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.graph import Tensor
from converters.ir_to_onnx.ops.generation import as_i64
from converters.ir_to_onnx.ops.suppression import (
    AlignedBoxes,
    Kept,
    Rule,
    SoftRule,
    rotated_overlaps,
    softly_suppressed,
    suppressed,
    where_all,
)
from converters.ir_to_onnx.registry import composed, exact
from irexec.dtypes.elements import BOOLEAN, F32, F64, I64
from irexec.errors import check
from irexec.ir.dims import ANY

LOWEST = float(np.finfo(np.float32).min)
"""The score of a box that no selection keeps."""

ALL = int(np.iinfo(np.int64).max)
"""The number of boxes that a selection without a limit keeps."""


def known(size: Any, what: str) -> int:
    """A size; raises OpError where that of what ``what`` names is not known."""
    check(isinstance(size, int), f"{what} is not known")
    return int(size)


def size_of(ctx: ExportContext, tensor: Tensor, axis: int) -> Tensor:
    """A size as a vector of one element."""
    sizes = ctx.shape_of(tensor)
    return ctx.ints(int(sizes.value[axis])) if sizes.value is not None else ctx.slice(sizes, axis, axis + 1, 0)


def only_best(ctx: ExportContext, scores: Tensor, count: int) -> Tensor:
    """Scores of which all but the best ``count`` along the last axis are -infinity; all of them if it is negative."""
    if count < 0:
        return scores
    limit = ctx.emit("Min", ctx.ints(count), ctx.slice(ctx.emit("Shape", scores), -1, None, 0))
    values, places = ctx.emit_all("TopK", 2, scores, limit, axis=-1)
    return ctx.emit("ScatterElements", filled(ctx, scores, -np.inf), places, values, axis=-1)


def filled(ctx: ExportContext, like: Tensor, value: float) -> Tensor:
    """A tensor of one value in the shape of another."""
    return ctx.emit("Expand", ctx.scalar(value, like), ctx.shape_of(like))


def suppressed_triplets(
    ctx: ExportContext, boxes: Tensor, scores: Tensor, overlap: float, limit: int, classes: int
) -> Tensor:
    """Triplets (image, class, box) in this order, and by descending score within a class.

    Args:
        ctx: the context.
        boxes: (images, boxes, 1 or classes, 4).
        scores: (images, classes, boxes), -infinity for a box that is not a candidate.
        overlap: a box that overlaps a better one by more is dropped.
        limit: of boxes of a class.
        classes: the number of classes.
    """
    if overlap < 0:
        # ONNX's threshold of overlaps is not negative.
        threshold = ctx.constant(overlap, F32)
        return suppressed_in_steps(ctx, boxes, scores, Rule(threshold, ctx.constant(limit)), classes)
    overlap = min(overlap, 1.0)
    first, last = (ctx.slice(ctx.cast(boxes, F32), i, i + 2, 3) for i in (0, 2))
    # ONNX puts corners in order; in IR a box with corners the wrong way round overlaps nothing, as one without area.
    wide, rated = ctx.concat(first, ctx.emit("Max", first, last), axis=3), ctx.cast(scores, F32)
    options = (ctx.ints(limit), ctx.constant([overlap], F32), ctx.constant([LOWEST], F32))
    if boxes.require_shape("the boxes")[2] == 1:
        return ctx.emit("NonMaxSuppression", ctx.squeeze(wide, 2), rated, *options)
    apart = ctx.emit("Reshape", ctx.transpose(wide, [0, 2, 1, 3]),
                     ctx.concat(ctx.ints(-1), size_of(ctx, scores, 2), ctx.ints(4)))  # fmt: skip
    each = ctx.emit("Reshape", rated, ctx.concat(ctx.ints(-1, 1), size_of(ctx, scores, 2)))
    found = ctx.emit("NonMaxSuppression", apart, each, *options)
    group, box = ctx.slice(found, 0, 1, 1), ctx.slice(found, 2, 3, 1)
    image = ctx.emit("Div", group, ctx.ints(classes))
    number = ctx.emit("Sub", group, ctx.emit("Mul", image, ctx.ints(classes)))
    return ctx.concat(image, number, box, axis=1)


def suppressed_in_steps(ctx: ExportContext, boxes: Tensor, scores: Tensor, rule: Rule, classes: int) -> Tensor:
    """The same as ``suppressed_triplets`` by a Loop, for rules that ONNX's NonMaxSuppression does not have."""
    placed = ctx.transpose(ctx.cast(boxes, F32), [0, 2, 1, 3])
    sizes = ctx.emit("Shape", scores)
    corners = tuple(
        ctx.emit("Flatten", ctx.emit("Expand", ctx.squeeze(ctx.slice(placed, i, i + 1, 3), 3), sizes), axis=2)
        for i in range(4)
    )
    rated = ctx.emit("Flatten", ctx.cast(scores, F32), axis=2)
    kept = suppressed(ctx, rated, AlignedBoxes(corners).overlaps(ctx), rule)
    return kept.triplets(ctx, ctx.ints(classes))


def best_of_images(ctx: ExportContext, triplets: Tensor, scores: Tensor, count: int, order: Sequence[int]) -> Tensor:
    """The triplets with the best ``count`` scores of each image, in their order; all if it is negative.

    ``order`` are the axes of ``scores`` (images, classes, boxes) by which boxes of equal scores are ranked.
    """
    if count < 0:
        return triplets
    moved = ctx.transpose(scores, order)
    places = ctx.emit("Gather", triplets, ctx.ints(*order), axis=1)
    values = ctx.emit("GatherND", scores, triplets)
    dense = ctx.emit("ScatterND", filled(ctx, moved, -np.inf), places, values)
    sizes = ctx.emit("Shape", moved)
    flat = ctx.emit("Reshape", dense, ctx.concat(ctx.slice(sizes, 0, 1, 0), ctx.ints(-1)))
    best = ctx.emit("Reshape", only_best(ctx, flat, count), sizes)
    is_kept = ctx.emit("Greater", ctx.emit("GatherND", best, places), ctx.scalar(-np.inf, best))
    return ctx.emit("Compress", triplets, is_kept, axis=0)


def corners_of(ctx: ExportContext, boxes: Tensor, triplets: Tensor, shared: bool) -> Tensor:
    """The corners of boxes (images, boxes, 1 or classes, 4) by their triplets; ``shared`` by all classes."""
    if shared:
        return ctx.emit("GatherND", ctx.squeeze(boxes, 2), ctx.emit("Gather", triplets, ctx.ints(0, 2), axis=1))
    return ctx.emit("GatherND", boxes, ctx.emit("Gather", triplets, ctx.ints(0, 2, 1), axis=1))


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


@composed("MulticlassNms")
def multiclass_nms(
    ctx: ExportContext, boxes: Tensor, scores: Tensor, roisnum: Tensor | None = None, *, attributes: Any
) -> tuple[Tensor, ...]:
    """TopK of each class, NonMaxSuppression, TopK of each image, and sorting by TopK; with a threshold that changes, a
    Loop that keeps one box of each class in each iteration."""
    kind, boxes, rated = boxes.element, ctx.cast(boxes, F32), ctx.cast(scores, F32)
    classes = known(scores.require_shape("the scores")[1 if roisnum is None else 0], "the number of classes")
    if roisnum is None:
        images, placed = size_of(ctx, boxes, 0), ctx.unsqueeze(boxes, 2)
    else:
        images = ctx.emit("Shape", roisnum)
        placed, rated = _of_images(ctx, boxes, rated, roisnum, images, classes)
    rated = _rated(ctx, rated, classes, attributes)
    corners = placed
    if not attributes.normalized:
        corners = ctx.emit("Add", placed, ctx.constant(np.array([0, 0, 1, 1]), F32), shape=placed.shape)
    triplets = _suppressed(ctx, corners, rated, classes, attributes)
    triplets = best_of_images(ctx, triplets, rated, attributes.keep_top_k, [0, 1, 2])
    triplets = _sorted(ctx, triplets, rated, attributes)
    rows, counts = _selected_outputs(ctx, triplets, rated, placed, images)
    image, number, box = (ctx.slice(triplets, i, i + 1, 1) for i in range(3))
    if roisnum is None:
        flat = ctx.emit("Add", ctx.emit("Mul", image, size_of(ctx, boxes, 1)), box)
    else:
        flat = ctx.emit("Add", ctx.emit("Mul", box, ctx.ints(classes)), number)
    return ctx.cast(rows, kind), flat, counts


def _suppressed(ctx: ExportContext, corners: Tensor, rated: Tensor, classes: int, attributes: Any) -> Tensor:
    threshold = max(np.float32(attributes.iou_threshold), np.float32(0))
    if attributes.nms_eta < 1 and threshold > 0.5:
        rule = Rule(ctx.constant(threshold, F32), ctx.constant(ALL), is_inclusive=True, eta=attributes.nms_eta)
        return suppressed_in_steps(ctx, corners, rated, rule, classes)
    # IR drops a box whose overlap is equal to the threshold too; at 0 every box is equal.
    below = float(np.nextafter(threshold, np.float32(0)))
    return suppressed_triplets(ctx, corners, rated, below, ALL if threshold > 0 else 1, classes)


def _selected_outputs(
    ctx: ExportContext, triplets: Tensor, scores: Tensor, boxes: Tensor, images: Tensor
) -> tuple[Tensor, Tensor]:
    """Rows (class, score, corners), and how many belong to each image; boxes are (images, boxes, classes or 1, 4)."""
    values = ctx.unsqueeze(ctx.emit("GatherND", scores, triplets), 1)
    image, number = (ctx.slice(triplets, i, i + 1, 1) for i in range(2))
    corners = corners_of(ctx, boxes, triplets, boxes.require_shape("the boxes")[2] == 1)
    batch = ctx.emit("Range", ctx.constant(0), ctx.reshape(images, []), ctx.constant(1))
    counts = ctx.reduce("ReduceSum", ctx.cast(ctx.emit("Equal", image, batch), I64), [0])
    return ctx.concat(ctx.cast(number, F32), values, corners, axis=1), counts


def _rated(ctx: ExportContext, scores: Tensor, classes: int, attributes: Any) -> Tensor:
    """Scores (images, classes, boxes) with -infinity where a box is not a candidate."""
    allowed = ctx.constant(np.arange(classes)[:, None] != attributes.background_class, BOOLEAN)
    threshold = ctx.scalar(float(np.float32(attributes.score_threshold)), scores)
    is_candidate = ctx.emit("And", ctx.emit("GreaterOrEqual", scores, threshold), allowed)
    return only_best(ctx, ctx.where(is_candidate, scores, ctx.scalar(-np.inf, scores)), attributes.nms_top_k)


def _of_images(
    ctx: ExportContext, boxes: Tensor, scores: Tensor, roisnum: Tensor, images: Tensor, classes: int
) -> tuple[Tensor, Tensor]:
    """Boxes (images, boxes, classes, 4) and scores (images, classes, boxes) from those of all images, (classes, boxes,
    4) and (classes, boxes): the scores of boxes of other images are -infinity."""
    counts = ctx.cast(roisnum, I64)
    stops = ctx.emit("CumSum", counts, ctx.constant(0))
    starts, stops = (ctx.unsqueeze(x, 1) for x in (ctx.emit("Sub", stops, counts), stops))
    index = ctx.emit("Range", ctx.constant(0), ctx.reshape(size_of(ctx, boxes, 1), []), ctx.constant(1))
    is_own = ctx.emit("And", ctx.emit("GreaterOrEqual", index, starts), ctx.emit("Less", index, stops))
    rated = ctx.where(ctx.unsqueeze(is_own, 1), ctx.unsqueeze(scores, 0), ctx.scalar(-np.inf, scores))
    together = ctx.unsqueeze(ctx.transpose(boxes, [1, 0, 2]), 0)
    placed = ctx.emit("Expand", together, ctx.concat(images, ctx.ints(1, 1, 1)), shape=(ANY, ANY, classes, 4))
    return placed, rated


def _stable(ctx: ExportContext, keys: Tensor, largest: bool, rows: Tensor) -> Tensor:
    """Rows in the order of keys; TopK takes the first of equal ones."""
    _, order = ctx.emit_all("TopK", 2, keys, ctx.emit("Shape", keys), axis=0, largest=int(largest))
    return ctx.emit("Gather", rows, order, axis=0)


def _by_column(ctx: ExportContext, triplets: Tensor, index: int) -> Tensor:
    return _stable(ctx, ctx.squeeze(ctx.slice(triplets, index, index + 1, 1), 1), False, triplets)


def _sorted(ctx: ExportContext, triplets: Tensor, scores: Tensor, attributes: Any) -> Tensor:
    """Triplets in the order that is asked for; they are in that of images, classes, descending scores."""
    if attributes.order_across_batch == "classid":
        return _by_column(ctx, triplets, 1)
    if attributes.order == "classid" and not attributes.sort_result_across_batch:
        return triplets
    found = _stable(ctx, ctx.emit("GatherND", scores, triplets), True, triplets)
    return found if attributes.order_across_batch == "score" else _by_column(ctx, found, 0)


@composed("MatrixNms")
def matrix_nms(ctx: ExportContext, boxes: Tensor, scores: Tensor, *, attributes: Any) -> tuple[Tensor, ...]:
    """TopK of each class, the overlaps of all pairs of its boxes, ReduceMax and ReduceMin over the better ones, TopK of
    each image, and sorting by TopK."""
    kind, boxes, rated = boxes.element, ctx.cast(boxes, F32), ctx.cast(scores, F32)
    classes = scores.require_known(1, "the number of classes")
    none = ctx.scalar(-np.inf, rated)
    allowed = ctx.constant(np.arange(classes)[:, None] != attributes.background_class, BOOLEAN)
    is_enough = ctx.emit("Greater", rated, ctx.scalar(float(np.float32(attributes.score_threshold)), rated))
    rated = ctx.where(ctx.emit("And", is_enough, allowed), rated, none)
    lowered, order = _lowered(ctx, boxes, rated, attributes)
    is_kept = ctx.emit("Greater", lowered, ctx.scalar(float(np.float32(attributes.post_threshold)), lowered))
    rated = ctx.emit("ScatterElements", filled(ctx, rated, -np.inf), order, ctx.where(is_kept, lowered, none), axis=2)
    triplets = ctx.transpose(ctx.emit("NonZero", ctx.emit("Greater", rated, none)), [1, 0])
    triplets = best_of_images(ctx, triplets, rated, attributes.keep_top_k, [0, 1, 2])
    triplets = _stable(ctx, ctx.emit("GatherND", rated, triplets), True, triplets)
    if attributes.order_across_batch != "score":
        triplets = _by_column(ctx, triplets, 0)
    if attributes.order_across_batch == "classid":
        triplets = _by_column(ctx, triplets, 1)
    rows, counts = _selected_outputs(ctx, triplets, rated, ctx.unsqueeze(boxes, 2), size_of(ctx, boxes, 0))
    image, box = ctx.slice(triplets, 0, 1, 1), ctx.slice(triplets, 2, 3, 1)
    return ctx.cast(rows, kind), ctx.emit("Add", ctx.emit("Mul", image, size_of(ctx, boxes, 1)), box), counts


def _lowered(ctx: ExportContext, boxes: Tensor, scores: Tensor, attributes: Any) -> tuple[Tensor, Tensor]:
    """The best scores of each class in descending order, lowered by better boxes that overlap them, and the indices of
    their boxes, (images, classes, k) each."""
    count, top = size_of(ctx, scores, 2), attributes.nms_top_k
    limit = count if top < 0 else ctx.emit("Min", ctx.ints(top), count)
    values, order = ctx.emit_all("TopK", 2, scores, limit, axis=2)
    shape = ctx.emit("Shape", scores)
    corners = [
        ctx.emit("GatherElements", ctx.emit("Expand", ctx.unsqueeze(
            ctx.squeeze(ctx.slice(boxes, i, i + 1, 2), 2), 1), shape), order, axis=2)
        for i in range(4)
    ]  # fmt: skip
    index = ctx.emit("Range", ctx.constant(0), ctx.reshape(limit, []), ctx.constant(1))
    is_better = ctx.emit("Less", index, ctx.unsqueeze(index, 1))
    pairs = _pair_overlaps(ctx, corners, 0.0 if attributes.normalized else 1.0)
    overlaps = ctx.where(is_better, pairs, ctx.scalar(0, pairs))
    highest = ctx.reduce("ReduceMax", overlaps, [3])
    factors = ctx.where(
        is_better, _decay(ctx, overlaps, ctx.unsqueeze(highest, 2), attributes), ctx.scalar(1, overlaps)
    )
    lowest = ctx.emit("Min", ctx.reduce("ReduceMin", factors, [3]), ctx.scalar(1, factors))
    return ctx.emit("Mul", lowest, values), order


def _decay(ctx: ExportContext, overlaps: Tensor, highest: Tensor, attributes: Any) -> Tensor:
    """The factors of scores by each better box, of its overlap and the highest one that it has itself."""
    if attributes.decay_function == "gaussian":
        squares = [ctx.emit("Mul", x, x) for x in (highest, overlaps)]
        exponent = ctx.emit("Mul", ctx.emit("Sub", *squares), ctx.scalar(attributes.gaussian_sigma, overlaps))
        return ctx.emit("Exp", exponent)
    one = ctx.constant(1, F64)
    rest, own = (ctx.emit("Sub", one, ctx.cast(x, F64)) for x in (overlaps, highest))
    divisor = ctx.emit("Add", own, ctx.constant(float(np.float32(1e-10)), F64))
    return ctx.cast(ctx.emit("Div", rest, divisor), F32)


def _pair_overlaps(ctx: ExportContext, corners: Sequence[Tensor], unit: float) -> Tensor:
    """The overlaps (..., k, k) of all pairs of boxes; corners are (..., k), of which the first may exceed the last."""
    zero, added = ctx.constant(0, F32), ctx.constant(unit, F32)
    one, other = ([ctx.unsqueeze(x, axis) for x in corners] for axis in (-1, -2))
    conditions, lengths, sides = [], [], []
    for i in (0, 1):
        last, first = ctx.emit("Min", one[i + 2], other[i + 2]), ctx.emit("Max", one[i], other[i])
        lengths.append(ctx.emit("Add", ctx.emit("Sub", last, first), added))
        sides.append(ctx.emit("Sub", corners[i + 2], corners[i]))
        conditions += [ctx.emit("LessOrEqual", a, b) for a, b in ((other[i], one[i + 2]), (one[i], other[i + 2]))]
    is_box = ctx.emit("And", *(ctx.emit("GreaterOrEqual", side, zero) for side in sides))
    areas = ctx.where(is_box, ctx.emit("Mul", *(ctx.emit("Add", side, added) for side in sides)), zero)
    shared = ctx.emit("Mul", *lengths)
    both = ctx.emit("Add", ctx.unsqueeze(areas, -1), ctx.unsqueeze(areas, -2))
    quotient = ctx.emit("Div", shared, ctx.emit("Sub", both, shared))
    # The overlap of two points is NaN: it does not count.
    conditions.append(ctx.emit("Equal", quotient, quotient))
    return where_all(ctx, conditions, quotient, zero)
