"""Inputs and attributes of operations: element types, ranks, integers, windows, and attributes that have their type already."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest

import irexec
from irexec.analysis.attributes import typed_attributes
from irexec.analysis.evaluate import as_tuple
from irexec.dtypes.elements import BOOLEAN, ELEMENTS, F32, I64, STRING, U64, Element
from irexec.errors import IrexecError, NodeError, OpError
from irexec.ir.dims import ANY, Dim, PartialShape, Size
from irexec.ir.facts import Fact, integer, integers
from irexec.schema import attributes
from irexec.schema.attributes import Variables, write_attribute
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
from irexec.schema.registry import definitions, resolve
from irexec.schema.shape_rules import group_count
from irexec.schema.windows import natural_size, resolve_pads, same_pads, window_count, window_count_or_zero
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


@pytest.mark.sampled(3)
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


# Inputs that are integers by their meaning: one conversion, which says what it got.


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


# Sizes that windows give, where a row cannot say it: bounds on both sides, and what partial facts refuse.


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "dilation", "expected"),
    [
        (10, 3, 1, 1, 8), (10, 3, 2, 2, 3), (Dim(2, 10), 3, 1, 1, Dim(1, 8)), (10, Dim(1, 4), 1, 1, Dim(7, 10)),
        (ANY, 3, 1, 1, Dim(1, None)), (10, ANY, 2, 1, Dim(1, 5)), (ANY, ANY, 1, 1, Dim(1, None)),
        (Dim(1, 3), 3, 1, 1, 1), (10**30, 3, 10**29, 1, 10),
    ],
)  # fmt: skip
def test_windows_that_fit(size, kernel, stride, dilation, expected):
    assert window_count(size, kernel, stride, dilation, 0, 0) == expected


def test_rounding_up_adds_a_window_that_reaches_beyond():
    assert window_count(10, 3, 2, 1, 0, 0) == 4
    assert window_count(10, 3, 2, 1, 0, 0, ceil=True) == 5
    assert window_count(11, 3, 2, 1, 0, 0, ceil=True) == 5


@pytest.mark.parametrize(("size", "kernel"), [(2, 3), (Dim(0, 2), 3), (2, Dim(3, None)), (5, 0)])
def test_a_window_that_cannot_fit_is_refused(size, kernel):
    with pytest.raises(OpError):
        window_count(size, kernel, 1, 1, 0, 0)


@pytest.mark.parametrize(
    ("size", "kernel", "expected"),
    [(4, 3, 9), (0, 3, 3), (Dim(2, 4), 3, Dim(5, 9)), (4, Dim(1, 3), Dim(7, 9)), (ANY, 3, Dim(3, None))],
)
def test_natural_sizes_of_a_transposed_convolution(size, kernel, expected):
    assert natural_size(size, kernel, 2, 1) == expected


def test_same_pads_give_the_size_by_the_stride():
    for size in range(12):
        for kernel in range(1, 6):
            for stride in range(1, 5):
                for dilation in range(1, 4):
                    begin, end = same_pads(size, kernel, stride, dilation, True)
                    assert same_pads(size, kernel, stride, dilation, False) == (end, begin)
                    assert end - begin in (0, 1)
                    assert window_count_or_zero(size, kernel, stride, dilation, begin, end) == -(-size // stride)


def test_explicit_pads_may_be_left_out():
    assert resolve_pads("explicit", (5, 5), (3, 3), (1, 1), (1, 1), (), (1, 2)) == ((0, 0), (1, 2))


@pytest.mark.parametrize(
    ("channels", "inputs", "expected"),
    [
        (6, 2, 3), (6, Dim(1, 2), Dim(3, 6)), (Dim(4, 9), Dim(2, 3), Dim(2, 4)), (ANY, 2, ANY), (6, ANY, Dim(1, 6)),
        (0, ANY, ANY),
    ],
)  # fmt: skip
def test_channels_tell_the_number_of_groups(channels, inputs, expected):
    assert group_count(Fact(F32, (1, channels, 5)), ANY, inputs) == expected


def test_channels_that_do_not_divide_are_refused():
    with pytest.raises(OpError, match="5 channels of data do not divide into groups of 2"):
        group_count(Fact(F32, (1, 5, 5)), ANY, 2)


# Attributes that have their type already: the builder stores them beside their texts, and nothing parses the texts.


_TEXTS = {
    (row.type, row.since): row.attributes for rows in families().values() for row in rows if isinstance(row, Case)
}


@pytest.mark.parametrize("operation", _TEXTS, ids=lambda operation: f"{operation[0]}-{operation[1]}")
def test_values_are_what_their_texts_are_read_as(operation: tuple[str, int | str]) -> None:
    type, since = operation
    definition = resolve(type, f"opset{since}" if isinstance(since, int) else since)
    typed = definition.ungrouped(definition.parse(_TEXTS[operation]).require())
    values = {a.name: typed[a.parameter] for a in definition.attributes if typed.get(a.parameter) is not None}
    texts = {name: write_attribute(value) for name, value in values.items()}
    assert definition.parse(values) == definition.parse(texts)


def test_the_builder_parses_no_text() -> None:
    builder = irexec.Builder()
    x = builder.parameter("f32", (1, 3, 8, 8), "x")
    unread = mock.Mock(side_effect=AssertionError("a text is parsed"))
    with mock.patch.object(attributes, "_integer_of_any_size", unread):
        y = builder.emit("MaxPool", x, version=1, kernel=(2, 2), strides=[2, 2], pads_begin=(0, 0), pads_end=(0, 0))
        (windows,) = typed_attributes(y.node, resolve("MaxPool", "opset1")).values.values()
    assert (windows.kernel, windows.strides) == ((2, 2), (2, 2))
    assert y.node.attributes["strides"] == "2, 2"


# The value that is given, and the value that its text has in IR: a float of NumPy is written with its own digits.
@pytest.mark.parametrize(
    ("given", "text", "expected"),
    [(6, "6", 6.0), (np.float32(0.1), "0.1", 0.1), ("1e2", "1e2", 100.0), (-0.0, "0", 0.0), (6.5, "6.5", 6.5)],
)
def test_a_value_of_another_type_is_read_as_its_text(given: object, text: str, expected: float) -> None:
    builder = irexec.Builder()
    node = builder.emit("Clamp", builder.parameter("f32", (2,), "x"), min=given, max=1000.0).node
    value = typed_attributes(node, resolve("Clamp", "opset1")).values["min"]
    assert node.attributes["min"] == text
    assert (value, np.signbit(value)) == (expected, False)


@pytest.mark.parametrize(
    ("type", "wrong", "message"),
    [
        ("Softmax", {"axis": True}, "attribute 'axis': 'true' is not an integer"),
        ("Softmax", {"axis": 1.5}, "attribute 'axis': '1.5' is not an integer"),
        ("Softmax", {"axis": 1 << 70}, "attribute 'axis': '1180591620717411303424' is not an integer of 64 bits"),
        ("Elu", {"alpha": "much"}, "attribute 'alpha': 'much' is not a number"),
        ("Gelu", {"approximation_mode": "exact"}, "attribute 'approximation_mode': 'exact' is not one of erf, tanh"),
    ],
)
def test_a_wrong_value_is_refused(type: str, wrong: dict[str, object], message: str) -> None:
    builder = irexec.Builder()
    x = builder.parameter("f32", (2, 3), "x")
    with pytest.raises(NodeError) as refused:
        builder.emit(type, x, **wrong)
    assert message in str(refused.value)
    assert len(builder.graph.nodes) == 1
