"""Non-maximum suppression of boxes of one kind for all classes: NonMaxSuppression, NMSRotated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from irexec.dtypes.elements import BF16, F16, F32, Element, element
from irexec.errors import check
from irexec.ir.dims import Shape, Size, high, meet, span
from irexec.ir.facts import Fact
from irexec.reference.boxes import (
    Boxes,
    Neighbours,
    Rotated,
    Upright,
    by_centre,
    by_corners,
    descending,
    suppress,
    suppress_at_once,
    suppress_softly,
)
from irexec.schema.registry import op
from irexec.schema.rules import check_float, check_integers, check_scalar, sizes_of

IndexType = Literal["i64", "i32"]
Encoding = Literal["corner", "center"]
Selected = tuple[np.ndarray, np.ndarray, np.ndarray]
Facts = tuple[Fact, Fact, Fact]


def _number(x: np.ndarray | None, what: str) -> float:
    """The one number of an input, 0 if it is absent."""
    if x is None:
        return 0.0
    check(x.size == 1, f"{what} has {x.size} elements, expected 1")
    return float(x.reshape(-1)[0])


def _most(x: np.ndarray | None, boxes: int) -> int:
    most = int(_number(x, "max_output_boxes_per_class"))
    return boxes if most < 0 else min(most, boxes)


def _select(
    kinds: list[Boxes], scores: np.ndarray, most: int, iou_threshold: float, score_threshold: float, sigma: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Triplets of batch, class and box, [n, 3], and their scores, class by class."""
    limit, least = np.float32(iou_threshold), np.float32(score_threshold)
    soft = sigma > 0
    found: list[np.ndarray] = [np.zeros((0, 3), np.int64)]
    values: list[np.ndarray] = [np.zeros(0, np.float32)]
    for batch, boxes in enumerate(kinds):
        neighbours = Neighbours(boxes, (lambda overlaps: overlaps > 0) if soft else (lambda overlaps: overlaps > limit))
        for number, row in enumerate(scores[batch]):
            if soft:
                chosen, value = suppress_softly(row, least, neighbours, sigma, most)
            elif isinstance(boxes, Upright) and len(scores[batch]) * most**2 <= _MOST_AGAIN * row.size**2:
                chosen = suppress_at_once(descending(row, row > least), boxes, limit, most)
                value = row[chosen]
            else:
                chosen = suppress(descending(row, row > least), row.size, neighbours, most)
                value = row[chosen]
            place = np.broadcast_to([batch, number], (chosen.size, 2))
            found.append(np.concatenate([place, chosen[:, None]], 1))
            values.append(value)
    return np.concatenate(found), np.concatenate(values)


# How often each pair of boxes is looked at anew for a class, before it is better to keep what was found for all classes.
_MOST_AGAIN = 4


def _given(triplets: np.ndarray, values: np.ndarray, descend: bool, kind: str) -> Selected:
    if descend:
        order = np.lexsort((triplets[:, 2], triplets[:, 1], triplets[:, 0], -values))
        triplets, values = triplets[order], values[order]
    carrier = element(kind).carrier
    scored = np.concatenate([triplets[:, :2].astype(np.float32), values[:, None]], 1)
    return triplets.astype(carrier), scored, np.array([len(values)], carrier)


def _suppressed(
    boxes: np.ndarray,
    scores: np.ndarray,
    max_output_boxes_per_class: np.ndarray | None,
    thresholds: tuple[np.ndarray | None, np.ndarray | None, np.ndarray | None],
    box_encoding: str,
    sort_result_descending: bool,
    output_type: str,
) -> Selected:
    iou, score, sigma = (_number(x, what) for x, what in zip(thresholds, _THRESHOLDS, strict=True))
    read: Callable[[np.ndarray], Boxes] = by_centre if box_encoding == "center" else by_corners
    kinds = [read(one) for one in boxes.astype(np.float32)]
    found = _select(kinds, scores.astype(np.float32), _most(max_output_boxes_per_class, boxes.shape[1]), iou, score, sigma)
    return _given(*found, sort_result_descending, output_type)


_THRESHOLDS = ("iou_threshold", "score_threshold", "soft_nms_sigma")


