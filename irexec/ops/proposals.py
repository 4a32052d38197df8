"""Region proposals: Proposal, which makes its anchors, and GenerateProposals, which is given them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from irexec.dtypes.elements import element
from irexec.errors import check
from irexec.ir.dims import Size, high, may_equal, span
from irexec.ir.facts import Fact
from irexec.reference.detection import (
    MAX_LOG_SCALE,
    areas,
    as_f32,
    best_first,
    clip,
    make_anchors,
    placed,
    sides,
    suppress,
    widened,
    zero_unless,
)
from irexec.reference.limits import check_time
from irexec.schema.attributes import Floats, NonNegative, Positive
from irexec.schema.opdef import FloatTensor, Rank
from irexec.schema.registry import op
from irexec.schema.shape_rules import sizes_of, unify_sizes

TOLERANCE = 1e-5

Vector = Annotated[FloatTensor, Rank(1)]
Matrix = Annotated[FloatTensor, Rank(2)]
Maps = Annotated[FloatTensor, Rank(4)]


def check_corners(size: Size, name: str) -> None:
    """Raise OpError unless the last size of an input of boxes can be 4."""
    check(may_equal(size, 4), f"{name} have {size} values each, expected 4")


@dataclass(frozen=True, kw_only=True)
class ProposalAttributes:
    """Attributes of Proposal."""

    base_size: Positive
    pre_nms_topn: Positive
    post_nms_topn: Positive
    nms_thresh: float
    feat_stride: Positive
    min_size: NonNegative
    ratio: Floats
    scale: Floats
    clip_before_nms: bool = True
    clip_after_nms: bool = False
    normalize: bool = False
    box_size_scale: float = 1.0
    box_coordinate_scale: float = 1.0
    framework: Literal["", "tensorflow"] = ""

    @property
    def is_tensorflow(self) -> bool:
        """Whether anchors are centred, clipped first and have no pixel added, and x is the vertical axis."""
        return self.framework == "tensorflow"

    @property
    def anchor_count(self) -> int:
        """The number K of anchors of each point."""
        return len(self.ratio) * len(self.scale)


@dataclass(frozen=True, kw_only=True)
class GenerateProposalsAttributes:
    """Attributes of GenerateProposals."""

    min_size: float
    nms_threshold: float
    pre_nms_count: Positive
    post_nms_count: Positive
    normalized: bool = True
    nms_eta: float = 1.0
    roi_num_type: Literal["i64", "i32"] = "i64"


def _propose_for_image(
    boxes: np.ndarray, deltas: np.ndarray, scores: np.ndarray, image: list[float], attributes: ProposalAttributes
) -> tuple[np.ndarray, np.ndarray]:
    """The boxes (M, 4) that are proposed for an image (height, width, scales) and their scores (M,)."""
    height, width, *scales = image
    # In TensorFlow x is the vertical axis, which the image's height limits.
    limits = (height, width) if attributes.is_tensorflow else (width, height)
    offset = 0 if attributes.is_tensorflow else 1
    start = clip(boxes, *limits) if attributes.is_tensorflow else boxes
    divisors = np.repeat([as_f32(attributes.box_coordinate_scale), as_f32(attributes.box_size_scale)], 2)
    with np.errstate(all="ignore"):
        found = placed(start, deltas / divisors.astype(deltas.dtype), offset)
    if attributes.clip_before_nms:
        found = clip(found, limits[0] - offset, limits[1] - offset)
    widths, heights = sides(found, offset)
    is_large = (widths >= attributes.min_size * scales[-1]) & (heights >= attributes.min_size * scales[0])
    points = zero_unless(is_large, scores).ravel()
    order = best_first(points)[: attributes.pre_nms_topn]
    found, points = found.reshape(-1, 4)[order], points[order]
    kept = suppress(found, areas(found, offset), as_f32(attributes.nms_thresh), offset, attributes.post_nms_topn)
    found, points = found[kept], points[kept]
    if attributes.clip_after_nms:
        found = clip(found, *limits)
    return found / np.array(limits * 2, found.dtype) if attributes.normalize else found, points


def _check_image(image: np.ndarray) -> None:
    ok = np.isfinite(image).all() and (image[:2] > 0).all() and (image[2:] >= 0).all()
    check(bool(ok), f"image_shape {image.tolist()} is not a positive height and width with scales")


@op("Proposal", since=1, tolerance=TOLERANCE, ignores=("for_deformable",))
def proposal_1(
    class_probs: Maps, bbox_deltas: Maps, image_shape: Vector, *, attributes: ProposalAttributes
) -> np.ndarray:
    """The boxes most likely to contain an object: anchors of each point, moved by deltas, without overlaps.

    ``class_probs`` are (N, 2 * K, H, W), of which the second half are those of the foreground, ``bbox_deltas`` (N, 4 *
    K, H, W), ``image_shape`` is height, width and one or two scales. Gives rows of the image's index and the box (N *
    post_nms_topn, 5). A box smaller than ``min_size`` is not removed but has score 0; the first row after an image's
    boxes starts with -1, the others are zeros. With "tensorflow" anchors are centred at the points and clipped first,
    have no pixel added, and x is the vertical axis. Source: Proposal-1, and the CPU plugin where that is silent.
    for_deformable of old models has no effect there.
    """
    return proposal_4.kernel(class_probs, bbox_deltas, image_shape, attributes=attributes)[0]


@op("Proposal", since=4, tolerance=TOLERANCE, ignores=("for_deformable",))
def proposal_4(
    class_probs: Maps, bbox_deltas: Maps, image_shape: Vector, *, attributes: ProposalAttributes
) -> tuple[np.ndarray, np.ndarray]:
    """Same as Proposal-1, and the scores of the boxes, 0 in rows without a box. Source: Proposal-4."""
    probs, deltas, image = widened(class_probs, bbox_deltas, image_shape)
    _check_image(image)
    n, anchors, limit = len(probs), attributes.anchor_count, attributes.post_nms_topn
    # The anchors (H, W, K, 4) of probabilities (N, 2 * K, H, W).
    positions = np.indices(probs.shape[2:]).transpose(1, 2, 0)
    if not attributes.is_tensorflow:
        positions = positions[..., ::-1]
    shifts = np.tile((positions * attributes.feat_stride).astype(probs.dtype), 2)[:, :, None]
    boxes = shifts + make_anchors(
        attributes.base_size, attributes.ratio, attributes.scale, centred=attributes.is_tensorflow
    )
    deltas = deltas.reshape(n, anchors, 4, *deltas.shape[2:]).transpose(0, 3, 4, 1, 2)
    scores = probs[:, anchors:].transpose(0, 2, 3, 1)
    rois = np.zeros((n, limit, 5), probs.dtype)
    best = np.zeros((n, limit), probs.dtype)
    for index in range(n):
        check_time()
        found, points = _propose_for_image(boxes, deltas[index], scores[index], image.tolist(), attributes)
        rois[index, : len(found), 0], rois[index, : len(found), 1:], best[index, : len(found)] = index, found, points
        # The first unused row is marked by -1.
        rois[index, len(found) : len(found) + 1, 0] = -1
    return rois.reshape(-1, 5).astype(class_probs.dtype), best.reshape(-1).astype(class_probs.dtype)


@proposal_4.shape_rule
def _proposal_4_shapes(
    class_probs: Fact, bbox_deltas: Fact, image_shape: Fact, *, attributes: ProposalAttributes
) -> tuple[Fact, Fact]:
    probs, deltas = sizes_of(class_probs, 4, "class_probs"), sizes_of(bbox_deltas, 4, "bbox_deltas")
    (values,) = sizes_of(image_shape, 1, "image_shape")
    check(may_equal(values, 3) or may_equal(values, 4), f"image_shape has {values} values, expected 3 or 4")
    if image_shape.known is not None:
        _check_image(image_shape.known)
    for size, each, name in ((probs[1], 2, "class_probs"), (deltas[1], 4, "bbox_deltas")):
        expected = each * attributes.anchor_count
        check(
            may_equal(size, expected),
            f"{name} has {size} channels, expected {expected}: {each} for each of {attributes.anchor_count} anchors",
        )
    unify_sizes("height", probs[2], deltas[2])
    unify_sizes("width", probs[3], deltas[3])
    rows = unify_sizes("batch", probs[0], deltas[0]) * attributes.post_nms_topn
    return Fact(class_probs.element, (rows, 5)), Fact(class_probs.element, (rows,))


@proposal_1.shape_rule
def _proposal_1_shape(
    class_probs: Fact, bbox_deltas: Fact, image_shape: Fact, *, attributes: ProposalAttributes
) -> Fact:
    return _proposal_4_shapes(class_probs, bbox_deltas, image_shape, attributes=attributes)[0]


@op("GenerateProposals", since=9, tolerance=TOLERANCE)
def generate_proposals_9(
    im_info: Matrix, anchors: Maps, boxesdeltas: Maps, scores: Maps, *, attributes: GenerateProposalsAttributes
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The anchors (H, W, A, 4) moved by the deltas of each image, clipped to it, the best without overlaps.

    ``im_info`` is (N, 3 or 4): height, width and scales; ``boxesdeltas`` (N, 4 * A, H, W), ``scores`` (N, A, H, W).
    Gives the boxes of all images one after another (n, 4), their scores (n,), and how many belong to each image (N,).
    Boxes that are too small are removed only after the best ``pre_nms_count`` were taken. Unless ``normalized`` a box
    includes its last pixel. With an ``nms_eta`` below 1 a threshold above one half is multiplied by it after each box
    kept, as the specification says; OpenVINO refuses it. Source: GenerateProposals-9.
    """
    info, boxes, deltas, points = widened(im_info, anchors, boxesdeltas, scores)
    deltas = deltas.reshape(*points.shape[:2], 4, *deltas.shape[2:]).transpose(0, 3, 4, 1, 2)
    points = points.transpose(0, 2, 3, 1)
    rois, best = [np.zeros((0, 4), info.dtype)], [np.zeros(0, info.dtype)]
    for image, change, score in zip(info.tolist(), deltas, points, strict=True):
        check_time()
        found, order = _generate_for_image(boxes, change, score, image, attributes)
        rois.append(found)
        best.append(score.ravel()[order])
    counts = np.array([len(one) for one in best[1:]], element(attributes.roi_num_type).carrier)
    return np.concatenate(rois).astype(im_info.dtype), np.concatenate(best).astype(im_info.dtype), counts


