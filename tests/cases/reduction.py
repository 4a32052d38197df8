"""Rows of reductions."""

import numpy as np

from irexec.testing import case, facts_case, random, refuses, typed
from tests.cases import Operation
from tests.support.cases import emptied, odd

NUMBERS = {
    "ReduceSum": 1, "ReduceMean": 1, "ReduceProd": 1, "ReduceMax": 1, "ReduceMin": 1, "ReduceL1": 4, "ReduceL2": 4,
}  # fmt: skip
LOGICAL = ("ReduceLogicalAnd", "ReduceLogicalOr")
T = typed("boolean", [True, False])
ROWS = []
for op, since in NUMBERS.items():
    X = random("f32", 2, 3, 4, low=0.5, high=1.5)
    ROWS += [
        case(op, since, X, [1], keep_dims="true", id="middle kept"),
        case(op, since, X, [1], keep_dims="false", id="middle"),
        case(op, since, X, [0, 2], keep_dims="false", id="two axes"),
        case(op, since, X, [-1], keep_dims="true", id="negative axis"),
        case(op, since, X, 1, id="scalar axis, default"),
        case(op, since, X, [0, 1, 2], id="all axes"),
        case(op, since, random("f16", 2, 3, 4), [1, 2], keep_dims="true", id="f16"),
        case(op, since, random("bf16", 2, 3, 4), [1, 2], keep_dims="true", id="bf16"),
        case(op, since, random("i32", 2, 5, low=-9, high=9), [1], id="i32"),
        case(op, since, random("i64", 2, 5, low=0, high=9), [1], keep_dims="true", id="i64"),
        facts_case(op, since, "f32[?,3,2..5]", [1], keep_dims="true", id="dynamic kept"),
        facts_case(op, since, "f32[?,3,2..5]", [0, -1], keep_dims="false", id="dynamic"),
        facts_case(op, since, "f32[2,3,4]", "i64[1]", keep_dims="true", id="axes unknown, kept"),
        facts_case(op, since, "f32[2,3,4]", "i64[1]", keep_dims="false", id="one axis unknown"),
        facts_case(op, since, "f32[]", "i64[?]", keep_dims="false", id="a scalar, axes unknown"),
        facts_case(op, since, "f32[2,3,4]", "i64[]", keep_dims="false", id="one axis unknown, scalar"),
        facts_case(op, since, "f32[2,3]", "i64[2]", keep_dims="false", id="two axes unknown"),
        facts_case(op, since, "f32[...]", [0], keep_dims="false", id="rank unknown"),
        refuses(op, since, "f32[2,3]", [2], says="axis 2 is out of range for data of rank 2", id="axis out of range"),
        refuses(
            op, since, "boolean[2,3]", [1], says="data has element type boolean, expected a numeric type", id="booleans"
        ),
    ]
for op in LOGICAL:
    X = random("boolean", 2, 3, 4)
    ROWS += [
        case(op, 1, X, [1], keep_dims="true", id="middle kept"),
        case(op, 1, X, [0, 2], keep_dims="false", id="two axes"),
        case(op, 1, X, [-1], id="negative axis, default"),
        facts_case(op, 1, "boolean[?,3,2..5]", [1], keep_dims="true", id="dynamic"),
        refuses(op, 1, "f32[2,3]", [1], says="data has element type f32, expected boolean", id="floats"),
    ]
ROWS += [
    case("ReduceSum", 1, random("f32", 2, 0), [1], gives=np.zeros(2, np.float32), id="of nothing"),
    case("ReduceProd", 1, random("f32", 2, 0), [1], gives=np.ones(2, np.float32), id="of nothing"),
    case("ReduceMean", 1, typed("i32", [[7, 8], [-7, -8]]), [1], id="i32 cut towards zero"),
    # The CPU plugin saturates the sum at 255; that u8 arithmetic wraps is settled.
    case("ReduceMean", 1, typed("u8", [[200, 100]]), [1], gives=np.array([22], np.uint8), id="u8"),
    case("ReduceSum", 1, random("f32", 3), np.zeros(0, np.int64), gives=random("f32", 3), id="no axes"),
    case("ReduceMax", 1, typed("i32", [[-5, -9]]), [1], id="negative i32"),
    case("ReduceSum", 1, random("f32", 300, 7), [0], id="many"),
]
# NaN is passed over as in the reference, and stays where there is nothing else; in the plugin it depends on the position.
for op in ("ReduceMax", "ReduceMin"):
    row = Operation(op, 1)
    highest = op == "ReduceMax"
    end = -np.inf if highest else np.inf
    data = np.float32([[np.nan, 1, 2], [1, np.nan, np.inf], [-np.inf, np.inf, 0], [np.nan] * 3])
    ROWS += [
        row(
            data,
            [1],
            gives=np.float32([2, np.inf, np.inf, np.nan] if highest else [1, 1, -np.inf, np.nan]),
            id="NaN and infinities",
        ),
        # Of floats as ONNX has it; IR leaves it open, and OpenVINO has the lowest f32 for the one and infinity for the other.
        *(
            row(random(kind, 2, 0), [1], gives=typed(kind, [end, end]), id=f"of nothing, {kind}")
            for kind in ("f32", "f16")
        ),
        row(random("i32", 2, 0, high=5), [1], id="of nothing, i32"),
        row(
            random("f32", 2, 3, 0),
            [1, 2],
            gives=np.full((2, 1, 1), end, np.float32),
            keep_dims="true",
            id="of nothing, two axes",
        ),
    ]
for op in LOGICAL:
    ROWS.append(case(op, 1, T, [0], id="vector"))
ROWS += [
    # Nothing to be true is all true and none true.
    case("ReduceLogicalAnd", 1, random("boolean", 2, 0), [1], gives=typed("boolean", [True, True]), id="of nothing"),
    case("ReduceLogicalOr", 1, random("boolean", 2, 0), [1], gives=typed("boolean", [False, False]), id="of nothing"),
    *odd(ROWS),
    *emptied(ROWS, *NUMBERS, *LOGICAL),
]
# OpenVINO makes 0 of a mean of nothing.
ROWS += [
    *(case(op, NUMBERS[op], random("f32", 2, 0), [1], id="of none") for op in ("ReduceMean", "ReduceL1", "ReduceL2")),
    *(case(op, since, random("f32", 3), np.zeros(0, np.int64), id="nothing reduced") for op, since in NUMBERS.items()),
    case("ReduceMax", 1, np.float32(3), np.zeros(0, np.int64), id="scalar"),
]
# Data without axes have an axis 0 for OpenVINO, of which nothing comes; with keep_dims it crashes.
ROWS += [
    *(
        case(
            op,
            since,
            np.float32(-1.5),
            [0],
            keep_dims="true",
            gives=np.float32(1.5 if op in ("ReduceL1", "ReduceL2") else -1.5),
            id="scalar, axis 0",
        )
        for op, since in NUMBERS.items()
    ),
    refuses("ReduceSum", 1, "f32[]", [1], says="axis 1 is out of range", id="scalar, axis out of range"),
]
ROWS += [case(op, 1, typed("boolean", True), [-1], gives=np.array(True), id="scalar, axis -1") for op in LOGICAL]
