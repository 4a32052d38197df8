"""The last layer of SSD: DetectionOutput."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from irexec.dtypes.elements import Element
from irexec.errors import OpError, check
from irexec.ir.dims import ANY, Dim, Size, exact_quotient, low, may_equal, meet
from irexec.ir.facts import Fact
from irexec.reference.detection import Limits, cut, decode, detect
from irexec.schema.attributes import Ints, Positive
from irexec.schema.registry import op
from irexec.schema.rules import same_element, sizes_of

CodeType = Literal["caffe.PriorBoxParameter.CORNER", "caffe.PriorBoxParameter.CENTER_SIZE", "CORNER", "CENTER_SIZE"]
# The name of an input, how many images it is for, and how many numbers it has for each.
Row = tuple[str, Size, Size]


@op("DetectionOutput", since=1, tolerance=1e-5)
def detection_output_1(
    box_logits: np.ndarray,
    class_preds: np.ndarray,
    proposals: np.ndarray,
    aux_class_preds: np.ndarray | None = None,
    aux_box_preds: np.ndarray | None = None,
    *,
    num_classes: Positive,
    background_label_id: int = 0,
    top_k: int = -1,
    variance_encoded_in_target: bool = False,
    keep_top_k: Ints,
    code_type: CodeType = "caffe.PriorBoxParameter.CORNER",
    share_location: bool = True,
    nms_threshold: float,
    confidence_threshold: float = 0.0,
    clip_after_nms: bool = False,
    clip_before_nms: bool = False,
    decrease_label_id: bool = False,
    normalized: bool = False,
    input_height: Positive = 1,
    input_width: Positive = 1,
    objectness_score: float = 0.0,
) -> np.ndarray:
    """The boxes that are found: rows of image, class, score and corners.

    As DetectionOutput-8, which counts the classes itself. Source: DetectionOutput-1.
    """
    coding = (code_type, clip_before_nms, None if normalized else (input_width, input_height), variance_encoded_in_target)
    limits = Limits(confidence_threshold, nms_threshold, top_k, keep_top_k[0], background_label_id, decrease_label_id)
    aux = None if aux_class_preds is None or aux_box_preds is None else (aux_class_preds, aux_box_preds, objectness_score)
    return _run(box_logits, class_preds, proposals, aux, num_classes, share_location, coding, limits, clip_after_nms)


@op("DetectionOutput", since=8, tolerance=1e-5)
def detection_output_8(
    box_logits: np.ndarray,
    class_preds: np.ndarray,
    proposals: np.ndarray,
    aux_class_preds: np.ndarray | None = None,
    aux_box_preds: np.ndarray | None = None,
    *,
    background_label_id: int = 0,
    top_k: int = -1,
    variance_encoded_in_target: bool = False,
    keep_top_k: Ints,
    code_type: CodeType = "caffe.PriorBoxParameter.CORNER",
    share_location: bool = True,
    nms_threshold: float,
    confidence_threshold: float = 0.0,
    clip_after_nms: bool = False,
    clip_before_nms: bool = False,
    decrease_label_id: bool = False,
    normalized: bool = False,
    input_height: Positive = 1,
    input_width: Positive = 1,
    objectness_score: float = 0.0,
) -> np.ndarray:
    """The boxes that are found: rows of image, class, score and corners, [1, 1, rows, 7].

    Rows go by image, by class, and from the best score on; the row behind the last has -1 as its image, and all else is 0.

    Proposals [1 or N, 1 or 2, ...] hold the boxes and, unless that is encoded in the target, below them four variances each, closely
    packed. Where they are not ``normalized``, a box has a number before its corners; one of -1 ends the boxes of the image, as in
    the CPU plugin. ``code_type`` may lack its "caffe.PriorBoxParameter.".

    ``top_k`` limits the candidates of a class before those that overlap go, ``keep_top_k`` (its first number) what is kept of an
    image. With ``decrease_label_id`` a box counts for its best class but the first alone, with a score that may equal the threshold,
    ``top_k`` is that of the image, and classes count from 0. With five inputs a box whose second additional score is below
    ``objectness_score`` is background, and boxes are decoded twice, first by the additional input; that divides twice by the size
    of the input and cuts twice, as in OpenVINO.

    Source: DetectionOutput-8, OpenVINO's reference and CPU plugin.
    """
    size = 4 if normalized else 5
    coding = (code_type, clip_before_nms, None if normalized else (input_width, input_height), variance_encoded_in_target)
    limits = Limits(confidence_threshold, nms_threshold, top_k, keep_top_k[0], background_label_id, decrease_label_id)
    aux = None if aux_class_preds is None or aux_box_preds is None else (aux_class_preds, aux_box_preds, objectness_score)
    classes = class_preds.shape[1] // (proposals.shape[2] // size)
    return _run(box_logits, class_preds, proposals, aux, classes, share_location, coding, limits, clip_after_nms)


def _run(
    box_logits: np.ndarray,
    class_preds: np.ndarray,
    proposals: np.ndarray,
    aux: tuple[np.ndarray, np.ndarray, float] | None,
    classes: int,
    share_location: bool,
    coding: tuple[Any, ...],
    limits: Limits,
    clip_after_nms: bool,
) -> np.ndarray:
    images, wide = len(box_logits), np.result_type(box_logits, np.float32)
    size = 4 if coding[2] is None else 5
    count = proposals.shape[2] // size
    locations = (images, count, 1 if share_location else classes, 4)
    offsets = [given.astype(wide).reshape(locations) for given in ([box_logits] if aux is None else [aux[1], box_logits])]
    boxes = _decoded(proposals.astype(wide), offsets, *coding).swapaxes(1, 2)
    scores = class_preds.astype(wide).reshape(images, count, classes)
    if aux is not None:
        weak = aux[0].astype(wide).reshape(images, count, 2)[..., 1] < np.float32(aux[2])
        scores[weak] = np.arange(classes) == limits.background
    rows = []
    for image in range(images):
        used = count if size == 4 else _used(proposals[image % len(proposals), 0].reshape(count, size)[:, 0])
        each, about = scores[image, :used].T, boxes[image, :, :used]
        which, places = detect(each, about, limits)
        found = about[0 if share_location else which, places]
        labels = which - 1 if limits.one_class else which
        rows.append(np.column_stack([np.full(len(which), image), labels, each[which, places], cut(found) if clip_after_nms else found]))
    return _ended(rows, _count(limits.kept, limits.candidates, images, classes, count * classes), box_logits.dtype)


def _decoded(
    proposals: np.ndarray,
    offsets: list[np.ndarray],
    code_type: str,
    clip: bool,
    sizes: tuple[int, int] | None,
    variance_encoded_in_target: bool,
) -> np.ndarray:
    """The boxes of all images, (images, boxes, classes or 1, 4)."""
    size = 4 if sizes is None else 5
    count = proposals.shape[2] // size
    variances = None if variance_encoded_in_target else proposals[:, 1, : 4 * count].reshape(len(proposals), count, 1, 4)
    boxes = proposals[:, 0].reshape(len(proposals), count, 1, size)[..., -4:]
    for offset in offsets:
        whole = boxes if sizes is None else boxes / np.array(sizes * 2, boxes.dtype)
        boxes = decode(whole, variances, offset, corner=code_type.endswith("CORNER"), clip=clip)
    return boxes


def _used(marks: np.ndarray) -> int:
    """How many boxes there are before the first that is marked by -1."""
    ends = np.flatnonzero(marks == -1)
    return int(ends[0]) if len(ends) else len(marks)


def _ended(rows: list[np.ndarray], total: Size, kind: np.dtype) -> np.ndarray:
    result = np.zeros((1, 1, int(total), 7), kind)
    count = sum(map(len, rows))
    if count:
        with np.errstate(over="ignore"):
            result[0, 0, :count] = np.concatenate(rows)
    if count < result.shape[2]:
        result[0, 0, count, 0] = -1
    return result


def _count(keep_top_k: int, top_k: int, images: Size, classes: Size, scores: Size) -> Size:
    """How many rows the result has; ``scores`` is how many each image has."""
    if keep_top_k > 0:
        return images * keep_top_k
    return images * (classes * top_k if keep_top_k == -1 and top_k > 0 else scores)


@detection_output_1.shape_rule
@detection_output_8.shape_rule
def _detection_output_facts(
    box_logits: Fact,
    class_preds: Fact,
    proposals: Fact,
    aux_class_preds: Fact | None = None,
    aux_box_preds: Fact | None = None,
    *,
    num_classes: int | None = None,
    keep_top_k: Ints,
    top_k: int,
    share_location: bool,
    normalized: bool,
    variance_encoded_in_target: bool,
    **others: Any,
) -> Fact:
    check(len(keep_top_k) > 0, "keep_top_k is empty")
    check((aux_class_preds is None) == (aux_box_preds is None), "there are 4 inputs, expected 3 or 5")
    kind = _element(proposals, box_logits, class_preds, aux_class_preds, aux_box_preds)
    batch, parts, width = sizes_of(proposals, 3, "proposals")
    wanted = 1 if variance_encoded_in_target else 2
    check(may_equal(parts, wanted), f"proposals have size {parts} on axis 1, expected {wanted}")
    logits = _rows_of("box_logits", box_logits) + _rows_of("aux_box_preds", aux_box_preds)
    scores, marks = _rows_of("class_preds", class_preds), _rows_of("aux_class_preds", aux_class_preds)
    images = _images(logits + scores + marks, batch)
    boxes = _agreed([("proposals", batch, width)], 4 if normalized else 5, "boxes", ANY)
    boxes, classes = _counts(_agreed(marks, 2, "boxes", boxes), logits, scores, num_classes, share_location)
    return Fact(kind, (1, 1, _count(keep_top_k[0], top_k, images, classes, meet(boxes * classes, scores[0][2])), 7))


def _counts(boxes: Size, logits: list[Row], scores: list[Row], num_classes: int | None, share_location: bool) -> tuple[Size, Size]:
    """How many boxes there are for each image, and how many classes."""
    locations = 1 if share_location else num_classes
    if locations is not None:
        boxes = _agreed(logits, 4 * locations, "boxes", boxes)
    if num_classes is not None:
        return _agreed(scores, num_classes, "boxes", boxes), num_classes
    if not isinstance(boxes, int):
        return boxes, Dim(1)
    check(boxes > 0, "proposals have no boxes, by which to count the classes")
    classes = _agreed(scores, boxes, "classes", Dim(1))
    return boxes, classes if share_location else _agreed(logits, 4 * boxes, "classes", classes)


def _element(proposals: Fact, *predictions: Fact | None) -> Element | None:
    """That of the predictions; proposals may be of another float type."""
    kind = same_element(*(fact for fact in predictions if fact is not None))
    for element in (kind, proposals.element):
        check(element is None or element.is_float, f"element type {element} is not a float type")
    return kind


def _rows_of(name: str, fact: Fact | None) -> list[Row]:
    """What is known of an input; nothing if it is not there."""
    if fact is None:
        return []
    images, numbers = sizes_of(fact, 2, name)
    return [(name, images, numbers)]


def _agreed(inputs: list[Row], each: int, things: str, known: Size) -> Size:
    """How many things there are, of which every input has ``each`` numbers."""
    for name, _, numbers in inputs:
        says = f"{name} has {numbers} numbers for an image, expected {each} for each of {known} {things}"
        try:
            known = meet(known, exact_quotient(numbers, each))
        except OpError:
            raise OpError(says) from None
    return known


def _images(inputs: list[Row], batch: Size) -> Size:
    """How many images there are: proposals are for each of them, or one for all."""
    images = ANY if low(batch) < 2 else batch
    for name, size, _ in inputs:
        check(may_equal(images, size), f"{name} is for {size} images, expected {images}")
        images = meet(images, size)
    check(may_equal(batch, 1) or may_equal(batch, images), f"proposals are for {batch} images, expected 1 or {images}")
    return images
