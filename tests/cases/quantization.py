"""Rows of FakeQuantize."""

import numpy as np

from irexec.dtypes.elements import element
from irexec.testing import Case, random, typed
from tests.cases import Operation
from tests.support.cases import PDPD_AXIS, emptied, halves
from tests.support.exact_levels import fake_quantize

X = random("f32", 2, 3, 4, low=-3, high=3)
fake_quantize_rows = Operation("FakeQuantize", 1)
ROWS = [
    fake_quantize_rows(X, -2.0, 2.0, -2.0, 2.0, levels="256", id="256 levels"),
    fake_quantize_rows(X, -2.0, 2.0, 0.0, 1.0, levels="5", id="another range"),
    fake_quantize_rows(X, 0.0, 1.0, -1.0, 1.0, levels="2", id="two levels"),
    # By the specification's formula; the CPU plugin gives the low bound throughout.
    fake_quantize_rows([-3.0, 3.0], 2.0, -2.0, -1.0, 1.0, levels="16", gives=[-1.0, 1.0], id="input range upside down"),
    fake_quantize_rows(X, -2.0, 2.0, 2.0, -2.0, levels="16", id="output range upside down"),
    fake_quantize_rows(
        np.zeros((2, 0), np.float32),
        np.zeros((1, 0), np.float32),
        np.ones((1, 0), np.float32),
        0.0,
        1.0,
        levels="4",
        gives=np.zeros((2, 0), np.float32),
        id="no range",
    ),
    fake_quantize_rows(
        X,
        random("f32", 1, 3, 1, low=-2, high=-1),
        random("f32", 1, 3, 1, low=1, high=2),
        [[[-1.0]]],
        [[[1.0]]],
        levels="16",
        id="one range a channel",
    ),
    # By the formula of the specification; of NaN nothing else can come.
    fake_quantize_rows([-np.inf, np.inf, np.nan, 0.0], -1.0, 1.0, -3.0, 5.0, levels="3", gives=np.float32([-3, 5, np.nan, 1]), id="numbers that are none"),
    fake_quantize_rows(
        random("f32", 2, 3, 4, low=-3, high=3),
        random("f32", 3, 1, low=-2, high=-1),
        random("f32", 3, 1, low=1, high=2),
        random("f32", 3, 1, low=-2, high=-1, seed=1),
        2.0,
        levels="17",
        id="bounds for each row",
    ),
    fake_quantize_rows([0.5, 1.5, 2.5, -0.5], 0.0, 4.0, 0.0, 4.0, levels="5", id="halves go to even"),
    fake_quantize_rows(random("f16", 2, 3), *(typed("f16", v) for v in (-1, 1, -1, 1)), levels="16", id="f16"),
    fake_quantize_rows.facts("f32[?,3]", "f32[...]", "f32[?,?]", "f32[]", "f32[3]", levels="16", id="bounds of unknown shapes"),
    fake_quantize_rows.refuses("f32[1,3]", "f32[2,3]", "f32[]", "f32[]", "f32[]", levels="16", says="cannot be broadcast to data", id="larger bounds"),
    fake_quantize_rows.facts("f32[?,3,2..5]", "f32[3,1]", "f32[]", "f32[]", "f32[]", levels="16", id="dynamic"),
    fake_quantize_rows.refuses("f32[2,3]", "f32[4]", "f32[]", "f32[]", "f32[]", levels="16", says="cannot be broadcast", id="other sizes"),
]  # fmt: skip
ROWS += [
    fake_quantize_rows(random("f32", 2, 3, low=-3, high=3), *(np.full((2, 3), v, np.float32) for v in (-2, 2, -1, 1)), levels="16", auto_broadcast="none", id="none"),
    # By the specification's formula, on ranges aligned with the data from the front.
    fake_quantize_rows([[-3.0, 0.4], [0.6, 3.0]], [-1.0, 0.0], [1.0, 1.0], [-1.0, 0.0], [1.0, 1.0], levels="3", auto_broadcast="pdpd",
         gives=[[-1.0, 0.0], [0.5, 1.0]], id="pdpd"),
    fake_quantize_rows([[-3.0, 0.4], [0.6, 3.0]], [-1.0, 0.0], [1.0, 1.0], [-1.0, 0.0], [1.0, 1.0], levels="3", auto_broadcast="pdpd",
         **{PDPD_AXIS: 1}, gives=[[-1.0, 0.5], [1.0, 1.0]], id="pdpd from axis 1"),
    # By the formula: NaN is on neither side of a range, and no level is near it.
    fake_quantize_rows([np.nan, np.inf, -np.inf], -2.0, 2.0, 0.0, 1.0, levels="5", gives=[np.nan, 1.0, 0.0], id="NaN and infinities"),
]  # fmt: skip


