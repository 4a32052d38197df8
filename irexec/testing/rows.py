"""Rows: the results of an operation for given inputs, its facts where little is known, and the inputs that it refuses.

A row is data. irexec.testing.laws says what must hold of it.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irexec.analysis.builder import Builder
from irexec.analysis.model import Model
from irexec.dtypes.elements import Element, element, element_of, round_to
from irexec.errors import check
from irexec.ir.dims import ANY, Dim, PartialShape
from irexec.ir.facts import Fact
from irexec.ir.shape_text import parse_shape
from irexec.schema.attributes import ElementTypes, write_attribute
from irexec.schema.opdef import OpDef
from irexec.schema.registry import resolve


@dataclass(frozen=True, eq=False)
class Typed:
    """An array in the carrier of an element type that NumPy may lack."""

    element: Element
    array: np.ndarray


class _OfOperation:
    """A row of any kind."""

    type: str
    since: int | str
    name: str

    @property
    def id(self) -> str:
        """The operation, its version and the name of the row."""
        return f"{self.type}-{self.since}-{self.name}"

    @property
    def definition(self) -> OpDef:
        """The definition of the operation."""
        return definition_of(self.type, self.since)


@dataclass(frozen=True, eq=False)
class Case(_OfOperation):
    """One operation on given inputs.

    Attributes:
        type, since: the operation; of a plug-in, since is the version as a layer has it, such as "my.ops".
        inputs: arrays in the carrier of their element type.
        attributes: as IR writes them.
        gives: the expected outputs; None where they are recorded from OpenVINO.
        name: of the row, unique for the operation.
        tolerance: relative error allowed; None for that of the operation.
        by_value: whether a shape of the outputs depends on the elements of the inputs, so that the shape rule can only
            bound it.
    """

    type: str
    since: int | str
    inputs: tuple[Typed, ...]
    attributes: dict[str, str]
    gives: tuple[np.ndarray, ...] | None
    name: str
    tolerance: float | None = None
    by_value: bool = False

    @property
    def digest(self) -> str:
        """A hash of the inputs and attributes: an answer that was recorded for another hash is stale."""
        hashed = hashlib.sha256(repr((self.type, self.since, sorted(self.attributes.items()))).encode())
        for x in self.inputs:
            hashed.update(repr((x.element.name, x.array.shape)).encode())
            hashed.update(repr(x.array.tolist()).encode() if x.array.dtype == object else x.array.tobytes())
        return hashed.hexdigest()[:16]


@dataclass(frozen=True, eq=False)
class FactsCase(_OfOperation):
    """Shape inference from partial facts; ``gives`` None is recorded from OpenVINO's shape inference."""

    type: str
    since: int | str
    inputs: tuple[Fact, ...]
    attributes: dict[str, str]
    gives: tuple[str, ...] | None
    name: str

    @property
    def digest(self) -> str:
        """A hash of the inputs and attributes, as of a Case."""
        values = [None if f.value is None else f.value.tolist() for f in self.inputs]
        text = repr((self.type, self.since, sorted(self.attributes.items()), [str(f) for f in self.inputs], values))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, eq=False)
class Refusal(_OfOperation):
    """Inputs that the shape rule refuses, with a sentence that contains ``says``."""

    type: str
    since: int | str
    inputs: tuple[Fact, ...]
    attributes: dict[str, str]
    says: str
    name: str


Row = Case | FactsCase | Refusal


def definition_of(type: str, since: int | str) -> OpDef:
    """The very definition that appeared in ``since``, not an older one."""
    found = resolve(type, f"opset{since}" if isinstance(since, int) else since)
    check(found.since == since, f"{type} has no version of {since}")
    return found


def typed(name: str, values: Any) -> Typed:
    """Values in the carrier of an element type, to which they are rounded."""
    kind = element(name)
    with np.errstate(over="ignore"):
        array = np.asarray(values, kind.carrier)
    return Typed(kind, array if kind.native else round_to(kind, array))


def random(name: str, *shape: int, low: float = -1, high: float = 1, seed: int = 0) -> Typed:
    """Random elements, the same every time: floats in low..high, integers in [low, high)."""
    kind = element(name)
    rng = np.random.default_rng([seed, *shape])
    if kind.kind == "boolean":
        return Typed(kind, rng.integers(0, 2, shape).astype(np.bool_))
    if kind.is_integer:
        return typed(name, rng.integers(int(low), int(high), shape))
    return typed(name, rng.uniform(low, high, shape))


