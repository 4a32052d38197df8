"""Selections of boxes by TopK and NonMaxSuppression, which the operations of detectors share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.ops.suppression import AlignedBoxes, Rule, suppressed
from converters.ir_to_onnx.tensors import Tensor
from irexec.dtypes.elements import F32
from irexec.errors import check

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
        scores: (images, classes, boxes), -infinity for a box that is no candidate.
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
