"""Rows of comparisons."""

import numpy as np

from irexec.testing import case, facts_case, random, refuses, typed
from tests.cases import Operation
from tests.support.cases import PDPD_AXIS, emptied, halves

# OpenVINO turns a > b into b < a, and with it whose axes pdpd aligns: for these NumPy on shapes aligned by hand.
FIRST, SECOND = random("i32", 2, 3, 4, high=2, low=0), random("i32", 2, 1, high=2, low=0)
PDPD_BY_HAND = {
    "Greater": np.greater(FIRST.array, SECOND.array.reshape(2, 1, 1)),
    "GreaterEqual": np.greater_equal(FIRST.array, SECOND.array.reshape(2, 1, 1)),
}
SQUARE = random("i32", 3, 3, low=0, high=2)
FROM_1 = {"Greater": SQUARE.array > np.arange(3), "GreaterEqual": SQUARE.array >= np.arange(3)}
ROWS = []
for op in ("Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual"):
    row = Operation(op, 1)
    ROWS += [
        row([1.0, 2.0, 3.0], [3.0, 2.0, 1.0], id="f32"),
        row(random("i32", 2, 1, 4, low=0, high=3), random("i32", 3, 1, low=0, high=3, seed=1), id="i32 both stretch"),
        row(typed("f16", [1, 2, 3]), typed("f16", [3, 2, 1]), id="f16"),
        row(typed("u8", [1, 2, 255]), typed("u8", [3, 2, 1]), id="u8"),
        row(typed("i64", [[1, 2], [3, 4]]), 2, id="scalar on the right"),
        row(FIRST, SECOND, auto_broadcast="pdpd", gives=PDPD_BY_HAND.get(op), id="pdpd"),
        row(
            SQUARE,
            typed("i32", [0, 1, 2]),
            auto_broadcast="pdpd",
            **{PDPD_AXIS: 1},
            gives=FROM_1.get(op),
            id="pdpd from axis 1",
        ),
        row([1.0, 2.0], [1.0, 3.0], auto_broadcast="none", id="none"),
        row(random("f32", 0), random("f32", 1), gives=np.zeros(0, np.bool_), id="empty"),
        row.facts("f32[?,3]", "f32[2,1]", id="dynamic"),
        row.refuses("f32[2]", "i32[2]", says="element types f32 and i32 differ", id="types that differ"),
    ]
NAN = np.float32("nan")
ROWS += [
    case("Equal", 1, [NAN, NAN], [NAN, 1.0], gives=np.array([False, False]), id="NaN equals nothing"),
    case("NotEqual", 1, [NAN, NAN], [NAN, 1.0], gives=np.array([True, True]), id="NaN differs from all"),
    case("Equal", 1, typed("boolean", [True, False]), typed("boolean", [True, True]), id="booleans"),
]
VALUES = [0.0, 1.5, -np.inf, np.inf, NAN]
for op in ("IsFinite", "IsInf", "IsNaN"):
    ROWS += [
        case(op, 10, VALUES, id="f32"),
        case(op, 10, typed("f16", VALUES), id="f16"),
        case(op, 10, typed("bf16", VALUES), id="bf16"),
        case(op, 10, np.float32(1), id="scalar"),
        facts_case(op, 10, "f32[?,3]", id="dynamic"),
        refuses(op, 10, "i32[3]", says="expected a floating-point type", id="integers"),
    ]
ROWS += [
    case("IsInf", 10, VALUES, detect_negative="false", id="positive alone"),
    case("IsInf", 10, VALUES, detect_positive="false", id="negative alone"),
    case(
        "IsInf", 10, VALUES, detect_positive="false", detect_negative="false", gives=np.zeros(5, np.bool_), id="neither"
    ),
]
for op in ("Less", "LessEqual", "Greater", "GreaterEqual"):
    # IEEE: NaN is neither less nor greater.
    left, right = np.float32([NAN, 1, NAN, np.inf, -np.inf, np.inf]), np.float32([1, NAN, NAN, 1, 1, np.inf])
    is_true = {"Less": [4], "LessEqual": [4, 5], "Greater": [3], "GreaterEqual": [3, 5]}[op]
    ROWS.append(case(op, 1, left, right, gives=np.isin(np.arange(6), is_true), id="NaN and infinities"))
ROWS += [*halves(ROWS), *emptied(ROWS, "IsFinite", "IsInf", "IsNaN")]
for op in ("Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual"):
    ROWS.append(case(op, 1, np.float32(1.5), np.float32(2), id="scalars"))
