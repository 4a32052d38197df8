"""Rows of the ExperimentalDetectron operations.

Scores are all different where OpenVINO is asked, as it promises no order of equal ones; there are eight anchors at
least, as its plugin crashes with fewer; and results are filled, as it leaves their rest as the memory was.
"""

import numpy as np

from irexec.testing import case, facts_case, random, refuses, typed
from tests.cases.proposals import NAN, distinct, f32, some_boxes
from tests.support.cases import halves, odd

GRID = "ExperimentalDetectronPriorGridGenerator"
PROPOSALS = "ExperimentalDetectronGenerateProposalsSingleImage"
OUTPUT = "ExperimentalDetectronDetectionOutput"
FEATURES = "ExperimentalDetectronROIFeatureExtractor"
TOP = "ExperimentalDetectronTopKROIs"


def grid(*, id, kind="f32", gives=None, **attributes):
    """Two priors over a feature map of 2 x 3 of an image of 20 x 45."""
    priors = typed(kind, [[-4, -2, 4, 2], [0, -8, 1, 8.5]])
    return case(GRID, 6, priors, random(kind, 1, 5, 2, 3), random(kind, 1, 3, 20, 45), gives=gives, **attributes, id=id)


GRIDS = [
    grid(id="not flat where nothing is said"),
    grid(flatten="true", id="flat"),
    grid(flatten="false", stride_x="4", stride_y="2.5", id="strides"),
    grid(flatten="true", stride_x="7.25", id="a stride across"),
    grid(flatten="true", h="2", w="3", id="cells of the feature map"),
    grid(flatten="true", kind="f16", id="f16"),
    grid(flatten="true", kind="f64", id="f64"),
    grid(kind="bf16", id="bf16"),
    # One cell of 20 x 45 pixels, whose middle is (22.5, 10); what is after is not specified.
    grid(flatten="true", h="1", w="1", gives=f32([[18.5, 8, 26.5, 12], [22.5, 2, 23.5, 18.5], *[[0] * 4] * 10]), id="one cell"),
    case(GRID, 6, np.zeros((0, 4), np.float32), random("f32", 1, 1, 2, 3), random("f32", 1, 1, 4, 6), gives=np.zeros((2, 3, 0, 4), np.float32), id="no prior"),
    case(
        GRID, 6, f32([[0, 0, 1, 1]]), np.zeros((1, 1, 0, 3), np.float32), random("f32", 1, 1, 4, 6), flatten="true", gives=np.zeros((0, 4), np.float32),
        id="no cell",
    ),
    # Specification: its example.
    facts_case(
        GRID, 6, "f32[3,4]", "f32[1,256,25,42]", "f32[1,3,800,1344]", flatten="true", h="0", stride_x="32.0", stride_y="32.0", w="0", gives="f32[3150,4]",
        id="example",
    ),
    facts_case(GRID, 6, "f32[2..3,4]", "f32[?,3,2..4,?]", "f32[...]", flatten="false", id="dynamic"),
    facts_case(GRID, 6, "f32[2..3,4]", "f32[?,3,2..4,5]", "f32[...]", flatten="true", gives="f32[20..60,4]", id="dynamic and flat"),
    facts_case(GRID, 6, "f32[...]", "f32[...]", "f32[...]", flatten="true", id="rank unknown"),
    refuses(GRID, 6, "f32[3,5]", "f32[1,8,2,3]", "f32[1,3,20,45]", says="priors have 5 values each, expected 4", id="five numbers"),
    refuses(GRID, 6, "f32[3,4]", "f32[1,8,2]", "f32[1,3,20,45]", says="feature_map has rank 3, expected 4", id="rank"),
    refuses(GRID, 6, "f32[3,4]", "f32[1,8,2,3]", "f32[2,3,20,45]", says="batch differs between inputs: 1 and 2", id="batch"),
    refuses(GRID, 6, "f32[3,4]", "f32[1,8,2,3]", "f32[1,3,20,45]", h="3", says="h 3 is above the size 2", id="more cells"),
    refuses(GRID, 6, "f32[3,4]", "f16[1,8,2,3]", "f32[1,3,20,45]", says="element types f32 and f16 differ", id="types"),
]  # fmt: skip

SETTINGS = {"min_size": "0", "nms_threshold": "0.5", "pre_nms_count": "100", "post_nms_count": "6"}


