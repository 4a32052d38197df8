"""Rows of Proposal and GenerateProposals.

Scores are all different where OpenVINO is asked, as it promises no order of equal ones, and there are eight boxes
at least: with fewer its plugin crashes.
"""

import numpy as np

from irexec.testing import case, facts_case, random, refuses, typed
from tests.cases import Operation
from tests.support.cases import halves, odd

NAN = float("nan")
PLAIN = {
    "base_size": "16", "pre_nms_topn": "100", "post_nms_topn": "6", "nms_thresh": "0.5", "feat_stride": "8", "min_size": "1",
    "ratio": "0.5, 1, 2", "scale": "1, 2.5",
}  # fmt: skip
TENSORFLOW = {"framework": "tensorflow"}


def distinct(name, *shape, seed=0):
    """Different numbers in 0 to 1, exact in f16."""
    count = int(np.prod(shape))
    return typed(name, ((np.random.default_rng(seed).permutation(count) + 1) / 512).reshape(shape))


def proposal(since, *, id, kind="f32", image=(60, 75, 1), batch=1, **attributes):
    """A row with six anchors at each of 2 x 4 points."""
    deltas = random(kind, batch, 24, 2, 4, low=-0.5, high=0.5)
    return case(
        "Proposal", since, distinct(kind, batch, 12, 2, 4), deltas, typed(kind, image), **PLAIN | attributes, id=id
    )


# Four points in a row, one anchor of 4 x 4 at each, nothing moved: the boxes are known by heart.
def row_of_four(since, scores, gives, *, id, image=(50, 50, 1), deltas=None, **attributes):
    """A row on a map of 1 x 4 with the anchor (0, 0, 3, 3), a step of 8."""
    probs = np.array([[[[9, 9, 9, 9]], [scores]]], np.float32)
    moves = np.zeros((1, 4, 1, 4), np.float32) if deltas is None else deltas
    settings = {
        "base_size": "4", "pre_nms_topn": "9", "post_nms_topn": "3", "nms_thresh": "0.5", "feat_stride": "8", "min_size": "1", "ratio": "1", "scale": "1"
    }  # fmt: skip
    return case(
        "Proposal", since, probs, moves, np.array(image, np.float32), gives=gives, **settings | attributes, id=id
    )


def f32(values):
    return np.array(values, np.float32)


