"""Rows of NonMaxSuppression, NMSRotated, MatrixNms and MulticlassNms."""

import math

import numpy as np

from irexec.testing import case, facts_case, refuses, typed
from tests.cases import Operation
from tests.support.cases import halves, odd

NAN = float("nan")
INF = float("inf")


def _corners(seed: int, *shape: int, size: float = 1.0) -> np.ndarray:
    """Random boxes, low corner and high corner, that overlap often."""
    rng = np.random.default_rng(seed)
    low = rng.uniform(0, size, (*shape, 2))
    return np.concatenate([low, low + rng.uniform(0.2, 1, (*shape, 2)) * size], -1).astype(np.float32)


def _scores(seed: int, *shape: int) -> np.ndarray:
    """Different scores in 0 to 1."""
    count = int(np.prod(shape))
    return ((np.random.default_rng(seed).permutation(count) + 1) / (count + 2)).reshape(shape).astype(np.float32)


def _triplets(*rows: tuple[int, int, int]) -> np.ndarray:
    return np.array(rows, np.int64).reshape(-1, 3)


def _scored(*rows: tuple[float, float, float]) -> np.ndarray:
    return np.array(rows, np.float32).reshape(-1, 3)


# The example of ONNX's NonMaxSuppression: three pairs of boxes.
PAIRS = np.array(
    [[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [0, 10.1, 1, 11.1], [0, 100, 1, 101]]],
    np.float32,
)
PAIR_SCORES = np.array([[[0.9, 0.75, 0.6, 0.95, 0.5, 0.3]]], np.float32)
# Overlaps of 1/2 with the first, and of none.
HALVES = np.array([[[0, 0, 1, 1], [0, 0, 1, 0.5], [2, 2, 3, 3], [5, 5, 6, 6]]], np.float32)
FALLING = np.array([[[0.9, 0.8, 0.7, 0.6]]], np.float32)
BOXES, SCORES = _corners(1, 2, 6), _scores(2, 2, 3, 6)
MAX_BOXES, HALF, MIN_SCORE = 10, 0.5, 0.0
NONE = (np.zeros((0, 3), np.int64), np.zeros((0, 3), np.float32), [0])
NMS = "NonMaxSuppression"

