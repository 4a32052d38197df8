"""Region proposals: Proposal, with anchors of its own, and GenerateProposals, with anchors given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from irexec.dtypes.elements import element
from irexec.errors import check
from irexec.ir.dims import Size, high, may_equal, span
from irexec.ir.facts import Fact
from irexec.reference.proposals import MOST_GROWTH, areas, clip, decode, descending, make_anchors, spread, suppress, without
from irexec.schema.attributes import Floats, NonNegative, Positive
from irexec.schema.registry import op
from irexec.schema.rules import check_floats, sizes_of, unify_sizes

Framework = Literal["", "tensorflow"]
IndexType = Literal["i64", "i32"]
TOLERANCE = 1e-5


def check_four(size: Size, what: str) -> None:
    """Raise OpError unless there can be four numbers of a box."""
    check(may_equal(size, 4), f"{what} have {size} numbers each, expected 4")


def widened(*arrays: np.ndarray) -> list[np.ndarray]:
    """The arrays in one type, f32 at least."""
    return [array.astype(np.result_type(np.float32, *arrays), copy=False) for array in arrays]


def single(number: float) -> float:
    """The number as OpenVINO holds an attribute, rounded to f32, also where tensors are wider."""
    with np.errstate(over="ignore"):
        return float(np.float32(number))


@dataclass(frozen=True)
class _Settings:
    """The attributes of Proposal."""

    base_size: int
    pre_nms_topn: int
    post_nms_topn: int
    nms_thresh: float
    feat_stride: int
    min_size: int
    ratio: Floats
    scale: Floats
    clip_before_nms: bool
    clip_after_nms: bool
    normalize: bool
    box_size_scale: float
    box_coordinate_scale: float
    framework: str

    def propose(self, class_probs: np.ndarray, bbox_deltas: np.ndarray, image_shape: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The boxes with their image's number in front, (N * post_nms_topn, 5), and their scores."""
        probs, deltas, image = widened(class_probs, bbox_deltas, image_shape)
        _check_image(image)
        height, width, *scales = image.tolist()
        n, anchors = len(probs), len(self.ratio) * len(self.scale)
        places = np.indices(probs.shape[2:]).transpose(1, 2, 0)
        if self.framework != "tensorflow":
            places = places[..., ::-1]
        shifts = np.tile((places * self.feat_stride).astype(probs.dtype), 2)[:, :, None]
        boxes = shifts + make_anchors(self.base_size, self.ratio, self.scale, centred=self.framework == "tensorflow")
        deltas = deltas.reshape(n, anchors, 4, *deltas.shape[2:]).transpose(0, 3, 4, 1, 2)
        scores = probs[:, anchors:].transpose(0, 2, 3, 1)
        rois = np.zeros((n, self.post_nms_topn, 5), probs.dtype)
        best = np.zeros((n, self.post_nms_topn), probs.dtype)
        for index in range(n):
            found, points = self._one_image(boxes, deltas[index], scores[index], height, width, scales)
            rois[index, : len(found), 0], rois[index, : len(found), 1:], best[index, : len(found)] = index, found, points
            # The first row that is not used says so.
            rois[index, len(found) : len(found) + 1, 0] = -1
        return rois.reshape(-1, 5).astype(class_probs.dtype), best.reshape(-1).astype(class_probs.dtype)

    def _one_image(
        self, boxes: np.ndarray, deltas: np.ndarray, scores: np.ndarray, height: float, width: float, scales: list[float]
    ) -> tuple[np.ndarray, np.ndarray]:
        """The boxes (M, 4) that are proposed for an image and their scores (M,)."""
        tensorflow = self.framework == "tensorflow"
        # TensorFlow's x is the vertical axis, of which the image's height is the end.
        limits = (height, width) if tensorflow else (width, height)
        offset = 0 if tensorflow else 1
        start = clip(boxes, *limits) if tensorflow else boxes
        divisors = np.repeat([single(self.box_coordinate_scale), single(self.box_size_scale)], 2).astype(deltas.dtype)
        with np.errstate(all="ignore"):
            found = decode(start, deltas / divisors, offset)
        if self.clip_before_nms:
            found = clip(found, limits[0] - offset, limits[1] - offset)
        wide, high = spread(found, offset)
        large = (wide >= self.min_size * scales[-1]) & (high >= self.min_size * scales[0])
        points = without(scores, large).ravel()
        order = descending(points)[: self.pre_nms_topn]
        found, points = found.reshape(-1, 4)[order], points[order]
        kept = suppress(found, areas(found, offset), single(self.nms_thresh), offset, self.post_nms_topn)
        found, points = found[kept], points[kept]
        if self.clip_after_nms:
            found = clip(found, *limits)
        return found / np.array(limits * 2, found.dtype) if self.normalize else found, points