# The second anchor grown to twice its width.
STRETCHED = np.zeros((1, 4, 1, 4), np.float32)
STRETCHED[0, 2, 0, 1] = np.log(2)
proposal_4 = Operation("Proposal", 4)
ROWS = [
    proposal(1, id="plain"),
    proposal(1, batch=2, id="two images"),
    proposal(1, **TENSORFLOW, id="tensorflow"),
    proposal(1, **TENSORFLOW, image=(30, 75, 1.5, 2), normalize="true", clip_after_nms="true", id="tensorflow, higher than wide"),
    proposal(1, **TENSORFLOW, clip_before_nms="false", id="tensorflow, not clipped"),
    proposal(1, clip_before_nms="false", id="not clipped"),
    proposal(1, clip_before_nms="false", clip_after_nms="true", id="clipped after"),
    proposal(1, normalize="true", id="normalize"),
    proposal(1, normalize="true", clip_before_nms="false", clip_after_nms="true", image=(20, 33, 1), id="clipped after and normalize"),
    proposal(1, box_size_scale="5", box_coordinate_scale="10", id="scaled deltas"),
    proposal(1, box_size_scale="0.25", id="large growth"),
    proposal(1, pre_nms_topn="8", nms_thresh="1", id="only the best"),
    proposal(1, base_size="7", ratio="0.3, 2.67, 1.7", id="rounded ratios"),
    proposal(1, base_size="7", ratio="0.3, 2.67, 1.7", **TENSORFLOW, id="ratios of tensorflow"),
    proposal(1, for_deformable="1", id="for_deformable has no effect"),
    proposal(1, kind="f16", id="f16"),
    proposal(1, kind="f64", id="f64"),
    proposal(4, nms_thresh="1", id="plain"),
    proposal(4, nms_thresh="1", batch=2, id="two images"),
    proposal(4, nms_thresh="1", **TENSORFLOW, normalize="true", id="tensorflow"),
    proposal(4, nms_thresh="1", kind="f16", id="f16"),
    proposal(4, post_nms_topn="1", image=(60, 75, 1, 2), id="one box"),
    # By hand. Corners are pixels, 0 to 3; but moved by deltas the last corner is one farther, at 4.
    row_of_four(4, [1, 4, 3, 2], (f32([[0, 8, 0, 12, 4], [0, 16, 0, 20, 4], [0, 24, 0, 28, 4]]), f32([4, 3, 2])), id="in order of scores"),
    row_of_four(
        4, [1, 4, 3, 2],
        (f32([[0, 8, 0, 12, 4], [0, 16, 0, 20, 4], [0, 24, 0, 28, 4], [0, 0, 0, 4, 4], [-1, 0, 0, 0, 0], [0] * 5]), f32([4, 3, 2, 1, 0, 0])),
        post_nms_topn="6", id="ended by -1",
    ),
    row_of_four(4, [1, 4, 3, 2], (f32([[0, 8, 0, 12, 4], [0, 16, 0, 20, 4], [-1, 0, 0, 0, 0]]), f32([4, 3, 0])), pre_nms_topn="2", id="two before suppression"),
    row_of_four(1, [1, 1, 1, 1], f32([[0, 0, 0, 4, 4], [0, 8, 0, 12, 4], [0, 16, 0, 20, 4]]), id="the first of equal scores"),
    # A width of 9 is enough, one of 5 is not: those boxes stay, but with score 0. Heights of 5 are enough for 3.
    row_of_four(
        4, [1, 4, 3, 2], (f32([[0, 6, 0, 14, 4], [0, 0, 0, 4, 4], [0, 16, 0, 20, 4]]), f32([4, 0, 0])), deltas=STRETCHED, min_size="3",
        image=(50, 50, 1, 2), id="too narrow, score 0",
    ),
    # With a step of 2 neighbours share 3 of 5 columns: 15 / (25 + 25 - 15) is 0.43, those next but one touch in one column: 5 / 45.
    row_of_four(1, [4, 3, 2, 1], f32([[0, 0, 0, 4, 4], [0, 4, 0, 8, 4], [-1, 0, 0, 0, 0]]), feat_stride="2", nms_thresh="0.42", id="suppressed"),
    row_of_four(1, [4, 3, 2, 1], f32([[0, 0, 0, 4, 4], [0, 2, 0, 6, 4], [0, 4, 0, 8, 4]]), feat_stride="2", nms_thresh="0.43", id="not suppressed"),
    # A score that is NaN comes last.
    row_of_four(
        4, [1, NAN, 3, 2], (f32([[0, 16, 0, 20, 4], [0, 24, 0, 28, 4], [0, 0, 0, 4, 4], [0, 8, 0, 12, 4]]), f32([3, 2, 1, NAN])), post_nms_topn="4",
        id="NaN",
    ),
    proposal_4(np.zeros((0, 12, 2, 4), np.float32), np.zeros((0, 24, 2, 4), np.float32), [60.0, 75.0, 1.0],
        gives=(np.zeros((0, 5), np.float32), np.zeros(0, np.float32)), **PLAIN, id="no image",
    ),
    proposal_4(np.zeros((1, 12, 0, 4), np.float32), np.zeros((1, 24, 0, 4), np.float32), [60.0, 75.0, 1.0],
        gives=(f32([[-1, 0, 0, 0, 0], [0] * 5]), f32([0, 0])), **PLAIN | {"post_nms_topn": "2"}, id="no point",
    ),
    # Specification of Proposal-4: its example.
    proposal_4.facts("f32[7,4,28,28]", "f32[7,8,28,28]", "f32[3]", base_size="16", feat_stride="8", min_size="16", nms_thresh="1.0",
        normalize="0", post_nms_topn="1000", pre_nms_topn="1000", ratio="1", scale="1,2", gives=("f32[7000,5]", "f32[7000]"), id="example",
    ),
    facts_case("Proposal", 1, "f16[?,12,?,?]", "f16[2..7,24,?,?]", "f16[4]", **PLAIN, id="dynamic"),
    proposal_4.facts("f32[?,12,?,?]", "f32[2..7,24,?,?]", "f32[?]", **PLAIN, id="dynamic"),
    proposal_4.facts("f32[...]", "f32[3,24,?,?]", "f32[...]", **PLAIN, id="batch of the deltas"),
    facts_case("Proposal", 1, "f32[...]", "f32[...]", "f32[...]", **PLAIN, id="rank unknown"),
    refuses("Proposal", 1, "f32[1,12,2,4]", "f32[1,24,2,4]", "f32[5]", **PLAIN, says="image_shape has 5 values", id="image of five"),
    refuses("Proposal", 1, "f32[1,12,2,4]", "f32[1,24,2,4]", f32([0, 9, 1]), **PLAIN, says="[0.0, 9.0, 1.0] is not a positive height and width", id="no height"),
    proposal_4.refuses("f32[1,12,2,4]", "f32[1,24,2,4]", f32([9, 9, -1]), **PLAIN, says="is not a positive height and width with scales", id="scale"),
    refuses("Proposal", 1, "f32[1,12,2,4]", "f32[2,24,2,4]", "f32[3]", **PLAIN, says="batch differs between inputs: 1 and 2", id="batch"),
    refuses("Proposal", 1, "f32[1,12,2,4]", "f32[1,24,3,4]", "f32[3]", **PLAIN, says="height differs between inputs: 2 and 3", id="height"),
    proposal_4.refuses("f32[1,12,2,4]", "f32[1,20,2,4]", "f32[3]", **PLAIN, says="bbox_deltas has 20 channels, expected 24", id="deltas"),
    proposal_4.refuses("f32[1,6,2,4]", "f32[1,24,2,4]", "f32[3]", **PLAIN, says="class_probs has 6 channels, expected 12", id="probs"),
    proposal_4.refuses("f32[1,12,2]", "f32[1,24,2,4]", "f32[3]", **PLAIN, says="class_probs has rank 3, expected 4", id="rank"),
    proposal_4.refuses("i32[1,12,2,4]", "f32[1,24,2,4]", "f32[3]", **PLAIN, says="class_probs has element type i32, expected a floating-point type", id="integers"),
]  # fmt: skip

