"""Detections of SSD and Detectron: DetectionOutput and the Experimental operations."""

from __future__ import annotations

from typing import Any

import numpy as np

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.graph import Tensor
from converters.ir_to_onnx.ops.boxes import (
    best,
    chosen,
    clipped,
    decoded,
    descending,
    grid_values,
    kept_boxes,
    padded,
    positive,
    ranks,
    rule_of,
    sides,
)
from converters.ir_to_onnx.ops.nms import (
    ALL,
    best_of_images,
    corners_of,
    known,
    only_best,
    size_of,
    suppressed_triplets,
)
from converters.ir_to_onnx.ops.roi import region_means, wide_element
from converters.ir_to_onnx.registry import composed
from irexec.dtypes.elements import BOOLEAN, F32, F64, I32, I64
from irexec.ir.dims import ANY
from irexec.reference.detection import MAX_LOG_SCALE, as_f32


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
    """Scores (images, classes, boxes) with -infinity where a box is not a candidate."""
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


@composed("ExperimentalDetectronTopKROIs")
def top_k_rois(ctx: ExportContext, input_rois: Tensor, rois_probs: Tensor, *, max_rois: int) -> Tensor:
    """TopK, Gather, and Pad where there are fewer."""
    kind = input_rois.element
    rois, probs = (ctx.cast(x, wide_element(x)) for x in (input_rois, rois_probs))
    count = ctx.emit("Min", ctx.ints(max_rois), ctx.shape_of(probs))
    found = ctx.emit("Gather", rois, descending(ctx, probs, count, 0), axis=0)
    return ctx.cast(padded(ctx, found, max_rois, 0, 2), kind)


@composed("ExperimentalDetectronPriorGridGenerator")
def prior_grid_generator(
    ctx: ExportContext, priors: Tensor, feature_map: Tensor, im_data: Tensor, *, attributes: Any
) -> Tensor:
    """Centres by Range, Add of the priors, Concat."""
    kind, wide = priors.element, wide_element(priors)
    boxes, sizes, image = ctx.cast(priors, wide), ctx.shape_of(feature_map), ctx.shape_of(im_data)
    counts, lines = [], []
    for axis, count, stride in ((2, attributes.h, attributes.stride_y), (3, attributes.w, attributes.stride_x)):
        cells = ctx.ints(count) if count else ctx.slice(sizes, axis, axis + 1, 0)
        length = ctx.cast(ctx.slice(image, axis, axis + 1, 0), wide)
        many = ctx.cast(ctx.emit("Max", cells, ctx.ints(1)), wide)
        distance = ctx.constant([as_f32(stride)], wide) if as_f32(stride) else ctx.emit("Div", length, many)
        number = ctx.emit("Range", ctx.constant(0), ctx.reshape(cells, []), ctx.constant(1))
        middle = ctx.emit("Add", ctx.cast(number, wide), ctx.constant(0.5, wide))
        counts.append(cells)
        lines.append(ctx.unsqueeze(ctx.emit("Mul", middle, distance), 3 - axis, 2))
    y, x = (ctx.emit("Expand", line, ctx.concat(*counts, ctx.ints(1))) for line in lines)
    grid = ctx.unsqueeze(ctx.concat(x, y, x, y, axis=2), 2)
    flat = ctx.reshape(ctx.emit("Add", grid, boxes), [-1, 4])
    number = ctx.slice(ctx.shape_of(priors), 0, 1, 0)
    rows, columns = (ctx.slice(sizes, axis, axis + 1, 0) for axis in (2, 3))
    if attributes.h or attributes.w:
        # Rows (n, 4), then zeros: (count, 4).
        missing = ctx.emit(
            "Sub", ctx.emit("Mul", ctx.emit("Mul", rows, columns), number), ctx.slice(ctx.emit("Shape", flat), 0, 1, 0)
        )
        flat = ctx.emit("Pad", flat, ctx.concat(ctx.ints(0, 0), missing, ctx.ints(0)))
    if attributes.flatten:
        return ctx.cast(flat, kind)
    return ctx.cast(ctx.emit("Reshape", flat, ctx.concat(rows, columns, number, ctx.ints(4))), kind)