ROWS = []
for since in (1, 3, 4, 5, 9):
    newer = since >= 5

    def _whole(triplets, scored, newer=newer):
        return (triplets, scored, [len(triplets)]) if newer else triplets

    for descending in ("true", "false"):
        texts = {"sort_result_descending": descending}
        ROWS += [
            case(NMS, since, BOXES, SCORES, 3, 0.3, 0.1, id=f"corners, sorted {descending}", **texts),
            case(NMS, since, BOXES, SCORES, 100, 0.6, 0.4, id=f"all that stay, sorted {descending}", **texts),
            case(
                NMS,
                since,
                BOXES,
                SCORES,
                3,
                0.3,
                0.1,
                box_encoding="center",
                id=f"centres, sorted {descending}",
                **texts,
            ),
        ]
    ROWS += [
        case(NMS, since, BOXES[..., [2, 1, 0, 3]], SCORES, 3, 0.3, 0.1, box_encoding="corner", id="other corners"),
        case(NMS, since, typed("f16", BOXES), typed("f16", SCORES), 3, 0.3, 0.1, id="f16"),
        case(NMS, since, typed("bf16", BOXES), typed("bf16", SCORES), typed("i32", 3), 0.3, 0.1, id="bf16, i32"),
        # ONNX specification, operator NonMaxSuppression, example nonmaxsuppression_suppress_by_IOU_and_scores.
        case(
            NMS, since, PAIRS, PAIR_SCORES, 3, 0.5, 0.4, id="example of ONNX",
            gives=_whole(_triplets((0, 0, 3), (0, 0, 0)), _scored((0, 0, 0.95), (0, 0, 0.9))),
        ),
        # Equal scores: the lower index first, as OpenVINO gives it; each is alone.
        case(NMS, since, HALVES[:, [0, 2, 3, 0]] + np.array([[[0], [0], [0], [9]]], np.float32), np.full((1, 2, 4), 0.5, np.float32), 3, 0.5, 0.0, id="equal scores"),
        # By hand: the specification keeps an overlap equal to the threshold, and so do disjoint boxes stay at 0.
        case(
            NMS, since, HALVES, FALLING, MAX_BOXES, HALF, MIN_SCORE, id="an overlap equal to the threshold stays",
            gives=_whole(_triplets((0, 0, 0), (0, 0, 1), (0, 0, 2), (0, 0, 3)), _scored((0, 0, 0.9), (0, 0, 0.8), (0, 0, 0.7), (0, 0, 0.6))),
        ),
        case(
            NMS, since, HALVES, FALLING, MAX_BOXES, 0.0, MIN_SCORE, id="threshold 0 keeps what does not overlap",
            gives=_whole(_triplets((0, 0, 0), (0, 0, 2), (0, 0, 3)), _scored((0, 0, 0.9), (0, 0, 0.7), (0, 0, 0.6))),
        ),
        case(
            NMS, since, HALVES, FALLING, MAX_BOXES, id="no thresholds",
            gives=_whole(_triplets((0, 0, 0), (0, 0, 2), (0, 0, 3)), _scored((0, 0, 0.9), (0, 0, 0.7), (0, 0, 0.6))),
        ),
        case(NMS, since, HALVES, FALLING, MAX_BOXES, 0.2, id="no score_threshold"),
        case(NMS, since, HALVES, FALLING, MAX_BOXES, 0.6, FALLING[0, 0, 2], id="a score equal to the threshold goes"),
        # What follows, OpenVINO's plugin leaves in part unwritten.
        case(NMS, since, HALVES, FALLING, gives=_whole(*NONE[:2]), id="no maximum, no boxes"),
        # By hand: no overlap is above 2, and every one is above -0.5.
        case(NMS, since, HALVES, FALLING, 3, 2.0, gives=_whole(_triplets((0, 0, 0), (0, 0, 1), (0, 0, 2)), _scored((0, 0, 0.9), (0, 0, 0.8), (0, 0, 0.7))), id="threshold of overlap above 1"),
        case(NMS, since, HALVES, FALLING, 3, -0.5, gives=_whole(_triplets((0, 0, 0)), _scored((0, 0, 0.9))), id="negative threshold of overlap"),
        case(NMS, since, HALVES, FALLING, 0, 0.5, gives=_whole(*NONE[:2]), id="maximum 0"),
        case(NMS, since, HALVES, FALLING, 3, 0.5, 2.0, gives=_whole(*NONE[:2]), id="no score is enough"),
        case(NMS, since, HALVES[:, :0], FALLING[..., :0], 3, 0.5, gives=_whole(*NONE[:2]), id="no boxes"),
        case(NMS, since, HALVES[:0], FALLING[:0], 3, 0.5, gives=_whole(*NONE[:2]), id="no batches"),
        case(NMS, since, HALVES, FALLING[:, :0], 3, 0.5, gives=_whole(*NONE[:2]), id="no classes"),
        # By hand: a negative maximum, which the reference takes for a huge one.
        case(
            NMS, since, HALVES, FALLING, -1, 0.4, gives=_whole(_triplets((0, 0, 0), (0, 0, 2), (0, 0, 3)), _scored((0, 0, 0.9), (0, 0, 0.7), (0, 0, 0.6))),
            id="negative maximum",
        ),
        # By hand: a flat box overlaps nothing; NaN is above no threshold, neither as score nor as overlap; inf - inf neither.
        case(
            NMS, since, np.array([[[0, 0, 1, 1], [0, 0, 0, 1], [0, 0, NAN, 1], [0, 0, INF, 1], [0, 0, 1, 1]]], np.float32),
            np.array([[[0.5, 0.4, 0.3, 0.2, NAN]]], np.float32), MAX_BOXES, 0.5, id="flat, NaN and infinite",
            gives=_whole(
                _triplets((0, 0, 0), (0, 0, 1), (0, 0, 2), (0, 0, 3)), _scored((0, 0, 0.5), (0, 0, 0.4), (0, 0, 0.3), (0, 0, 0.2)),
            ),
        ),
        refuses(NMS, since, "f32[2,6]", "f32[2,3,6]", says="boxes has rank 2, expected 3", id="rank of boxes"),
        refuses(NMS, since, "f32[2,6,4]", "f32[2,6]", says="scores has rank 2, expected 3", id="rank of scores"),
        refuses(NMS, since, "f32[2,6,5]", "f32[2,3,6]", says="sizes 5 and 4 differ", id="five coordinates"),
        refuses(NMS, since, "f32[2,6,4]", "f32[2,3,7]", says="sizes 6 and 7 differ", id="scores of other boxes"),
        refuses(NMS, since, "f32[2,6,4]", "f32[3,3,6]", says="sizes 2 and 3 differ", id="scores of other batches"),
        refuses(NMS, since, "i32[2,6,4]", "f32[2,3,6]", says="boxes has element type i32", id="integer boxes"),
        refuses(NMS, since, "f32[2,6,4]", "f64[2,3,6]", says="scores has element type f64", id="f64 scores"),
        refuses(NMS, since, "f32[2,6,4]", "f32[2,3,6]", "f32[]", says="max_output_boxes_per_class has element type f32", id="float maximum"),
        refuses(NMS, since, "f32[2,6,4]", "f32[2,3,6]", "i64[2]", id="two maxima",
                says=f"max_output_boxes_per_class has {'2 elements, expected 1' if since >= 5 else 'rank 1, expected 0'}"),
        refuses(NMS, since, "f32[2,6,4]", "f32[2,3,6]", 3, "i64[]", says="iou_threshold has element type i64", id="integer threshold"),
    ]  # fmt: skip
    if since > 1:
        ROWS += [
            case(NMS, since, BOXES, SCORES, 3, 0.3, 0.1, output_type=kind, id=f"output_type {kind}")
            for kind in ("i32", "i64")
        ]
    if newer:
        ROWS += [
            case(NMS, since, BOXES, SCORES, [3], [0.3], [0.1], [0.0], id="vectors of one"),
            *(case(NMS, since, BOXES, SCORES, 4, 0.3, 0.1, sigma, id=f"soft, {sigma}") for sigma in (0.1, 0.5, 2.0)),
            case(NMS, since, BOXES, SCORES, 4, 0.3, 0.1, 0.5, sort_result_descending="false", id="soft, not sorted"),
            case(NMS, since, BOXES, SCORES, 100, 0.9, 0.3, 0.3, box_encoding="center", output_type="i32", id="soft centres"),
            case(NMS, since, BOXES, SCORES, 4, 0.6, 0.1, -1.0, id="negative sigma is none"),
            case(NMS, since, typed("f16", BOXES), typed("f16", SCORES), 4, 0.3, 0.1, 0.5, id="soft f16"),
            # By hand: IoU 1/2 and sigma 1/2 leave 0.8 exp(-1/4), after the disjoint box; the threshold plays no part.
            case(
                NMS, since, HALVES, FALLING, MAX_BOXES, 0.2, MIN_SCORE, 0.5, id="soft by hand",
                gives=(
                    _triplets((0, 0, 0), (0, 0, 2), (0, 0, 1), (0, 0, 3)),
                    _scored((0, 0, 0.9), (0, 0, 0.7), (0, 0, 0.8 * math.exp(-0.25)), (0, 0, 0.6)), [4],
                ),
            ),
            # By hand: so small a sigma leaves nothing of what overlaps.
            case(
                NMS, since, HALVES, FALLING, MAX_BOXES, 0.5, -1.0, 1e-6, id="soft, scores of 0",
                gives=(
                    _triplets((0, 0, 0), (0, 0, 2), (0, 0, 3), (0, 0, 1)), _scored((0, 0, 0.9), (0, 0, 0.7), (0, 0, 0.6), (0, 0, 0)), [4],
                ),
            ),
            case(NMS, since, HALVES, FALLING, 3, 0.5, 2.0, 0.5, gives=NONE, id="soft, no score is enough"),
            facts_case(NMS, since, "f32[2,6,4]", "f32[2,3,6]", 3, id="static"),
            facts_case(NMS, since, "f16[2,6,4]", "f16[2,3,6]", 100, output_type="i32", id="more than there are"),
            facts_case(NMS, since, "f32[2,6,4]", "f32[2,3,6]", "i64[]", id="maximum unknown"),
            facts_case(NMS, since, "f32[2,6,4]", "f32[2,3,6]", id="maximum absent", gives=("i64[0,3]", "f32[0,3]", "i64[1]")),
            facts_case(NMS, since, "f32[?,?,4]", "f32[?,?,?]", 3, id="dynamic"),
            facts_case(NMS, since, "f32[...]", "f32[...]", 3, id="rank unknown"),
            # Tighter than OpenVINO's inference, which takes a bounded number of boxes for unlimited.
            facts_case(NMS, since, "f32[2,2..6,4]", "f32[2,1..3,?]", 4, gives=("i64[0..24,3]", "f32[0..24,3]", "i64[1]"), id="bounded"),
            refuses(NMS, since, "f32[2,6,4]", "f32[2,3,6]", 3, 0.5, 0.5, "f32[2]", says="soft_nms_sigma has 2 elements, expected 1", id="two sigmas"),
        ]  # fmt: skip
    else:
        # OpenVINO's inference has a static shape that its own run does not keep to: see the kernel's docstring.
        ROWS += [
            facts_case(NMS, since, "f32[2,6,4]", "f32[2,3,6]", 3, gives="i64[0..18,3]", id="static"),
            facts_case(NMS, since, "f32[?,6,4]", "f32[2,?,6]", "i64[]", gives="i64[?,3]", id="classes unknown"),
            facts_case(NMS, since, "f32[?,2..5,4]", "f32[2,3,?]", "i64[]", gives="i64[0..30,3]", id="bounded"),
            facts_case(NMS, since, "f32[...]", "f32[...]", 3, gives="i64[?,3]", id="rank unknown"),
        ]


