"""Rows of TopK, NonZero and CumSum."""

import numpy as np

from irexec.testing import case, facts_case, random, refuses, typed
from tests.cases import Operation
from tests.support.cases import emptied, halves, odd

X = random("f32", 3, 7)
TIES = [[1.0, 3.0, 3.0, 2.0, 3.0], [5.0, 5.0, 1.0, 1.0, 0.0]]
ROWS = []
for since in (1, 3, 11):
    row = Operation("TopK", since, axis="1", mode="max", sort="value")
    for mode in ("max", "min"):
        ROWS += [
            case("TopK", since, X, 3, axis="1", mode=mode, sort="value", id=f"{mode} by value"),
            case("TopK", since, X, 3, axis="-1", mode=mode, sort="index", id=f"{mode} by index"),
            case("TopK", since, X, 2, axis="0", mode=mode, sort="value", id=f"{mode}, axis 0"),
        ]
    ROWS += [
        row(typed("i32", [[3, -5, 9, 0]]), 2, id="i32"),
        row(typed("u8", [[3, 255, 9, 0]]), 2, mode="min", id="u8"),
        row.facts("f32[?,7]", 3, id="dynamic"),
        row.facts("f32[2,7]", "i64[]", id="k unknown"),
        row.facts("f32[...]", 3, id="rank unknown"),
        row.refuses("f32[2,7]", 3, axis="2", says="axis 2 is out of range", id="axis out of range"),
        row.refuses("f32[2,7]", 9, says="k is 9, the axis has only 7", id="k too large"),
    ]
for since in (3, 11):
    ROWS += [
        case("TopK", since, X, 3, axis="1", mode="max", sort="value", index_element_type="i64", id="i64 indices"),
        case("TopK", since, X, 3, axis="1", mode="max", sort="value", index_element_type="i32", id="i32 indices"),
    ]
top_k_11 = Operation("TopK", 11, axis="1", mode="max", sort="value")
cum_sum = Operation("CumSum", 3)
ROWS += [
    # Stable: of equal values the lower index first (specification of TopK-11).
    top_k_11(
        TIES,
        3,
        stable="true",
        index_element_type="i64",
        gives=(np.array([[3, 3, 3], [5, 5, 1]], np.float32), typed("i64", [[1, 2, 4], [0, 1, 2]])),
        id="stable max",
    ),
    top_k_11(
        TIES,
        3,
        mode="min",
        stable="true",
        index_element_type="i64",
        gives=(np.array([[1, 2, 3], [0, 1, 1]], np.float32), typed("i64", [[0, 3, 1], [4, 2, 3]])),
        id="stable min",
    ),
    case("NonZero", 3, [[0, 3, 0], [4, 0, 5]], id="i64"),
    case("NonZero", 3, [[0.0, 3.0], [4.0, 0.0]], output_type="i32", id="f32 to i32"),
    case("NonZero", 3, typed("boolean", [True, False, True]), output_type="i64", id="booleans"),
    case("NonZero", 3, [0, 0], gives=np.zeros((1, 0), np.int64), id="none"),
    facts_case("NonZero", 3, "f32[2,?]", output_type="i32", id="dynamic"),
    facts_case("NonZero", 3, "f32[2,3]", id="bounded"),
    facts_case("NonZero", 3, "f32[...]", id="rank unknown"),
    cum_sum.facts("f32[?,3]", 1, id="dynamic"),
    cum_sum.refuses("f32[2,3]", 2, says="axis 2 is out of range", id="axis out of range"),
    cum_sum(typed("i32", [1, 2, 3]), 0, id="i32"),
    cum_sum(random("f16", 2, 5), 1, id="f16"),
    cum_sum(X, -1, id="negative axis"),
    # OpenVINO does not run it without an axis; 0 by the specification.
    cum_sum(X, gives=np.cumsum(X.array, 0), id="default axis"),
]
for exclusive in ("false", "true"):
    for reverse in ("false", "true"):
        ROWS.append(cum_sum(X, 1, exclusive=exclusive, reverse=reverse, id=f"exclusive {exclusive}, reverse {reverse}"))
