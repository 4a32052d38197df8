"""Region proposals: Proposal and GenerateProposals."""

from __future__ import annotations

from typing import Any

import numpy as np

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.ops.region_boxes import (
    best,
    chosen,
    clipped,
    counted,
    decoded,
    grid_values,
    kept_boxes,
    padded,
    ranks,
    rule_of,
    sides,
)
from converters.ir_to_onnx.ops.roi_sampling import wide_element
from converters.ir_to_onnx.registry import composed
from converters.ir_to_onnx.tensors import Tensor
from irexec.reference.proposals import MAX_LOG_SCALE, as_f32, make_anchors


@composed("Proposal")
def proposal(
    ctx: ExportContext, class_probs: Tensor, bbox_deltas: Tensor, image_shape: Tensor, *, attributes: Any
) -> tuple[Tensor, ...]:
    """Decoded anchors, TopK of each image, and a Loop that keeps one box of each image in each iteration."""
    kind, wide = class_probs.element, wide_element(class_probs, bbox_deltas, image_shape)
    probs, deltas, image = (ctx.cast(x, wide) for x in (class_probs, bbox_deltas, image_shape))
    boxes, scores = _proposed(ctx, probs, deltas, image, attributes)
    rule = rule_of(ctx, attributes.nms_thresh, attributes.post_nms_topn, boxes)
    kept = kept_boxes(ctx, boxes, ranks(ctx, scores), rule, _offset(attributes))
    found = chosen(ctx, boxes, kept)
    limits = _limits(ctx, image, attributes, 0)
    if attributes.clip_after_nms:
        found = clipped(ctx, found, limits)
    if attributes.normalize:
        found = ctx.emit("Div", found, limits)
    rows, values = _rows(ctx, found, chosen(ctx, scores, kept), kept.is_box, attributes.post_nms_topn)
    return ctx.cast(rows, kind), ctx.cast(values, kind)


def _offset(attributes: Any) -> int:
    return 0 if attributes.is_tensorflow else 1


def _limits(ctx: ExportContext, image: Tensor, attributes: Any, less: float) -> Tensor:
    """Width, height, width, height of the image, in TensorFlow height first, ``less`` pixels smaller: (4)."""
    order = [0, 1, 0, 1] if attributes.is_tensorflow else [1, 0, 1, 0]
    return ctx.emit("Sub", ctx.emit("Gather", image, ctx.ints(*order), axis=0), ctx.scalar(less, image))


def _proposed(
    ctx: ExportContext, probs: Tensor, deltas: Tensor, image: Tensor, attributes: Any
) -> tuple[Tensor, Tensor]:
    """The best boxes of each image (N, n, 4) and their scores (N, n), before suppression."""
    count, offset = attributes.anchor_count, _offset(attributes)
    start = _anchors(ctx, probs, attributes)
    if attributes.is_tensorflow:
        start = clipped(ctx, start, _limits(ctx, image, attributes, 0))
    divisors = np.repeat([as_f32(attributes.box_coordinate_scale), as_f32(attributes.box_size_scale)], 2)
    changes = ctx.emit("Div", grid_values(ctx, deltas, count, 4), ctx.constant(divisors, deltas.element))
    found = decoded(ctx, start, changes, offset, False, None)
    if attributes.clip_before_nms:
        found = clipped(ctx, found, _limits(ctx, image, attributes, offset))
    width, height = sides(ctx, found, offset)
    minimum = ctx.emit("Mul", image, ctx.scalar(attributes.min_size, image))
    large = ctx.emit(
        "And", ctx.emit("GreaterOrEqual", width, ctx.slice(minimum, -1, None, 0)),
        ctx.emit("GreaterOrEqual", height, ctx.slice(minimum, 2, 3, 0)),
    )  # fmt: skip
    scores = grid_values(ctx, ctx.slice(probs, count, None, 1), count, 1)
    return best(ctx, found, ctx.emit("Mul", scores, ctx.cast(large, scores.element)), attributes.pre_nms_topn)


