"""Rows of Gather and its relatives."""

import numpy as np

from irexec.testing import case, random, refuses, typed
from tests.cases import Operation
from tests.support.cases import emptied, halves, odd

X = random("f32", 4, 3, 5)
ROWS = []
for since in (1, 7, 8):
    row = Operation("Gather", since)
    ROWS += [
        row(X, [0, 3], 0, id="axis 0"),
        row(X, [[0, 2], [1, 1]], 1, id="matrix of indices"),
        row(X, 2, 2, id="scalar index"),
        row(X, [0], -1, id="negative axis"),
        row(typed("i64", [5, 6, 7]), typed("i32", [2, 0]), 0, id="i64"),
        row.facts("f32[?,2..5]", "i64[3]", 1, id="dynamic"),
        row.facts("f32[2,3]", "i64[?]", "i64[]", id="axis unknown"),
        row.facts("f32[...]", "i64[3]", 1, id="rank unknown"),
        row.refuses("f32[4,3]", "i64[1]", 5, says="axis 5 is out of range", id="axis out of range"),
        row.refuses(
            "f32[4,3]", "f32[1]", 0, says="indices has element type f32, expected an integer type", id="float indices"
        ),
    ]
gather_8 = Operation("Gather", 8)
gather_elements = Operation("GatherElements", 6, axis="0")
ROWS += [
    gather_8(X, [-1, -4], 0, id="negative indices"),
    # Specification: an index out of range gives zeros.
    gather_8([1.0, 2.0], [0, 3, -3], 0, gives=np.array([1, 0, 0], np.float32), id="out of range is zero"),
    gather_8(random("f32", 0, 3), [0], 0, gives=np.zeros((1, 3), np.float32), id="out of nothing"),
    gather_8(X, np.zeros(0, np.int64), 1, gives=np.zeros((4, 0, 5), np.float32), id="no indices"),
    case("Gather", 7, random("f32", 2, 5), [[0, 4], [3, 1]], 1, batch_dims="1", id="batch"),
    case("Gather", 7, random("f32", 2, 3, 5), [[0, 4, 1], [3, 1, 0]], 2, batch_dims="1", id="batch, axis beyond it"),
    gather_8(random("f32", 2, 5, 3), [[0, -1], [3, 1]], 1, batch_dims="1", id="batch with a rest"),
    gather_8(random("f32", 2, 2, 5), random("i64", 2, 2, 3, low=0, high=5), 2, batch_dims="2", id="two batch axes"),
    gather_8(random("f32", 2, 5), [[0, 4], [3, 1]], 1, batch_dims="-1", id="negative batch_dims"),
    gather_8(
        random("f32", 2, 3, 4, 5), random("i64", 2, 2, low=0, high=4), 2, batch_dims="1", id="batch, between, rest"
    ),
    gather_8.facts("f32[?,7,3]", "i64[2,5]", 1, batch_dims="1", id="batch, dynamic"),
    gather_8.refuses(
        "f32[2,5]", "i64[2,2]", 0, batch_dims="1", says="batch_dims 1 is above axis 0", id="batch above the axis"
    ),
    gather_elements(random("f32", 3, 4), random("i64", 2, 4, low=0, high=3), id="axis 0"),
    gather_elements(random("f32", 3, 4), random("i32", 3, 6, low=0, high=4), axis="1", id="axis 1, i32"),
    gather_elements(random("f32", 3, 4), [[-1, 0], [1, -4], [2, 2]], axis="-1", id="negative indices and axis"),
    gather_elements(
        random("i32", 2, 3, 4, low=0, high=9), random("i64", 2, 2, 4, low=0, high=3), axis="1", id="rank 3"
    ),
    gather_elements.facts("f32[3,?,4]", "i64[...]", axis="1", id="rank of the indices unknown"),
    gather_elements.facts("f32[?,4]", "i64[2,?]", id="dynamic"),
    gather_elements.refuses("f32[3,4]", "i64[2,5]", says="sizes 5 and 4 differ", id="other sizes"),
    gather_elements.refuses("f32[3,4]", "i64[2]", says="different ranks", id="other ranks"),
]
for since in (5, 8):
    row = Operation("GatherND", since)
    ROWS += [
        row(X, [[0, 1], [3, 2]], id="rows"),
        row(X, [[[0, 1, 2]], [[3, 2, 4]]], id="numbers"),
        row(X, [2], id="one row"),
        row(random("f32", 2, 3, 4), [[[1], [0]], [[2], [1]]], batch_dims="1", id="batch"),
        row(random("f32", 2, 3, 4, 5), random("i64", 2, 3, 1, low=0, high=4), batch_dims="2", id="two batch axes"),
        row.facts("f32[?,3,4]", "i64[?,2]", id="dynamic"),
        row.facts("f32[5,3,4]", "i64[5,?,1]", batch_dims="1", id="batch, dynamic"),
        row.facts("f32[...]", "i64[3,2]", id="rank unknown"),
        row.refuses("f32[4,3]", "i64[2,3]", says="fewer axes", id="too deep"),
        row.refuses(
            "f32[4,3]", "i64[4,1]", batch_dims="2", says="batch_dims 2 is out of range", id="batch out of range"
        ),
    ]