def _turned(seed: int, *shape: int, angle: float = 4) -> np.ndarray:
    rng = np.random.default_rng(seed)
    parts = rng.uniform(0, 3, (*shape, 2)), rng.uniform(0.5, 3, (*shape, 2)), rng.uniform(-angle, angle, (*shape, 1))
    return np.concatenate(parts, -1).astype(np.float32)


ROTATED_BOXES = _turned(3, 2, 6)
# By hand: a square of side 2; rotated by 45 degrees (an octagon is shared, IoU 0.7071); its right half; far away.
SQUARES = np.array([[[0, 0, 2, 2, 0], [0, 0, 2, 2, math.pi / 4], [0.5, 0, 1, 2, math.pi], [9, 9, 2, 2, 1]]], np.float32)
# Two bars: rotated clockwise the second is the first moved along by a quarter of its length, rotated counter-clockwise it lies beside it.
BARS = np.array([[[0, 0, 4, 1, math.pi / 4], [0.7, 0.7, 4, 1, math.pi / 4]]], np.float32)
BAR_SCORES = np.array([[[0.9, 0.8]]], np.float32)
ROTATED = "NMSRotated"
for descending in ("true", "false"):
    for clockwise in ("true", "false"):
        texts = {"sort_result_descending": descending, "clockwise": clockwise}
        ROWS.append(
            case(
                ROTATED,
                13,
                ROTATED_BOXES,
                SCORES,
                3,
                0.3,
                0.1,
                id=f"sorted {descending}, clockwise {clockwise}",
                **texts,
            )
        )