def _check_image(image: np.ndarray) -> None:
    ok = np.isfinite(image).all() and (image[:2] > 0).all() and (image[2:] >= 0).all()
    check(bool(ok), f"image_shape {image.tolist()} is not a positive height and width with scales")


@op("Proposal", since=1, tolerance=TOLERANCE, ignores=("for_deformable",))
def proposal_1(
    class_probs: np.ndarray, bbox_deltas: np.ndarray, image_shape: np.ndarray, *,
    base_size: Positive, pre_nms_topn: Positive, post_nms_topn: Positive, nms_thresh: float, feat_stride: Positive, min_size: NonNegative,
    ratio: Floats, scale: Floats, clip_before_nms: bool = True, clip_after_nms: bool = False, normalize: bool = False,
    box_size_scale: float = 1.0, box_coordinate_scale: float = 1.0, framework: Framework = "",
) -> np.ndarray:  # fmt: skip
    """The boxes most likely to show something: anchors around each point, moved by deltas, without overlaps.

    Of the (N, 2K, H, W) probabilities the second half are those of the foreground. A box smaller than ``min_size`` is not
    left out but has score 0; the first row after an image's boxes begins with -1, the rest are zeros.
    With "tensorflow" anchors surround points, are clipped first, have no pixel added, and x goes down the image.
    Source: Proposal-1, and the CPU plugin where that is silent. for_deformable of old models has no effect there.
    """
    settings = _Settings(
        base_size, pre_nms_topn, post_nms_topn, nms_thresh, feat_stride, min_size, ratio, scale, clip_before_nms, clip_after_nms,
        normalize, box_size_scale, box_coordinate_scale, framework,
    )  # fmt: skip
    return settings.propose(class_probs, bbox_deltas, image_shape)[0]


