"""Reductions."""

from __future__ import annotations

from irexec.testing import Case
from irexec.testing.case_generator import NUMBERS, CaseGenerator, Table, model

RANDOM_CASES = Table()
_NUMBERS = {
    "ReduceL1": 4,
    "ReduceL2": 4,
    "ReduceMax": 1,
    "ReduceMean": 1,
    "ReduceMin": 1,
    "ReduceProd": 1,
    "ReduceSum": 1,
}
_LOGICAL = {"ReduceLogicalAnd": 1, "ReduceLogicalOr": 1}


@RANDOM_CASES.row(*_NUMBERS.items(), *_LOGICAL.items())
def reduce(gen: CaseGenerator, type: str, since: int) -> Case:
    shape = gen.shape(1)
    axes = gen.axes(len(shape), 0)
    given = gen.ints(axes[0] if len(axes) == 1 and gen.chance() else axes)
    data = gen.tensor(shape, "boolean" if type in _LOGICAL else NUMBERS, -3, 3)
    return model(type, since, data, given, keep_dims=gen.pick(None, True, False))
