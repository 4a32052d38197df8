"""Non-maximum suppression with the same kind of boxes for all classes: NonMaxSuppression, NMSRotated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from irexec.dtypes.elements import BF16, F16, F32, I64, Element, element
from irexec.errors import check
from irexec.ir.dims import Shape, Size, high, low, meet, span
from irexec.ir.facts import Fact, integer
from irexec.reference.boxes import (
    AxisAligned,
    BoxSet,
    OverlapCache,
    Rotated,
    by_centre,
    by_corners,
    descending,
    suppress,
    suppress_in_blocks,
    suppress_softly,
)
from irexec.reference.limits import check_time
from irexec.schema.opdef import ONE_ELEMENT, SCALAR, FloatTensor, IntegerElement, IntegerScalar, Rank, element_set
from irexec.schema.registry import op
from irexec.schema.shape_rules import sizes_of

IndexType = Literal["i64", "i32"]
Encoding = Literal["corner", "center"]
# Indices [n, 3], (batch, class, score) rows [n, 3] and the number of rows [1].
Selected = tuple[np.ndarray, np.ndarray, np.ndarray]
Facts = tuple[Fact, Fact, Fact]

BOX_TYPES = element_set("bf16, f16 or f32", BF16, F16, F32)
Boxes = Annotated[np.ndarray, BOX_TYPES, Rank(3)]
Threshold = Annotated[FloatTensor, SCALAR]
AnyThreshold = Annotated[FloatTensor, ONE_ELEMENT]


@dataclass(frozen=True, kw_only=True)
class NonMaxSuppression1Attributes:
    """Attributes of version 1; indices are i64."""

    box_encoding: Encoding = "corner"
    sort_result_descending: bool = True

    @property
    def index_element(self) -> Element:
        """The element type of the indices."""
        return I64


@dataclass(frozen=True, kw_only=True)
class NonMaxSuppressionAttributes(NonMaxSuppression1Attributes):
    """Attributes from version 3 on."""

    output_type: IndexType = "i64"

    @property
    def index_element(self) -> Element:
        """The element type of the indices."""
        return element(self.output_type)


@dataclass(frozen=True, kw_only=True)
class NMSRotatedAttributes:
    """Attributes of NMSRotated."""

    sort_result_descending: bool = True
    output_type: IndexType = "i64"
    clockwise: bool = True


@dataclass(frozen=True)
class Thresholds:
    """Conditions under which a box is selected.

    Attributes:
        max_boxes: maximum number of selected boxes of a class.
        iou: a box that overlaps a better one by more is dropped.
        score: only boxes with a higher score are candidates.
        sigma: of soft suppression, where it is positive.
    """

    max_boxes: int
    iou: np.float32
    score: np.float32
    sigma: float = 0.0

    @staticmethod
    def of(boxes: np.ndarray, max_boxes: np.ndarray | None, *values: np.ndarray | None) -> Thresholds:
        """From inputs of one element each; 0 where one is absent. A negative maximum does not limit."""
        limit = 0 if max_boxes is None else integer(max_boxes, "max_output_boxes_per_class")
        iou, score, sigma, *_ = (*(_scalar(x, name) for x, name in zip(values, _THRESHOLDS, strict=False)), 0.0)
        return Thresholds(
            boxes.shape[1] if limit < 0 else min(limit, boxes.shape[1]), np.float32(iou), np.float32(score), sigma
        )


_THRESHOLDS = ("iou_threshold", "score_threshold", "soft_nms_sigma")


def _scalar(x: np.ndarray | None, name: str) -> float:
    if x is None:
        return 0.0
    check(x.size == 1, f"{name} has {x.size} elements, expected 1")
    return float(x.reshape(-1)[0])


# Number of computations of one overlap, over all classes, from which on caching pays.
_MAX_RECOMPUTATIONS = 4


def _select(images: Sequence[BoxSet], scores: np.ndarray, thresholds: Thresholds) -> tuple[np.ndarray, np.ndarray]:
    """The selected boxes, class by class: (batch, class, box) [n, 3] and their scores [n], of scores [batches, classes,
    boxes]."""
    triplets: list[np.ndarray] = [np.zeros((0, 3), np.int64)]
    selected: list[np.ndarray] = [np.zeros(0, np.float32)]
    for batch, boxes in enumerate(images):
        cache = OverlapCache(boxes, np.float32(0) if thresholds.sigma > 0 else thresholds.iou)
        # Without boxes any number of classes is possible, since then their scores take no memory.
        for number, row in enumerate(scores[batch] if scores.size else ()):
            check_time()
            chosen, values = _select_class(row, cache, thresholds, len(scores[batch]))
            lead = np.broadcast_to([batch, number], (chosen.size, 2))
            triplets.append(np.concatenate([lead, chosen[:, None]], 1))
            selected.append(values)
    return np.concatenate(triplets), np.concatenate(selected)


def _select_class(
    scores: np.ndarray, cache: OverlapCache, thresholds: Thresholds, classes: int
) -> tuple[np.ndarray, np.ndarray]:
    """The boxes selected for one of several classes by its scores [boxes], and their scores."""
    limit = thresholds.max_boxes
    if thresholds.sigma > 0:
        return suppress_softly(scores, thresholds.score, cache, thresholds.sigma, limit)
    order = descending(scores, scores > thresholds.score)
    if isinstance(cache.boxes, AxisAligned) and classes * limit**2 <= _MAX_RECOMPUTATIONS * scores.size**2:
        chosen = suppress_in_blocks(order, cache.boxes, thresholds.iou, limit)
    else:
        chosen = suppress(order, scores.size, cache, limit)
    return chosen, scores[chosen]


def _outputs(triplets: np.ndarray, scores: np.ndarray, sort: bool, index: Element) -> Selected:
    """The three outputs; with ``sort`` in descending order of score over all batches and classes."""
    if sort:
        order = np.lexsort((triplets[:, 2], triplets[:, 1], triplets[:, 0], -scores))
        triplets, scores = triplets[order], scores[order]
    rows = np.concatenate([triplets[:, :2].astype(np.float32), scores[:, None]], 1)
    return triplets.astype(index.carrier), rows, np.array([len(scores)], index.carrier)


@op("NonMaxSuppression", since=1, tolerance=1e-5, propagate_value=False)
def non_max_suppression_1(
    boxes: Boxes, scores: Boxes, max_output_boxes_per_class: IntegerScalar | None = None,
    iou_threshold: Threshold | None = None,
    score_threshold: Threshold | None = None, *, attributes: NonMaxSuppression1Attributes,
) -> np.ndarray:  # fmt: skip
    """The boxes that overlap no better box of their class by more than ``iou_threshold``: rows (batch, class, box) [n,
    3].

    ``boxes`` are [batches, boxes, 4] and ``scores`` [batches, classes, boxes]. There are as many rows as boxes
    selected, as when OpenVINO runs it; its shape inference and the specification have a static shape, padded with -1
    (and, before version 4, too small for more than one batch). A box is a candidate if its score is above the threshold
    (implementations; the specification's prose says: not below), and is dropped if an overlap is above
    ``iou_threshold`` (specification and reference; the CPU plugin: or equal, so that at 0 it keeps one box of each
    class). A negative maximum does not limit. Source: NonMaxSuppression-1.
    """
    inputs = (boxes, scores, max_output_boxes_per_class, iou_threshold, score_threshold)
    return non_max_suppression_5.kernel(*inputs, attributes=attributes)[0]


@op("NonMaxSuppression", since=3, tolerance=1e-5, propagate_value=False)
def non_max_suppression_3(
    boxes: Boxes, scores: Boxes, max_output_boxes_per_class: IntegerScalar | None = None,
    iou_threshold: Threshold | None = None,
    score_threshold: Threshold | None = None, *, attributes: NonMaxSuppressionAttributes,
) -> np.ndarray:  # fmt: skip
    """NonMaxSuppression-1 with a choice of the element type of the indices. Source: NonMaxSuppression-3 and -4."""
    inputs = (boxes, scores, max_output_boxes_per_class, iou_threshold, score_threshold)
    return non_max_suppression_5.kernel(*inputs, attributes=attributes)[0]


@op("NonMaxSuppression", since=5, tolerance=1e-5)
def non_max_suppression_5(
    boxes: Boxes, scores: Boxes, max_output_boxes_per_class: IntegerElement | None = None,
    iou_threshold: AnyThreshold | None = None,
    score_threshold: AnyThreshold | None = None, soft_nms_sigma: AnyThreshold | None = None, *,
    attributes: NonMaxSuppressionAttributes,
) -> Selected:  # fmt: skip
    """NonMaxSuppression-1 that also gives rows (batch, class, score) of f32 [n, 3], and the number of rows [1].

    With a positive ``soft_nms_sigma`` an overlap lowers scores by exp(-0.5 IoU² / sigma) and ``iou_threshold`` has no
    effect. Source: NonMaxSuppression-5 and -9; OpenVINO runs version 5 as version 9 (the older reference also applies
    the threshold).
    """
    thresholds = Thresholds.of(boxes, max_output_boxes_per_class, iou_threshold, score_threshold, soft_nms_sigma)
    read: Callable[[np.ndarray], BoxSet] = by_centre if attributes.box_encoding == "center" else by_corners
    found = _select([read(image) for image in boxes.astype(np.float32)], scores.astype(np.float32), thresholds)
    return _outputs(*found, attributes.sort_result_descending, attributes.index_element)


non_max_suppression_4 = op("NonMaxSuppression", since=4, tolerance=1e-5, propagate_value=False)(
    non_max_suppression_3.kernel
)
non_max_suppression_9 = op("NonMaxSuppression", since=9, tolerance=1e-5)(non_max_suppression_5.kernel)


@non_max_suppression_5.shape_rule
@non_max_suppression_9.shape_rule
def _selected_shapes(
    boxes: Fact, scores: Fact, max_output_boxes_per_class: Fact | None = None, iou_threshold: Fact | None = None,
    score_threshold: Fact | None = None, soft_nms_sigma: Fact | None = None, *,
    attributes: NonMaxSuppression1Attributes,
) -> Facts:  # fmt: skip
    return _shapes(boxes, scores, max_output_boxes_per_class, attributes.index_element)


@non_max_suppression_1.shape_rule
@non_max_suppression_3.shape_rule
@non_max_suppression_4.shape_rule
def _triplets_shape(*inputs: Fact, attributes: NonMaxSuppression1Attributes) -> Fact:
    return _selected_shapes(*inputs, attributes=attributes)[0]


@op("NMSRotated", since=13, tolerance=1e-5)
def nms_rotated_13(
    boxes: Boxes, scores: Boxes, max_output_boxes_per_class: IntegerElement, iou_threshold: AnyThreshold,
    score_threshold: AnyThreshold, *, attributes: NMSRotatedAttributes,
) -> Selected:  # fmt: skip
    """NonMaxSuppression-9 of rotated boxes [batches, boxes, 5]: centre x and y, width, height and angle in radians.

    The y axis points down, so that clockwise is from the x axis to the y axis. Source: NMSRotated-13.
    """
    sign = 1 if attributes.clockwise else -1
    images = boxes.astype(np.float32) * np.array([1, 1, 1, 1, sign], np.float32)
    thresholds = Thresholds.of(boxes, max_output_boxes_per_class, iou_threshold, score_threshold)
    found = _select([Rotated(image) for image in images], scores.astype(np.float32), thresholds)
    return _outputs(*found, attributes.sort_result_descending, element(attributes.output_type))


@nms_rotated_13.shape_rule
def _nms_rotated_13_shapes(
    boxes: Fact, scores: Fact, max_output_boxes_per_class: Fact, iou_threshold: Fact, score_threshold: Fact, *,
    attributes: NMSRotatedAttributes,
) -> Facts:  # fmt: skip
    index = element(attributes.output_type)
    return _shapes(boxes, scores, max_output_boxes_per_class, index, coordinates=5)


def shared_sizes(boxes: Fact, scores: Fact, coordinates: int = 4) -> Shape:
    """The numbers of batches, classes and boxes, of boxes [batches, boxes, coordinates] and scores [batches, classes,
    boxes]."""
    of_boxes, of_scores = sizes_of(boxes, 3, "boxes"), sizes_of(scores, 3, "scores")
    meet(of_boxes[2], coordinates)
    return meet(of_boxes[0], of_scores[0]), of_scores[1], meet(of_boxes[1], of_scores[2])


def up_to(*factors: int | None) -> Size:
    """A size from 0 to the product of the factors; a factor None has no limit, but 0 times it is 0."""
    product: int | None = 1
    for factor in sorted(factors, key=lambda f: f is None):
        product = 0 if product == 0 else None if product is None or factor is None else product * factor
    return span(0, product)


def limit_to(count: Size, limit: int | None) -> int | None:
    """The largest that ``count`` can be where it is limited; None for no limit."""
    maximum = high(count)
    return limit if maximum is None else maximum if limit is None else min(maximum, limit)


def _shapes(boxes: Fact, scores: Fact, max_boxes: Fact | None, index: Element, coordinates: int = 4) -> Facts:
    batches, classes, count = shared_sizes(boxes, scores, coordinates)
    rows = up_to(high(batches), high(classes), limit_to(count, _limit(max_boxes)))
    return Fact(index, (rows, 3)), Fact(F32, (rows, 3)), Fact(index, (1,))


def _limit(max_boxes: Fact | None) -> int | None:
    """The largest that max_output_boxes_per_class can be; None for no limit."""
    if max_boxes is None:
        return 0
    sizes = max_boxes.sizes("max_output_boxes_per_class")
    return None if not sizes or low(sizes[0]) < 0 else high(sizes[0])
