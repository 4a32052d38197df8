"""Rows of Bucketize, SearchSorted and Unique."""

import numpy as np

from irexec.testing import case, facts_case, random, refuses, typed
from tests.support.cases import emptied, halves

INF = float("inf")
NAN = float("nan")
SLICES = [[1.0, 2.0], [0.0, 5.0], [1.0, 2.0], [0.0, 4.0]]
ROWS = [
    # Specification of Bucketize-3: its example.
    case("Bucketize", 3, [[3, 50], [10, -1]], [0, 5, 10], gives=[[1, 3], [2, 0]], id="example"),
    case(
        "Bucketize",
        3,
        random("f32", 2, 3),
        [-0.5, 0.0, 0.25],
        output_type="i32",
        with_right_bound="true",
        id="i32 right bound",
    ),
    case(
        "Bucketize",
        3,
        random("f32", 2, 3),
        [-0.5, 0.0, 0.25],
        output_type="i64",
        with_right_bound="false",
        id="i64 left bound",
    ),
    case(
        "Bucketize",
        3,
        [1.0, 2.0, NAN, 3.0],
        [1.0, 2.0, 2.5],
        with_right_bound="true",
        output_type="i64",
        id="NaN, right bound",
    ),
    case(
        "Bucketize",
        3,
        [1.0, 2.0, NAN, 3.0],
        [1.0, 2.0, 2.5],
        with_right_bound="false",
        output_type="i64",
        id="NaN, left bound",
    ),
    case("Bucketize", 3, [1.0, 2.5, 7.0], [2, 5], output_type="i32", id="f32 among i64"),
    # Specification: no boundaries, bucket 0.
    case("Bucketize", 3, [1.0, 2.5], np.zeros(0, np.float32), gives=[0, 0], id="no boundaries"),
    facts_case("Bucketize", 3, "f32[?,2..3]", "f32[?]", output_type="i32", id="dynamic"),
    facts_case("Bucketize", 3, "f32[...]", "f32[3]", output_type="i64", id="rank unknown"),
    refuses("Bucketize", 3, "f32[2]", "f32[2,3]", says="buckets has rank 2, expected 1", id="matrix of buckets"),
]
for right in ("false", "true"):
    texts = {"right_mode": right}
    ROWS += [
        case("SearchSorted", 15, [1, 2, 2, 4], [0, 1, 2, 3, 4, 5], id=f"i64, right {right}", **texts),
        case(
            "SearchSorted",
            15,
            [1.0, 2.0, 3.0],
            [[2.0, 0.0], [3.5, 1.0]],
            id=f"matrix in one sequence, right {right}",
            **texts,
        ),
        case("SearchSorted", 15, [1.0, 2.0, 3.0], np.float32(2), id=f"scalar, right {right}", **texts),
        case(
            "SearchSorted",
            15,
            [[1.0, 2.0, 2.0], [4.0, 5.0, 6.0]],
            [[2.0, 0.0], [4.0, 9.0]],
            id=f"a sequence each, right {right}",
            **texts,
        ),
        case("SearchSorted", 15, [1.0, 2.0], [1.0, NAN], id=f"NaN, right {right}", **texts),
        case(
            "SearchSorted",
            15,
            typed("u8", [3, 200]),
            typed("u8", [3, 255]),
            output_type="i32",
            id=f"u8 to i32, right {right}",
            **texts,
        ),
    ]
