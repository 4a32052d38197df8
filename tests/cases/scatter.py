"""Rows of the operations that write numbers at their indices."""

import numpy as np

from irexec.testing import case, random, typed
from tests.cases import Operation
from tests.support.cases import halves, odd

X = random("f32", 4, 3)
CUBE = random("f32", 3, 2, 4)
INF = float("inf")

scatter_update = Operation("ScatterUpdate", 3)
ROWS = [
    scatter_update(X, [0, 2], random("f32", 2, 3, seed=1), 0, id="axis 0"),
    scatter_update(X, [0, 2], random("f32", 4, 2, seed=1), 1, id="axis 1"),
    scatter_update(X, typed("i32", [[0], [2]]), random("f32", 4, 2, 1, seed=1), [-1], id="matrix of indices, negative axis, i32"),
    scatter_update(X, [1, 1], random("f32", 2, 3, seed=1), 0, id="the last of two counts"),
    scatter_update(X, 1, random("f32", 3, seed=1), 0, id="scalar index"),
    scatter_update([1, 2, 3], [2], [9], 0, id="i64"),
    scatter_update(typed("boolean", [True, False]), [1], typed("boolean", [True]), 0, id="boolean"),
    scatter_update(typed("bf16", [1.5, 2, 3]), [1], typed("bf16", [-2]), 0, id="bf16"),
    scatter_update(X, np.zeros(0, np.int64), np.zeros((0, 3), np.float32), 0, gives=X, id="no indices"),
    scatter_update.facts("f32[?,3]", "i64[2]", "f32[2,?]", 0, id="dynamic"),
    scatter_update.facts("f32[...]", "i64[2]", "f32[2,3]", 0, id="rank unknown"),
    scatter_update.facts("f32[4,3]", "i64[2]", "f32[2,3]", "i64[]", id="axis unknown"),
    scatter_update.refuses("f32[4,3]", "i64[2]", "f32[2,4]", 0, says="expected [2,3]", id="updates that do not fit"),
    scatter_update.refuses("f32[4,3]", "i64[2]", "f32[2]", 0, says="updates have rank 1, expected 2", id="rank of the updates"),
    scatter_update.refuses("f32[4,3]", "i64[2]", "f32[2,3]", 2, says="axis 2 is out of range", id="axis out of range"),
    scatter_update.refuses("f32[4,3]", "i64[2]", "f16[2,3]", 0, says="differ", id="types that differ"),
    scatter_update.refuses("f32[4,3]", "f32[2]", "f32[2,3]", 0, says="expected an integer type", id="float indices"),
]  # fmt: skip
for since in (3, 12):
    row = Operation("ScatterElementsUpdate", since)
    ROWS += [
        row(X, [[0, 3, 1], [1, 1, 0]], random("f32", 2, 3, seed=1), 0, id="axis 0"),
        row(X, [[0, 2], [1, 0]], random("f32", 2, 2, seed=1), 1, id="axis 1, fewer rows"),
        row(X, [[-1], [-3]], random("f32", 2, 1, seed=1), [-1], id="negative indices and axis"),
        row(CUBE, typed("i32", [[[1, 0, 1, 1]]]), random("f32", 1, 1, 4, seed=1), 1, id="rank 3, i32"),
        row([1, 2, 3], [0, 1, 0, 2, 0], [5, 6, 7, 8, 9], 0, id="more updates than data"),
        row(typed("u8", [1, 2, 3]), [2], typed("u8", [255]), 0, id="u8"),
        row(random("f16", 3, 2), [[1, 0]], random("f16", 1, 2, seed=1), 0, id="f16"),
        row.facts("f32[?,3]", "i64[2,?]", "f32[?,3]", 0, id="dynamic"),
        row.facts("f32[...]", "i64[2,3]", "f32[2,3]", 0, id="rank unknown"),
        row.refuses("f32[4,3]", "i64[2,3]", "f32[2,2]", 0, says="expected [2,3]", id="updates that do not fit"),
        row.refuses("f32[4,3]", "i64[2]", "f32[2]", 0, says="different ranks", id="other ranks"),
        row.refuses("f32[4]", "i64[2]", "f32[2]", 1, says="axis 1 is out of range", id="axis out of range"),
    ]
