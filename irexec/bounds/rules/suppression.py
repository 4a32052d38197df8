"""Non-maximum suppression: one result if no decision is near its edge, else rows that are each one of the candidates.

The boxes that are selected follow from comparisons alone: of scores with a threshold, of scores with each other, and of
overlaps with a threshold. Where the intervals of both sides of every comparison are apart, every implementation decides
alike. Equal numbers are not apart, so that it does not matter which side of an edge includes it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from irexec.bounds.interval import Algebra, Bound, Interval, Unbounded, floats, joined, settled
from irexec.bounds.registry import Layer, rule
from irexec.bounds.rules.detections import columns, halves, numbered, one_of
from irexec.errors import check

_LARGEST = 2048
"""Number of candidates whose overlaps are computed."""


@dataclass(frozen=True, slots=True)
class _Decisions:
    """The comparisons of one layer.

    Attributes:
        of: the arithmetic.
        boxes: [batches, boxes, 4].
        scores: [batches, classes, boxes].
        iou, score: the thresholds.
        is_centre: whether boxes are centre and size, else two opposite corners.
        unit: 1 where a box includes its last pixel.
        is_one_order: whether scores of different images are compared.
    """

    of: Algebra
    boxes: Interval
    scores: Interval
    iou: float
    score: float
    is_centre: bool = False
    unit: float = 0.0
    is_one_order: bool = False

    def open_reason(self) -> str:
        """Why implementations may decide differently; "" if they do not."""
        low, high = floats(self.scores.low), floats(self.scores.high)
        if np.isnan([low, high]).any() or not np.isfinite([self.boxes.low, self.boxes.high]).all():
            return "scores that are NaN, or boxes that are not finite"
        slack = 2 * self.of.arithmetic.unit * abs(self.score)
        is_candidate = low > self.score + slack
        if not (is_candidate | (high < self.score - slack)).all():
            return "a score within its bound of the threshold"
        for image in [slice(None)] if self.is_one_order else range(len(low)):
            of_image = is_candidate[image]
            order = np.argsort(low[image][of_image])
            if (high[image][of_image][order][:-1] >= low[image][of_image][order][1:]).any():
                return "scores that are equal, or may be in another order"
        return next(filter(None, map(self._overlaps_reason, range(len(low)), is_candidate)), "")

    def _overlaps_reason(self, image: int, is_candidate: np.ndarray) -> str:
        used = np.flatnonzero(is_candidate.any(0))
        if len(used) > _LARGEST:
            return "too many candidates"
        first, last = self._edges(joined(lambda end: end[image][used], self.boxes))
        sides = self.of.subtract(last, first)
        sides = self.of.add(sides, Interval.certain(np.asarray(self.unit)))
        if (sides.low <= 0).any():
            return "boxes without an area"
        overlaps = self._overlaps(first, last, sides)
        slack = 2 * self.of.arithmetic.unit * abs(self.iou)
        is_near = (overlaps.low <= self.iou + slack) & (overlaps.high >= self.iou - slack)
        np.fill_diagonal(is_near, False)
        # Only boxes that are candidates of one class are compared.
        together = is_candidate[:, used].astype(np.float64)
        is_near &= together.T @ together > 0
        return "an overlap within its bound of the threshold" if is_near.any() else ""

    def _edges(self, boxes: Interval) -> tuple[Interval, Interval]:
        """The lower and the upper corners [n, 2]."""
        one, two = halves(boxes)
        if self.is_centre:
            half = joined(lambda end: end / 2, two)
            return self.of.subtract(one, half), self.of.add(one, half)
        return joined(np.minimum, one, two), joined(np.maximum, one, two)

    def _overlaps(self, first: Interval, last: Interval, sides: Interval) -> Interval:
        """Intersection over union [n, n]; both are positive."""
        of = self.of
        begin, end = joined(np.maximum, *_pairs(first)), joined(np.minimum, *_pairs(last))
        shared = of.add(of.subtract(end, begin), Interval.certain(np.asarray(self.unit)))
        shared = joined(lambda end: np.maximum(end, 0), shared)
        area, of_both = of.multiply(*columns(sides)), of.multiply(*columns(shared))
        union = of.subtract(of.add(*_pairs(area)), of_both)
        return of.divide(of_both, union)


def _pairs(x: Interval) -> tuple[Interval, Interval]:
    """The interval with a new second axis, and with a new first one."""
    return joined(lambda end: end[:, None], x), joined(lambda end: end[None], x)


def _scalar(x: Interval | None) -> float:
    return 0.0 if x is None or not x.exact.size else float(x.exact.reshape(-1)[0])


@rule("NonMaxSuppression")
def non_max_suppression(layer: Layer, boxes: Interval, scores: Interval, *rest: Interval | None) -> tuple[Bound, ...]:
    """The indices and the scores of the boxes that are selected, and their number."""
    attributes = layer.attributes["attributes"]
    limit, iou, score, sigma = (*rest, None, None, None, None)[:4]
    are_certain = all(one is None or one.is_certain for one in (limit, iou, score))
    check(are_certain and not _scalar(sigma) > 0, "soft suppression, or thresholds that are not certain")
    decisions = _Decisions(
        layer.algebra, boxes, scores, _scalar(iou), _scalar(score), attributes.box_encoding == "center",
        is_one_order=attributes.sort_result_descending,
    )  # fmt: skip
    is_empty = 0 in scores.exact.shape or (limit is not None and _scalar(limit) == 0)
    reason = "" if is_empty else decisions.open_reason()
    outputs = layer.run(boxes, scores, *rest)
    if not reason:
        return _of_rows(layer, outputs, scores.reach, slice(2, 3))
    return _triplets(outputs, scores, _may_be_candidate(layer, scores, _scalar(score)), reason)


def _triplets(outputs: tuple[np.ndarray, ...], scores: Interval, mask: np.ndarray, reason: str) -> tuple[Bound, ...]:
    """Rows (image, class, box) and, where there are further outputs, (image, class, score) and their number."""
    image, label, box = (numbered(axis, scores.exact.shape) for axis in range(3))
    rows = [one_of(outputs[0], (image, label, box), mask)]
    rows += [one_of(out, (image, label, scores), mask) for out in outputs[1:2]]
    found = [Unbounded(reason) if one is None else one for one in rows]
    return (*found, *(Unbounded(reason),) * (len(outputs) - len(found)))


def _may_be_candidate(layer: Layer, scores: Interval, threshold: float) -> np.ndarray:
    """Mask of the scores that are not below their threshold in every implementation."""
    slack = 2 * layer.arithmetic.unit * abs(threshold)
    return np.asarray(floats(scores.high) >= threshold - slack)


@rule("NMSRotated")
def nms_rotated(layer: Layer, boxes: Interval, scores: Interval, *rest: Interval) -> tuple[Bound, ...]:
    """Any of the boxes whose scores are high enough: overlaps of rotated boxes are not computed here."""
    outputs = layer.run(boxes, scores, *rest)
    check(rest[2].is_certain, "a threshold that is not certain")
    return _triplets(outputs, scores, _may_be_candidate(layer, scores, _scalar(rest[2])), "rotated boxes")


def _of_rows(layer: Layer, outputs: tuple[np.ndarray, ...], reach: float, moved: slice) -> tuple[Bound, ...]:
    """The outputs, of which some columns of rows of floating-point numbers are moved, with an error of their own."""
    found: list[Bound] = []
    for out in outputs:
        if out.dtype.kind != "f":
            found.append(Interval.certain(out))
            continue
        exact = floats(out)
        radius = np.zeros(exact.shape)
        radius[:, moved] = reach + layer.arithmetic.unit * np.abs(exact[:, moved])
        found.append(settled(exact, exact - radius, exact + radius))
    return tuple(found)


@rule("MulticlassNms")
def multiclass_nms(layer: Layer, boxes: Interval, scores: Interval, *counts: Interval | None) -> tuple[Bound, ...]:
    """Rows (class, score, corners), the indices of their boxes, and their numbers by image.

    The best of all classes are kept, so that scores of different classes are compared as well.
    """
    attributes = layer.attributes["attributes"]
    outputs = layer.run(boxes, scores, *counts)
    is_own = scores.exact.ndim != 3 or any(one is not None for one in counts)
    decisions = _Decisions(
        layer.algebra, boxes, scores, attributes.iou_threshold, attributes.score_threshold,
        unit=0.0 if attributes.normalized else 1.0, is_one_order=attributes.sort_result_across_batch,
    )  # fmt: skip
    if is_own or attributes.nms_eta != 1.0:
        reason = "boxes of each class, or a threshold that adapts"
    else:
        reason = "" if 0 in scores.exact.shape else decisions.open_reason()
    if reason:
        return _of_candidates(layer, outputs, boxes, scores, is_own, reason)
    return _of_rows(layer, outputs, max(scores.reach, boxes.reach), slice(1, 6))


@rule("MatrixNms")
def matrix_nms(layer: Layer, boxes: Interval, scores: Interval) -> tuple[Bound, ...]:
    """Any of the boxes, with a score that better boxes may have lowered."""
    outputs = layer.run(boxes, scores)
    lowered = layer.algebra.rounded(
        Interval(floats(scores.exact), np.zeros(scores.exact.shape), floats(scores.high)), 8
    )
    return _of_candidates(layer, outputs, boxes, lowered, False, "scores that other boxes lower")


def _of_candidates(
    layer: Layer, outputs: tuple[np.ndarray, ...], boxes: Interval, scores: Interval, is_own: bool, reason: str
) -> tuple[Bound, ...]:
    """The outputs where a decision is open: each row is one of the boxes, and an image has at most as many as are kept.

    Args:
        is_own: whether each class has boxes of its own [classes, boxes, 4], else [images, boxes, 4] are those of all.
    """
    attributes, shape = layer.attributes["attributes"], scores.exact.shape
    label = numbered(0 if is_own else 1, shape)
    mask = _may_be_candidate(layer, scores, attributes.score_threshold) & (label.exact != attributes.background_class)
    corners = [
        joined(lambda end, i=i: np.broadcast_to(end[..., i] if is_own else end[:, None, :, i], shape), boxes)
        for i in range(4)
    ]
    box = numbered(len(shape) - 1, shape).exact
    flat = box * shape[0] + label.exact if is_own else numbered(0, shape).exact * shape[2] + box
    rows = one_of(outputs[0], (label, scores, *corners), mask), one_of(outputs[1], (Interval.certain(flat),), mask)
    limit = attributes.keep_top_k if attributes.keep_top_k >= 0 else int(np.count_nonzero(mask))
    counts = Interval(outputs[2], np.zeros_like(outputs[2]), np.full_like(outputs[2], limit))
    return (*(Unbounded(reason) if one is None else one for one in rows), counts)