ROWS += [
    case(ROTATED, 13, ROTATED_BOXES, SCORES, [100], [0.4], [0.3], output_type="i32", id="vectors of one, i32"),
    case(ROTATED, 13, ROTATED_BOXES, SCORES, 100, 0.05, 0.0, output_type="i64", id="low threshold"),
    case(ROTATED, 13, typed("f16", ROTATED_BOXES), typed("f16", SCORES), 3, 0.3, 0.1, id="f16"),
    case(ROTATED, 13, typed("bf16", ROTATED_BOXES), typed("bf16", SCORES), 3, 0.3, 0.1, id="bf16"),
    case(ROTATED, 13, _turned(4, 1, 6, angle=0), SCORES[:1], 5, 0.3, 0.1, id="not rotated"),
    case(ROTATED, 13, SQUARES, FALLING, 5, 0.72, 0.0, id="octagon stays"),
    case(ROTATED, 13, SQUARES, FALLING, 5, 0.70, 0.0, id="octagon goes"),
    case(ROTATED, 13, SQUARES, FALLING, 5, 0.45, 0.0, id="half goes"),
    case(ROTATED, 13, BARS, BAR_SCORES, 5, 0.5, 0.0, clockwise="true", id="bars in line"),
    case(ROTATED, 13, BARS, BAR_SCORES, 5, 0.5, 0.0, clockwise="false", id="bars beside each other"),
    case(ROTATED, 13, SQUARES[:, [0, 0, 1, 1]], FALLING, 5, 0.99, 0.0, id="the same box twice"),
    # By hand: boxes without area overlap nothing.
    case(
        ROTATED, 13, SQUARES[:, [0, 0, 0, 0]] * np.array([[1, 1, 0, 1, 1], [1, 1, 1, 1, 1], [1, 1, -1, 1, 1], [1, 1, 1, 1, 1]], np.float32),
        FALLING, 5, 0.5, 0.0, gives=(_triplets((0, 0, 0), (0, 0, 1), (0, 0, 2)), _scored((0, 0, 0.9), (0, 0, 0.8), (0, 0, 0.7)), [3]), id="no area",
    ),
    case(ROTATED, 13, SQUARES, FALLING, 0, 0.5, 0.0, gives=NONE, id="maximum 0"),
    case(ROTATED, 13, SQUARES, FALLING, 3, 0.5, 2.0, gives=NONE, id="no score is enough"),
    case(ROTATED, 13, SQUARES[:, :0], FALLING[..., :0], 3, 0.5, 0.0, gives=NONE, id="no boxes"),
    facts_case(ROTATED, 13, "f32[2,6,5]", "f32[2,3,6]", 3, 0.5, 0.5, id="static"),
    facts_case(ROTATED, 13, "f16[?,6,5]", "f16[2,?,6]", "i64[]", "f32[]", "f32[1]", output_type="i32", id="dynamic"),
    facts_case(ROTATED, 13, "f32[...]", "f32[...]", 3, 0.5, 0.5, id="rank unknown"),
    refuses(ROTATED, 13, "f32[2,6,4]", "f32[2,3,6]", 3, 0.5, 0.5, says="sizes 4 and 5 differ", id="four coordinates"),
    refuses(ROTATED, 13, "f32[2,6,5]", "f32[2,3,7]", 3, 0.5, 0.5, says="sizes 6 and 7 differ", id="scores of other boxes"),
]  # fmt: skip

