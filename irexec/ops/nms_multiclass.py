"""Suppression of boxes that returns boxes, scores and classes together: MatrixNms, MulticlassNms."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from irexec.dtypes.elements import element
from irexec.errors import check
from irexec.ir.dims import Shape, high, meet
from irexec.ir.facts import Fact, integers
from irexec.ops.nms import BOX_TYPES, IndexType, limit_to, shared_sizes, up_to
from irexec.reference.boxes import AxisAligned, OverlapCache, decays, descending, suppress_adaptively
from irexec.reference.limits import check_time
from irexec.schema.attributes import AtLeast
from irexec.schema.opdef import IndexTensor, Rank
from irexec.schema.registry import op
from irexec.schema.shape_rules import sizes_of, unify_elements

Sort = Literal["none", "score", "classid", "class"]
# A number of boxes or a class index; -1 stands for no limit, or no class.
OrMinusOne = Annotated[int, AtLeast(-1)]
# Each box selected in an image: class, index among the image's boxes, score.
Found = tuple[np.ndarray, np.ndarray, np.ndarray]
Selected = tuple[np.ndarray, np.ndarray, np.ndarray]
Facts = tuple[Fact, Fact, Fact]

Boxes = Annotated[np.ndarray, BOX_TYPES, Rank(3)]
Scores = Annotated[np.ndarray, BOX_TYPES, Rank(2, 3)]
Counts = Annotated[IndexTensor, Rank(1)]


@dataclass(frozen=True, kw_only=True)
class SelectionAttributes:
    """Attributes that MatrixNms and MulticlassNms share.

    The specification calls the order ``sort_result`` and its value "class"; OpenVINO writes ``sort_result_type`` and
    "classid".
    """

    sort_result_type: Sort = "none"
    sort_result: Sort | None = None
    sort_result_across_batch: bool = False
    output_type: IndexType = "i64"
    score_threshold: float = 0.0
    nms_top_k: OrMinusOne = -1
    keep_top_k: OrMinusOne = -1
    background_class: OrMinusOne = -1
    normalized: bool = True

    @property
    def order(self) -> str:
        """The order of the boxes of an image: none, score or classid."""
        order = self.sort_result or self.sort_result_type
        return "classid" if order == "class" else order

    @property
    def order_across_batch(self) -> str:
        """The order of the boxes of all images together; none where they stay image by image."""
        return self.order if self.sort_result_across_batch else "none"


@dataclass(frozen=True, kw_only=True)
class MatrixNmsAttributes(SelectionAttributes):
    """Attributes of MatrixNms."""

    decay_function: Literal["linear", "gaussian"] = "linear"
    gaussian_sigma: float = 2.0
    post_threshold: float = 0.0


@dataclass(frozen=True, kw_only=True)
class MulticlassNmsAttributes(SelectionAttributes):
    """Attributes of MulticlassNms."""

    iou_threshold: float = 0.0
    nms_eta: float = 1.0


def _limit(count: int) -> int | None:
    """A number of boxes as the end of a slice: None for -1, which does not limit."""
    return None if count < 0 else count


def _join(classes: list[tuple[int, np.ndarray, np.ndarray]]) -> Found:
    """The boxes of an image from those of its classes: each its class, indices and scores."""
    numbers = np.repeat(
        np.array([number for number, _, _ in classes], np.int64), [len(indices) for _, indices, _ in classes]
    )
    scores = np.concatenate([np.zeros(0, np.float32), *(scores for _, _, scores in classes)])
    return numbers, _concatenate([indices for _, indices, _ in classes]), scores


def _best(found: Found, limit: int) -> Found:
    """The ``limit`` best boxes of an image (-1: all); of equal scores first the lower class, then the lower index."""
    classes, indices, scores = found
    order = np.lexsort((indices, classes, -scores))[: _limit(limit)]
    return classes[order], indices[order], scores[order]


def _by_class(found: Found) -> Found:
    classes, indices, scores = found
    order = np.lexsort((indices, -scores, classes))
    return classes[order], indices[order], scores[order]


def _concatenate(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.zeros(0, np.int64), *parts])


def _outputs(
    images: list[Found],
    corners: list[np.ndarray],
    flat_indices: list[np.ndarray],
    boxes: np.ndarray,
    attributes: SelectionAttributes,
) -> Selected:
    """The three outputs, the first in the type of ``boxes``, from what was found in each image, with corners and flat
    indices."""
    index = element(attributes.output_type).carrier
    counts = [len(classes) for classes, _, _ in images]
    classes, indices = _concatenate([image[0] for image in images]), _concatenate([image[1] for image in images])
    scores = np.concatenate([np.zeros(0, np.float32), *(image[2] for image in images)])
    selected = np.concatenate([np.zeros((0, 4), np.float32), *corners])
    flat = _concatenate(flat_indices)
    if attributes.order_across_batch != "none":
        batches = np.repeat(np.arange(len(images)), counts)
        by_score = attributes.order_across_batch == "score"
        order = np.lexsort((indices, classes, batches, -scores) if by_score else (indices, -scores, batches, classes))
        classes, scores, selected, flat = classes[order], scores[order], selected[order], flat[order]
    rows = np.concatenate([classes[:, None].astype(np.float32), scores[:, None], selected], 1)
    with np.errstate(over="ignore"):
        return rows.astype(boxes.dtype), flat[:, None].astype(index), np.array(counts, index)


def _outputs_of_shared(images: list[Found], boxes: np.ndarray, attributes: SelectionAttributes) -> Selected:
    """The outputs where all classes have the same boxes [batches, boxes, 4]."""
    corners = [boxes[batch][indices].astype(np.float32) for batch, (_, indices, _) in enumerate(images)]
    flat = [batch * boxes.shape[1] + indices for batch, (_, indices, _) in enumerate(images)]
    return _outputs(images, corners, flat, boxes, attributes)


def _classes(scores: np.ndarray, background: int) -> Iterator[tuple[int, np.ndarray]]:
    """The classes but the background, each with its scores."""
    return ((number, row) for number, row in enumerate(scores) if number != background)


@op("MatrixNms", since=8, tolerance=1e-5)
def matrix_nms_8(boxes: Boxes, scores: Boxes, *, attributes: MatrixNmsAttributes) -> Selected:
    """Boxes whose scores stay above ``post_threshold`` after better boxes of their class that overlap them have lowered
    them.

    ``boxes`` are [batches, boxes, 4], ``scores`` [batches, classes, boxes]. Gives rows (class, score, corners) [n, 6],
    indices into all boxes [n, 1] and the number of boxes of each batch. Each batch is sorted by score whatever the
    order asked for, but across batches the boxes are sorted by score or class (implementations; the specification sorts
    by class within a batch too). Where nothing is selected, the outputs are empty (the CPU plugin fails). Source:
    MatrixNms-8.
    """
    images = []
    for image, rows in zip(boxes.astype(np.float32), scores.astype(np.float32), strict=True):
        classes = [
            (number, *_decayed(image, row, attributes)) for number, row in _classes(rows, attributes.background_class)
        ]
        images.append(_best(_join(classes), attributes.keep_top_k))
    return _outputs_of_shared(images, boxes, attributes)


def _decayed(boxes: np.ndarray, scores: np.ndarray, attributes: MatrixNmsAttributes) -> tuple[np.ndarray, np.ndarray]:
    """The boxes [n, 4] selected for a class by its scores [n], and their scores after decay."""

    def decay(overlaps: np.ndarray, max_overlap: np.ndarray) -> np.ndarray:
        if attributes.decay_function == "gaussian":
            return np.exp((max_overlap * max_overlap - overlaps * overlaps) * np.float32(attributes.gaussian_sigma))
        return ((1 - overlaps.astype(np.float64)) / (1 - max_overlap.astype(np.float64) + np.float32(1e-10))).astype(
            np.float32
        )

    check_time()
    order = descending(scores, scores > np.float32(attributes.score_threshold))[: _limit(attributes.nms_top_k)]
    lowered = decays(boxes[order], attributes.normalized, decay) * scores[order]
    kept = lowered > np.float32(attributes.post_threshold)
    return order[kept], lowered[kept]


@matrix_nms_8.shape_rule
def _matrix_nms_8_shapes(boxes: Fact, scores: Fact, *, attributes: MatrixNmsAttributes) -> Facts:
    return _shapes(boxes, scores, shared_sizes(boxes, scores), attributes)


def _shapes(boxes: Fact, scores: Fact, sizes: Shape, attributes: SelectionAttributes) -> Facts:
    """``sizes`` are the numbers of batches, classes and boxes."""
    batches, classes, count = sizes
    foreground = high(classes)
    if foreground is not None and 0 <= attributes.background_class < foreground:
        foreground -= 1
    of_image = up_to(foreground, limit_to(count, _limit(attributes.nms_top_k)))
    rows = up_to(high(batches), limit_to(of_image, _limit(attributes.keep_top_k)))
    index = element(attributes.output_type)
    return Fact(unify_elements(boxes, scores), (rows, 6)), Fact(index, (rows, 1)), Fact(index, (batches,))


def _overlaps(boxes: np.ndarray, attributes: MulticlassNmsAttributes) -> OverlapCache:
    """The boxes [n, 4] with the boxes that overlap them by at least the lowest threshold of ``nms_eta``."""
    lowest, eta = np.float32(attributes.iou_threshold), attributes.nms_eta
    while lowest > 0.5 and eta < 1:
        lowest *= np.float32(eta)
    return OverlapCache(AxisAligned(boxes[:, :2], boxes[:, 2:], not attributes.normalized), lowest, inclusive=True)


def _select(boxes: np.ndarray, scores: np.ndarray, attributes: MulticlassNmsAttributes) -> Found:
    """The boxes selected in one image, of boxes [1, n, 4] for all classes or [classes, n, 4], and scores [classes,
    n]."""
    overlaps = functools.cache(lambda index: _overlaps(boxes[index], attributes))
    classes = []
    for number, row in _classes(scores, attributes.background_class):
        check_time()
        order = descending(row, row >= np.float32(attributes.score_threshold))[: _limit(attributes.nms_top_k)]
        cache = overlaps(number % len(boxes))
        chosen = suppress_adaptively(order, row.size, cache, attributes.iou_threshold, attributes.nms_eta)
        classes.append((number, chosen, row[chosen]))
    found = _best(_join(classes), attributes.keep_top_k)
    return _by_class(found) if attributes.order == "classid" and not attributes.sort_result_across_batch else found


def _select_own(
    boxes: np.ndarray, scores: np.ndarray, roisnum: np.ndarray, attributes: MulticlassNmsAttributes
) -> Selected:
    """Each class has boxes of its own, [classes, boxes, 4], of which ``roisnum`` belong to each image."""
    counts = [max(count, 0) for count in integers(roisnum, "roisnum")]
    check(sum(counts) <= boxes.shape[1], f"roisnum asks for {sum(counts)} boxes, there are {boxes.shape[1]}")
    stops = itertools.accumulate(counts)
    coordinates, rows = boxes.astype(np.float32), scores.astype(np.float32)
    parts = [slice(stop - count, stop) for count, stop in zip(counts, stops, strict=True)]
    images = [_select(coordinates[:, part], rows[:, part], attributes) for part in parts]
    indices = [image[1] + part.start for image, part in zip(images, parts, strict=True)]
    corners = [coordinates[image[0], index] for image, index in zip(images, indices, strict=True)]
    flat = [index * len(boxes) + image[0] for image, index in zip(images, indices, strict=True)]
    return _outputs(images, corners, flat, boxes, attributes)


@op("MulticlassNms", since=8, tolerance=1e-5)
def multiclass_nms_8(boxes: Boxes, scores: Boxes, *, attributes: MulticlassNmsAttributes) -> Selected:
    """The boxes that overlap no better box of their class, the best of each batch, sorted as asked.

    ``boxes`` are [batches, boxes, 4], ``scores`` [batches, classes, boxes]. Gives rows (class, score, corners) [n, 6],
    indices into all boxes [n, 1] and the number of boxes of each batch. A box is dropped if an overlap is not below the
    threshold (implementations; the specification: above it), which is multiplied by ``nms_eta`` after each selected box
    while it is above 0.5. The order "none" is by score within each batch. Source: MulticlassNms-8.
    """
    return multiclass_nms_9.kernel(boxes, scores, attributes=attributes)


@op("MulticlassNms", since=9, tolerance=1e-5)
def multiclass_nms_9(
    boxes: Boxes, scores: Scores, roisnum: Counts | None = None, *, attributes: MulticlassNmsAttributes
) -> Selected:
    """MulticlassNms-8, or with ``roisnum`` of classes with boxes [classes, boxes, 4] and scores [classes, boxes] of
    their own.

    ``roisnum`` says how many of these boxes belong to each batch, one after the other; then the index of a box is its
    index among the boxes of its class times the number of classes plus its class (implementations; the specification
    has the index into the flattened boxes). Source: MulticlassNms-9.
    """
    if roisnum is not None:
        return _select_own(boxes, scores, roisnum, attributes)
    images = zip(boxes.astype(np.float32), scores.astype(np.float32), strict=True)
    return _outputs_of_shared([_select(image[None], rows, attributes) for image, rows in images], boxes, attributes)


@multiclass_nms_8.shape_rule
@multiclass_nms_9.shape_rule
def _multiclass_nms_shapes(
    boxes: Fact, scores: Fact, roisnum: Fact | None = None, *, attributes: MulticlassNmsAttributes
) -> Facts:
    check(0 <= attributes.nms_eta <= 1, f"nms_eta {attributes.nms_eta:g} is not between 0 and 1")
    sizes = shared_sizes(boxes, scores) if roisnum is None else _own_sizes(boxes, scores, roisnum)
    return _shapes(boxes, scores, sizes, attributes)


def _own_sizes(boxes: Fact, scores: Fact, roisnum: Fact) -> Shape:
    """The numbers of batches, classes and boxes where each class has boxes of its own."""
    of_boxes, of_scores = sizes_of(boxes, 3, "boxes"), sizes_of(scores, 2, "scores")
    (batches,) = sizes_of(roisnum, 1, "roisnum")
    meet(of_boxes[2], 4)
    return batches, meet(of_boxes[0], of_scores[0]), meet(of_boxes[1], of_scores[1])