ROWS += [
    facts_case("SearchSorted", 15, "f32[?,3]", "f32[2,?]", id="dynamic"),
    facts_case("SearchSorted", 15, "f32[2,3]", "f32[...]", id="rank of the values unknown"),
    refuses("SearchSorted", 15, "f32[2,3]", "f32[3,3]", says="sizes 2 and 3 differ", id="other sizes"),
    refuses("SearchSorted", 15, "f32[2,3]", "f32[2]", says="different ranks", id="other ranks"),
    refuses("SearchSorted", 15, "f32[3]", "i32[3]", says="differ", id="types that differ"),
]
for ordered in ("true", "false"):
    texts = {"sorted": ordered}
    ROWS += [
        case("Unique", 10, [[3, 1, 3], [2, 1, 0]], id=f"i64, sorted {ordered}", **texts),
        case(
            "Unique",
            10,
            [1.5, -0.0, 0.0, 1.5],
            index_element_type="i32",
            count_element_type="i32",
            id=f"f32 to i32, sorted {ordered}",
            **texts,
        ),
        case("Unique", 10, SLICES, 0, id=f"rows, sorted {ordered}", **texts),
        case("Unique", 10, SLICES, -1, index_element_type="i32", id=f"columns, sorted {ordered}", **texts),
        case(
            "Unique",
            10,
            random("i32", 2, 3, 2, low=0, high=2),
            [1],
            count_element_type="i32",
            id=f"middle axis, sorted {ordered}",
            **texts,
        ),
        case("Unique", 10, [7.0], id=f"one number, sorted {ordered}", **texts),
    ]
ROWS += [
    # NaN differs from NaN: C++'s comparison, as the reference goes by.
    case(
        "Unique",
        10,
        [NAN, 1.0, NAN, 1.0],
        sorted="false",
        gives=(np.array([NAN, 1, NAN], np.float32), [0, 1, 2], [0, 1, 2, 1], [1, 2, 1]),
        id="NaN, not sorted",
    ),
    case(
        "Unique",
        10,
        np.zeros((0, 2), np.float32),
        gives=(np.zeros(0, np.float32), *(np.zeros(0, np.int64),) * 3),
        id="nothing",
    ),
    case(
        "Unique",
        10,
        typed("string", ["b", "a", "b"]),
        gives=(typed("string", ["a", "b"]), [1, 0], [1, 0, 1], [1, 2]),
        id="string",
    ),
    facts_case("Unique", 10, "f32[?,3]", id="dynamic"),
    facts_case("Unique", 10, "f32[2,3]", id="bounded"),
    facts_case("Unique", 10, "f32[2,4..6]", 1, index_element_type="i32", id="axis"),
    facts_case("Unique", 10, "f32[...]", 1, id="rank unknown"),
    refuses("Unique", 10, "f32[2,3]", 2, says="axis 2 is out of range", id="axis out of range"),
]
ROWS += [*halves(ROWS), *emptied(ROWS, "SearchSorted", inputs=(1,))]
for right in ("true", "false"):
    texts = {"with_right_bound": right, "output_type": "i64"}
    ROWS += [
        case("Bucketize", 3, np.float32(2.5), [1.0, 2.0, 3.0], id=f"scalar, right bound {right}", **texts),
        case("Bucketize", 3, [2.0, 2.5], [2.0, 2.0, 2.0], id=f"equal boundaries, right bound {right}", **texts),
        case("Bucketize", 3, [INF, -INF, 0.0], [-INF, 0.0, INF], id=f"infinities, right bound {right}", **texts),
        case("Bucketize", 3, np.zeros((0, 2), np.float32), [1.0, 2.0], id=f"empty, right bound {right}", **texts),
        case("SearchSorted", 15, [-INF, 1.0, INF], [INF, -INF, 2.0], right_mode=right, id=f"infinities, right {right}"),
        # The plugin leaves what was in memory: before nothing comes nothing.
        case(
            "SearchSorted",
            15,
            np.zeros(0, np.float32),
            [1.0],
            right_mode=right,
            gives=[0],
            id=f"no sequence, right {right}",
        ),
    ]
ROWS += [
    case("Unique", 10, np.float32(3), id="scalar"),
    case("Unique", 10, [INF, -INF, INF, 0.0], id="infinities"),
    case("Unique", 10, typed("boolean", [True, False, True]), id="boolean"),
    # By hand: for the second row the plugin gives the last index, not the first.
    case(
        "Unique",
        10,
        typed("u8", [[200, 3], [200, 3], [7, 3]]),
        0,
        gives=(typed("u8", [[7, 3], [200, 3]]), [2, 0], [1, 1, 0], [1, 2]),
        id="u8 rows",
    ),
]
