"""What Detectron's models are made of: prior grids, proposals of one image, features of regions, detections."""

from __future__ import annotations

from typing import Any

import numpy as np

from irexec.dtypes.elements import I32
from irexec.errors import check
from irexec.ir.dims import ANY, Shape, Size, may_equal
from irexec.ir.facts import Fact
from irexec.ops.proposals import TOLERANCE, check_four, single
from irexec.reference.proposals import MOST_GROWTH, areas, clip, decode, descending, spread, suppress, without
from irexec.reference.roi_points import Boxes, pool_boxes
from irexec.schema.attributes import Floats, NonNegative, Positive, Positives
from irexec.schema.registry import op
from irexec.schema.rules import check_floats, same_element, sizes_of, unify_sizes


@op("ExperimentalDetectronPriorGridGenerator", since=6, tolerance=TOLERANCE, widen=True)
def prior_grid_generator_6(
    priors: np.ndarray, feature_map: np.ndarray, im_data: np.ndarray, *,
    flatten: bool = False, h: NonNegative = 0, w: NonNegative = 0, stride_x: float = 0.0, stride_y: float = 0.0,
) -> np.ndarray:  # fmt: skip
    """The priors (N, 4) moved to the middle of every cell of a grid over the image.

    The grid has as many cells as the feature map, or ``h`` and ``w``; the boxes of a smaller grid come first in the
    result, whose other numbers are not specified and zero here. ``flatten`` is false where it is not written, although
    the specification says true: so OpenVINO reads it. Source: ExperimentalDetectronPriorGridGenerator-6.
    """
    rows, columns = feature_map.shape[2:]
    down, across = h or rows, w or columns
    step_y, step_x = single(stride_y) or im_data.shape[2] / max(down, 1), single(stride_x) or im_data.shape[3] / max(across, 1)
    y, x = (np.arange(count, dtype=priors.dtype) + priors.dtype.type(0.5) for count in (down, across))
    grid = np.empty((down, across, 1, 4), priors.dtype)
    grid[..., 0, 0::2] = (x * priors.dtype.type(step_x))[None, :, None]
    grid[..., 0, 1::2] = (y * priors.dtype.type(step_y))[:, None, None]
    boxes = (grid + priors).reshape(-1, 4)
    result = np.zeros((rows * columns * len(priors), 4), priors.dtype)
    result[: len(boxes)] = boxes
    return result if flatten else result.reshape(rows, columns, len(priors), 4)


@prior_grid_generator_6.shape_rule
def _prior_grid_generator_6_facts(
    priors: Fact, feature_map: Fact, im_data: Fact, *, flatten: bool = False, h: int = 0, w: int = 0, **others: Any
) -> Fact:
    check_floats(priors=priors, feature_map=feature_map, im_data=im_data)
    kind = same_element(priors, feature_map, im_data)
    number, four = sizes_of(priors, 2, "priors")
    check_four(four, "priors")
    features, image = sizes_of(feature_map, 4, "feature_map"), sizes_of(im_data, 4, "im_data")
    unify_sizes("batch", features[0], image[0])
    for count, size, name in ((h, features[2], "h"), (w, features[3], "w")):
        check(not isinstance(size, int) or count <= size, f"{name} {count} is above the size {size} of feature_map")
    shape: Shape = (features[2] * features[3] * number, 4) if flatten else (*features[2:], number, 4)
    return Fact(kind, shape)


