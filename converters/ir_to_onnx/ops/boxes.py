"""Boxes of detectors: priors on a grid, proposals of regions, the heads of YOLO.

A box is (xmin, ymin, xmax, ymax) along the last axis. With an ``offset`` of 1 the corners are pixels that belong to
the box. Names of sizes: G groups, such as images; n boxes of a group.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.graph import Tensor
from converters.ir_to_onnx.ops.generation import as_i64
from converters.ir_to_onnx.ops.movement import reshape_to, sizes_of
from converters.ir_to_onnx.ops.roi import wide_element
from converters.ir_to_onnx.ops.suppression import AlignedBoxes, Kept, Rule, suppressed
from converters.ir_to_onnx.registry import composed
from irexec.dtypes.elements import BOOLEAN, F32, I64
from irexec.errors import check
from irexec.ir.dims import ANY
from irexec.reference.detection import MAX_LOG_SCALE, as_f32, make_anchors
from irexec.schema.prior_box import PriorBoxAttributes, centred_boxes, fixed_boxes


@composed("PriorBox")
def prior_box(ctx: ExportContext, output_size: Tensor, image_size: Tensor, *, attributes: PriorBoxAttributes) -> Tensor:
    """Centres by Range, edges by Add and Sub, Concat; sizes may be computed when the model runs."""
    grid, image = as_i64(ctx, output_size), ctx.cast(image_size, F32)
    height, step = ctx.slice(image, 0, 1, 0), np.float32(attributes.step)
    sizes = list(attributes.min_size)
    if not attributes.scale_all_sizes and sizes:
        first = np.float32(image_size.require_value("the size of the image").ravel()[0])
        sizes = [float(np.float32(size) * first) for size in sizes]
    boxes = np.array(fixed_boxes(attributes) + centred_boxes(sizes, attributes), np.float32).reshape(-1, 7)
    check(len(boxes) > 0, "there are no boxes")
    edges = []
    for axis in (0, 1):
        count, length = ctx.slice(grid, axis, axis + 1, 0), ctx.slice(image, axis, axis + 1, 0)
        if not step:
            distance = ctx.emit("Div", length, ctx.cast(count, F32))
        elif attributes.scale_all_sizes:
            distance = ctx.constant([step], F32)
        elif attributes.step == -1:
            distance = ctx.emit("Div", height, ctx.cast(ctx.slice(grid, 0, 1, 0), F32))
        else:
            distance = ctx.emit("Mul", height, ctx.constant([step], F32))
        centres = _centres(ctx, count, distance, attributes.offset if step else 0.5)
        edges.append(_edges(ctx, centres, boxes, axis, length))
    return _grid(ctx, edges[0], edges[1], grid, len(boxes), attributes)


def _centres(ctx: ExportContext, count: Tensor, step: Tensor, offset: float) -> Tensor:
    """The centres of the cells along an axis, (cells, 1)."""
    line = ctx.emit("Range", ctx.constant(0), ctx.reshape(count, []), ctx.constant(1))
    moved = ctx.emit("Add", ctx.cast(line, F32), ctx.constant(offset, F32))
    return ctx.unsqueeze(ctx.emit("Mul", moved, step), 1)


def _edges(ctx: ExportContext, centres: Tensor, boxes: np.ndarray, axis: int, length: Tensor) -> list[Tensor]:
    """First and last coordinates of boxes (rows of CellBox), relative to the size of the image."""
    back, forward, shift, half, clipped = (boxes[:, i] for i in (0, 1, 3 - axis, 5 - axis, 6))
    middle = ctx.emit("Sub", centres, ctx.constant(back, F32))
    for part in (forward, shift):
        middle = ctx.emit("Add", middle, ctx.constant(part, F32))
    scale, found = ctx.emit("Reciprocal", length), list[Tensor]()
    for sign, limit, bound in (("Sub", "Max", 0), ("Add", "Min", 1)):
        edge = ctx.emit("Mul", ctx.emit(sign, middle, ctx.constant(half, F32)), scale)
        if clipped.any():
            bounded = ctx.emit(limit, edge, ctx.scalar(bound, edge))
            edge = ctx.where(ctx.constant(clipped > 0, BOOLEAN), bounded, edge)
        found.append(edge)
    return found


@composed("PriorBoxClustered")
def prior_box_clustered(ctx: ExportContext, output_size: Tensor, image_size: Tensor, *, attributes: Any) -> Tensor:
    """Centres by Range, edges by Add and Sub, Concat; sizes may be computed when the model runs."""
    grid, image = as_i64(ctx, output_size), ctx.cast(image_size, F32)
    steps = [attributes.step_h or attributes.step, attributes.step_w or attributes.step]
    edges = []
    for axis, sizes in ((0, attributes.height), (1, attributes.width)):
        count, length = ctx.slice(grid, axis, axis + 1, 0), ctx.slice(image, axis, axis + 1, 0)
        step = ctx.constant([steps[axis]], F32) if any(steps) else ctx.emit("Div", length, ctx.cast(count, F32))
        half = ctx.constant(np.array(sizes, np.float32) / 2, F32)
        middle = _centres(ctx, count, step, attributes.offset)
        edges.append([ctx.emit("Div", ctx.emit(sign, middle, half), length) for sign in ("Sub", "Add")])
    return _grid(ctx, edges[0], edges[1], grid, len(attributes.width), attributes)


def _grid(
    ctx: ExportContext, rows: list[Tensor], columns: list[Tensor], grid: Tensor, boxes: int, attributes: Any
) -> Tensor:
    """The boxes of all cells as x and y of both corners, and their variances: (2, coordinates)."""
    shape = ctx.concat(grid, ctx.ints(boxes, 1))
    parts = []
    for i in (0, 1):
        for edge, axis in ((columns[i], 0), (rows[i], 1)):
            parts.append(ctx.emit("Expand", ctx.unsqueeze(ctx.unsqueeze(edge, axis), 3), shape))
    whole = ctx.concat(*parts, axis=3)
    if attributes.clip:
        whole = ctx.emit("Clip", whole, ctx.scalar(0, whole), ctx.scalar(1, whole))
    variances = ctx.emit("Expand", ctx.constant(np.array(attributes.variance or [0.1]), F32), ctx.emit("Shape", whole))
    return ctx.concat(ctx.reshape(whole, [1, -1]), ctx.reshape(variances, [1, -1]), axis=0)


def decoded(
    ctx: ExportContext, boxes: Tensor, deltas: Tensor, offset: float, is_inclusive: bool, max_log_scale: float | None
) -> Tensor:
    """Boxes (..., 4) moved and scaled by deltas (dx, dy, dw, dh), as irexec.reference.detection.placed does."""
    first, last = ctx.slice(boxes, 0, 2, -1), ctx.slice(boxes, 2, 4, -1)
    half = ctx.scalar(0.5, boxes)
    sizes = ctx.emit("Add", ctx.emit("Sub", last, first), ctx.scalar(offset, boxes))
    centres = ctx.emit("Add", first, ctx.emit("Mul", sizes, half))
    moved = ctx.emit("Add", ctx.emit("Mul", ctx.slice(deltas, 0, 2, -1), sizes), centres)
    log_scale = ctx.slice(deltas, 2, 4, -1)
    if max_log_scale is not None:
        log_scale = ctx.emit("Min", log_scale, ctx.scalar(max_log_scale, log_scale))
    halves = ctx.emit("Mul", ctx.emit("Mul", ctx.emit("Exp", log_scale), sizes), half)
    end = ctx.emit("Add", moved, halves)
    if is_inclusive and offset:
        end = ctx.emit("Sub", end, ctx.scalar(offset, end))
    return ctx.concat(ctx.emit("Sub", moved, halves), end, axis=-1)


def positive(ctx: ExportContext, x: Tensor) -> Tensor:
    """The values above 0; 0 for others and for NaN."""
    zero = ctx.scalar(0, x)
    return ctx.where(ctx.emit("Greater", x, zero), x, zero)


def clipped(ctx: ExportContext, boxes: Tensor, limits: Tensor) -> Tensor:
    """Boxes (..., 4) with every corner inside; ``limits`` are the largest x, y, x and y, and broadcast."""
    return positive(ctx, ctx.emit("Min", boxes, limits))


def sides(ctx: ExportContext, boxes: Tensor, offset: float) -> tuple[Tensor, Tensor]:
    """The widths and heights of boxes (..., 4)."""
    width, height = (
        ctx.squeeze(ctx.emit("Sub", ctx.slice(boxes, i + 2, i + 3, -1), ctx.slice(boxes, i, i + 1, -1)), -1)
        for i in (0, 1)
    )
    added = ctx.scalar(offset, width)
    return ctx.emit("Add", width, added), ctx.emit("Add", height, added)


def best(ctx: ExportContext, boxes: Tensor, scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The boxes (G, n, 4) with the best ``count`` scores (G, n) in descending order, NaN last, and these scores."""
    limit = ctx.emit("Min", ctx.ints(count), ctx.slice(ctx.shape_of(scores), 1, 2, 0))
    order = descending(ctx, scores, limit, 1)
    found = ctx.emit("GatherND", boxes, ctx.unsqueeze(order, 2), batch_dims=1)
    return found, ctx.emit("GatherElements", scores, order, axis=1)


