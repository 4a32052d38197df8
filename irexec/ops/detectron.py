"""Operations of Detectron: prior grids, proposals of one image, features of regions, detections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from irexec.dtypes.elements import I32
from irexec.errors import check
from irexec.ir.dims import ANY, Shape, Size, may_equal
from irexec.ir.facts import Fact
from irexec.messages import counted
from irexec.ops.proposals import TOLERANCE, check_corners
from irexec.reference.detection import (
    MAX_LOG_SCALE,
    areas,
    as_f32,
    best_first,
    clip,
    placed,
    sides,
    suppress,
    zero_unless,
)
from irexec.reference.limits import check_time
from irexec.reference.roi_align import Boxes, pool_boxes
from irexec.schema.attributes import Floats, NonNegative, Positive, Positives
from irexec.schema.opdef import FloatTensor, Rank
from irexec.schema.registry import op
from irexec.schema.shape_rules import sizes_of, unify_elements, unify_sizes

Vector = Annotated[FloatTensor, Rank(1)]
Matrix = Annotated[FloatTensor, Rank(2)]
Stack = Annotated[FloatTensor, Rank(3)]
Maps = Annotated[FloatTensor, Rank(4)]


@dataclass(frozen=True, kw_only=True)
class PriorGridAttributes:
    """Attributes of ExperimentalDetectronPriorGridGenerator."""

    flatten: bool = False
    h: NonNegative = 0
    w: NonNegative = 0
    stride_x: float = 0.0
    stride_y: float = 0.0


@dataclass(frozen=True, kw_only=True)
class SingleImageAttributes:
    """Attributes of ExperimentalDetectronGenerateProposalsSingleImage."""

    min_size: float
    nms_threshold: float
    post_nms_count: NonNegative
    pre_nms_count: NonNegative


@dataclass(frozen=True, kw_only=True)
class DetectionAttributes:
    """Attributes of ExperimentalDetectronDetectionOutput."""

    score_threshold: float
    nms_threshold: float
    num_classes: NonNegative
    post_nms_count: int
    max_detections_per_image: NonNegative
    class_agnostic_box_regression: bool = False
    max_delta_log_wh: float
    deltas_weights: Floats


@dataclass(frozen=True, kw_only=True)
class FeatureAttributes:
    """Attributes of ExperimentalDetectronROIFeatureExtractor."""

    output_size: Positive
    sampling_ratio: NonNegative
    pyramid_scales: Positives
    aligned: bool = False


@op("ExperimentalDetectronPriorGridGenerator", since=6, tolerance=TOLERANCE, widen=True)
def prior_grid_generator_6(
    priors: Matrix, feature_map: Maps, im_data: Maps, *, attributes: PriorGridAttributes
) -> np.ndarray:
    """The priors (N, 4) moved to the centre of every cell of a grid over the image: (H, W, N, 4), or (H * W * N, 4) if
    ``flatten``.

    The grid has as many cells as the feature map [1, C, H, W], or ``h`` and ``w``; the boxes of a smaller grid come
    first in the result, whose other values are not specified and zero here. ``flatten`` is false by default, although
    the specification says true: so OpenVINO reads it. Source: ExperimentalDetectronPriorGridGenerator-6.
    """
    flatten, (rows, columns), number = attributes.flatten, feature_map.shape[2:], priors.dtype.type
    height, width = attributes.h or rows, attributes.w or columns
    stride_y = as_f32(attributes.stride_y) or im_data.shape[2] / max(height, 1)
    stride_x = as_f32(attributes.stride_x) or im_data.shape[3] / max(width, 1)
    y, x = (np.arange(count, dtype=priors.dtype) + number(0.5) for count in (height, width))
    grid = np.empty((height, width, 1, 4), priors.dtype)
    grid[..., 0, 0::2] = (x * number(stride_x))[None, :, None]
    grid[..., 0, 1::2] = (y * number(stride_y))[:, None, None]
    boxes = (grid + priors).reshape(-1, 4)
    result = np.zeros((rows * columns * len(priors), 4), priors.dtype)
    result[: len(boxes)] = boxes
    return result if flatten else result.reshape(rows, columns, len(priors), 4)


@prior_grid_generator_6.shape_rule
def _prior_grid_generator_6_shape(
    priors: Fact, feature_map: Fact, im_data: Fact, *, attributes: PriorGridAttributes
) -> Fact:
    element = unify_elements(priors, feature_map, im_data)
    number, corners = sizes_of(priors, 2, "priors")
    check_corners(corners, "priors")
    features, image = sizes_of(feature_map, 4, "feature_map"), sizes_of(im_data, 4, "im_data")
    unify_sizes("batch", features[0], image[0])
    for count, size, name in ((attributes.h, features[2], "h"), (attributes.w, features[3], "w")):
        check(not isinstance(size, int) or count <= size, f"{name} {count} is above the size {size} of feature_map")
    shape: Shape = (features[2] * features[3] * number, 4) if attributes.flatten else (*features[2:], number, 4)
    return Fact(element, shape)


@op("ExperimentalDetectronGenerateProposalsSingleImage", since=6, tolerance=TOLERANCE, widen=True)
def generate_proposals_single_image_6(
    im_info: Vector, anchors: Matrix, deltas: Stack, scores: Stack, *, attributes: SingleImageAttributes
) -> tuple[np.ndarray, np.ndarray]:
    """The anchors (H * W * A, 4) moved by their deltas, clipped to the image, the best without overlaps; then zeros.

    ``im_info`` is height, width and scale, ``deltas`` (4 * A, H, W), ``scores`` (A, H, W). Gives boxes (post_nms_count,
    4) and scores (post_nms_count,). A box that is too small has score 0 and comes last.
    Source: ExperimentalDetectronGenerateProposalsSingleImage-6.
    """
    count, *grid = scores.shape
    boxes = anchors.reshape(*grid, count, 4)
    changes = deltas.reshape(count, 4, *grid).transpose(2, 3, 0, 1)
    height, width = im_info[:2].tolist()
    moved = placed(boxes, changes, 1, inclusive=True, max_log_scale=MAX_LOG_SCALE)
    found = clip(moved, width - 1, height - 1).reshape(-1, 4)
    widths, heights = sides(found, 1)
    minimum, limit = as_f32(attributes.min_size), attributes.post_nms_count
    points = zero_unless((widths >= minimum) & (heights >= minimum), scores.transpose(1, 2, 0).ravel())
    order = best_first(points)[: attributes.pre_nms_count]
    found, points = found[order], points[order]
    kept = suppress(found, areas(found, 0), as_f32(attributes.nms_threshold), 0, limit)
    return _padded(found[kept], limit), _padded(points[kept], limit)


def _padded(rows: np.ndarray, count: int) -> np.ndarray:
    """The first ``count`` rows, with zeros where there are fewer."""
    result = np.zeros((count, *rows.shape[1:]), rows.dtype)
    result[: len(rows)] = rows[:count]
    return result


@generate_proposals_single_image_6.shape_rule
def _generate_proposals_single_image_6_shapes(
    im_info: Fact, anchors: Fact, deltas: Fact, scores: Fact, *, attributes: SingleImageAttributes
) -> tuple[Fact, Fact]:
    element = unify_elements(im_info, anchors, deltas, scores)
    (values,) = sizes_of(im_info, 1, "im_info")
    check(may_equal(values, 3), f"im_info has {values} values, expected 3")
    rows, corners = sizes_of(anchors, 2, "anchors")
    check_corners(corners, "anchors")
    changes, points = sizes_of(deltas, 3, "deltas"), sizes_of(scores, 3, "scores")
    height, width = unify_sizes("height", changes[1], points[1]), unify_sizes("width", changes[2], points[2])
    check(
        may_equal(changes[0], points[0] * 4),
        f"deltas has {changes[0]} channels, expected {points[0] * 4}: 4 for each score",
    )
    total = points[0] * height * width
    check(may_equal(rows, total), f"there are {rows} anchors for {total} scores")
    return Fact(element, (attributes.post_nms_count, 4)), Fact(element, (attributes.post_nms_count,))


@op("ExperimentalDetectronDetectionOutput", since=6, tolerance=TOLERANCE, widen=True)
def detection_output_6(
    rois: Matrix, deltas: Matrix, scores: Matrix, im_info: Matrix, *, attributes: DetectionAttributes
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The rois (N, 4) moved by the deltas of each class but the background, 0; the best of each class without overlaps.

    ``deltas`` are (N, classes * 4), ``scores`` (N, classes), ``im_info`` (1, 3). Gives boxes (M, 4), classes (M,) in
    i32 and scores (M,), M ``max_detections_per_image``; unused rows are zeros. They are sorted by class, and by score
    within each class; only where there are more than M, the best of all, sorted by score. Boxes are clipped at 0, but
    not at the image's other border, and class_agnostic_box_regression has no effect, against the specification: so do
    both of OpenVINO's implementations. A roi without width or height counts as a box of zeros with score 0.
    Source: ExperimentalDetectronDetectionOutput-6.
    """
    boxes, points, sizes = _decode_classes(rois, deltas, scores, attributes)
    limit = None if attributes.post_nms_count == -1 else attributes.post_nms_count
    threshold, max_overlap = as_f32(attributes.score_threshold), as_f32(attributes.nms_threshold)
    found = [np.zeros((2, 0), np.int64)]
    for number in range(1, attributes.num_classes):
        check_time()
        candidates = np.flatnonzero(points[:, number] > threshold)
        order = candidates[best_first(points[candidates, number])]
        kept = order[suppress(boxes[order, number], sizes[order, number], max_overlap, 1, limit)]
        found.append(np.stack([kept, np.full(len(kept), number)]))
    indices, classes = np.concatenate(found, 1)
    count = attributes.max_detections_per_image
    if len(indices) > count:
        order = np.lexsort((indices, -points[indices, classes]))
        indices, classes = indices[order], classes[order]
    return (
        _padded(boxes[indices, classes], count),
        _padded(classes.astype(np.int32), count),
        _padded(points[indices, classes], count),
    )


