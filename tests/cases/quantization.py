"""Rows of FakeQuantize."""

import numpy as np

from tests.support.cases import case, emptied, facts_case, halves, random, refuses, typed

X = random("f32", 2, 3, 4, low=-3, high=3)
ROWS = [
    case("FakeQuantize", 1, X, -2.0, 2.0, -2.0, 2.0, levels="256", id="256 levels"),
    case("FakeQuantize", 1, X, -2.0, 2.0, 0.0, 1.0, levels="5", id="another range"),
    case("FakeQuantize", 1, X, 0.0, 1.0, -1.0, 1.0, levels="2", id="two levels"),
    # By the specification's formula; the CPU plugin gives the low bound throughout.
    case("FakeQuantize", 1, [-3.0, 3.0], 2.0, -2.0, -1.0, 1.0, levels="16", gives=[-1.0, 1.0], id="input range upside down"),
    case("FakeQuantize", 1, X, -2.0, 2.0, 2.0, -2.0, levels="16", id="output range upside down"),
    case(
        "FakeQuantize",
        1,
        X,
        random("f32", 1, 3, 1, low=-2, high=-1),
        random("f32", 1, 3, 1, low=1, high=2),
        [[[-1.0]]],
        [[[1.0]]],
        levels="16",
        id="one range a channel",
    ),
    # By the formula of the specification; of NaN nothing else can come.
    case(
        "FakeQuantize",
        1,
        [-np.inf, np.inf, np.nan, 0.0],
        -1.0,
        1.0,
        -3.0,
        5.0,
        levels="3",
        gives=np.float32([-3, 5, np.nan, 1]),
        id="numbers that are none",
    ),
    case(
        "FakeQuantize",
        1,
        random("f32", 2, 3, 4, low=-3, high=3),
        random("f32", 3, 1, low=-2, high=-1),
        random("f32", 3, 1, low=1, high=2),
        random("f32", 3, 1, low=-2, high=-1, seed=1),
        2.0,
        levels="17",
        id="bounds for each row",
    ),
    case("FakeQuantize", 1, [0.5, 1.5, 2.5, -0.5], 0.0, 4.0, 0.0, 4.0, levels="5", id="halves go to even"),
    case("FakeQuantize", 1, random("f16", 2, 3), *(typed("f16", v) for v in (-1, 1, -1, 1)), levels="16", id="f16"),
    facts_case("FakeQuantize", 1, "f32[?,3]", "f32[...]", "f32[?,?]", "f32[]", "f32[3]", levels="16", id="bounds of unknown shapes"),
    refuses(
        "FakeQuantize",
        1,
        "f32[1,3]",
        "f32[2,3]",
        "f32[]",
        "f32[]",
        "f32[]",
        levels="16",
        says="cannot be broadcast to data",
        id="larger bounds",
    ),
    facts_case("FakeQuantize", 1, "f32[?,3,2..5]", "f32[3,1]", "f32[]", "f32[]", "f32[]", levels="16", id="dynamic"),
    refuses("FakeQuantize", 1, "f32[2,3]", "f32[4]", "f32[]", "f32[]", "f32[]", levels="16", says="cannot be broadcast", id="other sizes"),
]
ROWS += [
    case("FakeQuantize", 1, random("f32", 2, 3, low=-3, high=3), *(np.full((2, 3), v, np.float32) for v in (-2, 2, -1, 1)), levels="16", auto_broadcast="none", id="none"),
    # By the specification's formula, on ranges aligned with the data from the front.
    case("FakeQuantize", 1, [[-3.0, 0.4], [0.6, 3.0]], [-1.0, 0.0], [1.0, 1.0], [-1.0, 0.0], [1.0, 1.0], levels="3", auto_broadcast="pdpd",
         gives=[[-1.0, 0.0], [0.5, 1.0]], id="pdpd"),
    # By the formula: NaN is on neither side of a range, and no level is near it.
    case("FakeQuantize", 1, [np.nan, np.inf, -np.inf], -2.0, 2.0, 0.0, 1.0, levels="5", gives=[np.nan, 1.0, 0.0], id="NaN and infinities"),
]  # fmt: skip
ROWS += [*halves(ROWS), *emptied(ROWS, "FakeQuantize")]
ROWS.append(case("FakeQuantize", 1, np.float32(1.4), 0.0, 2.0, 0.0, 2.0, levels="3", id="scalar"))
ROWS += [
    refuses(
        "FakeQuantize",
        1,
        "f32[3,2]",
        "f32[3,2]",
        "f32[3,2]",
        "f32[3,2,2]",
        "f32[3,2]",
        levels="16",
        auto_broadcast="none",
        says="shapes [3,2] and [3,2,2] differ",
        id="none, other rank",
    ),
    refuses(
        "FakeQuantize",
        1,
        "f32[3,2]",
        "f32[3,2]",
        "f32[1,2]",
        "f32[3,2]",
        "f32[3,2]",
        levels="16",
        auto_broadcast="none",
        says="sizes 3 and 1 differ",
        id="none, other sizes",
    ),
]