def descending(ctx: ExportContext, scores: Tensor, count: Tensor, axis: int) -> Tensor:
    """The indices of the ``count`` best scores along an axis; of equal ones the first comes first, NaN last."""
    is_number = ctx.emit("Equal", scores, scores)
    return ctx.emit_all("TopK", 2, ctx.where(is_number, scores, ctx.scalar(-np.inf, scores)), count, axis=axis)[1]


def ranks(ctx: ExportContext, like: Tensor) -> Tensor:
    """Scores f32 (G, n) of boxes that are sorted: -1, -2, ... in each group."""
    sizes = ctx.emit("Shape", like)
    one = ctx.emit("Expand", ctx.constant(-1.0, F32), sizes)
    return ctx.emit("CumSum", one, ctx.constant(1))


def kept_boxes(ctx: ExportContext, boxes: Tensor, rated: Tensor, rule: Rule, offset: float) -> Kept:
    """The boxes (G, n, 4) that overlap none with a better score, of ``rated`` (G, n), by more than a threshold."""
    corners = tuple(ctx.squeeze(ctx.slice(boxes, i, i + 1, 2), 2) for i in range(4))
    return suppressed(ctx, rated, AlignedBoxes(corners, offset, must_touch=True).overlaps(ctx), rule)


def rule_of(ctx: ExportContext, threshold: float, limit: int, like: Tensor, eta: float = 1.0) -> Rule:
    """The rule of a threshold, which is an attribute; overlaps have the element type of ``like``."""
    return Rule(ctx.scalar(as_f32(threshold), like), ctx.constant(limit), eta=eta)