def _generate_for_image(
    boxes: np.ndarray,
    deltas: np.ndarray,
    scores: np.ndarray,
    image: list[float],
    attributes: GenerateProposalsAttributes,
) -> tuple[np.ndarray, np.ndarray]:
    """The boxes (M, 4) of an image (height, width, scales), and the indices (M,) of their scores (H, W, A) in row-major
    order."""
    height, width, *scales = image
    offset = 0 if attributes.normalized else 1
    found = clip(
        placed(boxes, deltas, offset, inclusive=True, max_log_scale=MAX_LOG_SCALE), width - offset, height - offset
    )
    order = best_first(scores.ravel())[: attributes.pre_nms_count]
    found = found.reshape(-1, 4)[order]
    widths, heights = sides(found, offset)
    minimum = as_f32(attributes.min_size)
    is_large = (widths >= minimum * scales[-1]) & (heights >= minimum * scales[0])
    found, order = found[is_large], order[is_large]
    threshold, eta = as_f32(attributes.nms_threshold), as_f32(attributes.nms_eta)
    kept = suppress(found, areas(found, offset), threshold, offset, attributes.post_nms_count, eta)
    return found[kept], order[kept]


@generate_proposals_9.shape_rule
def _generate_proposals_9_shapes(
    im_info: Fact, anchors: Fact, boxesdeltas: Fact, scores: Fact, *, attributes: GenerateProposalsAttributes
) -> tuple[Fact, Fact, Fact]:
    check(attributes.min_size >= 0, f"min_size {attributes.min_size:g} is negative")
    check(0 <= attributes.nms_eta <= 1, f"nms_eta {attributes.nms_eta:g} is not in 0 to 1")
    images, values = sizes_of(im_info, 2, "im_info")
    check(may_equal(values, 3) or may_equal(values, 4), f"im_info has {values} values for each image, expected 3 or 4")
    rows, columns, count, corners = sizes_of(anchors, 4, "anchors")
    check_corners(corners, "anchors")
    deltas, points = sizes_of(boxesdeltas, 4, "boxesdeltas"), sizes_of(scores, 4, "scores")
    batch = unify_sizes("batch", images, deltas[0], points[0])
    unify_sizes("height", rows, deltas[2], points[2])
    unify_sizes("width", columns, deltas[3], points[3])
    count = unify_sizes("number of anchors", count, points[1])
    check(
        may_equal(deltas[1], count * 4),
        f"boxesdeltas has {deltas[1]} channels, expected {count * 4}: 4 for each of {count} anchors",
    )
    maximum = high(batch)
    found = span(0, None if maximum is None else maximum * attributes.post_nms_count)
    return (
        Fact(im_info.element, (found, 4)),
        Fact(im_info.element, (found,)),
        Fact(element(attributes.roi_num_type), (batch,)),
    )