def proposals(*, id, kind="f32", info=(80, 90, 1), **attributes):
    """A row with three anchors at each of 2 x 4 points."""
    deltas = random(kind, 12, 2, 4, low=-0.5, high=0.5)
    return case(
        PROPOSALS, 6, typed(kind, info), typed(kind, some_boxes(24)), deltas, distinct(kind, 3, 2, 4), **SETTINGS | attributes, id=id
    )  # fmt: skip


def in_a_row(scores, rois, best, *, id, **attributes):
    """Boxes in a row, each 10 wide and 10 high, 4 to the right of the one before; the last is 2 wide. By hand."""
    anchors = f32([[0, 0, 10, 10], [4, 0, 14, 10], [8, 0, 18, 10], [40, 0, 42, 10]])
    inputs = f32([50, 50, 1]), anchors, np.zeros((4, 1, 4), np.float32), f32([[scores]])
    return case(
        PROPOSALS, 6, *inputs, gives=(f32(rois), f32(best)), **SETTINGS | {"post_nms_count": "4"} | attributes, id=id
    )


A, B, C, NARROW, NONE = [0, 0, 10, 10], [4, 0, 14, 10], [8, 0, 18, 10], [40, 0, 42, 10], [0, 0, 0, 0]
SINGLE = [
    proposals(id="plain"),
    proposals(nms_threshold="0.1", id="few overlaps"),
    proposals(info=(30, 20, 1), id="a small image"),
    proposals(pre_nms_count="8", post_nms_count="12", id="fewer than asked"),
    proposals(info=(80, 90, 3), min_size="5", id="the scale has no effect"),
    proposals(kind="f16", id="f16"),
    proposals(kind="f64", id="f64"),
    # Neighbours share 6 of 14 columns, 0.43; those next but one 2 of 18, 0.11.
    in_a_row([4, 3, 2, 1], [A, B, C, NARROW], [4, 3, 2, 1], id="nothing suppressed"),
    in_a_row([4, 3, 2, 1], [A, C, NARROW, NONE], [4, 2, 1, 0], nms_threshold="0.4", id="the middle suppressed"),
    # Its last pixel belongs to the box here, which is 3 wide.
    in_a_row([1, 2, 3, 4], [NARROW, C, B, A], [4, 3, 2, 1], min_size="3", id="large enough"),
    in_a_row([1, 2, 3, 4], [C, B, A, NARROW], [3, 2, 1, 0], min_size="3.5", id="too narrow comes last"),
    in_a_row([1, 2, 3, 4], [C, B, NONE, NONE], [3, 2, 0, 0], min_size="3.5", pre_nms_count="2", id="two before suppression"),
    in_a_row([1, NAN, 3, 4], [NARROW, C, A, B], [4, 3, 1, NAN], id="NaN comes last"),
    in_a_row([1, 2, 3, 4], np.zeros((0, 4)), [], post_nms_count="0", id="none asked for"),
    case(
        PROPOSALS, 6, f32([50, 50, 1]), np.zeros((0, 4), np.float32), np.zeros((4, 0, 2), np.float32), np.zeros((1, 0, 2), np.float32),
        gives=(np.zeros((6, 4), np.float32), np.zeros(6, np.float32)), **SETTINGS, id="no point",
    ),
    # Specification: its example.
    facts_case(
        PROPOSALS, 6, "f32[3]", "f32[12600,4]", "f32[12,50,84]", "f32[3,50,84]", min_size="0.0", nms_threshold="0.699999988079071", post_nms_count="1000",
        pre_nms_count="1000", gives=("f32[1000,4]", "f32[1000]"), id="example",
    ),
    facts_case(PROPOSALS, 6, "f32[?]", "f32[...]", "f32[?,2..3,?]", "f32[...]", **SETTINGS, id="dynamic"),
    refuses(PROPOSALS, 6, "f32[4]", "f32[24,4]", "f32[12,2,4]", "f32[3,2,4]", **SETTINGS, says="im_info has 4 values, expected 3", id="info"),
    refuses(PROPOSALS, 6, "f32[3]", "f32[25,4]", "f32[12,2,4]", "f32[3,2,4]", **SETTINGS, says="there are 25 anchors for 24 scores", id="anchors"),
    refuses(PROPOSALS, 6, "f32[3]", "f32[24,4]", "f32[9,2,4]", "f32[3,2,4]", **SETTINGS, says="deltas has 9 channels, expected 12", id="deltas"),
    refuses(PROPOSALS, 6, "f32[3]", "f32[24,4]", "f32[12,2,4]", "f32[3,2,5]", **SETTINGS, says="width differs between inputs: 4 and 5", id="width"),
    refuses(PROPOSALS, 6, "f32[3]", "f16[24,4]", "f32[12,2,4]", "f32[3,2,4]", **SETTINGS, says="element types f32 and f16 differ", id="types"),
]  # fmt: skip