MATRIX, MULTI = "MatrixNms", "MulticlassNms"
BIG = _corners(5, 2, 6, size=10)
VOID = (np.zeros((0, 6), np.float32), np.zeros((0, 1), np.int64))
TOUCHING = np.array([[[0, 0, 2, 2], [3, 0, 5, 2], [2, 0, 4, 2], [2.5, 0, 2.5, 2]]], np.float32)


def _said(attributes: dict[str, str]) -> str:
    return " ".join(f"{name} {value}" for name, value in attributes.items())


LIMITS = (
    {"nms_top_k": "2"}, {"keep_top_k": "3"}, {"nms_top_k": "3", "keep_top_k": "20"}, {"background_class": "0"}, {"background_class": "2"},
    {"background_class": "7"}, {"background_class": "1", "keep_top_k": "4"}, {"score_threshold": "0.5"}, {"output_type": "i32"},
)  # fmt: skip
for type, since, plain in (
    (MATRIX, 8, {}),
    (MULTI, 8, {"iou_threshold": "0.31"}),
    (MULTI, 9, {"iou_threshold": "0.31"}),
):
    for order in ("none", "score", "classid"):
        for across in ("true", "false"):
            texts = plain | {"sort_result_type": order, "sort_result_across_batch": across}
            ROWS.append(case(type, since, BOXES, SCORES, id=f"sorted by {order}, across {across}", **texts))
    for limits in LIMITS:
        ROWS.append(case(type, since, BOXES, SCORES, id=_said(limits), **(plain | limits)))
    ROWS += [
        case(type, since, BIG, SCORES, normalized="false", id="not normalized", **plain),
        case(type, since, BIG, SCORES, normalized="true", id="normalized", **plain),
        case(type, since, TOUCHING, FALLING, normalized="false", id="touching, not normalized", **plain),
        case(type, since, BOXES, np.where(np.arange(2)[:, None, None] == 0, np.float32(-1), SCORES), id="nothing in the first batch", **plain),
        # Equal scores: OpenVINO goes by class, then by index.
        case(type, since, HALVES[:, [0, 2, 3]].repeat(2, 0), np.full((2, 2, 3), 0.5, np.float32), sort_result_across_batch="true", sort_result_type="score", id="equal scores", **plain),
        # Specification: nothing selected. The plugin fails or does not write its outputs.
        case(type, since, BOXES, SCORES, keep_top_k="0", gives=(*VOID, [0, 0]), id="keep_top_k 0", **plain),
        case(type, since, BOXES, SCORES, nms_top_k="0", gives=(*VOID, [0, 0]), id="nms_top_k 0", **plain),
        case(type, since, BOXES, SCORES, score_threshold="2", gives=(*VOID, [0, 0]), id="no score is enough", **plain),
        case(type, since, BOXES[:, :0], SCORES[..., :0], gives=(*VOID, [0, 0]), id="no boxes", **plain),
        case(type, since, BOXES, SCORES[:, :0], gives=(*VOID, [0, 0]), id="no classes", **plain),
        case(type, since, BOXES[:0], SCORES[:0], gives=(*VOID, np.zeros(0, np.int64)), id="no batches", **plain),
        facts_case(type, since, "f32[2,6,4]", "f32[2,3,6]", id="static"),
        facts_case(type, since, "f32[2,6,4]", "f32[2,3,6]", nms_top_k="2", output_type="i32", id="best of a class"),
        facts_case(type, since, "f32[2,6,4]", "f32[2,3,6]", keep_top_k="5", id="best of a batch"),
        # Tighter than OpenVINO's inference, which counts the background class.
        facts_case(type, since, "f32[2,6,4]", "f32[2,3,6]", background_class="0", gives=("f32[0..24,6]", "i64[0..24,1]", "i64[2]"), id="background"),
        facts_case(type, since, "f32[?,6,4]", "f32[2..4,?,6]", keep_top_k="5", gives=("f32[0..20,6]", "i64[0..20,1]", "i64[2..4]"), id="bounded"),
        facts_case(type, since, "f32[...]", "f32[?,3,6]", gives=("f32[?,6]", "i64[?,1]", "i64[?]"), id="rank of boxes unknown"),
        refuses(type, since, "f32[2,6,4]", "f32[2,3,7]", says="sizes 6 and 7 differ", id="scores of other boxes"),
        refuses(type, since, "f32[2,6,5]", "f32[2,3,6]", says="sizes 5 and 4 differ", id="five coordinates"),
        refuses(type, since, "f32[2,6,4]", "f16[2,3,6]", says="f32 and f16 differ", id="types that differ"),
        refuses(type, since, "i32[2,6,4]", "i32[2,3,6]", says="boxes has element type i32", id="integers"),
        refuses(type, since, "f32[2,6,4]", "f32[2,3,6]", nms_top_k="-2", says="-2 is below", id="nms_top_k -2"),
    ]  # fmt: skip
