"""Inputs that are integers by their meaning: one conversion, which says what it got."""

from __future__ import annotations

import numpy as np
import pytest

import irexec
from irexec.dtypes.elements import BOOLEAN, F32, I64, STRING, U64, Element
from irexec.errors import NodeError, OpError
from irexec.ir.dims import ANY, Dim
from irexec.ir.facts import Fact, integer, integers


def _objects(*values: object) -> np.ndarray:
    array = np.empty(len(values), object)
    array[:] = values
    return array


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.array([[1, -2], [3, 2**63 - 1]]), (1, -2, 3, 2**63 - 1)),
        (np.array([2**64 - 1], np.uint64), (2**64 - 1,)),
        (np.array(7, np.int8), (7,)),
        (np.array([True, False]), (1, 0)),
        (np.array([2.0, -0.0], np.float32), (2, 0)),
        (_objects(3, np.int64(4)), (3, 4)),
        (np.zeros((0, 3)), ()),
    ],
)
def test_integers(array: np.ndarray, expected: tuple[int, ...]) -> None:
    found = integers(array, "axes")
    assert found == expected and all(type(value) is int for value in found)


@pytest.mark.parametrize(
    ("array", "says"),
    [
        (np.array([1.0, 0.5]), "axes has 0.5, expected integers"),
        (np.array([np.nan], np.float32), "axes has nan, expected integers"),
        (np.array([-np.inf]), "axes has -inf, expected integers"),
        (_objects(1, "ab"), "axes has 'ab', expected integers"),
        (_objects(1, None), "axes has None, expected integers"),
        (_objects(Dim(2, 5)), "2..5 is not a known size"),
    ],
)
def test_what_is_not_an_integer(array: np.ndarray, says: str) -> None:
    with pytest.raises(OpError) as caught:
        integers(array, "axes")
    assert str(caught.value) == says


@pytest.mark.parametrize("shape", [(0,), (2,), (2, 1)])
def test_a_scalar_has_one_element(shape: tuple[int, ...]) -> None:
    with pytest.raises(OpError, match=rf"^k has {np.prod(shape)} elements, expected 1$"):
        integer(np.ones(shape, np.int64), "k")


@pytest.mark.parametrize(("element", "value"), [(F32, [0.5, 1.5]), (F32, [np.nan, np.inf]), (STRING, _objects("ab"))])
def test_facts_hold_no_other_sizes(element: Element, value: object) -> None:
    fact = Fact.of(np.asarray(value, element.carrier), element)
    for ask in (fact.ints, fact.sizes):
        with pytest.raises(OpError, match=r"^output_shape has .*, expected integers$"):
            ask("output_shape")
    with pytest.raises(OpError, match=r"^k has .*, expected integers$"):
        Fact.of(np.asarray(value, element.carrier)[:1], element).scalar("k")


@pytest.mark.parametrize("element", [I64, U64, BOOLEAN])
def test_facts_know_integers_by_value_or_bounds(element: Element) -> None:
    assert Fact.of(np.array([1, 0], element.carrier), element).sizes() == (1, 0)
    assert Fact(I64, (2,), _objects(3, ANY)).sizes() == (3, ANY)
    assert Fact(I64, (2,), _objects(3, ANY)).ints() is None


def test_a_shape_that_is_known_only_when_the_model_runs_is_checked_then() -> None:
    builder = irexec.Builder("random")
    shape = builder.parameter(I64, (2,), "shape")
    limits = [builder.constant(np.array(value, np.float32)) for value in (0, 1)]
    builder.result(builder.emit("RandomUniform", shape, *limits, output_type="f32"))
    compiled = irexec.compile_model(builder.model())
    for sizes in ([-1, 2], [-1, -1]):
        with pytest.raises(NodeError, match="a size of shape is -1, expected 0 or more"):
            compiled([np.array(sizes)])
    assert compiled([np.array([2, 3])])[0].shape == (2, 3)