@composed("ExperimentalDetectronGenerateProposalsSingleImage")
def generate_proposals_single_image(
    ctx: ExportContext, im_info: Tensor, anchors: Tensor, deltas: Tensor, scores: Tensor, *, attributes: Any
) -> tuple[Tensor, ...]:
    """Decoded anchors, TopK, and a Loop that keeps one box in each iteration."""
    kind, wide = im_info.element, wide_element(im_info)
    image, start, changes, points = (ctx.cast(x, wide) for x in (im_info, anchors, deltas, scores))
    count, limit = scores.require_known(0, "the number of anchors"), attributes.post_nms_count
    limits = ctx.emit("Sub", ctx.emit("Gather", image, ctx.ints(1, 0, 1, 0), axis=0), ctx.scalar(1, image))
    moved = grid_values(ctx, ctx.unsqueeze(changes, 0), count, 4)
    found = clipped(ctx, decoded(ctx, start, moved, 1, True, MAX_LOG_SCALE), limits)
    minimum = ctx.scalar(as_f32(attributes.min_size), found)
    large = ctx.emit("And", *(ctx.emit("GreaterOrEqual", side, minimum) for side in sides(ctx, found, 1)))
    rated = ctx.emit("Mul", grid_values(ctx, ctx.unsqueeze(points, 0), count, 1), ctx.cast(large, wide))
    boxes, values = best(ctx, found, rated, attributes.pre_nms_count)
    rule = rule_of(ctx, attributes.nms_threshold, limit, boxes)
    kept = kept_boxes(ctx, boxes, ranks(ctx, values), rule, 0)
    rois, best_scores = (ctx.squeeze(chosen(ctx, x, kept), 0) for x in (boxes, values))
    return ctx.cast(padded(ctx, rois, limit, 0, 2), kind), ctx.cast(padded(ctx, best_scores, limit, 0, 1), kind)


@composed("ExperimentalDetectronDetectionOutput")
def detectron_detection_output(
    ctx: ExportContext, rois: Tensor, deltas: Tensor, scores: Tensor, im_info: Tensor, *, attributes: Any
) -> tuple[Tensor, ...]:
    """Decoded boxes, a Loop that keeps one box of each class in each iteration, and TopK of all classes."""
    kind, wide, classes = rois.element, wide_element(rois), attributes.num_classes
    if classes < 2:
        # The background is the only class.
        count = attributes.max_detections_per_image
        made = (ctx.constant(np.zeros((count, 4)), kind), ctx.constant(np.zeros(count), I32))
        return *made, ctx.constant(np.zeros(count), kind)
    boxes, points = _of_classes(ctx, ctx.cast(rois, wide), ctx.cast(deltas, wide), ctx.cast(scores, wide), attributes)
    threshold = ctx.scalar(as_f32(attributes.score_threshold), points)
    rated = ctx.where(ctx.emit("Greater", points, threshold), points, ctx.scalar(-np.inf, points))
    limit = ALL if attributes.post_nms_count == -1 else attributes.post_nms_count
    kept = kept_boxes(ctx, boxes, rated, rule_of(ctx, attributes.nms_threshold, limit, boxes), 1)
    places, count = kept.places(ctx), attributes.max_detections_per_image
    group = ctx.slice(places, 0, 1, 1)
    pairs = ctx.concat(group, ctx.unsqueeze(ctx.emit("GatherND", kept.boxes, places), 1), axis=1)
    pairs = ctx.emit("Gather", pairs, _order(ctx, pairs, ctx.emit("GatherND", kept.scores, places), count), axis=0)
    number = ctx.emit("Add", ctx.squeeze(ctx.slice(pairs, 0, 1, 1), 1), ctx.constant(1))
    parts = (ctx.emit("GatherND", boxes, pairs), ctx.cast(number, I32), ctx.emit("GatherND", points, pairs))
    found = [padded(ctx, part, count, 0, rank) for part, rank in zip(parts, (2, 1, 1), strict=True)]
    return ctx.cast(found[0], kind), found[1], ctx.cast(found[2], kind)