# Specification of ScatterElementsUpdate-12: examples 1 to 5.
ONES, TWOS = np.ones((3, 4), np.int32), np.full((3, 4), 2, np.int32)
PLACES, FOUR = [[1, 1], [0, 3]], np.array([[11, 12], [13, 14]], np.int32)
scatter_elements_update_12 = Operation("ScatterElementsUpdate", 12)
for name, reduction, keeps, data, indices, updates, axis, gives in (
    ("1", "sum", "true", [2.0, 3, 4, 6], [1, 0, 0, -2, -1, 2], [10.0, 20, 30, 40, 70, 60], 0, [52.0, 13, 104, 76]),
    ("2", "sum", "false", [2.0, 3, 4, 6], [1, 0, 0, 2, 3, 2], [10.0, 20, 30, 40, 70, 60], 0, [50.0, 10, 100, 70]),
    (
        "3",
        "none",
        "true",
        ONES * 0,
        [[1, 2], [0, 3]],
        FOUR,
        1,
        np.array([[0, 11, 12, 0], [13, 0, 0, 14], [0, 0, 0, 0]], np.int32),
    ),
    ("4", "sum", "true", ONES, PLACES, FOUR, 1, np.array([[1, 24, 1, 1], [14, 1, 1, 15], [1, 1, 1, 1]], np.int32)),
    ("5", "prod", "true", TWOS, PLACES, FOUR, 1, np.array([[2, 264, 2, 2], [26, 2, 2, 28], [2, 2, 2, 2]], np.int32)),
):
    texts = {"reduction": reduction, "use_init_val": keeps}
    ROWS.append(scatter_elements_update_12(data, indices, updates, [axis], gives=gives, id=f"example {name}", **texts))
for reduction in ("none", "sum", "prod", "min", "max", "mean"):
    for keeps in ("true", "false"):
        texts = {"reduction": reduction, "use_init_val": keeps}
        name = f"{reduction}, initial values {keeps}"
        ROWS += [
            scatter_elements_update_12(
                X, [[0, 3, 1], [0, 1, 1]], random("f32", 2, 3, seed=1), 0, id=f"f32 {name}", **texts
            ),
            scatter_elements_update_12(
                typed("i32", [5, -7, 9]), [0, 1, 1, 0], typed("i32", [2, -4, -2, 6]), 0, id=f"i32 {name}", **texts
            ),
            scatter_elements_update_12(
                typed("f16", [5, -7, 9]), [0, 1, 1, 0], typed("f16", [2, -4, 2.5, 6]), 0, id=f"f16 {name}", **texts
            ),
        ]
        if reduction != "mean":
            bits = (
                typed("boolean", [True, False, True, False]),
                [0, 0, 2, 1, 3],
                typed("boolean", [False, True, False, True, False]),
            )
            ROWS.append(scatter_elements_update_12(*bits, 0, id=f"boolean {name}", **texts))
ROWS += [
    # The specification: without initial values only the updates count.
    scatter_elements_update_12(
        [1.0, 2.0],
        [0, 0],
        [INF, INF],
        0,
        gives=[INF, 2.0],
        reduction="min",
        use_init_val="false",
        id="minimum of infinities",
    ),
    scatter_elements_update_12(
        [1, 2, 3], [0, 0, 1], [-6, -2, 8], 0, gives=[-3, 5, 3], reduction="mean", id="mean of i64 rounded down"
    ),
    scatter_elements_update_12.refuses(
        "boolean[4]",
        "i64[2]",
        "boolean[2]",
        0,
        reduction="mean",
        says="not defined for booleans",
        id="mean of booleans",
    ),
]
for since in (4, 15):
    row = Operation("ScatterNDUpdate", since)
    ROWS += [
        row(X, [[0, 1], [3, 2]], random("f32", 2, seed=1), id="numbers"),
        row(X, [[0], [2]], random("f32", 2, 3, seed=1), id="rows"),
        row(CUBE, [[[0, 1]], [[2, 0]]], random("f32", 2, 1, 4, seed=1), id="indices of rank 3"),
        row(CUBE, [[-1, -2, -3]], random("f32", 1, seed=1), id="negative indices"),
        row(CUBE, typed("i32", [[1], [1]]), random("f32", 2, 2, 4, seed=1), id="the last of two counts, i32"),
        row([1, 2, 3], [1], [9], gives=[1, 9, 3], id="one index, updates of one number"),
        # By the specification: indices without numbers mean the whole of the data.
        row(
            [1.0, 2.0],
            np.zeros((2, 0), np.int64),
            [[3.0, 4.0], [5.0, 6.0]],
            gives=[5.0, 6.0],
            id="indices without numbers",
        ),
        row.facts("f32[?,3]", "i64[?,1]", "f32[2,3]", id="dynamic"),
        row.facts("f32[...]", "i64[2,1]", "f32[2,3]", id="rank unknown"),
        row.facts("f32[4,3]", "i64[2,?]", "f32[...]", id="depth unknown"),
        row.refuses("f32[4,3]", "i64[2,3]", "f32[2]", says="fewer axes", id="too deep"),
        row.refuses("f32[4,3]", "i64[2,1]", "f32[2,4]", says="expected [2,3]", id="updates that do not fit"),
        row.refuses("f32[4,3]", "i64[2,1]", "i32[2,3]", says="differ", id="types that differ"),
    ]