def _decode_classes(
    rois: np.ndarray, deltas: np.ndarray, scores: np.ndarray, attributes: DetectionAttributes
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Boxes (N, classes, 4), their scores (N, classes) and their areas (N, classes); zeros for a roi without width or
    height."""
    with np.errstate(all="ignore"):
        changes = deltas.reshape(len(rois), attributes.num_classes, 4) / np.array(attributes.deltas_weights, np.float32)
        decoded = placed(rois[:, None], changes, 1, inclusive=True, max_log_scale=as_f32(attributes.max_delta_log_wh))
        boxes = np.fmax(decoded, rois.dtype.type(0))
    real: np.ndarray = np.logical_and.reduce(~(np.stack(sides(rois, 0), 1) <= 0), 1, keepdims=True)
    return np.where(real[..., None], boxes, 0), np.where(real, scores, 0), np.where(real, areas(boxes, 1), 0)


@detection_output_6.shape_rule
def _detection_output_6_shapes(
    rois: Fact, deltas: Fact, scores: Fact, im_info: Fact, *, attributes: DetectionAttributes
) -> tuple[Fact, Fact, Fact]:
    element = unify_elements(rois, deltas, scores, im_info)
    weights, classes = len(attributes.deltas_weights), attributes.num_classes
    count = attributes.max_detections_per_image
    check(weights == 4, f"deltas_weights has {weights} values, expected 4")
    number, corners = sizes_of(rois, 2, "rois")
    check_corners(corners, "rois")
    changes, points = sizes_of(deltas, 2, "deltas"), sizes_of(scores, 2, "scores")
    unify_sizes("number of rois", number, changes[0], points[0])
    check(
        may_equal(changes[1], classes * 4), f"deltas has {changes[1]} columns, expected {classes * 4}: 4 for each class"
    )
    check(may_equal(points[1], classes), f"scores has {points[1]} columns for {classes} classes")
    images, values = sizes_of(im_info, 2, "im_info")
    check(may_equal(images, 1) and may_equal(values, 3), f"im_info {im_info} does not have shape [1,3]")
    return Fact(element, (count, 4)), Fact(I32, (count,)), Fact(element, (count,))


@op("ExperimentalDetectronROIFeatureExtractor", since=6, tolerance=TOLERANCE, widen=True)
def roi_feature_extractor_6(
    rois: Matrix, *features: Maps, attributes: FeatureAttributes
) -> tuple[np.ndarray, np.ndarray]:
    """Features of each roi from the level of the pyramid that fits its size, by ROI Align; and the rois unchanged.

    ``rois`` are (N, 4), each level is (1, C, H, W); gives (N, C, output_size, output_size). A roi of 224 by 224 pixels
    belongs to level 2, and each level is twice as coarse as the one before; a roi without an area has features of zero.
    The rois are not reordered, although the specification says so: OpenVINO gives both outputs in the order of the
    input. Source: ExperimentalDetectronROIFeatureExtractor-6.
    """
    number, size = rois.dtype.type, attributes.output_size
    result = np.zeros((len(rois), features[0].shape[1], size, size), rois.dtype)
    levels = _levels(rois, len(features))
    for level, (feature, scale) in enumerate(zip(features, attributes.pyramid_scales, strict=False)):
        chosen = np.flatnonzero(levels == level)
        scaled = rois[chosen] * (number(1) / number(scale)) - number(0.5 if attributes.aligned else 0)
        boxes = Boxes(scaled[:, 0], scaled[:, 1], *np.maximum(sides(scaled, 0), number(1)))
        images = np.zeros(len(chosen), np.int64)
        result[chosen] = pool_boxes(feature, boxes, images, (size, size), attributes.sampling_ratio, "avg")
    return result, rois.copy()


def _levels(rois: np.ndarray, count: int) -> np.ndarray:
    """The level of the pyramid of each roi; ``count`` for none."""
    dtype = rois.dtype.type
    with np.errstate(all="ignore"):
        sizes = areas(rois, 0)
        levels = np.floor(np.log2(np.sqrt(sizes) / dtype(224) + dtype(1e-6)) + dtype(2))
        return np.where(sizes > 0, np.clip(levels, 0, count - 1), count)


@roi_feature_extractor_6.shape_rule
def _roi_feature_extractor_6_shapes(rois: Fact, *features: Fact, attributes: FeatureAttributes) -> tuple[Fact, Fact]:
    scales, size = len(attributes.pyramid_scales), attributes.output_size
    check(len(features) > 0, "there are no features")
    check(len(features) <= scales, f"pyramid_scales has {scales} values for {counted(len(features), 'level')}")
    element = unify_elements(rois, *features)
    number, corners = sizes_of(rois, 2, "rois")
    check_corners(corners, "rois")
    channels: Size = ANY
    for level, feature in enumerate(features):
        batch, own, *_ = sizes_of(feature, 4, f"level {level}")
        check(may_equal(batch, 1), f"level {level} has batch {batch}, expected 1")
        channels = unify_sizes("number of channels", channels, own)
    return Fact(element, (number, channels, size, size)), Fact(element, (number, 4))


@op("ExperimentalDetectronTopKROIs", since=6)
def top_k_rois_6(input_rois: Matrix, rois_probs: Vector, *, max_rois: NonNegative) -> np.ndarray:
    """The rois (N, 4) with the highest probabilities (N,), in descending order; of equal ones the first: (max_rois, 4).

    Where there are fewer than ``max_rois`` the rest is not specified, and zero here.
    Source: ExperimentalDetectronTopKROIs-6.
    """
    return _padded(input_rois[best_first(rois_probs)[:max_rois]], max_rois)


@top_k_rois_6.shape_rule
def _top_k_rois_6_shape(input_rois: Fact, rois_probs: Fact, *, max_rois: int) -> Fact:
    number, corners = sizes_of(input_rois, 2, "input_rois")
    check_corners(corners, "input_rois")
    unify_sizes("number of rois", number, *sizes_of(rois_probs, 1, "rois_probs"))
    return Fact(unify_elements(input_rois, rois_probs), (max_rois, 4))
