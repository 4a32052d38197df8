"""Rows of Range, OneHot and Eye."""

import numpy as np

from irexec.testing import case, facts_case, refuses, typed
from tests.cases import Operation
from tests.support.cases import emptied, halves

range_4 = Operation("Range", 4)
ROWS = [
    case("Range", 1, 2, 11, 3, id="i64"),
    case("Range", 1, typed("i32", 5), typed("i32", -3), typed("i32", -2), id="down"),
    case("Range", 1, np.float32(0), np.float32(1), np.float32(0.3), id="f32"),
    case("Range", 1, 5, 2, 1, gives=np.zeros(0, np.int64), id="nothing"),
    facts_case("Range", 1, "i64[]", 11, 3, id="start unknown"),
    facts_case("Range", 1, 0, 11, 3, id="known"),
    refuses("Range", 1, 0, 11, 0, says="step is 0", id="step 0"),
    range_4(2, 11, 3, output_type="i64", id="i64"),
    range_4(2, 11, 3, output_type="f32", id="i64 to f32"),
    range_4(np.float32(1.5), np.float32(5), np.float32(0.5), output_type="f32", id="f32"),
    range_4(np.float32(5), np.float32(1), np.float32(-0.7), output_type="f32", id="down"),
    range_4(np.float32(1), np.float32(5), np.float32(2), output_type="i32", id="f32 to i32"),
    range_4(np.float32(0), np.float32(3), np.float32(1), output_type="f16", id="f16"),
    range_4(np.float32(1), np.float32(5), np.float32(1.5), output_type="i64", gives=[1, 2, 3, 4], id="a step of fractions is truncated"),
    range_4(np.float32(1), np.float32(5), np.float32(0.5), output_type="i32", gives=np.zeros(0, np.int32), id="a step that is truncated to 0"),
    range_4.refuses(np.float32(1), np.float32(5), np.float32(0), output_type="i32", says="step is 0", id="step 0 of f32"),
    range_4.facts(0, "i64[]", 1, output_type="i32", id="stop unknown"),
    range_4.refuses(0, 11, 0, output_type="i64", says="step is 0", id="step 0"),
    range_4.refuses("i64[1]", 11, 1, output_type="i64", says="start has rank 1, expected 0", id="vector"),
    case("Eye", 9, 3, 4, 0, output_type="f32", id="f32"),
    case("Eye", 9, 3, 4, 1, output_type="i32", id="above"),
    case("Eye", 9, 3, 3, -2, output_type="f32", id="below"),
    case("Eye", 9, 2, 2, 0, [2, 1], output_type="f32", id="batches"),
    facts_case("Eye", 9, "i64[]", 4, 0, output_type="f32", id="rows unknown"),
    facts_case("Eye", 9, 2, 4, 0, "i64[2]", output_type="f32", id="batch unknown"),
]  # fmt: skip
for since in (1, 16):
    ROWS += [
        case("OneHot", since, [0, 2, 1], 3, 1.0, 0.0, axis="-1", id="last axis"),
        case("OneHot", since, [[0, 2], [1, 5]], 3, 2.0, -1.0, axis="1", id="middle, one beyond the depth"),
        case("OneHot", since, [0, 2, 1], 3, 1, 0, axis="0", id="i64 first axis"),
        case("OneHot", since, 1, 3, 1.0, 0.0, axis="0", id="scalar"),
        facts_case("OneHot", since, "i64[?,3]", 4, 1.0, 0.0, axis="-1", id="dynamic"),
        facts_case("OneHot", since, "i64[2,3]", "i64[]", 1.0, 0.0, axis="1", id="depth unknown"),
        facts_case("OneHot", since, "i64[...]", 4, 1.0, 0.0, axis="1", id="rank unknown"),
        refuses("OneHot", since, "i64[2]", -3, 1.0, 0.0, axis="0", says="depth is -3", id="negative depth"),
        refuses("OneHot", since, "i64[2]", 3, 1.0, 0, axis="0", says="differ", id="types that differ"),
        refuses(
            "OneHot", since, "i64[2]", 3, 1.0, 0.0, axis="4", says="axis 4 is out of range", id="axis out of range"
        ),
    ]
ROWS += [
    # Specification of OneHot-1: an index that is negative sets nothing.
    case(
        "OneHot", 1, [0, -1], 2, 1.0, 0.0, axis="-1", gives=np.array([[1, 0], [0, 0]], np.float32), id="negative index"
    ),
    case("OneHot", 16, [0, -1], 2, 1.0, 0.0, axis="-1", negative_indices_mode="ignore_negative", id="ignore_negative"),
    case("OneHot", 16, [0, -1, -2, -3], 2, 1.0, 0.0, axis="-1", negative_indices_mode="normalize", id="normalize"),
]
INF = float("inf")
for since in (1, 16):
    ROWS += [
        case("OneHot", since, [0, 1], 2, float("nan"), INF, axis="0", id="NaN and infinity"),
        case("OneHot", since, [0, 2], 0, 1.0, 0.0, axis="-1", gives=np.zeros((2, 0), np.float32), id="no depth"),
    ]
ROWS += [
    refuses("Range", 1, np.float32(0), np.float32(INF), np.float32(1), says="must be finite", id="infinity"),
    range_4.refuses(
        np.float32("nan"), np.float32(3), np.float32(1), output_type="f32", says="must be finite", id="NaN"
    ),
    range_4(5, 5, 1, output_type="i64", gives=np.zeros(0, np.int64), id="nothing"),
    range_4(typed("bf16", 0), typed("bf16", 2), typed("bf16", 0.5), output_type="bf16", id="bf16"),
    case("Eye", 9, typed("i32", [3]), typed("i32", [2]), typed("i32", [0]), output_type="u8", id="vectors of i32"),
    case("Eye", 9, 0, 3, 0, output_type="f32", gives=np.zeros((0, 3), np.float32), id="no rows"),
    case("Eye", 9, 2, 3, 5, output_type="f32", gives=np.zeros((2, 3), np.float32), id="diagonal outside"),
    case("Eye", 9, 3, 3, 1, output_type="f16", id="f16"),
    case("Eye", 9, 3, 3, -1, output_type="bf16", id="bf16"),
    refuses("Eye", 9, 1.0, 3, 0, output_type="f32", says="expected i32 or i64", id="rows of floats"),
    refuses("Eye", 9, -1, 3, 0, output_type="f32", says="num_rows is -1", id="fewer than no rows"),
]
ROWS += [*halves(ROWS), *emptied(ROWS, "OneHot")]
ROWS += [
    case("OneHot", 16, [-1, -4], 3, 1.0, 0.0, axis="0", negative_indices_mode="normalize", id="below the range"),
    range_4(np.float32(0), np.float32(1), np.float32(0.1), output_type="f32", id="tenths"),
    range_4(5, 0, -2, output_type="u8", id="u8 down"),
    range_4(np.float32(-1.9), np.float32(2.9), np.float32(1.9), output_type="i32", id="cut towards zero"),
]
ROWS += [
    refuses(
        "OneHot",
        16,
        "i64[0,1]",
        2**63 - 1,
        1.0,
        0.0,
        axis="0",
        says="shape [9223372036854775807,0,1], empty, but with other sizes",
        id="empty and vast",
    )
]
