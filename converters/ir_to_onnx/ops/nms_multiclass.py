"""MulticlassNms and MatrixNms, which return boxes, scores and classes together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.ops.selection import (
    ALL,
    best_of_images,
    corners_of,
    filled,
    known,
    only_best,
    size_of,
    suppressed_in_steps,
    suppressed_triplets,
)
from converters.ir_to_onnx.ops.suppression import Rule, where_all
from converters.ir_to_onnx.registry import composed
from converters.ir_to_onnx.tensors import Tensor
from irexec.dtypes.elements import BOOLEAN, F32, F64, I64
from irexec.ir.dims import ANY


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
    rows, counts = _outputs(ctx, triplets, rated, placed, images)
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


def _outputs(
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
    """Scores (images, classes, boxes) with -infinity where a box is no candidate."""
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
    rows, counts = _outputs(ctx, triplets, rated, ctx.unsqueeze(boxes, 2), size_of(ctx, boxes, 0))
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