def _exact(kind: str, data: object, *bounds: object, levels: int, id: str) -> Case:
    """A row whose result is that of exact arithmetic, rounded once; f16 is also computed in f32, whose results are not quite those."""
    x, *ranges = (typed(kind, values).array.astype(element(kind).carrier) for values in (data, *bounds))
    gives, tolerance = fake_quantize(x, *ranges, levels=levels), 0.0 if kind == "f32" else None
    return fake_quantize_rows(
        typed(kind, x), *(typed(kind, v) for v in ranges), levels=str(levels), gives=gives, id=id, tolerance=tolerance
    )


_SOME = np.concatenate([np.linspace(-40, 40, 97), [0, 0.01, -0.1, 1, -32.3764, 32.12346, 1e-30, -1e-12]])
# One for which the f32 product of index and step is never the level, one for which a level is 0 but for the rounding of its bounds.
_LOWS, _HIGHS = np.array([[-32.3764], [-1.9], [-7.0]]), np.array([[32.12346], [5.1], [7.0]])
ROWS += [
    _exact("f32", _SOME, -32.3764, 32.12346, -32.3764, 32.12346, levels=256, id="zero is a level"),
    _exact("f32", _SOME, -32.3764, 32.12346, -3.23764, 3.212346, levels=255, id="another asymmetric range"),
    _exact(
        "f32", np.broadcast_to(_SOME, (3, 105)), _LOWS, _HIGHS, _LOWS, _HIGHS, levels=256, id="three asymmetric ranges"
    ),
    _exact("f32", _SOME, -32.3764, 32.12346, 32.12346, -32.3764, levels=16, id="asymmetric, output range upside down"),
    _exact("f32", _SOME, -20.0, 20.0, 1e-9, 1.0, levels=256, id="a bound near zero is kept"),
    _exact("f32", _SOME, -20.0, 20.0, -20.0, 20.0, levels=256, id="zero is between two levels"),
    _exact("f32", np.arange(-1, 7, 0.25), 0.0, 6.0, 0.0, 6.0, levels=13, id="many halves"),
    # Each second of them is between two levels: 30 * 64.49986 / 255 can be written in f32.
    _exact(
        "f32",
        -32.3764 + np.arange(500) * 0.1264703,
        -32.3764,
        32.12346,
        -32.3764,
        32.12346,
        levels=256,
        id="all levels and halves",
    ),
    _exact("f16", _SOME, -32.3764, 32.12346, -32.3764, 32.12346, levels=256, id="zero is a level, in f16"),
    _exact(
        "f16",
        np.broadcast_to(_SOME, (3, 105)),
        _LOWS,
        _HIGHS,
        _LOWS,
        _HIGHS,
        levels=255,
        id="three asymmetric ranges, in f16",
    ),
]
ROWS += [*halves(ROWS), *emptied(ROWS, "FakeQuantize")]
ROWS.append(fake_quantize_rows(np.float32(1.4), 0.0, 2.0, 0.0, 2.0, levels="3", id="scalar"))
ROWS += [
    fake_quantize_rows.refuses(
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
    fake_quantize_rows.refuses(
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