def _anchors(ctx: ExportContext, probs: Tensor, attributes: Any) -> Tensor:
    """The anchors (H * W * K, 4) of probabilities (N, 2 * K, H, W)."""
    sizes, lines = ctx.shape_of(probs), []
    for axis in (2, 3):
        count = ctx.reshape(ctx.slice(sizes, axis, axis + 1, 0), [])
        line = ctx.emit("Range", ctx.constant(0), count, ctx.constant(1))
        moved = ctx.emit("Mul", line, ctx.constant(attributes.feat_stride))
        lines.append(ctx.unsqueeze(ctx.cast(moved, probs.element), 3 - axis))
    shape = ctx.slice(sizes, 2, 4, 0)
    y, x = (ctx.unsqueeze(ctx.emit("Expand", line, shape), 2) for line in lines)
    pair = (y, x) if attributes.is_tensorflow else (x, y)
    shifts = ctx.unsqueeze(ctx.concat(*pair, *pair, axis=2), 2)
    anchors = make_anchors(attributes.base_size, attributes.ratio, attributes.scale, centred=attributes.is_tensorflow)
    return ctx.reshape(ctx.emit("Add", shifts, ctx.constant(anchors, probs.element)), [-1, 4])


def _rows(
    ctx: ExportContext, boxes: Tensor, scores: Tensor, is_box: Tensor, count: int
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Rows of image and box (N * count, 5), of which the first after the boxes of an image starts with -1, and their
    scores (N * count,)."""
    total = ctx.unsqueeze(counted(ctx, is_box), 1)
    images = ctx.emit("Range", ctx.constant(0), ctx.reshape(ctx.slice(ctx.emit("Shape", total), 0, 1, 0), []),
                      ctx.constant(1))  # fmt: skip
    number = ctx.constant(np.arange(count))
    is_end = ctx.emit("Equal", number, total)
    image = ctx.where(ctx.emit("Less", number, total), ctx.unsqueeze(images, 1), ctx.constant(0))
    lead = ctx.cast(ctx.where(is_end, ctx.constant(-1), image), boxes.element)
    # An image with fewer boxes than another one has meaningless boxes at its end.
    zero = ctx.scalar(0, boxes)
    corners = padded(ctx, ctx.where(ctx.unsqueeze(is_box, 2), boxes, zero), count, 1, 3)
    values = padded(ctx, ctx.where(is_box, scores, ctx.scalar(0, scores)), count, 1, 2)
    rows = ctx.concat(ctx.unsqueeze(lead, 2), corners, axis=2)
    return ctx.reshape(rows, [-1, 5]), ctx.reshape(values, [-1])


@composed("GenerateProposals")
def generate_proposals(
    ctx: ExportContext, im_info: Tensor, anchors: Tensor, boxesdeltas: Tensor, scores: Tensor, *, attributes: Any
) -> tuple[Tensor, ...]:
    """Decoded anchors, TopK of each image, and a Loop that keeps one box of each image in each iteration."""
    kind, wide = im_info.element, wide_element(im_info, anchors, boxesdeltas, scores)
    image, start, deltas, points = (ctx.cast(x, wide) for x in (im_info, anchors, boxesdeltas, scores))
    offset, count = 0 if attributes.normalized else 1, anchors.require_known(2, "the number of anchors")
    changes = grid_values(ctx, deltas, count, 4)
    found = decoded(ctx, ctx.reshape(start, [-1, 4]), changes, offset, True, MAX_LOG_SCALE)
    limits = ctx.emit("Sub", ctx.emit("Gather", image, ctx.ints(1, 0, 1, 0), axis=1), ctx.scalar(offset, image))
    found = clipped(ctx, found, ctx.unsqueeze(limits, 1))
    boxes, values = best(ctx, found, grid_values(ctx, points, count, 1), attributes.pre_nms_count)
    minimum = ctx.emit("Mul", image, ctx.scalar(as_f32(attributes.min_size), image))
    width, height = sides(ctx, boxes, offset)
    is_large = ctx.emit(
        "And", ctx.emit("GreaterOrEqual", width, ctx.slice(minimum, -1, None, 1)),
        ctx.emit("GreaterOrEqual", height, ctx.slice(minimum, 2, 3, 1)),
    )  # fmt: skip
    order = ranks(ctx, values)
    rated = ctx.where(is_large, order, ctx.scalar(-np.inf, order))
    rule = rule_of(ctx, attributes.nms_threshold, attributes.post_nms_count, boxes, as_f32(attributes.nms_eta))
    kept = kept_boxes(ctx, boxes, rated, rule, offset)
    places = kept.places(ctx)
    picked = (ctx.emit("GatherND", chosen(ctx, x, kept), places) for x in (boxes, values))
    rois, best_scores = (ctx.cast(x, kind) for x in picked)
    return rois, best_scores, counted(ctx, kept.is_box)