@op("NonMaxSuppression", since=1, tolerance=1e-5, propagate_value=False)
def non_max_suppression_1(
    boxes: np.ndarray,
    scores: np.ndarray,
    max_output_boxes_per_class: np.ndarray | None = None,
    iou_threshold: np.ndarray | None = None,
    score_threshold: np.ndarray | None = None,
    *,
    box_encoding: Encoding = "corner",
    sort_result_descending: bool = True,
) -> np.ndarray:
    """The boxes that overlap no better one of their class beyond ``iou_threshold``, as triplets of batch, class, box.

    There are as many rows as boxes selected, as when OpenVINO runs it; its shape inference and the specification have a
    static shape, filled up with -1 (and, before version 4, too small for more than one batch). A box is a candidate
    if its score is above the threshold (implementations; the specification's prose has it at least as great), it goes if an
    overlap is greater than ``iou_threshold`` (specification and reference; the CPU plugin: or equal, so that at 0
    it keeps one box of each class). A negative maximum is none. Source: NonMaxSuppression-1.
    """
    thresholds = (iou_threshold, score_threshold, None)
    return _suppressed(boxes, scores, max_output_boxes_per_class, thresholds, box_encoding, sort_result_descending, "i64")[0]


@op("NonMaxSuppression", since=3, tolerance=1e-5, propagate_value=False)
def non_max_suppression_3(
    boxes: np.ndarray,
    scores: np.ndarray,
    max_output_boxes_per_class: np.ndarray | None = None,
    iou_threshold: np.ndarray | None = None,
    score_threshold: np.ndarray | None = None,
    *,
    box_encoding: Encoding = "corner",
    sort_result_descending: bool = True,
    output_type: IndexType = "i64",
) -> np.ndarray:
    """NonMaxSuppression-1 with a choice of the result's integers. Source: NonMaxSuppression-3 and -4."""
    thresholds = (iou_threshold, score_threshold, None)
    return _suppressed(boxes, scores, max_output_boxes_per_class, thresholds, box_encoding, sort_result_descending, output_type)[0]


@op("NonMaxSuppression", since=5, tolerance=1e-5)
def non_max_suppression_5(
    boxes: np.ndarray,
    scores: np.ndarray,
    max_output_boxes_per_class: np.ndarray | None = None,
    iou_threshold: np.ndarray | None = None,
    score_threshold: np.ndarray | None = None,
    soft_nms_sigma: np.ndarray | None = None,
    *,
    box_encoding: Encoding = "corner",
    sort_result_descending: bool = True,
    output_type: IndexType = "i64",
) -> Selected:
    """NonMaxSuppression-1 that also gives triplets of batch, class, score in f32, and the number of boxes.

    With a positive ``soft_nms_sigma`` an overlap lowers scores by exp(-0.5 IoU² / sigma) and ``iou_threshold`` plays no part.
    Source: NonMaxSuppression-5 and -9; OpenVINO runs version 5 as version 9 (the older reference also applies the threshold).
    """
    thresholds = (iou_threshold, score_threshold, soft_nms_sigma)
    return _suppressed(boxes, scores, max_output_boxes_per_class, thresholds, box_encoding, sort_result_descending, output_type)


non_max_suppression_4 = op("NonMaxSuppression", since=4, tolerance=1e-5, propagate_value=False)(non_max_suppression_3.kernel)
non_max_suppression_9 = op("NonMaxSuppression", since=9, tolerance=1e-5)(non_max_suppression_5.kernel)


@non_max_suppression_5.shape_rule
@non_max_suppression_9.shape_rule
def _selected_facts(
    boxes: Fact,
    scores: Fact,
    max_output_boxes_per_class: Fact | None = None,
    iou_threshold: Fact | None = None,
    score_threshold: Fact | None = None,
    soft_nms_sigma: Fact | None = None,
    *,
    output_type: IndexType = "i64",
    **others: Any,
) -> Facts:
    return _facts(boxes, scores, max_output_boxes_per_class, (iou_threshold, score_threshold, soft_nms_sigma), output_type)