def _of_classes(
    ctx: ExportContext, rois: Tensor, deltas: Tensor, scores: Tensor, attributes: Any
) -> tuple[Tensor, Tensor]:
    """Boxes (classes, n, 4) of all classes but the background and their scores (classes, n); zeros for a roi without
    width or height."""
    changes = ctx.reshape(deltas, [-1, attributes.num_classes, 4])
    weights = ctx.constant(np.array(attributes.deltas_weights, np.float32), deltas.element)
    moved = decoded(
        ctx, ctx.unsqueeze(rois, 1), ctx.emit("Div", changes, weights), 1, True, as_f32(attributes.max_delta_log_wh)
    )
    zero = ctx.scalar(0, rois)
    flat = ctx.emit("Or", *(ctx.emit("LessOrEqual", side, zero) for side in sides(ctx, rois, 0)))
    boxes = ctx.where(ctx.unsqueeze(flat, 1, 2), zero, positive(ctx, moved))
    points = ctx.where(ctx.unsqueeze(flat, 1), zero, scores)
    boxes, points = (ctx.slice(x, 1, None, 1) for x in (boxes, points))
    return ctx.transpose(boxes, [1, 0, 2]), ctx.transpose(points, [1, 0])


def _order(ctx: ExportContext, pairs: Tensor, scores: Tensor, count: int) -> Tensor:
    """The order of detections (class, box), which are in that of classes: the same, and where there are more than
    ``count``, that of descending scores, of equal ones that of boxes."""
    total = ctx.emit("Shape", scores)
    box = ctx.squeeze(ctx.slice(pairs, 1, 2, 1), 1)
    # TopK takes the first of equal ones.
    by_box = ctx.emit_all("TopK", 2, box, total, axis=0, largest=0)[1]
    by_score = ctx.emit_all("TopK", 2, ctx.emit("Gather", scores, by_box, axis=0), total, axis=0)[1]
    sorted_ = ctx.emit("Gather", by_box, by_score, axis=0)
    same = ctx.emit("Range", ctx.constant(0), ctx.reshape(total, []), ctx.constant(1))
    return ctx.where(ctx.emit("Greater", total, ctx.ints(count)), sorted_, same)


@composed("ExperimentalDetectronROIFeatureExtractor")
def roi_feature_extractor(
    ctx: ExportContext, rois: Tensor, *features: Tensor, attributes: Any
) -> tuple[Tensor, Tensor]:
    """The level of each roi by Log, its features by RoiAlign, ScatterND of each level."""
    kind, wide, size = rois.element, wide_element(rois), attributes.output_size
    boxes = ctx.cast(rois, wide)
    levels = _levels(ctx, boxes, len(features))
    channels = ctx.slice(ctx.shape_of(features[0]), 1, 2, 0)
    shape = ctx.concat(ctx.slice(ctx.shape_of(rois), 0, 1, 0), channels, ctx.ints(size, size))
    found = ctx.emit("Expand", ctx.scalar(0, boxes), shape)
    for level, (feature, scale) in enumerate(zip(features, attributes.pyramid_scales, strict=False)):
        places = ctx.transpose(ctx.emit("NonZero", ctx.emit("Equal", levels, ctx.constant(level))), [1, 0])
        own = ctx.emit("GatherND", boxes, places)
        scaled = ctx.emit("Mul", own, ctx.scalar(float(np.float32(1) / np.float32(scale)), own))
        moved = ctx.emit("Sub", scaled, ctx.scalar(0.5 if attributes.aligned else 0, own))
        image = ctx.emit("Expand", ctx.constant(0), ctx.slice(ctx.emit("Shape", places), 0, 1, 0))
        feature, ratio = ctx.cast(feature, wide), attributes.sampling_ratio
        values = region_means(ctx, feature, moved, image, (size, size), ratio, "output_half_pixel")
        found = ctx.emit("ScatterND", found, places, values)
    return ctx.cast(found, kind), ctx.emit("Identity", rois)


def _levels(ctx: ExportContext, rois: Tensor, count: int) -> Tensor:
    """The level of the pyramid of each roi, i64; ``count`` for none."""
    area = ctx.emit("Mul", *sides(ctx, rois, 0))
    root = ctx.emit("Add", ctx.emit("Div", ctx.emit("Sqrt", area), ctx.scalar(224, area)), ctx.scalar(1e-6, area))
    # The levels from 1 on begin at halves, wholes, doubles, ... of 224 pixels.
    begins = ctx.constant(2.0 ** np.arange(-1, count - 2), area.element)
    is_above = ctx.cast(ctx.emit("GreaterOrEqual", ctx.unsqueeze(root, 1), begins), I64)
    found = ctx.reduce("ReduceSum", is_above, [1])
    return ctx.where(ctx.emit("Greater", area, ctx.scalar(0, area)), found, ctx.constant(count))
