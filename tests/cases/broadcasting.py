"""Rows of Broadcast, Tile and Pad."""

import numpy as np

from irexec.testing import case, facts_case, random, refuses, typed
from tests.cases import Operation
from tests.support.cases import halves, odd

X = random("f32", 3, 1)
ROWS = []
for since in (1, 3):
    row = Operation("Broadcast", since)
    ROWS += [
        row(X, [2, 3, 4], id="default"),
        row(X, [3, 4], mode="numpy", id="numpy"),
        row(np.float32(2), [2, 2], mode="numpy", id="scalar"),
        row(random("f32", 3), [3, 4], [0], mode="explicit", id="explicit"),
        row(random("f32", 3, 4), [3, 2, 4], [0, 2], mode="explicit", id="explicit, two axes"),
        row(typed("i64", [1, 2]), typed("i32", [3, 2]), id="i64"),
        row.facts("f32[3,1]", "i64[3]", id="target unknown"),
        row.facts("f32[?,1]", [2, 3, 4], id="dynamic"),
        row.facts("f32[...]", [2, 3], id="rank unknown"),
        row.refuses("f32[3,2]", [3, 4], says="[3,2] cannot be broadcast to [3,4]", id="does not fit"),
        row.refuses("f32[3]", [3, 4], mode="explicit", says="needs axes_mapping", id="explicit without mapping"),
        row.refuses("f32[3]", [4, 4], [0], mode="explicit", says="does not fit", id="explicit that does not fit"),
    ]
broadcast_1 = Operation("Broadcast", 1, mode="pdpd")
broadcast_3 = Operation("Broadcast", 3, mode="bidirectional")
ROWS += [
    broadcast_1(random("f32", 3), [3, 4], [0], mode="none", id="explicit as OpenVINO writes it"),
    broadcast_1.facts("f32[?]", [3, 4], [0], mode="none", id="explicit as OpenVINO writes it, dynamic"),
    broadcast_3(random("f32", 3, 1), [1, 4], id="bidirectional"),
    broadcast_3(random("f32", 2, 3, 4), [1, 4], id="bidirectional, data larger"),
    broadcast_3.facts("f32[?,1]", [1, 4], id="bidirectional, dynamic"),
    case("Tile", 1, random("f32", 2, 3), [2, 2], id="both axes"),
    case("Tile", 1, random("f32", 3), [2, 1, 2], id="more repeats"),
    case("Tile", 1, random("f32", 2, 3), [2], id="fewer repeats"),
    case("Tile", 1, random("i32", 2, 3, low=0, high=9), typed("i32", [1, 3]), id="i32"),
    case("Tile", 1, random("f32", 2, 3), [0, 1], gives=np.zeros((0, 3), np.float32), id="no repeats"),
    facts_case("Tile", 1, "f32[?,2..3]", [2, 3], id="bounded"),
    facts_case("Tile", 1, "f32[2,3]", "i64[2]", id="repeats unknown"),
    facts_case("Tile", 1, "f32[...]", [2, 3], id="rank unknown"),
]
for since in (1, 12):
    row = Operation("Pad", since, pad_mode="constant")
    for mode in ("constant", "edge", "reflect", "symmetric"):
        ROWS += [
            case("Pad", since, random("f32", 3, 4), [1, 2], [2, 1], pad_mode=mode, id=f"{mode}"),
            case("Pad", since, random("f32", 2, 3, 4), [0, 1, 2], [1, 0, 1], pad_mode=mode, id=f"{mode}, rank 3"),
            case(
                "Pad",
                since,
                np.float32(5),
                typed("i64", []),
                typed("i64", []),
                pad_mode=mode,
                gives=np.float32(5),
                id=f"{mode}, rank 0",
            ),
        ]
    ROWS += [
        row(random("f32", 3, 4), [1, 0], [0, 2], np.float32(7), id="value"),
        row(random("i32", 3, low=0, high=9), [1], [2], typed("i32", -1), id="i32"),
        row.facts("f32[?,2..5]", [1, 0], [0, 2], id="dynamic"),
        row.facts("f32[2,3]", "i64[2]", [0, 2], id="pads unknown"),
        row.facts("f32[...]", [1, 0], [0, 2], pad_mode="edge", id="rank unknown"),
        row.refuses(
            "f32[2,3]",
            [0, 0],
            "i64[3]",
            says="pads_end has 3 elements for data f32[2,3]",
            id="too many pads, which are not known",
        ),
        row.refuses(
            "f32[2,3]", [1], [0], pad_mode="edge", says="pads_begin has 1 elements for data f32[2,3]", id="too few pads"
        ),
        row.refuses(
            "f32[2,3]", [2, 0], [0, 0], pad_mode="reflect", says="mode reflect can add at most 1", id="reflect too far"
        ),
    ]