@non_max_suppression_1.shape_rule
@non_max_suppression_3.shape_rule
@non_max_suppression_4.shape_rule
def _triplets_facts(*inputs: Fact, **settings: Any) -> Fact:
    return _selected_facts(*inputs, **settings)[0]


@op("NMSRotated", since=13, tolerance=1e-5)
def nms_rotated_13(
    boxes: np.ndarray,
    scores: np.ndarray,
    max_output_boxes_per_class: np.ndarray,
    iou_threshold: np.ndarray,
    score_threshold: np.ndarray,
    *,
    sort_result_descending: bool = True,
    output_type: IndexType = "i64",
    clockwise: bool = True,
) -> Selected:
    """NonMaxSuppression-9 of boxes that are turned: centre, width, height and angle in radians.

    The vertical axis points down, so that clockwise is from the first axis to the second. Source: NMSRotated-13.
    """
    iou, score = _number(iou_threshold, "iou_threshold"), _number(score_threshold, "score_threshold")
    turned = boxes.astype(np.float32) * np.array([1, 1, 1, 1, 1 if clockwise else -1], np.float32)
    found = _select(
        [Rotated(one) for one in turned], scores.astype(np.float32), _most(max_output_boxes_per_class, boxes.shape[1]), iou, score
    )
    return _given(*found, sort_result_descending, output_type)


@nms_rotated_13.shape_rule
def _nms_rotated_13_facts(
    boxes: Fact,
    scores: Fact,
    max_output_boxes_per_class: Fact,
    iou_threshold: Fact,
    score_threshold: Fact,
    *,
    output_type: IndexType = "i64",
    **others: Any,
) -> Facts:
    return _facts(boxes, scores, max_output_boxes_per_class, (iou_threshold, score_threshold), output_type, numbers=5)


def check_real(fact: Fact, what: str) -> None:
    """Raise OpError unless the element type is unknown, bf16, f16 or f32."""
    check(fact.element in (None, BF16, F16, F32), f"{what} has element type {fact.element}, expected bf16, f16 or f32")


def shared_sizes(boxes: Fact, scores: Fact, numbers: int = 4) -> Shape:
    """The numbers of batches, classes and boxes, of boxes [batches, boxes, numbers] and scores [batches, classes, boxes]."""
    of_boxes, of_scores = sizes_of(boxes, 3, "boxes"), sizes_of(scores, 3, "scores")
    meet(of_boxes[2], numbers)
    return meet(of_boxes[0], of_scores[0]), of_scores[1], meet(of_boxes[1], of_scores[2])


def up_to(*factors: int | None) -> Size:
    """From none to the product of the factors; None is no limit, but 0 times it is 0."""
    product: int | None = 1
    for factor in sorted(factors, key=lambda f: f is None):
        product = 0 if product == 0 else None if product is None or factor is None else product * factor
    return span(0, product)


def _facts(boxes: Fact, scores: Fact, most: Fact | None, thresholds: tuple[Fact | None, ...], output_type: str, numbers: int = 4) -> Facts:
    check_real(boxes, "boxes")
    check_real(scores, "scores")
    for fact, what in zip(thresholds, _THRESHOLDS, strict=False):
        if fact is not None:
            check_float(fact, what)
            check_scalar(fact, what)
    batches, classes, count = shared_sizes(boxes, scores, numbers)
    rows = up_to(high(batches), high(classes), fewer(count, _limit(most)))
    kind: Element = element(output_type)
    return Fact(kind, (rows, 3)), Fact(F32, (rows, 3)), Fact(kind, (1,))


def _limit(most: Fact | None) -> int | None:
    """The greatest that max_output_boxes_per_class can be; None for no limit."""
    if most is None:
        return 0
    check_integers(most, "max_output_boxes_per_class")
    check_scalar(most, "max_output_boxes_per_class")
    sizes = most.sizes()
    if not sizes:
        return None
    least = sizes[0] if isinstance(sizes[0], int) else sizes[0].lo
    return None if least < 0 else high(sizes[0])


def fewer(count: Size, limit: int | None) -> int | None:
    """The most that a number is after a limit; None for no limit."""
    top = high(count)
    return limit if top is None else top if limit is None else min(top, limit)