DETECT = {
    "score_threshold": "0.05", "nms_threshold": "0.5", "num_classes": "4", "post_nms_count": "100", "max_detections_per_image": "8",
    "max_delta_log_wh": "4.135", "deltas_weights": "10, 10, 5, 5",
}  # fmt: skip


def detect(*, id, kind="f32", **attributes):
    """A row of ten rois and four classes."""
    inputs = some_boxes(10), random(kind, 10, 16, low=-3, high=3).array, distinct(kind, 10, 4).array * 12, [[80, 90, 1]]
    return case(OUTPUT, 6, *(typed(kind, x) for x in inputs), **DETECT | attributes, id=id)


def detect_three(
    scores, boxes, classes, best, *, id, rois=((0, 0, 9, 9), (3, 0, 12, 9), (20, 20, 20, 30)), **attributes
):
    """Three rois of 10 x 10 pixels, of which the second is 3 to the right, and one without width; nothing moved. By hand.

    The first two share 70 pixels of 130, 0.54.
    """
    settings = DETECT | {"num_classes": str(len(scores[0])), "max_detections_per_image": "4"}
    deltas = np.zeros((3, 4 * len(scores[0])), np.float32)
    gives = f32(boxes), np.array(classes, np.int32), f32(best)
    return case(
        OUTPUT, 6, f32(rois), deltas, f32(scores), f32([[5, 5, 1]]), gives=gives, **settings | attributes, id=id
    )


FIRST, SECOND = [0, 0, 9, 9], [3, 0, 12, 9]
DETECTED = [
    detect(id="more than asked for"),
    detect(max_detections_per_image="40", id="fewer than asked for"),
    detect(post_nms_count="2", id="two of each class"),
    detect(post_nms_count="-1", max_detections_per_image="30", id="any number of each class"),
    detect(nms_threshold="0.1", max_detections_per_image="30", id="few overlaps"),
    detect(score_threshold="0.5", id="high scores"),
    detect(max_delta_log_wh="0.1", deltas_weights="1, 2, 3, 4", id="deltas of other weights"),
    detect(class_agnostic_box_regression="true", id="class_agnostic_box_regression has no effect"),
    detect(deltas_weights="1, 1, 1, 1", id="deltas of no weights"),
    detect(kind="f16", id="f16"),
    detect(kind="f64", id="f64"),
    detect_three([[9, 0.5], [9, 0.6], [9, 0.7]], [SECOND, NONE, NONE, NONE], [1, 0, 0, 0], [0.6, 0, 0, 0], id="the better of two"),
    detect_three([[9, 0.5], [9, 0.6], [9, 0.7]], [SECOND, FIRST, NONE, NONE], [1, 1, 0, 0], [0.6, 0.5, 0, 0], nms_threshold="0.54", id="both, by score"),
    detect_three([[9, 0.5, 0.1], [9, 0.6, 0.9], [9, 0.7, 0.1]], [SECOND, SECOND, NONE, NONE], [1, 2, 0, 0], [0.6, 0.9, 0, 0], id="classes in order"),
    detect_three([[9, 0.5, 0.1], [9, 0.6, 0.9], [9, 0.7, 0.1]], [SECOND], [2], [0.9], max_detections_per_image="1", id="the best of all classes"),
    detect_three(
        [[9, 0.5, 0.5], [9, 0.5, 0.5], [9, 0, 0]], [FIRST, FIRST, SECOND], [1, 2, 1], [0.5] * 3, nms_threshold="0.6", max_detections_per_image="3",
        id="of equal scores the first roi",
    ),
    # The roi without width has score 0, which is above the threshold, and no box.
    detect_three([[9, 0.5], [9, -2], [9, 0.7]], [FIRST, NONE, NONE, NONE], [1, 1, 0, 0], [0.5, 0, 0, 0], score_threshold="-1", id="a roi without width"),
    detect_three([[9, NAN], [9, 0.6], [9, 0.7]], [SECOND, NONE, NONE, NONE], [1, 0, 0, 0], [0.6, 0, 0, 0], id="NaN is not above the threshold"),
    detect_three([[9], [9], [9]], [NONE] * 4, [0] * 4, [0] * 4, id="background alone"),
    case(
        OUTPUT, 6, np.zeros((0, 4), np.float32), np.zeros((0, 16), np.float32), np.zeros((0, 4), np.float32), f32([[5, 5, 1]]),
        gives=(np.zeros((8, 4), np.float32), np.zeros(8, np.int32), np.zeros(8, np.float32)), **DETECT, id="no roi",
    ),
    # Specification: its example.
    facts_case(
        OUTPUT, 6, "f32[1000,4]", "f32[1000,324]", "f32[1000,81]", "f32[1,3]", class_agnostic_box_regression="false", deltas_weights="10.0,10.0,5.0,5.0",
        max_delta_log_wh="4.135166645050049", max_detections_per_image="100", nms_threshold="0.5", num_classes="81", post_nms_count="2000",
        score_threshold="0.05000000074505806", gives=("f32[100,4]", "i32[100]", "f32[100]"), id="example",
    ),
    facts_case(OUTPUT, 6, "f32[?,4]", "f32[...]", "f32[2..9,?]", "f32[...]", **DETECT, id="dynamic"),
    refuses(OUTPUT, 6, "f32[5,4]", "f32[5,12]", "f32[5,4]", "f32[1,3]", **DETECT, says="deltas has 12 columns, expected 16", id="deltas"),
    refuses(OUTPUT, 6, "f32[5,4]", "f32[5,16]", "f32[5,3]", "f32[1,3]", **DETECT, says="scores has 3 columns for 4 classes", id="scores"),
    refuses(OUTPUT, 6, "f32[5,4]", "f32[5,16]", "f32[6,4]", "f32[1,3]", **DETECT, says="number of rois differs between inputs: 5 and 6", id="rois"),
    refuses(OUTPUT, 6, "f32[5,4]", "f32[5,16]", "f32[5,4]", "f32[3]", **DETECT, says="im_info has rank 1, expected 2", id="info"),
    refuses(OUTPUT, 6, "f32[5,4]", "f32[5,16]", "f32[5,4]", "f32[1,3]", **DETECT | {"deltas_weights": "1, 2"}, says="deltas_weights has 2 values", id="weights"),
]  # fmt: skip