@op("ExperimentalDetectronGenerateProposalsSingleImage", since=6, tolerance=TOLERANCE, widen=True)
def generate_proposals_single_image_6(
    im_info: np.ndarray, anchors: np.ndarray, deltas: np.ndarray, scores: np.ndarray, *,
    min_size: float, nms_threshold: float, post_nms_count: NonNegative, pre_nms_count: NonNegative,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """The anchors (H * W * A, 4) moved by their deltas, clipped to the image, the best without overlaps; then zeros.

    A box that is too small has score 0 and comes last.
    Source: ExperimentalDetectronGenerateProposalsSingleImage-6.
    """
    count, *grid = scores.shape
    boxes = anchors.reshape(*grid, count, 4)
    changes = deltas.reshape(count, 4, *grid).transpose(2, 3, 0, 1)
    height, width = im_info[:2].tolist()
    found = clip(decode(boxes, changes, 1, inclusive=True, most=MOST_GROWTH), width - 1, height - 1).reshape(-1, 4)
    wide, high = spread(found, 1)
    large = (wide >= single(min_size)) & (high >= single(min_size))
    points = without(scores.transpose(1, 2, 0).ravel(), large)
    order = descending(points)[:pre_nms_count]
    found, points = found[order], points[order]
    kept = suppress(found, areas(found, 0), single(nms_threshold), 0, post_nms_count)
    return _padded(found[kept], post_nms_count), _padded(points[kept], post_nms_count)


def _padded(rows: np.ndarray, count: int) -> np.ndarray:
    """The first ``count`` rows, with zeros where there are fewer."""
    result = np.zeros((count, *rows.shape[1:]), rows.dtype)
    result[: len(rows)] = rows[:count]
    return result


@generate_proposals_single_image_6.shape_rule
def _generate_proposals_single_image_6_facts(
    im_info: Fact, anchors: Fact, deltas: Fact, scores: Fact, *, post_nms_count: int, **others: Any
) -> tuple[Fact, Fact]:
    check_floats(im_info=im_info, anchors=anchors, deltas=deltas, scores=scores)
    kind = same_element(im_info, anchors, deltas, scores)
    (numbers,) = sizes_of(im_info, 1, "im_info")
    check(may_equal(numbers, 3), f"im_info has {numbers} numbers, expected 3")
    rows, four = sizes_of(anchors, 2, "anchors")
    check_four(four, "anchors")
    changes, points = sizes_of(deltas, 3, "deltas"), sizes_of(scores, 3, "scores")
    height, width = unify_sizes("height", changes[1], points[1]), unify_sizes("width", changes[2], points[2])
    check(may_equal(changes[0], points[0] * 4), f"deltas has {changes[0]} channels, expected {points[0] * 4}: 4 for each score")
    total = points[0] * height * width
    check(may_equal(rows, total), f"there are {rows} anchors for {total} scores")
    return Fact(kind, (post_nms_count, 4)), Fact(kind, (post_nms_count,))


@op("ExperimentalDetectronDetectionOutput", since=6, tolerance=TOLERANCE, widen=True)
def detection_output_6(
    rois: np.ndarray, deltas: np.ndarray, scores: np.ndarray, im_info: np.ndarray, *,
    score_threshold: float, nms_threshold: float, num_classes: NonNegative, post_nms_count: int, max_detections_per_image: NonNegative,
    class_agnostic_box_regression: bool = False, max_delta_log_wh: float, deltas_weights: Floats,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """The rois (N, 4) moved by the deltas of each class but the background, 0; the best of each class without overlaps.

    Gives boxes, classes (i32) and scores, then zeros. They are in order of classes, and of scores within each; only where
    there are more than ``max_detections_per_image`` the best of all, in order of scores. Boxes end at 0, but not at the
    image's other side, and class_agnostic_box_regression has no effect, against the specification: so do both of OpenVINO's
    implementations. A roi without extent counts as a box of zeros with score 0.
    Source: ExperimentalDetectronDetectionOutput-6.
    """
    with np.errstate(all="ignore"):
        changes = deltas.reshape(len(rois), num_classes, 4) / np.array(deltas_weights, np.float32)
        boxes = np.fmax(decode(rois[:, None], changes, 1, inclusive=True, most=single(max_delta_log_wh)), rois.dtype.type(0))
    real: np.ndarray = np.logical_and.reduce(~(np.stack(spread(rois, 0), 1) <= 0), 1, keepdims=True)
    sizes = np.where(real, areas(boxes, 1), 0)
    boxes, points = np.where(real[..., None], boxes, 0), np.where(real, scores, 0)
    limit = None if post_nms_count == -1 else post_nms_count
    found = [np.zeros((2, 0), np.int64)]
    for kind in range(1, num_classes):
        good = np.flatnonzero(points[:, kind] > single(score_threshold))
        order = good[descending(points[good, kind])]
        kept = order[suppress(boxes[order, kind], sizes[order, kind], single(nms_threshold), 1, limit)]
        found.append(np.stack([kept, np.full(len(kept), kind)]))
    which, kinds = np.concatenate(found, 1)
    if len(which) > max_detections_per_image:
        first = np.lexsort((which, -points[which, kinds]))
        which, kinds = which[first], kinds[first]
    count = max_detections_per_image
    return _padded(boxes[which, kinds], count), _padded(kinds.astype(np.int32), count), _padded(points[which, kinds], count)


@detection_output_6.shape_rule
def _detection_output_6_facts(
    rois: Fact, deltas: Fact, scores: Fact, im_info: Fact, *,
    num_classes: int, max_detections_per_image: int, deltas_weights: Floats, **others: Any,
) -> tuple[Fact, Fact, Fact]:  # fmt: skip
    check_floats(rois=rois, deltas=deltas, scores=scores, im_info=im_info)
    kind = same_element(rois, deltas, scores, im_info)
    check(len(deltas_weights) == 4, f"deltas_weights has {len(deltas_weights)} numbers, expected 4")
    number, four = sizes_of(rois, 2, "rois")
    check_four(four, "rois")
    changes, points = sizes_of(deltas, 2, "deltas"), sizes_of(scores, 2, "scores")
    unify_sizes("number of rois", number, changes[0], points[0])
    check(may_equal(changes[1], num_classes * 4), f"deltas has {changes[1]} columns, expected {num_classes * 4}: 4 for each class")
    check(may_equal(points[1], num_classes), f"scores has {points[1]} columns for {num_classes} classes")
    images, numbers = sizes_of(im_info, 2, "im_info")
    check(may_equal(images, 1) and may_equal(numbers, 3), f"im_info {im_info} does not have shape [1,3]")
    count = max_detections_per_image
    return Fact(kind, (count, 4)), Fact(I32, (count,)), Fact(kind, (count,))


@op("ExperimentalDetectronROIFeatureExtractor", since=6, tolerance=TOLERANCE, widen=True)
def roi_feature_extractor_6(
    rois: np.ndarray, *features: np.ndarray,
    output_size: Positive, sampling_ratio: NonNegative, pyramid_scales: Positives, aligned: bool = False,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Features of each roi from the level of the pyramid that fits its size, by ROI Align; and the rois as they are.

    A roi of 224 pixels squared belongs to level 2, each level is twice as coarse; one without an area has features of zero.
    The rois are not reordered, although the specification says so: OpenVINO gives both outputs in the order of the input.
    Source: ExperimentalDetectronROIFeatureExtractor-6.
    """
    number = rois.dtype.type
    result = np.zeros((len(rois), features[0].shape[1], output_size, output_size), rois.dtype)
    levels = _levels(rois, len(features))
    for level, (feature, scale) in enumerate(zip(features, pyramid_scales, strict=False)):
        some = np.flatnonzero(levels == level)
        scaled = rois[some] * (number(1) / number(scale)) - number(0.5 if aligned else 0)
        boxes = Boxes(scaled[:, 0], scaled[:, 1], *np.maximum(spread(scaled, 0), number(1)))
        result[some] = pool_boxes(feature, boxes, np.zeros(len(some), np.int64), (output_size, output_size), sampling_ratio, "avg")
    return result, rois.copy()


def _levels(rois: np.ndarray, count: int) -> np.ndarray:
    """The level of the pyramid of each roi; ``count`` for none."""
    dtype = rois.dtype.type
    with np.errstate(all="ignore"):
        sizes = areas(rois, 0)
        levels = np.floor(np.log2(np.sqrt(sizes) / dtype(224) + dtype(1e-6)) + dtype(2))
        return np.where(sizes > 0, np.clip(levels, 0, count - 1), count)


@roi_feature_extractor_6.shape_rule
def _roi_feature_extractor_6_facts(
    rois: Fact, *features: Fact, output_size: int, pyramid_scales: Positives, **others: Any
) -> tuple[Fact, Fact]:  # fmt: skip
    check(len(features) > 0, "there are no features")
    check(len(features) <= len(pyramid_scales), f"pyramid_scales has {len(pyramid_scales)} numbers for {len(features)} levels")
    check_floats(rois=rois, **{f"level {level}": feature for level, feature in enumerate(features)})
    kind = same_element(rois, *features)
    number, four = sizes_of(rois, 2, "rois")
    check_four(four, "rois")
    channels: Size = ANY
    for level, feature in enumerate(features):
        batch, own, *_ = sizes_of(feature, 4, f"level {level}")
        check(may_equal(batch, 1), f"level {level} has batch {batch}, expected 1")
        channels = unify_sizes("number of channels", channels, own)
    return Fact(kind, (number, channels, output_size, output_size)), Fact(kind, (number, 4))


@op("ExperimentalDetectronTopKROIs", since=6)
def top_k_rois_6(input_rois: np.ndarray, rois_probs: np.ndarray, *, max_rois: NonNegative) -> np.ndarray:
    """The rois (N, 4) of the greatest probabilities, in their order; of equal ones the first.

    Where there are fewer than ``max_rois`` the rest is not specified, and zero here.
    Source: ExperimentalDetectronTopKROIs-6.
    """
    return _padded(input_rois[descending(rois_probs)[:max_rois]], max_rois)


@top_k_rois_6.shape_rule
def _top_k_rois_6_facts(input_rois: Fact, rois_probs: Fact, *, max_rois: NonNegative) -> Fact:
    check_floats(input_rois=input_rois, rois_probs=rois_probs)
    number, four = sizes_of(input_rois, 2, "input_rois")
    check_four(four, "input_rois")
    unify_sizes("number of rois", number, *sizes_of(rois_probs, 1, "rois_probs"))
    return Fact(same_element(input_rois, rois_probs), (max_rois, 4))
