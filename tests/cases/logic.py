"""Rows of logical and bitwise operations, and of Select."""

import numpy as np

from irexec.testing import case, facts_case, random, refuses, typed
from tests.cases import Operation
from tests.support.cases import PDPD_AXIS, emptied, halves

T, F = typed("boolean", [True, True, False, False]), typed("boolean", [True, False, True, False])
NAN = float("nan")
ROWS = []
for op in ("LogicalAnd", "LogicalOr", "LogicalXor", "Xor"):
    ROWS += [
        case(op, 1, T, F, id="all four"),
        case(op, 1, random("boolean", 2, 1, 3), random("boolean", 4, 1, seed=1), id="both stretch"),
        case(op, 1, T, F, auto_broadcast="none", id="none"),
        case(op, 1, random("boolean", 2, 3), random("boolean", 2, seed=1), auto_broadcast="pdpd", id="pdpd"),
        facts_case(op, 1, "boolean[?,3]", "boolean[2,1]", id="dynamic"),
        refuses(op, 1, "f32[2]", "f32[2]", says="expected boolean", id="floats"),
    ]
ROWS += [
    case("LogicalNot", 1, T, id="both"),
    facts_case("LogicalNot", 1, "boolean[...]", id="dynamic"),
    refuses("LogicalNot", 1, "i32[2]", says="expected boolean", id="integers"),
    case("BitwiseNot", 13, typed("i32", [0, 5, -1]), id="i32"),
    case("BitwiseNot", 13, typed("u8", [0, 5, 255]), id="u8"),
    case("BitwiseNot", 13, T, id="booleans"),
    facts_case("BitwiseNot", 13, "u8[?]", id="dynamic"),
    refuses("BitwiseNot", 13, "f32[2]", says="expected an integer type or boolean", id="floats"),
]
for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
    ROWS += [
        case(op, 13, typed("i32", [12, -1, 7]), typed("i32", [10, 6, -8]), id="i32"),
        case(op, 13, typed("u8", [[12], [255]]), typed("u8", [10, 6]), id="u8 both stretch"),
        case(op, 13, T, F, id="booleans"),
        case(op, 13, typed("i64", [12, -1]), typed("i64", [10, 6]), auto_broadcast="none", id="i64 none"),
        facts_case(op, 13, "i32[?,3]", "i32[2,1]", id="dynamic"),
        refuses(op, 13, "f32[2]", "f32[2]", says="expected an integer type or boolean", id="floats"),
    ]
for op in ("BitwiseLeftShift", "BitwiseRightShift"):
    ROWS += [
        case(op, 15, typed("i32", [12, 1, 7, -8]), typed("i32", [1, 4, 0, 2]), id="i32"),
        case(op, 15, typed("u8", [[12], [200]]), typed("u8", [1, 3]), id="u8 both stretch"),
        case(op, 15, typed("i64", [12]), typed("i64", [2]), auto_broadcast="none", id="none"),
        facts_case(op, 15, "i32[?,3]", "i32[2,1]", id="dynamic"),
        refuses(op, 15, "boolean[2]", "boolean[2]", says="expected an integer type", id="booleans"),
    ]
select = Operation("Select", 1)
ROWS += [
    select(typed("boolean", [True, False, True]), [1.0, 2.0, 3.0], [-1.0, -2.0, -3.0], id="same shapes"),
    select(random("boolean", 2, 1, 3), random("f32", 4, 1), random("f32", 1, 3, seed=1), id="all stretch"),
    select(typed("boolean", True), random("f32", 2, 3), random("f32", 3, seed=1), id="scalar condition"),
    select(
        typed("boolean", [True, False]), typed("i64", [1, 2]), typed("i64", [3, 4]), auto_broadcast="none", id="none"
    ),
    select(random("boolean", 2), random("f32", 2, 3), random("f32", 2, 1, seed=1), auto_broadcast="pdpd", id="pdpd"),
    select(
        random("boolean", 3, 1),
        random("f32", 2, 3, 4),
        random("f32", 3, seed=1),
        auto_broadcast="pdpd",
        **{PDPD_AXIS: 1},
        id="pdpd from axis 1",
    ),
    select(random("boolean", 2, 3), random("f16", 2, 3), random("f16", 2, 3, seed=1), id="f16"),
    select(random("boolean", 3), random("boolean", 3, seed=1), random("boolean", 3, seed=2), id="booleans"),
    select(random("boolean", 0), random("f32", 0), random("f32", 1), gives=np.zeros(0, np.float32), id="empty"),
    select.facts("boolean[?,1]", "f32[2..4,3]", "f32[1]", id="bounded"),
    select.facts("boolean[...]", "f32[2,3]", "f32[2,3]", id="rank unknown"),
    select.refuses("f32[2]", "f32[2]", "f32[2]", says="cond has element type f32", id="condition of floats"),
    select.refuses(
        "boolean[2]", "f32[2]", "i32[2]", says="element types f32 and i32 differ", id="branches that differ"
    ),
]
for op, since in (
    ("BitwiseAnd", 13),
    ("BitwiseOr", 13),
    ("BitwiseXor", 13),
    ("BitwiseLeftShift", 15),
    ("BitwiseRightShift", 15),
):
    left, right = random("i32", 2, 3, 4, low=0, high=99), random("i32", 2, 1, low=0, high=9, seed=1)
    function = {
        "And": np.bitwise_and, "Or": np.bitwise_or, "Xor": np.bitwise_xor, "LeftShift": np.left_shift,
        "RightShift": np.right_shift,
    }  # fmt: skip
    # The plugin aligns the second operand at the end: NumPy on shapes aligned by hand.
    aligned = function[op.removeprefix("Bitwise")](left.array, right.array.reshape(2, 1, 1))
    ROWS += [
        case(op, since, left, right, auto_broadcast="pdpd", gives=aligned, id="pdpd"),
        case(
            op,
            since,
            typed("u8", [[5], [6]]),
            typed("u8", [1, 2]),
            auto_broadcast="pdpd",
            **{PDPD_AXIS: 0},
            gives=function[op.removeprefix("Bitwise")](np.uint8([[5], [6]]), np.uint8([[1], [2]])),
            id="pdpd from axis 0",
        ),
        case(op, since, typed("u8", 5), typed("u8", [[1], [2]]), id="scalar"),
    ]
ROWS += [
    case("LogicalNot", 1, typed("boolean", True), id="scalar"),
    select(
        typed("boolean", [True, False, True, False]),
        [NAN, 1.0, np.inf, 2.0],
        [3.0, NAN, 4.0, -np.inf],
        id="NaN and infinities",
    ),
    *emptied(
        ROWS, "LogicalAnd", "LogicalOr", "LogicalXor", "Xor", "BitwiseAnd", "BitwiseOr", "BitwiseXor", inputs=(0, 1)
    ),
    *emptied(ROWS, "BitwiseLeftShift", "BitwiseRightShift", inputs=(0, 1)),
    *emptied(ROWS, "LogicalNot", "BitwiseNot"),
    *halves(ROWS),
]
ROWS += [select(typed("boolean", [True, False]), [2**60, 1], [1, -(2**60)], id="large i64")]
ROWS += [
    case(op, 1, typed("boolean", True), typed("boolean", False), id="scalars")
    for op in ("LogicalAnd", "LogicalOr", "LogicalXor", "Xor")
]
ROWS.append(case("BitwiseNot", 13, typed("i32", 5), id="scalar"))