PYRAMID = {"output_size": "3", "sampling_ratio": "2", "pyramid_scales": "16, 32, 64"}
# Of sizes for every level; beyond the border on each side; one without an area; one point.
ROIS = [
    [10, 10, 60, 70], [-30, 5, 90, 200], [0, 0, 319, 319], [150, 100, 400, 420], [250, -60, 300, 30],
    [40, 60, 40, 90], [-400, 3, -200, 50], [33, 33, 33.5, 34],
]  # fmt: skip


def extract(*, id, kind="f32", rois=ROIS, levels=3, **attributes):
    """A row over a pyramid of an image of 320 x 320."""
    maps = [random(kind, 1, 2, 20 >> level, 20 >> level, seed=level) for level in range(levels)]
    return case(FEATURES, 6, typed(kind, rois), *maps, **PYRAMID | attributes, id=id)


FEATURE_ROWS = [
    extract(id="plain"),
    extract(aligned="true", id="aligned"),
    extract(aligned="false", sampling_ratio="0", id="as many points as pixels"),
    extract(aligned="true", sampling_ratio="0", output_size="2", id="aligned, as many points as pixels"),
    extract(sampling_ratio="1", output_size="1", id="one point"),
    extract(sampling_ratio="3", output_size="4", id="three points"),
    extract(levels=1, id="one level"),
    extract(levels=2, id="two levels of three scales"),
    extract(rois=[[0, 0, 224, 224], [0, 0, 223.9, 223.9], [0, 0, 112, 112], [0, 0, 111.9, 111.9], [0, 0, 56, 56]], id="borders of levels"),
    extract(kind="f16", id="f16"),
    extract(kind="f64", id="f64"),
    # The mean of one point in the middle of the roi (0, 0, 2, 2): between four pixels. A roi with a negative width, and one of NaN, have no area.
    case(
        FEATURES, 6, f32([[0, 0, 2, 2], [2, 2, 0, 3], [NAN, 0, 2, 2]]), f32([[[[1, 2, 9], [3, 6, 9], [9, 9, 9]]]]), output_size="1", sampling_ratio="1",
        pyramid_scales="2", gives=(f32([3, 0, 0]).reshape(3, 1, 1, 1), f32([[0, 0, 2, 2], [2, 2, 0, 3], [NAN, 0, 2, 2]])), id="by hand",
    ),
    case(
        FEATURES, 6, np.zeros((0, 4), np.float32), random("f32", 1, 2, 3, 3), **PYRAMID,
        gives=(np.zeros((0, 2, 3, 3), np.float32), np.zeros((0, 4), np.float32)), id="no roi",
    ),
    # Specification: its example.
    facts_case(
        FEATURES, 6, "f32[1000,4]", "f32[1,256,200,336]", "f32[1,256,100,168]", "f32[1,256,50,84]", "f32[1,256,25,42]", aligned="false", output_size="7",
        pyramid_scales="4,8,16,32,64", sampling_ratio="2", gives=("f32[1000,256,7,7]", "f32[1000,4]"), id="example",
    ),
    facts_case(FEATURES, 6, "f32[?,4]", "f32[1,2..8,?,?]", "f32[1,4..,?,?]", **PYRAMID, id="dynamic"),
    facts_case(FEATURES, 6, "f32[...]", "f32[...]", "f32[...]", **PYRAMID, id="rank unknown"),
    refuses(FEATURES, 6, "f32[5,4]", "f32[1,2,9,9]", "f32[1,3,4,4]", **PYRAMID, says="number of channels differs between inputs: 2 and 3", id="channels"),
    refuses(FEATURES, 6, "f32[5,4]", "f32[2,2,9,9]", **PYRAMID, says="level 0 has batch 2, expected 1", id="batch"),
    refuses(FEATURES, 6, "f32[5,4]", *["f32[1,2,9,9]"] * 4, **PYRAMID, says="pyramid_scales has 3 values for 4 levels", id="scales"),
    refuses(FEATURES, 6, "f32[5,4]", **PYRAMID, says="there are no features", id="no features"),
    refuses(FEATURES, 6, "f32[5,5]", "f32[1,2,9,9]", **PYRAMID, says="rois have 5 values each", id="five numbers"),
]  # fmt: skip

