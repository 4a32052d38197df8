"""The last layer of SSD: DetectionOutput."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from irexec.errors import OpError, check
from irexec.ir.dims import ANY, Dim, Size, exact_quotient, low, may_equal, meet
from irexec.ir.facts import Fact
from irexec.reference.detection import DetectionLimits, clip_to_unit, decode, detect
from irexec.reference.limits import check_time
from irexec.schema.attributes import Ints, Positive
from irexec.schema.opdef import FloatTensor, Rank
from irexec.schema.registry import op
from irexec.schema.shape_rules import sizes_of, unify_elements

CodeType = Literal["caffe.PriorBoxParameter.CORNER", "caffe.PriorBoxParameter.CENTER_SIZE", "CORNER", "CENTER_SIZE"]
Matrix = Annotated[FloatTensor, Rank(2)]
Proposals = Annotated[FloatTensor, Rank(3)]
# The name of an input, its number of images, and its number of values for each.
Row = tuple[str, Size, Size]


@dataclass(frozen=True, kw_only=True)
class DetectionOutputAttributes:
    """Attributes of version 8, which counts the classes itself."""

    background_label_id: int = 0
    top_k: int = -1
    variance_encoded_in_target: bool = False
    keep_top_k: Ints
    code_type: CodeType = "caffe.PriorBoxParameter.CORNER"
    share_location: bool = True
    nms_threshold: float
    confidence_threshold: float = 0.0
    clip_after_nms: bool = False
    clip_before_nms: bool = False
    decrease_label_id: bool = False
    normalized: bool = False
    input_height: Positive = 1
    input_width: Positive = 1
    objectness_score: float = 0.0

    @property
    def box_values(self) -> int:
        """The number of values of a proposal: unless they are normalized, one stands before the four corners."""
        return 4 if self.normalized else 5

    @property
    def limits(self) -> DetectionLimits:
        """Rules by which boxes are detections."""
        return DetectionLimits(
            self.confidence_threshold,
            self.nms_threshold,
            self.top_k,
            self.keep_top_k[0],
            self.background_label_id,
            self.decrease_label_id,
        )


@dataclass(frozen=True, kw_only=True)
class DetectionOutput1Attributes(DetectionOutputAttributes):
    """Attributes of version 1."""

    num_classes: Positive


# Parameters of Caffe's layer that Model Optimizer copied; they say where and how boxes are drawn into files.
_OF_CAFFE = (
    "eta", "visualize", "visualize_threshold", "save_file", "output_directory", "output_name_prefix", "output_format",
    "label_map_file",
    "name_size_file", "num_test_image", "prob", "resize_mode", "height", "width", "height_scale", "width_scale",
    "pad_mode", "pad_value",
    "interp_mode",
)  # fmt: skip


@op("DetectionOutput", since=1, tolerance=1e-5, ignores=_OF_CAFFE)
def detection_output_1(
    box_logits: Matrix, class_preds: Matrix, proposals: Proposals, aux_class_preds: Matrix | None = None,
    aux_box_preds: Matrix | None = None, *, attributes: DetectionOutput1Attributes,
) -> np.ndarray:  # fmt: skip
    """The detections: rows of image, class, score and corners [1, 1, rows, 7].

    As DetectionOutput-8, which counts the classes itself. Source: DetectionOutput-1.
    """
    inputs = (box_logits, class_preds, proposals, aux_class_preds, aux_box_preds)
    return detection_output_8.kernel(*inputs, attributes=attributes)


@op("DetectionOutput", since=8, tolerance=1e-5, ignores=(*_OF_CAFFE, "num_classes"))
def detection_output_8(
    box_logits: Matrix, class_preds: Matrix, proposals: Proposals, aux_class_preds: Matrix | None = None,
    aux_box_preds: Matrix | None = None, *, attributes: DetectionOutputAttributes,
) -> np.ndarray:  # fmt: skip
    """The detections: rows of image, class, score and corners [1, 1, rows, 7].

    Rows are sorted by image, by class, and by descending score; the row after the last has -1 as its image, and all
    else is 0.

    ``box_logits`` are [N, boxes * classes or 1 * 4], ``class_preds`` [N, boxes * classes]. Proposals [1 or N, 1 or 2,
    ...] hold the boxes and, unless ``variance_encoded_in_target``, in their second row four variances for each, without
    gaps. Where they are not ``normalized``, a box has a value before its corners; a value of -1 ends the boxes of the
    image, as in the CPU plugin. ``code_type`` may lack its prefix "caffe.PriorBoxParameter.".

    ``top_k`` limits the candidates of a class before suppression, ``keep_top_k`` (its first value) the detections of an
    image. With ``decrease_label_id`` a box counts only for its best class, never for the first, its score may equal the
    threshold, ``top_k`` is that of the image, and classes count from 0. With five inputs a box whose second additional
    score is below ``objectness_score`` is background, and boxes are decoded twice, first by the additional input; then
    they are divided twice by the size of the input and clipped twice, as in OpenVINO.

    Source: DetectionOutput-8, OpenVINO's reference and CPU plugin.
    """
    images, wide, limits = len(box_logits), np.result_type(box_logits, np.float32), attributes.limits
    count = proposals.shape[2] // attributes.box_values
    known = attributes.num_classes if isinstance(attributes, DetectionOutput1Attributes) else None
    classes = class_preds.shape[1] // count if known is None else known
    locations = (images, count, 1 if attributes.share_location else classes, 4)
    offsets = [given.astype(wide).reshape(locations) for given in (aux_box_preds, box_logits) if given is not None]
    boxes = _decode(proposals.astype(wide), offsets, attributes).swapaxes(1, 2)
    scores = class_preds.astype(wide).reshape(images, count, classes)
    if aux_class_preds is not None:
        objectness = aux_class_preds.astype(wide).reshape(images, count, 2)[..., 1]
        scores[objectness < np.float32(attributes.objectness_score)] = np.arange(classes) == limits.background
    rows = []
    for image in range(images):
        check_time()
        marks = proposals[image % len(proposals), 0].reshape(count, attributes.box_values)[:, 0] == -1
        used = count if attributes.normalized or not marks.any() else int(marks.argmax())
        of_image, candidates = scores[image, :used].T, boxes[image, :, :used]
        found, indices = detect(of_image, candidates, limits)
        corners = candidates[0 if attributes.share_location else found, indices]
        labels = found - 1 if limits.best_class_only else found
        corners = clip_to_unit(corners) if attributes.clip_after_nms else corners
        rows.append(np.column_stack([np.full(len(found), image), labels, of_image[found, indices], corners]))
    return _with_end(rows, _row_count(attributes, images, classes, count * classes), box_logits.dtype)


def _decode(proposals: np.ndarray, offsets: list[np.ndarray], attributes: DetectionOutputAttributes) -> np.ndarray:
    """The boxes of all images, (images, boxes, classes or 1, 4)."""
    n, count = len(proposals), proposals.shape[2] // attributes.box_values
    variances = None if attributes.variance_encoded_in_target else proposals[:, 1, : 4 * count].reshape(n, count, 1, 4)
    boxes = proposals[:, 0].reshape(n, count, 1, attributes.box_values)[..., -4:]
    sizes = np.array([attributes.input_width, attributes.input_height] * 2, boxes.dtype)
    is_corner = attributes.code_type.endswith("CORNER")
    for offset in offsets:
        priors = boxes if attributes.normalized else boxes / sizes
        boxes = decode(priors, variances, offset, corner=is_corner, clip=attributes.clip_before_nms)
    return boxes


def _with_end(rows: list[np.ndarray], total: Size, dtype: np.dtype) -> np.ndarray:
    """The rows of all images [1, 1, total, 7], the row after the last marked by -1."""
    result = np.zeros((1, 1, int(total), 7), dtype)
    count = sum(map(len, rows))
    if count:
        with np.errstate(over="ignore"):
            result[0, 0, :count] = np.concatenate(rows)
    if count < result.shape[2]:
        result[0, 0, count, 0] = -1
    return result


def _row_count(attributes: DetectionOutputAttributes, images: Size, classes: Size, scores: Size) -> Size:
    """The number of rows of the result; ``scores`` is the number of scores of each image."""
    keep, candidates = attributes.keep_top_k[0], attributes.top_k
    if keep > 0:
        return images * keep
    return images * (classes * candidates if keep == -1 and candidates > 0 else scores)


@detection_output_1.shape_rule
@detection_output_8.shape_rule
def _detection_output_shape(
    box_logits: Fact, class_preds: Fact, proposals: Fact, aux_class_preds: Fact | None = None,
    aux_box_preds: Fact | None = None, *, attributes: DetectionOutputAttributes,
) -> Fact:  # fmt: skip
    check(len(attributes.keep_top_k) > 0, "keep_top_k is empty")
    check((aux_class_preds is None) == (aux_box_preds is None), "there are 4 inputs, expected 3 or 5")
    # Proposals may be of another float type than the predictions.
    element = unify_elements(box_logits, class_preds, aux_class_preds, aux_box_preds)
    batch, parts, width = sizes_of(proposals, 3, "proposals")
    expected = 1 if attributes.variance_encoded_in_target else 2
    check(may_equal(parts, expected), f"proposals have size {parts} on axis 1, expected {expected}")
    logits = _rows_of("box_logits", box_logits) + _rows_of("aux_box_preds", aux_box_preds)
    scores, marks = _rows_of("class_preds", class_preds), _rows_of("aux_class_preds", aux_class_preds)
    images = _images(logits + scores + marks, batch)
    boxes = _unify_counts([("proposals", batch, width)], attributes.box_values, "boxes", ANY)
    boxes, classes = _counts(_unify_counts(marks, 2, "boxes", boxes), logits, scores, attributes)
    return Fact(element, (1, 1, _row_count(attributes, images, classes, meet(boxes * classes, scores[0][2])), 7))


def _counts(
    boxes: Size, logits: list[Row], scores: list[Row], attributes: DetectionOutputAttributes
) -> tuple[Size, Size]:
    """The numbers of boxes of each image and of classes."""
    num_classes = attributes.num_classes if isinstance(attributes, DetectionOutput1Attributes) else None
    locations = 1 if attributes.share_location else num_classes
    if locations is not None:
        boxes = _unify_counts(logits, 4 * locations, "boxes", boxes)
    if num_classes is not None:
        return _unify_counts(scores, num_classes, "boxes", boxes), num_classes
    if not isinstance(boxes, int):
        return boxes, Dim(1)
    check(boxes > 0, "proposals have no boxes, by which to count the classes")
    classes = _unify_counts(scores, boxes, "classes", Dim(1))
    return boxes, classes if attributes.share_location else _unify_counts(logits, 4 * boxes, "classes", classes)


def _rows_of(name: str, fact: Fact | None) -> list[Row]:
    """Shape of an input; unknown if the input is absent."""
    if fact is None:
        return []
    images, values = sizes_of(fact, 2, name)
    return [(name, images, values)]


def _unify_counts(inputs: list[Row], each: int, items: str, known: Size) -> Size:
    """The number of ``items``, for each of which every input has ``each`` values per image."""
    for name, _, values in inputs:
        message = f"{name} has {values} values for an image, expected {each} for each of {known} {items}"
        try:
            known = meet(known, exact_quotient(values, each))
        except OpError:
            raise OpError(message) from None
    return known


def _images(inputs: list[Row], batch: Size) -> Size:
    """The number of images; proposals exist for each image, or once for all."""
    images = ANY if low(batch) < 2 else batch
    for name, size, _ in inputs:
        check(may_equal(images, size), f"{name} is for {size} images, expected {images}")
        images = meet(images, size)
    check(may_equal(batch, 1) or may_equal(batch, images), f"proposals are for {batch} images, expected 1 or {images}")
    return images
