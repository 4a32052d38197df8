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


def one_of(exact: np.ndarray, columns: Sequence[Interval], mask: np.ndarray, *, end: bool = False) -> Interval | None:
    """The rows of a tensor, of which each is one of several candidates.

    Args:
        exact: rows of the reference kernel, along the last axis.
        columns: an interval of each column of a row, in the shape of the candidates.
        mask: the candidates that may be selected, of this shape.
        end: whether -1 in the first column ends the rows, behind which anything may be.

    Returns:
        None where there is no candidate.
    """
    low, high = (np.stack([floats(getattr(one, side))[mask] for one in columns], -1) for side in ("low", "high"))
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
    if any(one is not None for one in more):
        return Unbounded("boxes that are decoded twice")
    images, count = len(logits.exact), proposals.exact.shape[2] // attributes.box_values
    exact = layer.run(logits.exact, scores.exact, proposals.exact)[0]
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
        first, last = (joined(lambda end, part=part: end[..., part], priors) for part in (slice(0, 2), slice(2, 4)))
        moved, scale = (joined(lambda end, part=part: end[..., part], offsets) for part in (slice(0, 2), slice(2, 4)))
        sides = of.subtract(last, first)
        middle = joined(lambda end: end / 2, of.add(first, last))
        centre = of.add(of.multiply(moved, sides), middle)
        half = joined(lambda end: end / 2, of.multiply(of.increasing(np.exp, scale, by_exp), sides))
        ends = of.subtract(centre, half), of.add(centre, half)
        boxes = joined(lambda one, two: np.concatenate([one, two], -1), *ends)
    if attributes.clip_before_nms or attributes.clip_after_nms:
        boxes = joined(lambda end: np.clip(end, 0, 1), boxes)
    return boxes