for decay in ("linear", "gaussian"):
    row = Operation(MATRIX, 8)
    texts = {"decay_function": decay}
    ROWS += [
        row(BOXES, SCORES, post_threshold="0.3", gaussian_sigma="0.5", id=f"{decay}, post_threshold", **texts),
        row(BOXES, SCORES, gaussian_sigma="3", nms_top_k="4", id=f"{decay}, best 4", **texts),
        row(BIG, SCORES, normalized="false", id=f"{decay}, not normalized", **texts),
        row(BOXES[:, [0, 0, 1, 1, 2, 2]], SCORES, score_threshold="0.1", id=f"{decay}, boxes twice", **texts),
        # A box that is upside down has no area.
        row(BOXES[..., [2, 1, 0, 3]], SCORES, id=f"{decay}, upside down", **texts),
        row(np.concatenate([BOXES[:, :3], BOXES[:, 3:, [0, 1, 0, 1]]], 1), SCORES, id=f"{decay}, points", **texts),
    ]
# The names that the specification has for sort_result_type and classid; OpenVINO does not know them. By hand.
SORTED = np.array([[0, 0.9, 0, 0, 1, 1], [1, 0.95, 2, 2, 3, 3]], np.float32)
for type, since in ((MATRIX, 8), (MULTI, 8), (MULTI, 9)):
    ROWS += [
        case(
            type, since, HALVES[:, [0, 2]], np.array([[[0.9, -1], [-1, 0.95]]], np.float32), sort_result_across_batch="true", gives=(SORTED, [[0], [1]], [2]),
            id=f"{name}={order}", **{name: order},
        )
        for name, order in (("sort_result", "class"), ("sort_result_type", "class"), ("sort_result", "classid"))
    ]  # fmt: skip