@op("Proposal", since=4, tolerance=TOLERANCE, ignores=("for_deformable",))
def proposal_4(
    class_probs: np.ndarray, bbox_deltas: np.ndarray, image_shape: np.ndarray, *,
    base_size: Positive, pre_nms_topn: Positive, post_nms_topn: Positive, nms_thresh: float, feat_stride: Positive, min_size: NonNegative,
    ratio: Floats, scale: Floats, clip_before_nms: bool = True, clip_after_nms: bool = False, normalize: bool = False,
    box_size_scale: float = 1.0, box_coordinate_scale: float = 1.0, framework: Framework = "",
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """As Proposal-1, and the scores of the boxes, 0 where there is none. Source: Proposal-4."""
    settings = _Settings(
        base_size, pre_nms_topn, post_nms_topn, nms_thresh, feat_stride, min_size, ratio, scale, clip_before_nms, clip_after_nms,
        normalize, box_size_scale, box_coordinate_scale, framework,
    )  # fmt: skip
    return settings.propose(class_probs, bbox_deltas, image_shape)


@proposal_4.shape_rule
def _proposal_4_facts(class_probs: Fact, bbox_deltas: Fact, image_shape: Fact, **settings: Any) -> tuple[Fact, Fact]:
    check_floats(class_probs=class_probs, bbox_deltas=bbox_deltas, image_shape=image_shape)
    probs, deltas = sizes_of(class_probs, 4, "class_probs"), sizes_of(bbox_deltas, 4, "bbox_deltas")
    (numbers,) = sizes_of(image_shape, 1, "image_shape")
    check(may_equal(numbers, 3) or may_equal(numbers, 4), f"image_shape has {numbers} numbers, expected 3 or 4")
    if image_shape.known is not None:
        _check_image(image_shape.known)
    anchors = len(settings["ratio"]) * len(settings["scale"])
    for size, each, name in ((probs[1], 2, "class_probs"), (deltas[1], 4, "bbox_deltas")):
        check(
            may_equal(size, each * anchors), f"{name} has {size} channels, expected {each * anchors}: {each} for each of {anchors} anchors"
        )
    unify_sizes("height", probs[2], deltas[2])
    unify_sizes("width", probs[3], deltas[3])
    rows = unify_sizes("batch", probs[0], deltas[0]) * settings["post_nms_topn"]
    return Fact(class_probs.element, (rows, 5)), Fact(class_probs.element, (rows,))


@proposal_1.shape_rule
def _proposal_1_facts(class_probs: Fact, bbox_deltas: Fact, image_shape: Fact, **settings: Any) -> Fact:
    return _proposal_4_facts(class_probs, bbox_deltas, image_shape, **settings)[0]


@op("GenerateProposals", since=9, tolerance=TOLERANCE)
def generate_proposals_9(
    im_info: np.ndarray, anchors: np.ndarray, boxesdeltas: np.ndarray, scores: np.ndarray, *,
    min_size: float, nms_threshold: float, pre_nms_count: Positive, post_nms_count: Positive, normalized: bool = True,
    nms_eta: float = 1.0, roi_num_type: IndexType = "i64",
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """The anchors (H, W, A, 4) moved by the deltas of each image, clipped to it, the best without overlaps.

    Gives the boxes of all images one after another, their scores, and how many are of which image.
    Boxes that are too small are left out only after the best ``pre_nms_count`` were taken. Unless ``normalized`` a box
    includes its last pixel. With an ``nms_eta`` below 1 a threshold above one half shrinks with each box kept, as the
    specification says; OpenVINO refuses it. Source: GenerateProposals-9.
    """
    info, boxes, deltas, points = widened(im_info, anchors, boxesdeltas, scores)
    offset = 0 if normalized else 1
    deltas = deltas.reshape(*points.shape[:2], 4, *deltas.shape[2:]).transpose(0, 3, 4, 1, 2)
    points = points.transpose(0, 2, 3, 1)
    rois, best = [np.zeros((0, 4), info.dtype)], [np.zeros(0, info.dtype)]
    for (height, width, *scales), change, score in zip(info.tolist(), deltas, points, strict=True):
        found = clip(decode(boxes, change, offset, inclusive=True, most=MOST_GROWTH), width - offset, height - offset)
        order = descending(score.ravel())[:pre_nms_count]
        found = found.reshape(-1, 4)[order]
        wide, high = spread(found, offset)
        large = (wide >= single(min_size) * scales[-1]) & (high >= single(min_size) * scales[0])
        found, order = found[large], order[large]
        kept = suppress(found, areas(found, offset), single(nms_threshold), offset, post_nms_count, single(nms_eta))
        rois.append(found[kept])
        best.append(score.ravel()[order[kept]])
    counts = np.array([len(one) for one in best[1:]], element(roi_num_type).carrier)
    return np.concatenate(rois).astype(im_info.dtype), np.concatenate(best).astype(im_info.dtype), counts


@generate_proposals_9.shape_rule
def _generate_proposals_9_facts(
    im_info: Fact, anchors: Fact, boxesdeltas: Fact, scores: Fact, *,
    min_size: float, post_nms_count: int, nms_eta: float = 1.0, roi_num_type: IndexType = "i64", **others: Any,
) -> tuple[Fact, Fact, Fact]:  # fmt: skip
    check_floats(im_info=im_info, anchors=anchors, boxesdeltas=boxesdeltas, scores=scores)
    check(min_size >= 0, f"min_size {min_size:g} is negative")
    check(0 <= nms_eta <= 1, f"nms_eta {nms_eta:g} is not in 0 to 1")
    images, numbers = sizes_of(im_info, 2, "im_info")
    check(may_equal(numbers, 3) or may_equal(numbers, 4), f"im_info has {numbers} numbers for each image, expected 3 or 4")
    rows, columns, each, four = sizes_of(anchors, 4, "anchors")
    check_four(four, "anchors")
    deltas, points = sizes_of(boxesdeltas, 4, "boxesdeltas"), sizes_of(scores, 4, "scores")
    batch = unify_sizes("batch", images, deltas[0], points[0])
    unify_sizes("height", rows, deltas[2], points[2])
    unify_sizes("width", columns, deltas[3], points[3])
    each = unify_sizes("number of anchors", each, points[1])
    check(may_equal(deltas[1], each * 4), f"boxesdeltas has {deltas[1]} channels, expected {each * 4}: 4 for each of {each} anchors")
    most = high(batch)
    found = span(0, None if most is None else most * post_nms_count)
    kind = im_info.element
    return Fact(kind, (found, 4)), Fact(kind, (found,)), Fact(element(roi_num_type), (batch,))
