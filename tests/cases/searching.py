"""Rows of Bucketize, SearchSorted and Unique."""

import numpy as np

from irexec.testing import random, typed
from tests.cases import Operation
from tests.support.cases import emptied, halves

INF = float("inf")
NAN = float("nan")
SLICES = [[1.0, 2.0], [0.0, 5.0], [1.0, 2.0], [0.0, 4.0]]
bucketize = Operation("Bucketize", 3)
ROWS = [
    # Specification of Bucketize-3: its example.
    bucketize([[3, 50], [10, -1]], [0, 5, 10], gives=[[1, 3], [2, 0]], id="example"),
    bucketize(random("f32", 2, 3), [-0.5, 0.0, 0.25], output_type="i32", with_right_bound="true", id="i32 right bound"),
    bucketize(random("f32", 2, 3), [-0.5, 0.0, 0.25], output_type="i64", with_right_bound="false", id="i64 left bound"),
    bucketize([1.0, 2.0, NAN, 3.0], [1.0, 2.0, 2.5], with_right_bound="true", output_type="i64", id="NaN, right bound"),
    bucketize([1.0, 2.0, NAN, 3.0], [1.0, 2.0, 2.5], with_right_bound="false", output_type="i64", id="NaN, left bound"),
    bucketize([1.0, 2.5, 7.0], [2, 5], output_type="i32", id="f32 among i64"),
    # Specification: no boundaries, bucket 0.
    bucketize([1.0, 2.5], np.zeros(0, np.float32), gives=[0, 0], id="no boundaries"),
    bucketize.facts("f32[?,2..3]", "f32[?]", output_type="i32", id="dynamic"),
    bucketize.facts("f32[...]", "f32[3]", output_type="i64", id="rank unknown"),
    bucketize.refuses("f32[2]", "f32[2,3]", says="buckets has rank 2, expected 1", id="matrix of buckets"),
]
search_sorted = Operation("SearchSorted", 15)
for right in ("false", "true"):
    texts = {"right_mode": right}
    ROWS += [
        search_sorted([1, 2, 2, 4], [0, 1, 2, 3, 4, 5], id=f"i64, right {right}", **texts),
        search_sorted([1.0, 2.0, 3.0], [[2.0, 0.0], [3.5, 1.0]], id=f"matrix in one sequence, right {right}", **texts),
        search_sorted([1.0, 2.0, 3.0], np.float32(2), id=f"scalar, right {right}", **texts),
        search_sorted(
            [[1.0, 2.0, 2.0], [4.0, 5.0, 6.0]], [[2.0, 0.0], [4.0, 9.0]], id=f"a sequence each, right {right}", **texts
        ),
        search_sorted([1.0, 2.0], [1.0, NAN], id=f"NaN, right {right}", **texts),
        search_sorted(
            typed("u8", [3, 200]), typed("u8", [3, 255]), output_type="i32", id=f"u8 to i32, right {right}", **texts
        ),
    ]
ROWS += [
    search_sorted.facts("f32[?,3]", "f32[2,?]", id="dynamic"),
    search_sorted.facts("f32[2,3]", "f32[...]", id="rank of the values unknown"),
    search_sorted.refuses("f32[2,3]", "f32[3,3]", says="sizes 2 and 3 differ", id="other sizes"),
    search_sorted.refuses("f32[2,3]", "f32[2]", says="different ranks", id="other ranks"),
    search_sorted.refuses("f32[3]", "i32[3]", says="differ", id="types that differ"),
]
unique = Operation("Unique", 10)
for ordered in ("true", "false"):
    texts = {"sorted": ordered}
    ROWS += [
        unique([[3, 1, 3], [2, 1, 0]], id=f"i64, sorted {ordered}", **texts),
        unique(
            [1.5, -0.0, 0.0, 1.5],
            index_element_type="i32",
            count_element_type="i32",
            id=f"f32 to i32, sorted {ordered}",
            **texts,
        ),
        unique(SLICES, 0, id=f"rows, sorted {ordered}", **texts),
        unique(SLICES, -1, index_element_type="i32", id=f"columns, sorted {ordered}", **texts),
        unique(
            random("i32", 2, 3, 2, low=0, high=2),
            [1],
            count_element_type="i32",
            id=f"middle axis, sorted {ordered}",
            **texts,
        ),
        unique([7.0], id=f"one number, sorted {ordered}", **texts),
    ]
ROWS += [
    # NaN differs from NaN: C++'s comparison, as the reference goes by.
    unique(
        [NAN, 1.0, NAN, 1.0],
        sorted="false",
        gives=(np.array([NAN, 1, NAN], np.float32), [0, 1, 2], [0, 1, 2, 1], [1, 2, 1]),
        id="NaN, not sorted",
    ),
    unique(np.zeros((0, 2), np.float32), gives=(np.zeros(0, np.float32), *(np.zeros(0, np.int64),) * 3), id="nothing"),
    unique(
        typed("string", ["b", "a", "b"]), gives=(typed("string", ["a", "b"]), [1, 0], [1, 0, 1], [1, 2]), id="string"
    ),
    unique.facts("f32[?,3]", id="dynamic"),
    unique.facts("f32[2,3]", id="bounded"),
    unique.facts("f32[2,4..6]", 1, index_element_type="i32", id="axis"),
    unique.facts("f32[...]", 1, id="rank unknown"),
    unique.refuses("f32[2,3]", 2, says="axis 2 is out of range", id="axis out of range"),
]
ROWS += [*halves(ROWS), *emptied(ROWS, "SearchSorted", inputs=(1,))]
for right in ("true", "false"):
    texts = {"with_right_bound": right, "output_type": "i64"}
    ROWS += [
        bucketize(np.float32(2.5), [1.0, 2.0, 3.0], id=f"scalar, right bound {right}", **texts),
        bucketize([2.0, 2.5], [2.0, 2.0, 2.0], id=f"equal boundaries, right bound {right}", **texts),
        bucketize([INF, -INF, 0.0], [-INF, 0.0, INF], id=f"infinities, right bound {right}", **texts),
        bucketize(np.zeros((0, 2), np.float32), [1.0, 2.0], id=f"empty, right bound {right}", **texts),
        search_sorted([-INF, 1.0, INF], [INF, -INF, 2.0], right_mode=right, id=f"infinities, right {right}"),
        # The plugin leaves what was in memory: before nothing comes nothing.
        search_sorted(np.zeros(0, np.float32), [1.0], right_mode=right, gives=[0], id=f"no sequence, right {right}"),
    ]
ROWS += [
    unique(np.float32(3), id="scalar"),
    unique([INF, -INF, INF, 0.0], id="infinities"),
    unique(typed("boolean", [True, False, True]), id="boolean"),
    # By hand: for the second row the plugin gives the last index, not the first.
    unique(
        typed("u8", [[200, 3], [200, 3], [7, 3]]),
        0,
        gives=(typed("u8", [[7, 3], [200, 3]]), [2, 0], [1, 1, 0], [1, 2]),
        id="u8 rows",
    ),
]