for since in (8, 9):
    ROWS += [
        *(case(MULTI, since, BOXES, SCORES, iou_threshold="0.7", nms_eta=eta, id=f"nms_eta {eta}") for eta in ("1", "0.9", "0.5", "0")),
        case(MULTI, since, BOXES, SCORES, iou_threshold="0.9", nms_eta="0.8", nms_top_k="4", id="nms_eta of the best 4"),
        case(MULTI, since, typed("f16", BOXES), typed("f16", SCORES), iou_threshold="0.31", id="f16"),
        # The plugin and the reference agree that an overlap equal to the threshold goes, and at 0 all but one.
        case(MULTI, since, HALVES, FALLING, iou_threshold="0.5", id="an overlap equal to the threshold goes"),
        case(MULTI, since, HALVES, FALLING, id="threshold 0 keeps one"),
        case(MULTI, since, HALVES, FALLING, iou_threshold="0.6", score_threshold="0.75", id="score threshold"),
        case(MULTI, since, HALVES, np.array([[[0.5, 0.25, 0.5, 0.125]]], np.float32), iou_threshold="0.6", score_threshold="0.25", id="a score equal to the threshold stays"),
        refuses(MULTI, since, "f32[2,6,4]", "f32[2,3,6]", nms_eta="1.5", says="nms_eta 1.5 is not between 0 and 1", id="nms_eta beyond 1"),
    ]  # fmt: skip