STEPS = np.array([[[1, 2, 3]], [[4, 5, 6]], [[7, 8, 9]]], np.int32)
PARENTS = np.array([[[0, 0, 0]], [[0, 1, 1]], [[2, 1, 2]]], np.int32)
gather_tree = Operation("GatherTree", 1)
for length, end in ((3, 10), (2, 10), (3, 5)):
    ROWS.append(
        gather_tree(STEPS, PARENTS, typed("i32", [length]), typed("i32", end), id=f"length {length}, end {end}")
    )
ROWS += [
    gather_tree(
        random("i32", 4, 2, 3, low=0, high=5),
        random("i32", 4, 2, 3, low=0, high=3, seed=1),
        typed("i32", [4, 3]),
        typed("i32", 4),
        id="two batches",
    ),
    gather_tree(STEPS.astype(np.float32), PARENTS.astype(np.float32), [3.0], 5.0, id="f32"),
    gather_tree.facts("i32[?,2,3]", "i32[4,?,3]", "i32[2]", "i32[]", id="dynamic"),
    gather_tree.refuses("i32[4,2]", "i32[4,2]", "i32[2]", "i32[]", says="step_ids has rank 2, expected 3", id="rank 2"),
    gather_tree.refuses(
        "i32[4,2,3]", "i32[4,2,3]", "i32[3]", "i32[]", says="sizes 2 and 3 differ", id="lengths of another batch"
    ),
]
ROWS.append(gather_8.facts("f32[3,1,2]", "i64[3,4]", "i64[]", batch_dims="1", id="axis unknown, batch known"))
for since in (5, 8):
    refused = refuses(
        "GatherND",
        since,
        "f32[4,3]",
        "i64[4,1]",
        batch_dims="-1",
        says="batch_dims -1 is negative",
        id="negative batch_dims",
    )
    ROWS.append(refused)
ROWS += [
    case("Gather", 7, random("f32", 2, 5), [[0, 4], [3, 1]], -1, batch_dims="-1", id="negative batch_dims and axis"),
    case("Gather", 1, random("boolean", 4), [2, 0], 0, id="boolean"),
    gather_8(typed("string", ["a", "b"]), [1, -2, 1], 0, gives=typed("string", ["b", "a", "b"]), id="text"),
    gather_elements([1.0, 2.0, 3.0], [2, 2, 0], id="vector"),
    case("GatherND", 8, typed("i32", [5, 6, 7]), [[2], [0]], id="vector of i32"),
]
ROWS += [
    *halves(ROWS),
    *odd(ROWS),
    *emptied(ROWS, "Gather", "GatherElements", "GatherND", inputs=(1,)),
    *emptied(ROWS, "GatherTree", inputs=(0, 1)),
]
ROWS += [
    gather_8(X, [-5], 0, id="below the range"),
    *(case("GatherND", since, random("f32", 4, 3), [[-1, -1], [0, -3]], id="negative indices") for since in (5, 8)),
    # By the definition: indices of no numbers name the whole of the data.
    case("GatherND", 8, [1.0, 2.0], np.zeros((2, 0), np.int64), gives=[[1.0, 2.0]] * 2, id="indices of nothing"),
    gather_tree(
        STEPS, PARENTS, typed("i32", [0]), typed("i32", 9), gives=np.full((3, 1, 3), 9, np.int32), id="length 0"
    ),
]