def _typed(value: Any) -> Typed:
    if isinstance(value, Typed):
        return value
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        return Typed(element_of(array.dtype), array)
    array = np.asarray(value)
    if array.dtype.kind == "f":
        array = array.astype(np.float32)
    elif array.dtype.kind in "iu" or array.size == 0:
        array = array.astype(np.int64)
    elif array.dtype.kind == "U":
        array = array.astype(object)
    return Typed(element_of(array.dtype) if array.dtype != object else element("string"), array)


def _texts(attributes: dict[str, Any]) -> dict[str, str]:
    names = {"exclude_pad": "exclude-pad", "lambda_": "lambda"}
    return {
        names.get(name, name): value if isinstance(value, str) else write_attribute(value)
        for name, value in attributes.items()
    }


def case(
    type: str,
    since: int | str,
    *inputs: Any,
    gives: Any = None,
    id: str,
    tolerance: float | None = None,
    by_value: bool = False,
    **attributes: Any,
) -> Case:
    """A row: the outputs of an operation for given inputs.

    Args:
        type: the type of the operation.
        since: its version: a number of an opset, or the domain of a plug-in, such as "my.ops".
        inputs: arrays, Typed, or lists of Python values, which become f32, i64, boolean and string.
        gives: the expected output, or a tuple of outputs, from an independent source.
        id: the name of the row.
        tolerance: relative error allowed; that of the operation unless given.
        by_value: whether a shape of the outputs depends on the elements of the inputs.
        attributes: by name, as Python values or as IR writes them.
    """
    given = tuple(_typed(x) for x in inputs if x is not None)
    results = (
        None if gives is None else tuple(_typed(x).array for x in (gives if isinstance(gives, tuple) else (gives,)))
    )
    return Case(type, since, given, _texts(attributes), results, id, tolerance, by_value)


def fact(value: Any) -> Fact:
    """A fact from text such as ``"f32[?,2..5]"``; from anything else the exact fact of that value."""
    if isinstance(value, str):
        name, _, shape = value.partition("[")
        return Fact(None if name == "?" else element(name), parse_shape(shape.removesuffix("]")))
    if isinstance(value, Fact):
        return value
    exact = _typed(value)
    return Fact(exact.element, exact.array.shape, exact.array)


def facts_case(type: str, since: int | str, *inputs: Any, gives: Any = None, id: str, **attributes: Any) -> FactsCase:
    """A row of shape inference from partial facts.

    Args:
        type, since, id, attributes: as for ``case``.
        inputs: texts such as "f32[?,2..5]" and "?[...]", or values, which are then known.
        gives: the expected fact of the output, such as "f32[?,3]", or a tuple of them.
    """
    expected = None if gives is None else gives if isinstance(gives, tuple) else (gives,)
    return FactsCase(type, since, tuple(fact(x) for x in inputs if x is not None), _texts(attributes), expected, id)


def refuses(type: str, since: int | str, *inputs: Any, says: str, id: str, **attributes: Any) -> Refusal:
    """A row that the shape rule refuses.

    Args:
        type, since, id, attributes: as for ``case``.
        inputs: as for ``facts_case``.
        says: a part of the message.
    """
    return Refusal(type, since, tuple(fact(x) for x in inputs if x is not None), _texts(attributes), says, id)


def read_attributes(
    definition: OpDef, texts: Mapping[str, str], elements: Iterable[Element | None] | None = None
) -> dict[str, Any]:
    """Attribute values by the kernel's parameter, with the element types of the inputs where the operation asks for
    them.

    Raises:
        OpError: an attribute is missing, ill-typed or out of range.
    """
    values = definition.parse(texts).require()
    if elements is not None and definition.elements_parameter is not None:
        values[definition.elements_parameter] = ElementTypes(elements)
    return values


COUNTED_BY_LENGTH = {"VariadicSplit"}
"""Operations whose last input has as many elements as there are outputs, so that its length must be known."""


def shape(known: PartialShape) -> PartialShape:
    """The whole shape of a Parameter is known."""
    return known


def rank(known: PartialShape) -> PartialShape:
    """The rank of a Parameter is known."""
    return (ANY,) * len(known or ())


def nothing(known: PartialShape) -> PartialShape:
    """Nothing of the shape of a Parameter is known."""
    return None


FORMS: tuple[tuple[int | None, Callable[[PartialShape], PartialShape]], ...] = (
    (None, shape), (1, shape), (0, shape), (None, rank), (1, rank), (1, nothing),
)  # fmt: skip
"""Index of the first constant input (None: no input is constant), and what is known of the shapes of Parameters."""