ROWS += [
    refuses(
        "Pad",
        1,
        "f32[2,3]",
        [-1, 0],
        [0, 0],
        pad_mode="constant",
        says="pads -1 and 0: Pad-1 does not allow negative ones",
        id="negative",
    ),
    case("Pad", 12, random("f32", 3, 4), [-1, 2], [2, -1], pad_mode="constant", id="negative"),
    case("Pad", 12, random("f32", 3, 4), [-1, -1], [0, -1], pad_mode="edge", id="negative alone"),
    refuses(
        "Pad",
        12,
        "f32[2,3]",
        [-1, 0],
        [-2, 0],
        pad_mode="constant",
        says="pads -1 and -2 remove more than an axis of 2 has",
        id="more than there is",
    ),
]
for mode, begin, end in (("reflect", -1, 2), ("symmetric", -2, 3), ("edge", -3, 2), ("constant", -2, 1)):
    ROWS.append(case("Pad", 12, [1.0, 2.0, 3.0], [begin], [end], pad_mode=mode, id=f"{mode}, cut and added"))
ROWS += [
    # OpenVINO always writes axes_mapping, and runs pdpd on data of as many axes alone; of fewer, by its rule for element-wise operations.
    broadcast_1(random("f32", 3, 1), [3, 4], typed("u8", [0]), id="pdpd"),
    broadcast_1(random("f32", 3, 1), [3, 4], typed("u8", 0), mode="numpy", id="numpy as OpenVINO writes it"),
    broadcast_1.refuses("f32[2]", [2, 3], 0, mode="explicit", says="axes_mapping has rank 0", id="scalar axes_mapping"),
    broadcast_1(
        random("f32", 3, 1), [2, 3, 4], typed("u8", 0), **{"mode.auto_broadcast_axis": 1}, id="pdpd from axis 1"
    ),
    broadcast_1(
        random("f32", 3), [2, 3, 3], typed("u8", 0), **{"mode.auto_broadcast_axis": -1}, id="pdpd from axis -1"
    ),
    broadcast_1([1.0, 2.0], [2, 3], gives=[[1.0] * 3, [2.0] * 3], id="pdpd, more axes"),
    broadcast_1.facts("f32[?,1]", [3, 4], typed("u8", [0]), id="pdpd, dynamic"),
    broadcast_1.refuses("f32[3]", [2, 3], says="does not fit", id="pdpd that does not fit"),
    broadcast_1.refuses("f32[2,3,1]", [2, 3], says="more axes", id="pdpd of more axes"),
    broadcast_1(random("f32", 0, 3), [0, 3], mode="numpy", gives=np.zeros((0, 3), np.float32), id="empty"),
    broadcast_3(random("f32", 1, 3), [0, 3], gives=np.zeros((0, 3), np.float32), id="to nothing"),
    broadcast_3(random("f32", 1), np.zeros(0, np.int64), id="bidirectional, target of no axes"),
    case("Tile", 1, np.float32(4), [3], id="scalar"),
    case("Tile", 1, random("boolean", 2), [1, 2], id="boolean"),
    refuses("Tile", 1, "f32[2]", [2.0], says="expected an integer type", id="repeats of floats"),
]
ROWS += [*halves(ROWS), *odd(ROWS)]
for since in (1, 12):
    ROWS.append(
        case(
            "Pad",
            since,
            random("f32", 0, 2),
            [1, 0],
            [1, 1],
            np.float32(7),
            pad_mode="constant",
            gives=np.full((2, 3), 7, np.float32),
            id="of nothing",
        )
    )
ROWS += [case("Tile", 1, random("f32", 2, 3), np.zeros(0, np.int64), id="repeats of no axes")]
