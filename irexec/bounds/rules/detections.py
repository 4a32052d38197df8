"""Rows of detections as sets: each row is one of the candidates, whichever of them an implementation selects.

The selected boxes and their order follow from comparisons of scores and overlaps, which rounding may decide. The values
of a selected row are those of its candidate in any case.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from irexec.bounds.interval import Algebra, Bound, Interval, Unbounded, floats, joined
from irexec.bounds.registry import Layer, rule
from irexec.bounds.rules.elementwise import by_exp
from irexec.errors import check
from irexec.reference.detection import MAX_LOG_SCALE, make_anchors

_OPEN_SIZES = "the sizes of the image, to which boxes are clipped, are not certain"


def one_of(
    exact: np.ndarray,
    columns: Sequence[Interval],
    mask: np.ndarray,
    *,
    end: bool = False,
    more: Sequence[Sequence[float]] = (),
) -> Interval | None:
    """The rows of a tensor, of which each is one of several candidates.

    Args:
        exact: rows of the reference kernel, along the last axis.
        columns: an interval of each column of a row, in the shape of the candidates.
        mask: the candidates that may be selected, of this shape.
        end: whether -1 in the first column ends the rows, behind which anything may be.
        more: further candidates, such as the zeros of unused rows; NaN is anything.

    Returns:
        None without a candidate.
    """
    low, high = (np.stack([floats(getattr(one, side))[mask] for one in columns], -1) for side in ("low", "high"))
    unused = np.array(more, np.float64).reshape(-1, len(columns))
    low, high = np.concatenate([low, unused]), np.concatenate([high, unused])
    if not len(low):
        return None
    is_open = np.isnan(low) | np.isnan(high) | (np.isneginf(low) & np.isposinf(high))
    low, high = np.where(is_open, -np.inf, low), np.where(is_open, np.inf, high)

    def admits(found: np.ndarray) -> np.ndarray:
        rows = floats(found).reshape(-1, found.shape[-1])
        is_right = np.array([bool(((low <= row) & (row <= high) | is_open).all(1).any()) for row in rows], bool)
        if end and (rows[:, 0] == -1).any():
            is_right[int(np.argmax(rows[:, 0] == -1)) :] = True
        return np.broadcast_to(is_right.reshape(*found.shape[:-1], 1), found.shape)

    least, most = (np.broadcast_to(one, exact.shape) for one in (low.min(0), high.max(0)))
    return Interval(exact, least, most, admits=admits)


def numbered(axis: int, shape: tuple[int, ...]) -> Interval:
    """The index along an axis of each element of a shape."""
    sizes = [-1 if i == axis else 1 for i in range(len(shape))]
    return Interval.certain(np.broadcast_to(np.arange(shape[axis]).reshape(sizes), shape))


@rule("DetectionOutput")
def detection_output(
    layer: Layer, logits: Interval, scores: Interval, proposals: Interval, *more: Interval | None
) -> Bound:
    """Each row is image, class, score and the four corners of one of the boxes, before the row that ends them."""
    attributes, of = layer.attributes["attributes"], layer.algebra
    check(all(one is None for one in more), "boxes that are decoded twice")
    images, count = len(logits.exact), proposals.exact.shape[2] // attributes.box_values
    exact = layer.run(logits, scores, proposals)[0]
    if not count:
        return Interval.certain(exact)
    classes = scores.exact.shape[1] // count
    boxes = _decoded(of, logits, proposals, attributes, 1 if attributes.share_location else classes)
    shape = (images, count, classes)
    rated = scores.moved(lambda array: array.reshape(shape))
    label = numbered(2, shape)
    mask = floats(rated.high) >= attributes.confidence_threshold * (1 - 2 * of.arithmetic.unit)
    mask &= label.exact != attributes.background_label_id
    if attributes.decrease_label_id:
        mask &= label.exact != 0
        label = label.moved(lambda array: array - 1)
    corners = [joined(lambda end, i=i: np.broadcast_to(end[..., i], shape), boxes) for i in range(4)]
    found = one_of(exact, [numbered(0, shape), label, rated, *corners], mask, end=True)
    return Interval.certain(exact) if found is None else found


def _decoded(of: Algebra, logits: Interval, proposals: Interval, attributes: Any, locations: int) -> Interval:
    """The boxes [images, boxes, classes or 1, 4] at offsets from priors; see irexec.reference.detection.decode."""
    n, values = len(proposals.exact), attributes.box_values
    count = proposals.exact.shape[2] // values
    offsets = logits.moved(lambda array: array.reshape(-1, count, locations, 4))
    priors = proposals.moved(lambda array: array[:, 0].reshape(n, count, 1, values)[..., -4:])
    if not attributes.normalized:
        sizes = np.array([attributes.input_width, attributes.input_height] * 2, np.float64)
        priors = of.divide(priors, Interval.certain(sizes))
    if not attributes.variance_encoded_in_target:
        variances = proposals.moved(lambda array: array[:, 1, : 4 * count].reshape(n, count, 1, 4))
        offsets = of.multiply(variances, offsets)
    if attributes.code_type.endswith("CORNER"):
        boxes = of.add(priors, offsets)
    else:
        (first, last), (moved, scale) = halves(priors), halves(offsets)
        sides = of.subtract(last, first)
        middle = joined(lambda end: end / 2, of.add(first, last))
        centre = of.add(of.multiply(moved, sides), middle)
        half = joined(lambda end: end / 2, of.multiply(of.increasing(np.exp, scale, by_exp), sides))
        ends = of.subtract(centre, half), of.add(centre, half)
        boxes = joined(lambda one, two: np.concatenate([one, two], -1), *ends)
    if attributes.clip_before_nms or attributes.clip_after_nms:
        boxes = joined(lambda end: np.clip(end, 0, 1), boxes)
    return boxes


def _values(exact: np.ndarray, candidates: Interval, mask: np.ndarray, is_padded: bool) -> Bound:
    """A vector, of which each element is one of several candidates, or the zero of an unused row."""
    found = one_of(exact[:, None], (candidates,), mask, more=[[0.0]] if is_padded else [])
    if found is None or (admits := found.admits) is None:
        return Unbounded("no candidates")
    return Interval(exact, found.low[:, 0], found.high[:, 0], admits=lambda array: admits(array[:, None])[:, 0])


def _placed(of: Algebra, boxes: Interval, deltas: Interval, offset: float, limit: float | None) -> Interval:
    """Boxes moved and scaled by deltas; see irexec.reference.detection.placed, of pixels where ``limit`` is given."""
    (first, last), (moved, scale) = halves(boxes), halves(deltas)
    pixel = Interval.certain(np.asarray(offset, np.float64))
    sides = of.add(of.subtract(last, first), pixel)
    centre = of.add(of.multiply(moved, sides), of.add(first, joined(lambda end: end / 2, sides)))
    if limit is not None:
        scale = joined(lambda end: np.minimum(end, limit), scale)
    half = joined(lambda end: end / 2, of.multiply(of.increasing(np.exp, scale, by_exp), sides))
    upper = of.add(centre, half)
    ends = of.subtract(centre, half), upper if limit is None else of.subtract(upper, pixel)
    return joined(lambda one, two: np.concatenate([one, two], -1), *ends)


def _inside(boxes: Interval, width: np.ndarray | float, height: np.ndarray | float) -> Interval:
    """Boxes clipped to an image; a limit is an array of the other axes."""
    limits = np.stack(np.broadcast_arrays(width, height, width, height), -1)
    return joined(lambda end: np.maximum(np.minimum(end, limits), 0), boxes)


def columns(x: Interval) -> list[Interval]:
    """The elements of the last axis."""
    return [joined(lambda end, i=i: end[..., i], x) for i in range(x.exact.shape[-1])]


def halves(x: Interval) -> tuple[Interval, Interval]:
    """The first two and the last two elements of the last axis."""
    return joined(lambda end: end[..., :2], x), joined(lambda end: end[..., 2:], x)


@rule("GenerateProposals")
def generate_proposals(
    layer: Layer, info: Interval, anchors: Interval, deltas: Interval, scores: Interval
) -> tuple[Bound, ...]:
    """Each row is one of the anchors, moved; each score one of all. How many belong to an image is open."""
    check(info.is_certain, _OPEN_SIZES)
    attributes, shape = layer.attributes["attributes"], scores.exact.shape
    outputs = layer.run(info, anchors, deltas, scores)
    offset = 0.0 if attributes.normalized else 1.0
    changes = deltas.moved(lambda array: array.reshape(*shape[:2], 4, *shape[2:]).transpose(0, 3, 4, 1, 2))
    boxes = _placed(layer.algebra, anchors, changes, offset, MAX_LOG_SCALE)
    height, width = (floats(info.exact)[:, i, None, None, None] - offset for i in range(2))
    mask = np.ones(boxes.exact.shape[:-1], bool)
    rated = scores.moved(lambda array: array.transpose(0, 2, 3, 1))
    reason = Unbounded("the number of boxes follows from overlaps near a threshold")
    rows = one_of(outputs[0], columns(_inside(boxes, width, height)), mask)
    return Unbounded("no anchors") if rows is None else rows, _values(outputs[1], rated, mask, False), reason


@rule("ExperimentalDetectronGenerateProposalsSingleImage")
def generate_proposals_of_an_image(
    layer: Layer, info: Interval, anchors: Interval, deltas: Interval, scores: Interval
) -> tuple[Bound, ...]:
    """Each row is one of the anchors, moved, or zeros; each score one of all, or 0."""
    check(info.is_certain, _OPEN_SIZES)
    count, *grid = scores.exact.shape
    outputs = layer.run(info, anchors, deltas, scores)
    start = anchors.moved(lambda array: array.reshape(*grid, count, 4))
    changes = deltas.moved(lambda array: array.reshape(count, 4, *grid).transpose(2, 3, 0, 1))
    height, width = floats(info.exact)[:2] - 1
    boxes = _inside(_placed(layer.algebra, start, changes, 1.0, MAX_LOG_SCALE), width, height)
    mask = np.ones(boxes.exact.shape[:-1], bool)
    rows = one_of(outputs[0], columns(boxes), mask, more=[[0.0] * 4])
    rated = scores.moved(lambda array: array.transpose(1, 2, 0))
    return Unbounded("no anchors") if rows is None else rows, _values(outputs[1], rated, mask, True)


@rule("ExperimentalDetectronDetectionOutput")
def detectron_detection_output(
    layer: Layer, rois: Interval, deltas: Interval, scores: Interval, info: Interval
) -> tuple[Bound, ...]:
    """Each row is one of the regions, moved for one of the classes, or zeros; likewise its class and its score."""
    check(info.is_certain, _OPEN_SIZES)
    attributes, of = layer.attributes["attributes"], layer.algebra
    outputs = layer.run(rois, deltas, scores, info)
    shape = len(rois.exact), attributes.num_classes
    weights = Interval.certain(np.array(attributes.deltas_weights, np.float64))
    changes = of.divide(deltas.moved(lambda array: array.reshape(*shape, 4)), weights)
    start = rois.moved(lambda array: array[:, None])
    limit = float(np.float32(attributes.max_delta_log_wh))
    boxes = joined(lambda end: np.maximum(end, 0), _placed(of, start, changes, 1.0, limit))
    slack = 2 * of.arithmetic.unit * abs(attributes.score_threshold)
    label = numbered(1, shape)
    mask = (floats(scores.high) >= attributes.score_threshold - slack) & (label.exact > 0)
    rows = one_of(outputs[0], columns(boxes), mask, more=[[0.0] * 4])
    assert rows is not None
    return rows, _values(outputs[1], label, mask, True), _values(outputs[2], scores, mask, True)


@rule("Proposal")
def proposal(layer: Layer, scores: Interval, deltas: Interval, image: Interval) -> tuple[Bound, ...]:
    """Each row is an image and one of its anchors, moved, or zeros, up to the row that ends them.

    Which anchors are proposed follows from comparisons of scores, sides and overlaps, which rounding may decide.
    """
    attributes, of = layer.attributes["attributes"], layer.algebra
    check(image.is_certain, _OPEN_SIZES)
    outputs = layer.run(floats(scores.exact), floats(deltas.exact), floats(image.exact))
    count, (n, _, *grid) = attributes.anchor_count, scores.exact.shape
    positions = np.indices(grid).transpose(1, 2, 0)[..., :: 1 if attributes.is_tensorflow else -1]
    base = make_anchors(attributes.base_size, attributes.ratio, attributes.scale, centred=attributes.is_tensorflow)
    start = of.rounded(
        Interval.certain(np.tile(positions * float(attributes.feat_stride), 2)[:, :, None] + floats(base)), 8
    )
    height, width = floats(image.exact)[:2]
    limits = (height, width) if attributes.is_tensorflow else (width, height)
    offset = 0.0 if attributes.is_tensorflow else 1.0
    if attributes.is_tensorflow:
        start = _inside(start, *limits)
    changes = deltas.moved(lambda array: array.reshape(n, count, 4, *grid).transpose(0, 3, 4, 1, 2))
    divisors = np.repeat([attributes.box_coordinate_scale, attributes.box_size_scale], 2)
    boxes = _placed(of, start, of.divide(changes, Interval.certain(floats(divisors))), offset, None)
    if attributes.clip_before_nms:
        boxes = _inside(boxes, limits[0] - offset, limits[1] - offset)
    if attributes.clip_after_nms:
        boxes = _inside(boxes, *limits)
    if attributes.normalize:
        boxes = of.divide(boxes, Interval.certain(np.array(limits * 2, np.float64)))
    mask = np.ones(boxes.exact.shape[:-1], bool)
    rows = one_of(outputs[0], [numbered(0, mask.shape), *columns(boxes)], mask, end=True, more=[[0.0] * 5])
    rated = scores.moved(lambda array: array[:, count:].transpose(0, 2, 3, 1))
    assert rows is not None
    return (rows, *(_values(one, rated, mask, True) for one in outputs[1:]))