def chosen(ctx: ExportContext, values: Tensor, kept: Kept) -> Tensor:
    """The values (G, n, ...) of kept boxes, (G, k, ...)."""
    return ctx.emit("GatherND", values, ctx.unsqueeze(kept.boxes, 2), batch_dims=1)


def padded(ctx: ExportContext, rows: Tensor, count: int, axis: int, rank: int) -> Tensor:
    """The first ``count`` rows along an axis, with zeros where there are fewer."""
    pads = [0] * (2 * rank)
    pads[rank + axis] = count
    wide = ctx.emit("Pad", rows, ctx.ints(*pads))
    return ctx.slice(wide, 0, count, axis)


def grid_values(ctx: ExportContext, maps: Tensor, anchors: int, each: int) -> Tensor:
    """Maps (G, anchors * each, H, W) as (G, H * W * anchors, each); without the last axis if ``each`` is 1."""
    sizes = ctx.shape_of(maps)
    apart = ctx.emit(
        "Reshape", maps, ctx.concat(ctx.slice(sizes, 0, 1, 0), ctx.ints(anchors, each), ctx.slice(sizes, 2, 4, 0))
    )
    moved = ctx.transpose(apart, [0, 3, 4, 1, 2])
    shape = [0, -1, each] if each > 1 else [0, -1]
    return ctx.emit("Reshape", moved, ctx.ints(*shape), shape=(ANY, ANY, each)[: len(shape)])


def counted(ctx: ExportContext, is_box: Tensor) -> Tensor:
    """The number of kept boxes of each group, i64 (G,)."""
    return ctx.reduce("ReduceSum", ctx.cast(is_box, I64), [1])


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


@composed("RegionYolo")
def region_yolo(ctx: ExportContext, data: Tensor, *, attributes: Any) -> Tensor:
    """Reshape to regions, Sigmoid and Softmax of their channels, Concat, Reshape."""
    regions, each, coords = attributes.regions, attributes.region_channels, attributes.coords
    n, channels, height, width = sizes_of(ctx, data)
    used = data if channels.value is not None and channels.value[0] == regions * each else ctx.slice(
        data, 0, regions * each, 1)  # fmt: skip
    parts = reshape_to(ctx, used, [n, regions, each, height, width])
    check(coords >= 2, "coordinates share channels with the score")

    def channels_of(first: int, last: int) -> Tensor:
        return ctx.slice(parts, first, last, 2)

    pieces = [ctx.emit("Sigmoid", channels_of(0, 2))]
    if coords > 2:
        pieces.append(channels_of(2, coords))
    if not attributes.do_softmax:
        pieces.append(ctx.emit("Sigmoid", channels_of(coords, each)))
    else:
        pieces.append(ctx.emit("Sigmoid", channels_of(coords, coords + 1)))
        if attributes.classes:
            pieces.append(ctx.emit("Softmax", channels_of(coords + 1, each), axis=2))
    result = reshape_to(ctx, ctx.concat(*pieces, axis=2), [n, regions * each, height, width])
    if not attributes.do_softmax:
        return result
    if used is not data:
        result = ctx.concat(result, ctx.slice(data, regions * each, None, 1), axis=1)
    first, last = attributes.axis % 4, attributes.end_axis % 4
    sizes = [n, channels, height, width]
    return result if last <= first else reshape_to(ctx, result, [*sizes[:first], -1, *sizes[last + 1 :]])


@composed("ReorgYolo")
def reorg_yolo(ctx: ExportContext, data: Tensor, *, stride: Any) -> Tensor:
    """Reshape, Transpose, Reshape: each image is read as if it had fewer channels and larger sides."""
    step = stride[0]
    n, channels, height, width = sizes_of(ctx, data)
    check(channels.value is not None and int(channels.value[0]) % (step * step) == 0,
          "the number of channels is not known to be a multiple of the squared stride")  # fmt: skip
    assert channels.value is not None
    depth = int(channels.value[0]) // (step * step)
    read = reshape_to(ctx, data, [n, depth, height, step, width, step])
    moved = ctx.transpose(read, [0, 3, 5, 1, 2, 4])
    # The result has as many channels as the squared stride times those of the data, and smaller sides.
    down, across = (ctx.emit("Div", size, ctx.ints(step)) for size in (height, width))
    return reshape_to(ctx, moved, [n, int(channels.value[0]) * step * step, down, across])
