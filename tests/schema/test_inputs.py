"""Every input of every operation says which element types and ranks it takes, and one check holds it to that."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irexec
from irexec.analysis.evaluate import as_tuple
from irexec.dtypes.elements import ELEMENTS, F32, I64, STRING, Element
from irexec.errors import IrexecError, NodeError, OpError
from irexec.ir.dims import ANY, Dim, PartialShape, Size
from irexec.ir.facts import Fact
from irexec.schema.attributes import Variables
from irexec.schema.opdef import (
    NUMERIC,
    ONE_ELEMENT,
    SCALAR,
    FloatTensor,
    IntegerElement,
    IntegerTensor,
    OpDef,
    Rank,
    input_spec,
)
from irexec.schema.registry import definitions
from irexec.testing import Case
from irexec.testing.rows import read_attributes
from tests.support.cases import families

_ROWS: dict[tuple[str, int | str], list[Case]] = {}
for _row in (row for rows in families().values() for row in rows):
    if isinstance(_row, Case):
        _ROWS.setdefault((_row.type, _row.since), []).append(_row)

_WITH_ROWS = [d for d in definitions() if (d.type, d.since) in _ROWS]
_DEFINITION = pytest.mark.parametrize("definition", definitions(), ids=lambda d: f"{d.type}-{d.since}")
_DEFINITION_WITH_ROWS = pytest.mark.parametrize("definition", _WITH_ROWS, ids=lambda d: f"{d.type}-{d.since}")


@_DEFINITION
def test_every_input_declares_its_element_types(definition: OpDef) -> None:
    assert [spec.name for spec in definition.inputs if spec.elements is None] == []


@_DEFINITION_WITH_ROWS
def test_what_breaks_the_declaration_is_refused_before_the_shape_rule(
    definition: OpDef, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rule(*facts: Fact, **arguments: Any) -> None:
        raise AssertionError(f"the shape rule was asked about {facts}")

    monkeypatch.setattr(definition, "shape_function", rule)
    rng = random.Random(f"{definition.type}-{definition.since}")
    row = rng.choice(_ROWS[definition.type, definition.since])
    good = [Fact(x.element, x.array.shape) for x in row.inputs]
    for i in range(len(good)):
        spec = definition.inputs[min(i, len(definition.inputs) - 1)]
        for element in ELEMENTS:
            if spec.elements is not None and element not in spec.elements:
                with pytest.raises(OpError, match=rf"^{spec.name} has element type {element}, expected "):
                    definition.infer([*good[:i], Fact(element, good[i].shape), *good[i + 1 :]], {})
        for rank in range(8):
            if spec.ranks is not None and rank not in spec.ranks:
                with pytest.raises(OpError, match=rf"^{spec.name} has rank {rank}, expected "):
                    definition.infer([*good[:i], Fact(good[i].element, (1,) * rank), *good[i + 1 :]], {})


def _variant(rng: random.Random, array: np.ndarray, element: Element, rank: int) -> np.ndarray:
    """An array of that type and rank with sizes and values of the given one, as far as they go."""
    shape = (*array.shape[:rank], *(rng.randint(1, 3) for _ in range(rank - array.ndim)))
    if element.kind == "string":
        return np.full(shape, "text", object)
    source = np.zeros(1) if array.dtype == object or array.size == 0 else array
    with np.errstate(all="ignore"):
        return np.resize(source, shape).astype(element.carrier)


@_DEFINITION_WITH_ROWS
def test_what_keeps_the_declaration_is_computed_or_refused_in_a_sentence(definition: OpDef) -> None:
    """Any type and rank that an input declares: rule and kernel give a result or raise OpError, never an exception of NumPy."""
    if any(kind is not Variables for kind in definition.injected.values()) and definition.type in (
        "If",
        "Loop",
        "TensorIterator",
    ):
        return
    rng = random.Random(f"{definition.type}-{definition.since}")
    for _ in range(60):
        row = rng.choice(_ROWS[definition.type, definition.since])
        arrays, elements = [x.array for x in row.inputs], [x.element for x in row.inputs]
        for i in rng.sample(range(len(arrays)), rng.randint(0, len(arrays))):
            spec = definition.inputs[min(i, len(definition.inputs) - 1)]
            ranks = [rank for rank in range(7) if spec.ranks is None or rank in spec.ranks]
            elements[i] = rng.choice(sorted(spec.elements.elements if spec.elements else ELEMENTS, key=str))
            arrays[i] = _variant(
                rng, arrays[i], elements[i], arrays[i].ndim if rng.random() < 0.5 else rng.choice(ranks)
            )
        _run(definition, row, arrays, elements)


def _run(definition: OpDef, row: Case, arrays: list[np.ndarray], elements: list[Element]) -> None:
    injected = {name: {} for name, kind in definition.injected.items() if kind is Variables}
    facts = [Fact(element, array.shape, array) for element, array in zip(elements, arrays, strict=True)]
    try:
        arguments = read_attributes(definition, row.attributes, elements) | injected
        inferred = as_tuple(definition.infer(facts, arguments))
        if definition.deterministic and sum(array.size for array in arrays) < 100_000:
            results = as_tuple(definition(*(array.copy() for array in arrays), **arguments))
            assert [fact.rank for fact in inferred if fact.rank is not None] == [
                np.ndim(result) for fact, result in zip(inferred, results, strict=False) if fact.rank is not None
            ]
    except IrexecError:
        return
    except Exception as error:
        given = ", ".join(f"{element}{list(array.shape)}" for element, array in zip(elements, arrays, strict=True))
        raise AssertionError(f"{type(error).__name__}: {error} for {given} with {row.attributes}") from error


def test_what_was_not_known_is_checked_when_the_model_runs() -> None:
    builder = irexec.Builder("unknown rank")
    x = builder.parameter(F32, None, "x")
    builder.result(builder.emit("NormalizeL2", x, [1], eps=1e-3, eps_mode="add"))
    w = builder.parameter(F32, None, "w")
    builder.result(builder.emit("MaxPool", w, strides=(1,), pads_begin=(0,), pads_end=(0,), kernel=(1,), version=1))
    compiled = irexec.compile_model(builder.model())
    with pytest.raises(NodeError, match=r"layer .* \(MaxPool of opset1\): data has rank 2, expected 3, 4 or 5"):
        compiled([np.ones((1, 3), np.float32), np.ones((2, 2), np.float32)])


@_DEFINITION
def test_no_kernel_or_rule_hides_its_attributes(definition: OpDef) -> None:
    """``**attributes`` would be a schema that is written nowhere."""
    functions = (definition.kernel, definition.shape_function, definition.first_output_kernel)
    for function in filter(None, functions):
        kinds = {parameter.kind for parameter in inspect.signature(function).parameters.values()}
        assert inspect.Parameter.VAR_KEYWORD not in kinds, function


def _attributes(function: Callable[..., Any]) -> list[inspect.Parameter]:
    parameters = inspect.signature(function).parameters.values()
    return [parameter for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]


@_DEFINITION
def test_a_shape_rule_needs_attributes_of_its_kernel_only(definition: OpDef) -> None:
    """Another attribute would never be given: each run of the rule would end in a TypeError."""
    needed = {
        parameter.name for parameter in _attributes(definition.shape_function) if parameter.default is parameter.empty
    }
    assert needed <= {parameter.name for parameter in _attributes(definition.kernel)}


@pytest.mark.parametrize(
    ("rank", "inside", "outside", "text"),
    [
        (Rank(4), [4], [0, 3, 5], "4"),
        (Rank(0, 1), [0, 1], [2], "0 or 1"),
        (Rank(3, 5), [3, 4, 5], [2, 6], "3, 4 or 5"),
        (Rank(2, 6), [2, 6], [1, 7], "2 to 6"),
        (Rank(1, None), [1, 60], [0], "1 or more"),
        (Rank(0), [0], [1], "0"),
        (ONE_ELEMENT, [0, 1], [2], "0, or 1 with a single element"),
        (SCALAR, [0], [1], "0"),
    ],
)
def test_ranks(rank: Rank, inside: list[int], outside: list[int], text: str) -> None:
    assert all(value in rank for value in inside) and not any(value in rank for value in outside)
    assert rank.text == text


def test_the_outermost_mark_of_an_annotation_counts() -> None:
    from typing import Annotated

    spec = input_spec("x", Annotated[FloatTensor, NUMERIC, Rank(1, None), Rank(2)] | None)
    assert spec.elements is NUMERIC and spec.ranks == Rank(2)
    assert I64 not in input_spec("x", FloatTensor).elements and STRING not in input_spec("x", IntegerTensor).elements


@pytest.mark.parametrize("shape", [(), (1,), (ANY,), None])
def test_single_elements_may_be_vectors(shape: PartialShape) -> None:
    input_spec("k", IntegerElement).check(Fact(I64, shape))


@pytest.mark.parametrize("size", [0, 2, Dim(2, 9)])
def test_single_elements_are_one(size: Size) -> None:
    with pytest.raises(OpError, match=r"k has .* elements, expected 1"):
        input_spec("k", IntegerElement).check(Fact(I64, (size,)))