SETTINGS = {"min_size": "0", "nms_threshold": "0.5", "pre_nms_count": "100", "post_nms_count": "6"}


def some_boxes(*shape):
    """Boxes of 5 to 40 pixels."""
    rng = np.random.default_rng(7)
    starts = rng.uniform(0, 60, (*shape, 2))
    return np.concatenate([starts, starts + rng.uniform(5, 40, (*shape, 2))], -1)


generate_proposals = Operation("GenerateProposals", 9)


def generate(*, id, kind="f32", info=((80, 90, 1),), **attributes):
    """A row with three anchors at each of 2 x 4 points."""
    n = len(info)
    deltas = random(kind, n, 12, 2, 4, low=-0.5, high=0.5)
    return generate_proposals(
        typed(kind, info),
        typed(kind, some_boxes(2, 4, 3)),
        deltas,
        distinct(kind, n, 3, 2, 4),
        **SETTINGS | attributes,
        id=id,
    )


# Boxes in a row, each 10 wide and 10 high, 4 to the right of the one before; the last is 2 wide.
IN_A_ROW = np.array([[[[0, 0, 10, 10]], [[4, 0, 14, 10]], [[8, 0, 18, 10]], [[40, 0, 42, 10]]]], np.float32)


def in_a_row(scores, gives, *, id, **attributes):
    """A row on the boxes above, which are not moved."""
    inputs = (
        np.array([[50, 50, 1]], np.float32),
        IN_A_ROW,
        np.zeros((1, 4, 1, 4), np.float32),
        np.array([[[scores]]], np.float32),
    )
    rois, best = gives
    counts = np.array([len(best)], np.int32 if attributes.get("roi_num_type") == "i32" else np.int64)
    given = np.array(rois, np.float32).reshape(-1, 4), np.array(best, np.float32), counts
    return generate_proposals(*inputs, gives=given, **SETTINGS | attributes, id=id)