OWN, OWN_SCORES = _corners(6, 3, 7), _scores(7, 3, 7)
for order in ("none", "score", "classid"):
    for across in ("true", "false"):
        texts = {"iou_threshold": "0.31", "sort_result_type": order, "sort_result_across_batch": across}
        ROWS.append(
            case(MULTI, 9, OWN, OWN_SCORES, [2, 0, 5], id=f"own boxes, sorted by {order}, across {across}", **texts)
        )
ROWS += [
    *(case(MULTI, 9, OWN, OWN_SCORES, [3, 4], iou_threshold="0.31", id=f"own boxes, {_said(k)}", **k) for k in LIMITS),
    case(MULTI, 9, OWN, OWN_SCORES, [3, 4], iou_threshold="0.8", nms_eta="0.7", normalized="false", id="own boxes, nms_eta"),
    case(MULTI, 9, OWN, OWN_SCORES, typed("i32", [3, 2]), iou_threshold="0.5", id="own boxes, some of none"),
    case(MULTI, 9, typed("f16", OWN), typed("f16", OWN_SCORES), [7], iou_threshold="0.5", id="own boxes, f16"),
    # By hand: no image has a box.
    case(MULTI, 9, OWN, OWN_SCORES, [0, 0], gives=(*VOID, [0, 0]), id="own boxes, of none"),
    facts_case(MULTI, 9, "f32[3,7,4]", "f32[3,7]", "i64[2]", id="own boxes"),
    facts_case(MULTI, 9, "f32[3,7,4]", "f32[3,7]", "i64[2]", keep_top_k="4", nms_top_k="3", id="own boxes, best"),
    facts_case(MULTI, 9, "f32[3,7,4]", "f32[3,7]", "i64[?]", output_type="i32", id="own boxes, images unknown"),
    facts_case(MULTI, 9, "f32[...]", "f32[?,?]", "i64[...]", id="own boxes, rank unknown"),
    refuses(MULTI, 9, "f32[3,7,4]", "f32[3,3,7]", "i64[2]", says="scores has rank 3, expected 2", id="own boxes, shared scores"),
    refuses(MULTI, 9, "f32[3,7,4]", "f32[3,7]", "i64[2,1]", says="roisnum has rank 2, expected 1", id="matrix of roisnum"),
    refuses(MULTI, 9, "f32[3,7,4]", "f32[3,7]", "f32[2]", says="roisnum has element type f32", id="float roisnum"),
    refuses(MULTI, 9, "f32[3,7,4]", "f32[3,6]", "i64[2]", says="sizes 7 and 6 differ", id="own boxes, scores of others"),
]  # fmt: skip
ROWS += [*halves(ROWS), *odd(ROWS)]
LEANT = np.float32([[[1, 1, 2, 2, 0.3], [1.1, 1, 2, 2, 0.3], [5, 5, 2, 1, 0], [9, 9, 1, 1, 1]]])
LEANT_SCORES = np.float32([[[0.5, 0.5, 0.25, 0.75]]])
ROWS += [
    case(ROTATED, 13, LEANT, LEANT_SCORES, 9, 0.5, 0.5, id="a score equal to the threshold"),
    *(
        case(
            ROTATED,
            13,
            LEANT,
            np.full((1, 2, 4), 0.5, np.float32),
            9,
            0.5,
            0.1,
            sort_result_descending=text,
            id=f"equal scores, sorted {text}",
        )
        for text in ("true", "false")
    ),
    case(ROTATED, 13, LEANT, LEANT_SCORES, 9, -1.0, 0.1, id="negative threshold"),
    case(ROTATED, 13, LEANT, LEANT_SCORES, 9, 0.5, -1.0, id="every score is enough"),
]
