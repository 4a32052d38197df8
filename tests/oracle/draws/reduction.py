"""Reductions."""

from __future__ import annotations

from tests.oracle.draw import NUMBERS, Draw, Table, model
from tests.support.cases import Case

DRAWS = Table()
_NUMBERS = {"ReduceL1": 4, "ReduceL2": 4, "ReduceMax": 1, "ReduceMean": 1, "ReduceMin": 1, "ReduceProd": 1, "ReduceSum": 1}
_LOGICAL = {"ReduceLogicalAnd": 1, "ReduceLogicalOr": 1}


@DRAWS.row(*_NUMBERS.items(), *_LOGICAL.items())
def reduce(d: Draw, type: str, since: int) -> Case:
    shape = d.shape(1)
    axes = d.axes(len(shape), 0)
    given = d.ints(axes[0] if len(axes) == 1 and d.chance() else axes)
    data = d.tensor(shape, "boolean" if type in _LOGICAL else NUMBERS, -3, 3)
    return model(type, since, data, given, keep_dims=d.pick(None, True, False))
