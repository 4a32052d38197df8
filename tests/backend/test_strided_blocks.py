"""Element-wise operations whose blocks are strided in memory, and whose arguments are one array."""

from __future__ import annotations

import numpy as np
import pytest

from irexec.backend.chain import Chain, Instruction
from irexec.backend.kernel import Task
from irexec.backend.registry import find_block_operation
from irexec.backend.scratch import Scratch
from irexec.dtypes.elements import element
from irexec.ir.facts import Fact
from irexec.schema.registry import resolve
from irexec.testing.rows import read_attributes

_ONE_INPUT = (
    "Abs",
    "Negative",
    "Sign",
    "Ceiling",
    "Floor",
    "Sqrt",
    "Exp",
    "Sigmoid",
    "Tanh",
    "Relu",
    "IsNaN",
    "IsInf",
    "IsFinite",
)
_TWO_INPUTS = (
    "Add",
    "Subtract",
    "Multiply",
    "Divide",
    "Maximum",
    "Minimum",
    "SquaredDifference",
    "Power",
    "FloorMod",
    "Mod",
    "Equal",
    "Less",
)


def _operation(type: str, inputs: int, kind: str, shape: tuple[int, ...]) -> tuple[Chain, Task]:
    definition = resolve(type, "opset16")
    facts = tuple(Fact(element("boolean" if type == "Select" and i == 0 else kind), shape) for i in range(inputs))
    out = definition.infer(facts, attributes := read_attributes(definition, {}, [fact.element for fact in facts]))
    task = Task(definition, attributes, facts, (None,) * inputs, (out,), (True,))
    made = find_block_operation(task)
    assert made is not None
    dtype = np.dtype(out.element.carrier)
    step = Instruction(type, made.function, tuple(range(inputs)), dtype, made.in_place, made.temporaries, made.passes)
    return Chain(inputs, facts[0].dtype, (step,)), task


@pytest.mark.parametrize("distance", [2, 3, 4, 5, 8, 16])
@pytest.mark.parametrize("kind", ["f32", "f64", "i32", "i64", "u32"])
@pytest.mark.parametrize("type", _ONE_INPUT)
@pytest.mark.covering(2)
def test_of_elements_that_are_apart(type: str, kind: str, distance: int) -> None:
    if kind[0] != "f" and type in ("Sqrt", "Exp", "Sigmoid", "Tanh", "IsNaN", "IsInf", "IsFinite"):
        return
    values = np.array([1, 2, 3, 0, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8], element(kind).carrier)
    if kind[0] == "f":
        values[[1, 4, 9]] = np.inf, np.nan, -np.inf
    chain, task = _operation(type, 1, kind, values.shape)
    expected = np.asarray(task.definition(values, **task.attributes))
    given = np.repeat(values, distance)[::distance]
    out = np.zeros(values.size * distance, expected.dtype)[::distance]
    with np.errstate(all="ignore"):
        chain.run(Scratch.of_size(1 << 16), out, [given])
        np.testing.assert_allclose(out, expected, rtol=1e-5)
        if chain.result == values.dtype and chain.instructions[0].in_place:
            chain.run(Scratch.of_size(1 << 16), given, [given], 0)
            np.testing.assert_allclose(given, expected, rtol=1e-5)


@pytest.mark.parametrize("type", [*_TWO_INPUTS, "Select"])
def test_of_one_array_for_all_arguments(type: str) -> None:
    values = np.array([1.5, -2, 3, 0.25, 5, -6, 7], np.float32)
    count = 3 if type == "Select" else 2
    chain, task = _operation(type, count, "f32", values.shape)
    condition = [values > 0] if type == "Select" else []
    with np.errstate(all="ignore"):
        expected = np.asarray(task.definition(*condition, values, values, **task.attributes))
        for shared in ((), tuple(range(len(condition), count))):
            if shared and (chain.result != values.dtype or not chain.instructions[0].in_place):
                continue
            given = values.copy()
            out = given if shared else np.full(values.shape, 99, chain.result)
            chain.run(Scratch.of_size(1 << 16), out, [*condition, *[given] * 2], shared or -1)
            np.testing.assert_allclose(out, expected, rtol=1e-6)