A, B, C, NARROW = [0, 0, 10, 10], [4, 0, 14, 10], [8, 0, 18, 10], [40, 0, 42, 10]
ROWS += [
    generate(id="plain"),
    generate(info=((80, 90, 1), (40, 30, 1), (200, 100, 1)), id="three images"),
    generate(normalized="false", id="not normalized"),
    generate(normalized="true", min_size="12.5", id="too small"),
    generate(normalized="false", min_size="6", info=((80, 90, 2, 3),), id="scales of both axes"),
    generate(min_size="10", info=((80, 90, 2), (80, 90, 1)), id="a scale"),
    generate(pre_nms_count="8", nms_threshold="0.9", roi_num_type="i32", id="only the best, i32"),
    generate(post_nms_count="2", roi_num_type="i64", id="two boxes"),
    generate(nms_eta="1", nms_threshold="0.1", id="few overlaps"),
    generate(kind="f16", id="f16"),
    generate(kind="f64", id="f64"),
    # By hand. Neighbours share 6 of 14 columns, 0.43; those next but one 2 of 18, 0.11.
    in_a_row([4, 3, 2, 1], ([A, B, C, NARROW], [4, 3, 2, 1]), id="nothing suppressed"),
    in_a_row([4, 3, 2, 1], ([A, C, NARROW], [4, 2, 1]), nms_threshold="0.4", id="the middle suppressed"),
    in_a_row([4, 5, 2, 1], ([B, NARROW], [5, 1]), nms_threshold="0.4", id="both sides suppressed"),
    in_a_row([4, 3, 2, 1], ([A], [4]), nms_threshold="0.4", post_nms_count="1", roi_num_type="i32", id="one"),
    # The narrow box takes one of the three slots, and is left out then.
    in_a_row([1, 3, 4, 5], ([C, B], [4, 3]), pre_nms_count="3", min_size="3", id="left out behind the first"),
    in_a_row([1, 3, 4, 5], ([], []), pre_nms_count="1", min_size="3", id="nothing left"),
    in_a_row([1, 3, NAN, 5], ([NARROW, B, A, C], [5, 3, 1, NAN]), id="NaN comes last"),
    in_a_row([7, 7, 7, 7], ([A, B, C, NARROW], [7] * 4), id="equal scores in order"),
    # Neighbours here share 0.43: a threshold of 0.6 lets them be until it was halved with the first box; then 0.3 stays.
    in_a_row([4, 3, 2, 1], ([A, C, NARROW], [4, 2, 1]), nms_threshold="0.6", nms_eta="0.5", id="the threshold shrinks"),
    in_a_row([4, 3, 2, 1], ([A, B, C, NARROW], [4, 3, 2, 1]), nms_threshold="0.45", nms_eta="0.5", id="a small threshold does not shrink"),
    generate_proposals(np.zeros((0, 3), np.float32), IN_A_ROW, np.zeros((0, 4, 1, 4), np.float32), np.zeros((0, 1, 1, 4), np.float32),
        gives=(np.zeros((0, 4), np.float32), np.zeros(0, np.float32), np.zeros(0, np.int64)), **SETTINGS, id="no image",
    ),
    generate_proposals(np.ones((2, 3), np.float32), np.zeros((0, 2, 1, 4), np.float32), np.zeros((2, 4, 0, 2), np.float32),
        np.zeros((2, 1, 0, 2), np.float32), gives=(np.zeros((0, 4), np.float32), np.zeros(0, np.float32), [0, 0]), **SETTINGS, id="no point",
    ),
    # Specification: its example.
    generate_proposals.facts("f32[8,3]", "f32[50,84,3,4]", "f32[8,12,50,84]", "f32[8,3,50,84]", min_size="0.0", nms_threshold="0.699999988079071",
        post_nms_count="1000", pre_nms_count="1000", roi_num_type="i32", gives=("f32[0..8000,4]", "f32[0..8000]", "i32[8]"), id="example",
    ),
    generate_proposals.facts("f32[?,3]", "f32[...]", "f32[1..4,?,?,?]", "f32[...]", **SETTINGS, gives=("f32[0..24,4]", "f32[0..24]", "i64[1..4]"),
        id="bounded batch",
    ),
    generate_proposals.facts("f32[...]", "f32[...]", "f32[...]", "f32[...]", **SETTINGS, id="rank unknown"),
    generate_proposals.refuses("f32[1,5]", "f32[2,4,3,4]", "f32[1,12,2,4]", "f32[1,3,2,4]", **SETTINGS, says="im_info has 5 values", id="info"),
    generate_proposals.refuses("f32[1,3]", "f32[2,4,3,5]", "f32[1,12,2,4]", "f32[1,3,2,4]", **SETTINGS, says="anchors have 5 values", id="five"),
    generate_proposals.refuses("f32[2,3]", "f32[2,4,3,4]", "f32[1,12,2,4]", "f32[1,3,2,4]", **SETTINGS, says="batch differs", id="batch"),
    generate_proposals.refuses("f32[1,3]", "f32[3,4,3,4]", "f32[1,12,2,4]", "f32[1,3,2,4]", **SETTINGS, says="height differs", id="height"),
    generate_proposals.refuses("f32[1,3]", "f32[2,5,3,4]", "f32[1,12,2,4]", "f32[1,3,2,4]", **SETTINGS, says="width differs", id="width"),
    generate_proposals.refuses("f32[1,3]", "f32[2,4,2,4]", "f32[1,12,2,4]", "f32[1,3,2,4]", **SETTINGS, says="number of anchors differs", id="anchors"),
    generate_proposals.refuses("f32[1,3]", "f32[2,4,3,4]", "f32[1,9,2,4]", "f32[1,3,2,4]", **SETTINGS, says="has 9 channels, expected 12", id="deltas"),
    generate_proposals.refuses("f32[1,3]", "f32[2,4,3,4]", "f32[1,12,2,4]", "f32[1,3,2,4]", **SETTINGS, nms_eta="1.5", says="nms_eta 1.5 is not in 0 to 1",
        id="eta",
    ),
]  # fmt: skip
ROWS += [*halves(ROWS), *odd(ROWS)]
ROWS += [
    proposal(4, clip_before_nms="false", id="not clipped"),
    proposal(4, clip_before_nms="false", clip_after_nms="true", id="clipped after"),
]