FIVE = [[0, 0, 5, 5], [1, 1, 6, 6], [2, 2, 7, 7], [3, 3, 8, 8], [4, 4, 9, 9]]
TOP_ROWS = [
    case(TOP, 6, f32(FIVE), f32([0.3, 0.9, 0.1, 0.5, 0.7]), max_rois="3", id="three of five"),
    case(TOP, 6, f32(FIVE), f32([0.3, 0.9, -0.1, 0.5, 0.7]), max_rois="5", id="all"),
    case(TOP, 6, typed("f16", FIVE), typed("f16", [0.3, 0.9, 0.1, 0.5, 0.7]), max_rois="2", id="f16"),
    case(TOP, 6, typed("f64", FIVE), typed("f64", [0.3, 0.9, 0.1, 0.5, 0.7]), max_rois="2", id="f64"),
    case(TOP, 6, typed("bf16", FIVE), typed("bf16", [0.25, 0.875, 0.125, 0.5, 0.75]), max_rois="2", id="bf16"),
    # By hand: what is after, and the order of equal ones, is not specified.
    case(TOP, 6, f32(FIVE[:2]), f32([0.3, 0.9]), max_rois="4", gives=f32([FIVE[1], FIVE[0], NONE, NONE]), id="fewer than asked for"),
    case(TOP, 6, f32(FIVE), f32([0.5, 0.9, 0.5, NAN, 0.5]), max_rois="5", gives=f32([FIVE[i] for i in (1, 0, 2, 4, 3)]), id="equal ones and NaN"),
    case(TOP, 6, f32(FIVE), f32([1, 2, 3, 4, 5]), max_rois="0", gives=np.zeros((0, 4), np.float32), id="none asked for"),
    case(TOP, 6, np.zeros((0, 4), np.float32), np.zeros(0, np.float32), max_rois="1", gives=f32([NONE]), id="none there"),
    facts_case(TOP, 6, "f32[?,4]", "f32[2..3]", max_rois="7", id="dynamic"),
    facts_case(TOP, 6, "f32[...]", "f32[...]", max_rois="7", id="rank unknown"),
    refuses(TOP, 6, "f32[5,4]", "f32[4]", max_rois="3", says="number of rois differs between inputs: 5 and 4", id="probabilities"),
    refuses(TOP, 6, "f32[5,3]", "f32[5]", max_rois="3", says="input_rois have 3 values each, expected 4", id="three numbers"),
    refuses(TOP, 6, "f16[5,4]", "f32[5]", max_rois="3", says="element types f16 and f32 differ", id="types"),
]  # fmt: skip

ROWS = [*GRIDS, *SINGLE, *DETECTED, *FEATURE_ROWS, *TOP_ROWS]
ROWS += [*halves(ROWS), *odd(ROWS)]