scatter_nd_update = Operation("ScatterNDUpdate", 15)
# Specification of ScatterNDUpdate-15: the plain example, and examples 2 to 4 with indices as it demands, one to a row;
# results worked out by its own formula, where those printed are wrong.
ROWS.append(
    scatter_nd_update(
        [1, 2, 3, 4, 5, 6, 7, 8],
        [[4], [3], [1], [7], [-2], [-4]],
        [9, 10, 11, 12, 13, 14],
        gives=[1, 11, 3, 10, 14, 6, 13, 12],
        id="example 1, the last of two counts",
    )
)
for reduction, gives in (("sum", [61, 72, 23, 4]), ("sub", [-59, -68, -17, 4]), ("prod", [500, 2400, 60, 4])):
    at, updates = [[0], [2], [-3], [-3], [0]], [10, 20, 30, 40, 50]
    ROWS.append(
        scatter_nd_update([1, 2, 3, 4], at, updates, gives=gives, reduction=reduction, id=f"example of {reduction}")
    )
for reduction in ("none", "sum", "sub", "prod", "min", "max"):
    bits = (
        typed("boolean", [True, False, True, False]),
        [[0], [0], [2], [1], [3]],
        typed("boolean", [False, True, True, True, False]),
    )
    ROWS += [
        scatter_nd_update(X, [[0], [2], [0]], random("f32", 3, 3, seed=1), reduction=reduction, id=f"f32 {reduction}"),
        scatter_nd_update(
            typed("f16", [5, -7, 9]),
            [[0], [1], [1]],
            typed("f16", [2, 4, -3]),
            reduction=reduction,
            id=f"f16 {reduction}",
        ),
        scatter_nd_update(
            typed("u8", [5, 250]), [[1], [0], [1]], typed("u8", [2, 7, 9]), reduction=reduction, id=f"u8 {reduction}"
        ),
        scatter_nd_update(*bits, reduction=reduction, id=f"boolean {reduction}"),
    ]
scatter_elements_update = Operation("ScatterElementsUpdate", 3)
ROWS += [
    scatter_update([1.0, 2.0, 3.0], [0, 2], [np.nan, -np.inf], 0, id="NaN and infinity"),
    scatter_elements_update(X, np.zeros((0, 3), np.int64), np.zeros((0, 3), np.float32), 0, gives=X, id="no indices"),
    scatter_elements_update_12(
        X,
        np.zeros((0, 3), np.int64),
        np.zeros((0, 3), np.float32),
        0,
        gives=X,
        reduction="sum",
        use_init_val="false",
        id="no indices",
    ),
    scatter_elements_update([1.0, 2.0, 3.0], [-1, -3], [np.nan, INF], 0, id="NaN and infinity"),
    *(
        case("ScatterNDUpdate", since, [1.0, 2.0, 3.0], [[2], [0]], [np.nan, INF], id="NaN and infinity")
        for since in (4, 15)
    ),
    # A sum of infinities of both signs is NaN.
    scatter_nd_update(
        [1.0, INF], [[0], [1]], [np.nan, -INF], reduction="sum", gives=[np.nan, np.nan], id="sum of NaN and infinities"
    ),
]
ROWS += [*halves(ROWS), *odd(ROWS)]
ROWS += [
    scatter_elements_update_12(
        typed("i32", [7, 8]),
        [0, 0],
        typed("i32", [2, -5]),
        0,
        reduction="mean",
        use_init_val="true",
        id="mean of i32 below zero",
    ),
    scatter_elements_update_12(typed("u8", [250, 8]), [0, 0], typed("u8", [7, 3]), 0, reduction="sum", id="u8 wraps"),
    *(
        case("ScatterNDUpdate", since, X, np.zeros((0, 1), np.int64), np.zeros((0, 3), np.float32), id="no indices")
        for since in (4, 15)
    ),
    scatter_nd_update(X, np.zeros((0, 2), np.int64), np.zeros(0, np.float32), reduction="sum", id="nothing to add"),
]
for since in (3, 12):
    row = Operation("ScatterElementsUpdate", since)
    ROWS += [
        row.refuses(
            "f32[4,1]",
            "i64[5,3]",
            "f32[5,3]",
            0,
            says="are larger than data f32[4,1] along axis 1",
            id="wider than data",
        ),
        row.refuses(
            "f32[2,0]",
            "i64[1,3]",
            "f32[1,3]",
            -2,
            says="are larger than data f32[2,0] along axis 1",
            id="of no columns",
        ),
        row.facts("f32[4,1]", "i64[5,?]", "f32[5,?]", 0, id="perhaps wider than data"),
        row.facts("f32[4,1]", "i64[5,3]", "f32[5,3]", "i64[]", id="wider than data along an unknown axis"),
    ]
