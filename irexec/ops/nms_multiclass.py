"""Suppression of boxes that gives boxes, scores and classes together: MatrixNms, MulticlassNms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np

from irexec.dtypes.elements import element
from irexec.errors import check
from irexec.ir.dims import Shape, high, meet
from irexec.ir.facts import Fact
from irexec.ops.nms import IndexType, check_real, fewer, shared_sizes, up_to
from irexec.reference.boxes import Neighbours, Upright, decays, descending, suppress_adaptively
from irexec.schema.attributes import AtLeast
from irexec.schema.registry import op
from irexec.schema.rules import check_integers, same_element, sizes_of

Sort = Literal["none", "score", "classid", "class"]
Decay = Literal["linear", "gaussian"]
# A number of boxes, or the number of a class; -1 is no limit, or none of the classes.
OrMinusOne = Annotated[int, AtLeast(-1)]
# Of each box selected in an image: class, index among the image's boxes, score.
Found = tuple[np.ndarray, np.ndarray, np.ndarray]
Selected = tuple[np.ndarray, np.ndarray, np.ndarray]
Facts = tuple[Fact, Fact, Fact]


class Limits(NamedTuple):
    """How many boxes of a class go in and of an image come out, -1 for all, and the class to leave out."""

    nms_top_k: int
    keep_top_k: int
    background_class: int


def _join(parts: list[tuple[int, np.ndarray, np.ndarray]]) -> Found:
    """What the classes of an image yield: each its number, indices and scores."""
    classes = np.repeat(np.array([number for number, _, _ in parts], np.int64), [len(indices) for _, indices, _ in parts])
    indices = np.concatenate([np.zeros(0, np.int64), *(indices for _, indices, _ in parts)])
    return classes, indices, np.concatenate([np.zeros(0, np.float32), *(scores for _, _, scores in parts)])


def _best(found: Found, keep: int) -> Found:
    """The best ``keep`` of an image; of equal scores first the lower class, then the lower index."""
    classes, indices, scores = found
    order = np.lexsort((indices, classes, -scores))[: keep if keep >= 0 else None]
    return classes[order], indices[order], scores[order]


def _by_class(found: Found) -> Found:
    classes, indices, scores = found
    order = np.lexsort((indices, -scores, classes))
    return classes[order], indices[order], scores[order]


def _given(images: list[Found], rows: list[np.ndarray], flat: list[np.ndarray], across: str, like: np.ndarray, kind: str) -> Selected:
    """The three outputs; ``rows`` are the boxes and ``flat`` the indices of what each image found, ``across`` the order of all together."""
    carrier = element(kind).carrier
    counts = [len(one[0]) for one in images]
    classes, indices, places = (_all(parts) for parts in ([one[0] for one in images], [one[1] for one in images], flat))
    scores = np.concatenate([np.zeros(0, np.float32), *(one[2] for one in images)])
    boxes = np.concatenate([np.zeros((0, 4), np.float32), *rows])
    if across != "none":
        batches = np.repeat(np.arange(len(images)), counts)
        keys = (indices, classes, batches, -scores) if across == "score" else (indices, -scores, batches, classes)
        order = np.lexsort(keys)
        classes, scores, boxes, places = classes[order], scores[order], boxes[order], places[order]
    outputs = np.concatenate([classes[:, None].astype(np.float32), scores[:, None], boxes], 1)
    with np.errstate(over="ignore"):
        return outputs.astype(like.dtype), places[:, None].astype(carrier), np.array(counts, carrier)


def _all(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.zeros(0, np.int64), *parts])


def _spelled(sort_result_type: str, sort_result: str | None) -> str:
    """The order asked for: the specification calls the attribute sort_result and its value class."""
    order = sort_result_type if sort_result is None else sort_result
    return "classid" if order == "class" else order


@op("MatrixNms", since=8, tolerance=1e-5)
def matrix_nms_8(
    boxes: np.ndarray,
    scores: np.ndarray,
    *,
    sort_result_type: Sort = "none",
    sort_result: Sort | None = None,
    sort_result_across_batch: bool = False,
    output_type: IndexType = "i64",
    score_threshold: float = 0.0,
    nms_top_k: OrMinusOne = -1,
    keep_top_k: OrMinusOne = -1,
    background_class: OrMinusOne = -1,
    normalized: bool = True,
    decay_function: Decay = "linear",
    gaussian_sigma: float = 2.0,
    post_threshold: float = 0.0,
) -> Selected:
    """Boxes whose scores, lowered by how far better boxes of their class overlap them, stay above ``post_threshold``.

    Rows of class, score and corners; indices into all boxes; the number of boxes of each batch. Each batch is sorted by
    score whatever the order asked for, but across batches the boxes are sorted by score or class (implementations; the
    specification sorts by class within a batch too). Where nothing is selected, the outputs are empty (the
    CPU plugin fails). Source: MatrixNms-8.
    """
    coordinates, numbers = boxes.astype(np.float32), scores.astype(np.float32)
    threshold, least = np.float32(score_threshold), np.float32(post_threshold)

    def decay(overlaps: np.ndarray, greatest: np.ndarray) -> np.ndarray:
        if decay_function == "gaussian":
            return np.exp((greatest * greatest - overlaps * overlaps) * np.float32(gaussian_sigma))
        return ((1 - overlaps.astype(np.float64)) / (1 - greatest.astype(np.float64) + np.float32(1e-10))).astype(np.float32)

    def of_class(image: np.ndarray, row: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        order = descending(row, row > threshold)[: nms_top_k if nms_top_k >= 0 else None]
        lowered = decays(image[order], normalized, decay) * row[order]
        stay = lowered > least
        return order[stay], lowered[stay]

    images = []
    for image, rows in zip(coordinates, numbers, strict=True):
        parts = [(number, *of_class(image, row)) for number, row in _classes(rows, background_class)]
        images.append(_best(_join(parts), keep_top_k))
    return _shared(images, coordinates, boxes, _spelled(sort_result_type, sort_result) if sort_result_across_batch else "none", output_type)


def _classes(scores: np.ndarray, background: int) -> Iterator[tuple[int, np.ndarray]]:
    return ((number, row) for number, row in enumerate(scores) if number != background)


def _shared(images: list[Found], boxes: np.ndarray, like: np.ndarray, across: str, kind: str) -> Selected:
    """The outputs where all classes have the same boxes [batches, boxes, 4]."""
    rows = [boxes[batch][one[1]] for batch, one in enumerate(images)]
    flat = [batch * boxes.shape[1] + one[1] for batch, one in enumerate(images)]
    return _given(images, rows, flat, across, like, kind)


@matrix_nms_8.shape_rule
def _matrix_nms_8_facts(boxes: Fact, scores: Fact, **settings: Any) -> Facts:
    return _facts(boxes, scores, shared_sizes(boxes, scores), **settings)


def _facts(
    boxes: Fact,
    scores: Fact,
    sizes: Shape,
    *,
    nms_top_k: int,
    keep_top_k: int,
    background_class: int,
    output_type: str,
    **others: Any,
) -> Facts:
    """``sizes`` are the numbers of batches, classes and boxes."""
    check_real(boxes, "boxes")
    check_real(scores, "scores")
    batches, classes, count = sizes
    kinds = high(classes)
    if kinds is not None and 0 <= background_class < kinds:
        kinds -= 1
    of_image = up_to(kinds, fewer(count, _limit(nms_top_k)))
    rows = up_to(high(batches), fewer(of_image, _limit(keep_top_k)))
    kind = element(output_type)
    return Fact(same_element(boxes, scores), (rows, 6)), Fact(kind, (rows, 1)), Fact(kind, (batches,))


def _limit(number: int) -> int | None:
    return None if number < 0 else number


class Rule(NamedTuple):
    """What takes a box in: a score at least so great, and overlaps less than a threshold that shrinks by eta."""

    least: float
    threshold: float
    eta: float
    normalized: bool

    def neighbours(self, boxes: np.ndarray) -> Neighbours:
        """The boxes [n, 4] with those that overlap enough to matter at any time."""
        floor = np.float32(self.threshold)
        while floor > 0.5 and self.eta < 1:
            floor *= np.float32(self.eta)
        return Neighbours(Upright(boxes[:, :2], boxes[:, 2:], not self.normalized), lambda overlaps: overlaps >= floor)


def _image(boxes: np.ndarray, scores: np.ndarray, limits: Limits, rule: Rule) -> Found:
    """What one image yields, of boxes [1, n, 4] for all classes or [classes, n, 4], and scores [classes, n]."""
    kinds = [rule.neighbours(one) for one in boxes]
    parts = []
    for number, row in _classes(scores, limits.background_class):
        order = descending(row, row >= np.float32(rule.least))[: _limit(limits.nms_top_k)]
        chosen = suppress_adaptively(order, row.size, kinds[number % len(kinds)], rule.threshold, rule.eta)
        parts.append((number, chosen, row[chosen]))
    return _best(_join(parts), limits.keep_top_k)


def _of_all(boxes: np.ndarray, scores: np.ndarray, limits: Limits, rule: Rule, order: str, across: bool, kind: str) -> Selected:
    """Classes share the boxes [batches, boxes, 4] of a batch."""
    coordinates, numbers = boxes.astype(np.float32), scores.astype(np.float32)
    images = [_image(coordinates[i : i + 1], rows, limits, rule) for i, rows in enumerate(numbers)]
    return _shared(_within(images, order, across), coordinates, boxes, order if across else "none", kind)


def _of_each(
    boxes: np.ndarray, scores: np.ndarray, roisnum: np.ndarray, limits: Limits, rule: Rule, order: str, across: bool, kind: str
) -> Selected:
    """Each class has boxes of its own, [classes, boxes, 4], of which ``roisnum`` belong to each image."""
    coordinates, numbers = boxes.astype(np.float32), scores.astype(np.float32)
    counts = np.maximum(roisnum, 0).astype(np.int64)
    check(int(counts.sum()) <= boxes.shape[1], f"roisnum asks for {int(counts.sum())} boxes, there are {boxes.shape[1]}")
    ends = np.cumsum(counts)
    images = [
        _image(coordinates[:, end - count : end], numbers[:, end - count : end], limits, rule)
        for count, end in zip(counts, ends, strict=True)
    ]
    images = _within(images, order, across)
    places = [one[1] + (end - count) for one, count, end in zip(images, counts, ends, strict=True)]
    rows = [coordinates[one[0], place] for one, place in zip(images, places, strict=True)]
    flat = [place * len(boxes) + one[0] for one, place in zip(images, places, strict=True)]
    return _given(images, rows, flat, order if across else "none", boxes, kind)


def _within(images: list[Found], order: str, across: bool) -> list[Found]:
    return [_by_class(one) for one in images] if order == "classid" and not across else images


@op("MulticlassNms", since=8, tolerance=1e-5)
def multiclass_nms_8(
    boxes: np.ndarray,
    scores: np.ndarray,
    *,
    sort_result_type: Sort = "none",
    sort_result: Sort | None = None,
    sort_result_across_batch: bool = False,
    output_type: IndexType = "i64",
    iou_threshold: float = 0.0,
    score_threshold: float = 0.0,
    nms_top_k: OrMinusOne = -1,
    keep_top_k: OrMinusOne = -1,
    background_class: OrMinusOne = -1,
    normalized: bool = True,
    nms_eta: float = 1.0,
) -> Selected:
    """The boxes that overlap no better one of their class, the best of each batch, sorted as asked.

    Rows of class, score and corners; indices into all boxes; the number of boxes of each batch. A box goes if an overlap is
    at least the threshold (implementations; the specification has it greater), which ``nms_eta`` shrinks with each box taken
    while it is above 0.5. The order "none" is by score within each batch. Source: MulticlassNms-8.
    """
    limits, rule = Limits(nms_top_k, keep_top_k, background_class), Rule(score_threshold, iou_threshold, nms_eta, normalized)
    return _of_all(boxes, scores, limits, rule, _spelled(sort_result_type, sort_result), sort_result_across_batch, output_type)


@op("MulticlassNms", since=9, tolerance=1e-5)
def multiclass_nms_9(
    boxes: np.ndarray,
    scores: np.ndarray,
    roisnum: np.ndarray | None = None,
    *,
    sort_result_type: Sort = "none",
    sort_result: Sort | None = None,
    sort_result_across_batch: bool = False,
    output_type: IndexType = "i64",
    iou_threshold: float = 0.0,
    score_threshold: float = 0.0,
    nms_top_k: OrMinusOne = -1,
    keep_top_k: OrMinusOne = -1,
    background_class: OrMinusOne = -1,
    normalized: bool = True,
    nms_eta: float = 1.0,
) -> Selected:
    """MulticlassNms-8, or with ``roisnum`` of classes that have boxes of their own, [classes, boxes, 4], batch after batch.

    ``roisnum`` says how many boxes belong to each batch; then the index of a box is its place times the number of classes plus
    its class (implementations; the specification has it into the flattened boxes). Source: MulticlassNms-9.
    """
    limits, rule = Limits(nms_top_k, keep_top_k, background_class), Rule(score_threshold, iou_threshold, nms_eta, normalized)
    order = _spelled(sort_result_type, sort_result)
    if roisnum is None:
        return _of_all(boxes, scores, limits, rule, order, sort_result_across_batch, output_type)
    return _of_each(boxes, scores, roisnum, limits, rule, order, sort_result_across_batch, output_type)


@multiclass_nms_8.shape_rule
@multiclass_nms_9.shape_rule
def _multiclass_nms_facts(boxes: Fact, scores: Fact, roisnum: Fact | None = None, *, nms_eta: float, **settings: Any) -> Facts:
    check(0 <= nms_eta <= 1, f"nms_eta {nms_eta:g} is not between 0 and 1")
    sizes = shared_sizes(boxes, scores) if roisnum is None else _own_sizes(boxes, scores, roisnum)
    return _facts(boxes, scores, sizes, **settings)


def _own_sizes(boxes: Fact, scores: Fact, roisnum: Fact) -> Shape:
    """The numbers of batches, classes and boxes where each class has boxes of its own."""
    check_integers(roisnum, "roisnum")
    of_boxes, of_scores = sizes_of(boxes, 3, "boxes"), sizes_of(scores, 2, "scores")
    (batches,) = sizes_of(roisnum, 1, "roisnum")
    meet(of_boxes[2], 4)
    return batches, meet(of_boxes[0], of_scores[0]), meet(of_boxes[1], of_scores[1])