def model_of(
    row: Case, first_constant: int | None = None, known: Callable[[PartialShape], PartialShape] = shape
) -> tuple[Model, list[np.ndarray]]:
    """The model of one layer that computes a row, and the inputs of a run.

    Args:
        row: the row.
        first_constant: index of the first input that is a constant; None if all inputs are Parameters.
        known: part of the shape of a Parameter that is declared.
    """
    builder = Builder("case")
    if first_constant is None and known is not shape and row.type in COUNTED_BY_LENGTH:
        first_constant = len(row.inputs) - 1
    fed, operands = [], []
    for i, x in enumerate(row.inputs):
        if first_constant is not None and i >= first_constant:
            operands.append(builder.constant(x.array, x.element))
        else:
            operands.append(builder.parameter(x.element, known(x.array.shape), f"input{i}"))
            fed.append(x.array.copy())
    if row.type == "Result":
        builder.result(operands[0])
        return builder.model(), fed
    values = builder.emit(row.type, *operands, version=row.since, **read_attributes(row.definition, row.attributes))
    for value in values if isinstance(values, tuple) else (values,):
        builder.result(value)
    return builder.model(), fed


_PLAIN_LEVELS = 6
_MOST_BOUNDED = 64
"""Values of more elements are not bounded."""


def exact_facts(row: Case) -> list[Fact]:
    """Element type, shape and value of each input."""
    return [Fact(x.element, x.array.shape, x.array) for x in row.inputs]


def partial_facts(row: Case, some: Callable[[Sequence[Any]], Iterable[Any]] = iter) -> Iterator[list[Fact]]:
    """Every combination of what may be known of up to three inputs; of more, every combination for each two of them.

    Args:
        row: the row.
        some: chooses combinations; all unless given.
    """
    levels = [_levels(fact) for fact in exact_facts(row)]
    if len(levels) <= 3:
        yield from map(list, some([*itertools.product(*levels)]))
        return
    combinations: list[tuple[int, dict[int, Fact]]] = [(level, {}) for level in range(_PLAIN_LEVELS)]
    for (i, j), base in itertools.product(itertools.combinations(range(len(levels)), 2), (0, 3)):
        combinations += [(base, {i: first, j: second}) for first, second in itertools.product(levels[i], levels[j])]
    for base, changed in some(combinations):
        yield [changed.get(k, options[base]) for k, options in enumerate(levels)]


def bounded_facts(row: Case) -> Iterator[list[Fact]]:
    """Combinations of exact inputs and of inputs whose integers are known by their bounds."""
    options = [[fact, *_bounded(fact)] for fact in exact_facts(row)]
    yield from map(list, itertools.islice(itertools.product(*options), 125))


def _levels(fact: Fact) -> list[Fact]:
    """The exact fact, then less and less down to nothing, then the fact with bounds of its elements."""
    shape = tuple(fact.shape or ())
    sizes = [int(size) for size in shape if isinstance(size, int)]
    plain = [
        fact,
        Fact(fact.element, shape),
        Fact(fact.element, tuple(Dim(max(size - 1, 0), size + 2) for size in sizes)),
        Fact(fact.element, (ANY,) * len(sizes)),
        Fact(fact.element, None),
        Fact(None, None),
    ]
    assert len(plain) == _PLAIN_LEVELS
    return plain + _bounded(fact)


def _bounded(fact: Fact) -> list[Fact]:
    """The fact with integers known only by their bounds: all of them closed or open, or every second one."""
    value = fact.value
    if fact.element is None or not fact.element.is_integer or value is None or not 0 < value.size <= _MOST_BOUNDED:
        return []
    ways: list[Callable[[int, int], int | Dim]] = [
        lambda index, number: _around(number),
        lambda index, number: Dim(_around(number).lo),
        lambda index, number: number if index % 2 else _around(number),
        lambda index, number: _around(number) if index % 2 else number,
    ]
    found = []
    for way in ways[: 2 if value.size == 1 else None]:
        numbers = np.empty(value.size, object)
        numbers[:] = [way(index, number) for index, number in enumerate(value.ravel().tolist())]
        found.append(Fact(fact.element, fact.shape, numbers.reshape(value.shape)))
    return found


def _around(number: int) -> Dim:
    """An interval around a number; it does not reach below zero for a positive one, which may be a size."""
    return Dim(number - 1 if number > 0 else number, number + 2)