ROWS += [
    case(
        "TopK",
        1,
        [5.0, 3.0, 9.0],
        2,
        axis="0",
        mode="max",
        sort="value",
        index_element_type="i64",
        id="i64 indices of version 1",
    ),
    top_k_11.facts("f32[2,1..9]", 3, id="axis bounded"),
    top_k_11.refuses("f32[2,1..2]", 3, says="k is 3, the axis has only 1..2", id="k beyond any size"),
]
NAN, INF = float("nan"), float("inf")
ODD = np.float32([[1, NAN, INF, -INF, NAN, 2]])
for since in (1, 3, 11):
    ROWS += [
        # In any order, by the specification: here the best first.
        case("TopK", since, [[1.0, 3.0, 2.0]], 2, axis="1", mode="max", sort="none", gives=(np.float32([[3, 2]]), np.array([[1, 2]], np.int32)), id="max in any order"),
        case("TopK", since, [[1.0], [3.0], [2.0]], 2, axis="0", mode="min", sort="none", gives=(np.float32([[1], [2]]), np.array([[0], [2]], np.int32)), id="min in any order"),
        # NaN comes last, as in the reference; the plugin leaves it where it stood.
        case("TopK", since, ODD, 5, axis="1", mode="max", sort="value", gives=(np.float32([[INF, 2, 1, -INF, NAN]]), np.array([[2, 5, 0, 3, 1]], np.int32)), id="max, NaN last"),
        case("TopK", since, ODD, 5, axis="1", mode="min", sort="value", gives=(np.float32([[-INF, 1, 2, INF, NAN]]), np.array([[3, 0, 5, 2, 1]], np.int32)), id="min, NaN last"),
        case(
            "TopK", since, TIES, 3, axis="1", mode="max", sort="index",
            gives=(np.float32([[3, 3, 3], [5, 5, 1]]), np.array([[1, 2, 4], [0, 1, 2]], np.int32)), id="ties by index",
        ),
        case("TopK", since, typed("i64", [5, 2, 9]), 3, axis="-1", mode="min", sort="value", id="all of a vector"),
        case("TopK", since, X, 1, axis="1", mode="max", sort="value", id="one"),
        case("TopK", since, X, 0, axis="1", mode="max", sort="value", gives=(np.zeros((3, 0), np.float32), np.zeros((3, 0), np.int32)), id="none"),
    ]  # fmt: skip
ROWS += [
    cum_sum([1.0, NAN, 2.0, INF, -INF], 0, id="NaN and infinities"),
    cum_sum([1.0, INF, 2.0], 0, exclusive="true", reverse="true", id="infinity, exclusive and backwards"),
    case("NonZero", 3, [NAN, 0.0, -0.0, INF], id="NaN and infinities"),
    case("NonZero", 3, np.float32(3), id="scalar"),
    case("NonZero", 3, np.float32(0), id="scalar of 0"),
    facts_case("NonZero", 3, "f32[]", id="a scalar"),
    refuses("NonZero", 3, "string[3]", says="data has element type string", id="text"),
]
ROWS += [*halves(ROWS), *odd(ROWS), *emptied(ROWS, "TopK", "NonZero", "CumSum")]
ROWS += [
    # Specification of TopK-11: its example of equal values in order of their indices.
    top_k_11([5.0, 3.0, 1.0, 2.0, 5.0, 5.0], 4, axis="0", mode="min", sort="index", stable="true",
        gives=(np.float32([5, 3, 1, 2]), np.array([0, 1, 2, 3], np.int32)), id="example of equal values",
    ),
    top_k_11.refuses("f32[2,7]", 3, axis="1", mode="max", sort="none", stable="true", says="stable needs an order", id="stable in no order"),
    cum_sum(typed("u8", [200, 100]), 0, id="u8 wraps"),
]  # fmt: skip
# OpenVINO crashes at it: by the definition.
ROWS += [
    cum_sum(np.float32(3), 0, gives=np.float32(3), id="scalar"),
    cum_sum(np.float32(3), 0, exclusive="true", gives=np.float32(0), id="scalar, exclusive"),
]
