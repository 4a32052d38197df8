"""Checks of the inputs of a run, whose results are kept by what the shape rule read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import irexec
from irexec.analysis.shape_inference import infer_shapes
from irexec.compile import checking
from irexec.compile.plan import plan
from irexec.compile.steps import Check
from irexec.errors import OpError
from irexec.ir.facts import Fact
from irexec.schema.opdef import OpDef


@pytest.fixture
def inferred(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """An entry for each inference of a shape."""
    calls: list[Any] = []
    original = OpDef.infer

    def infer(self: OpDef, inputs: Sequence[Fact], arguments: Any) -> Any:
        calls.append(inputs)
        return original(self, inputs, arguments)

    monkeypatch.setattr(OpDef, "infer", infer)
    return calls


def _check(type: str, *shapes: tuple[str, str], **attributes: Any) -> Check:
    """The check of one operation on Parameters of these element types and shapes."""
    builder = irexec.Builder("m")
    inputs = [builder.parameter(element, shape, f"x{i}") for i, (element, shape) in enumerate(shapes)]
    builder.result(builder.emit(type, *inputs, **attributes))
    model = builder.model()
    (step,) = plan(model, infer_shapes(model)).steps
    assert step.call is not None and step.call.check is not None
    return step.call.check


def _shape(check: Check, *arrays: np.ndarray) -> tuple[Any, ...]:
    found = check(arrays)
    assert found is not None
    (fact,) = found.facts
    assert fact.value is None and found.size == fact.nbytes
    return fact.static_shape


def test_values_that_are_not_read_do_not_matter(inferred: list[Any]) -> None:
    check = _check("Gather", ("f32", "?,?"), ("i64", "?"), ("i64", ""), version=8)
    inferred.clear()
    axis = np.array(1)
    for index in range(3):
        for size in (2, 4):
            assert _shape(check, np.full((3, 5), index, np.float32), np.full(size, index), axis) == (3, size)
    assert len(inferred) == 2


def test_values_that_are_read_matter(inferred: list[Any]) -> None:
    check = _check("Gather", ("f32", "?,?"), ("i64", "?"), ("i64", ""), version=8)
    inferred.clear()
    data, indices = np.zeros((3, 5), np.float32), np.zeros(2, np.int64)
    for _ in range(2):
        assert _shape(check, data, indices, np.array(0)) == (2, 5)
        assert _shape(check, data, indices, np.array(1)) == (3, 2)
    assert len(inferred) == 2


def test_large_values_that_are_read_are_not_kept(inferred: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    check = _check("Tile", ("f32", "?"), ("i64", "?"))
    monkeypatch.setattr(checking, "_READ", 1)
    inferred.clear()
    for _ in range(2):
        for last in (2, 3):
            assert _shape(check, np.zeros(1, np.float32), np.array([1, last])) == (1, last)
    assert len(inferred) == 4


def test_errors_come_again() -> None:
    check = _check("Gather", ("f32", "?,?"), ("i64", "?"), ("i64", ""), version=8)
    for _ in range(2):
        with pytest.raises(OpError, match="axis 7 is out of range"):
            check([np.zeros((3, 5), np.float32), np.zeros(2, np.int64), np.array(7)])


def test_few_results_are_kept(inferred: list[Any]) -> None:
    """A state that grows has another shape in every run."""
    check = _check("Gather", ("f32", "?,?"), ("i64", "?"), ("i64", ""), version=8)
    inferred.clear()
    for size in (*range(1, 60), 1):
        _shape(check, np.zeros((3, size), np.float32), np.zeros(2, np.int64), np.array(1))
    assert len(inferred) == 60


def test_results_without_elements() -> None:
    check = _check("Gather", ("f32", "?,?"), ("i64", "?"), ("i64", ""), version=8)
    for size, is_empty in ((0, True), (2, False), (0, True)):
        found = check([np.zeros((3, 5), np.float32), np.zeros(size, np.int64), np.array(1)])
        assert found is not None and found.is_empty == is_empty
