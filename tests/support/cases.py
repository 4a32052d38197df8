"""Rows of the tables in tests/cases: what an operation gives, what its facts say, what it refuses.

A row is data. tests/support/laws.py says what must hold of it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import pkgutil
from dataclasses import dataclass
from typing import Any

import numpy as np

from irexec.dtypes.elements import Element, element, element_of
from irexec.dtypes.rounding import round_to
from irexec.errors import check
from irexec.ir.facts import Fact
from irexec.ir.shape_text import parse_shape
from irexec.schema.attributes import write_attribute
from irexec.schema.opdef import OpDef
from irexec.schema.registry import resolve


@dataclass(frozen=True, eq=False)
class Typed:
    """An array in the carrier of an element type that NumPy may lack."""

    element: Element
    array: np.ndarray


@dataclass(frozen=True, eq=False)
class Case:
    """One operation on given inputs; ``gives`` None is recorded from OpenVINO."""

    type: str
    since: int | str
    inputs: tuple[Typed, ...]
    attributes: dict[str, str]
    gives: tuple[np.ndarray, ...] | None
    name: str
    tolerance: float | None

    @property
    def id(self) -> str:
        return f"{self.type}-{self.since}-{self.name}"

    @property
    def definition(self) -> OpDef:
        return definition_of(self.type, self.since)

    @property
    def digest(self) -> str:
        """Changes when the row asks for something else, so that a recorded answer to it is stale."""
        hashed = hashlib.sha256(repr((self.type, self.since, sorted(self.attributes.items()))).encode())
        for x in self.inputs:
            hashed.update(repr((x.element.name, x.array.shape)).encode())
            hashed.update(repr(x.array.tolist()).encode() if x.array.dtype == object else x.array.tobytes())
        return hashed.hexdigest()[:16]


@dataclass(frozen=True, eq=False)
class FactsCase:
    """What is inferred where little is known; ``gives`` None is recorded from OpenVINO's shape inference."""

    type: str
    since: int | str
    inputs: tuple[Fact, ...]
    attributes: dict[str, str]
    gives: tuple[str, ...] | None
    name: str

    id = Case.id
    definition = Case.definition

    @property
    def digest(self) -> str:
        values = [None if f.value is None else f.value.tolist() for f in self.inputs]
        text = repr((self.type, self.since, sorted(self.attributes.items()), [str(f) for f in self.inputs], values))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, eq=False)
class Refusal:
    """Inputs that the shape rule refuses, with a sentence that contains ``says``."""

    type: str
    since: int | str
    inputs: tuple[Fact, ...]
    attributes: dict[str, str]
    says: str
    name: str

    id = Case.id
    definition = Case.definition


Row = Case | FactsCase | Refusal


def definition_of(type: str, since: int | str) -> OpDef:
    """The very definition that appeared in ``since``, not an older one."""
    found = resolve(type, f"opset{since}" if isinstance(since, int) else since)
    check(found.since == since, f"{type} has no version of {since}")
    return found


def typed(name: str, values: Any) -> Typed:
    """Values of an element type, in its carrier; they are rounded to it."""
    kind = element(name)
    with np.errstate(over="ignore"):
        array = np.asarray(values, kind.carrier)
    return Typed(kind, array if kind.native else round_to(kind, array))


def random(name: str, *shape: int, low: float = -1, high: float = 1, seed: int = 0) -> Typed:
    """The same random numbers every time: floats in low..high, integers in [low, high)."""
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
    **attributes: Any,
) -> Case:
    """A row: inputs are arrays, Typed, or Python numbers (i64, f32, boolean)."""
    given = tuple(_typed(x) for x in inputs if x is not None)
    results = (
        None if gives is None else tuple(_typed(x).array for x in (gives if isinstance(gives, tuple) else (gives,)))
    )
    return Case(type, since, given, _texts(attributes), results, id, tolerance)


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
    """A row of partial facts in and out; ``gives`` is text such as ``"f32[?,3]"``, or a tuple of texts."""
    expected = None if gives is None else gives if isinstance(gives, tuple) else (gives,)
    return FactsCase(type, since, tuple(fact(x) for x in inputs if x is not None), _texts(attributes), expected, id)


def refuses(type: str, since: int | str, *inputs: Any, says: str, id: str, **attributes: Any) -> Refusal:
    """A row that must be refused."""
    return Refusal(type, since, tuple(fact(x) for x in inputs if x is not None), _texts(attributes), says, id)


def families() -> dict[str, list[Row]]:
    """The rows of every table, by family."""
    import tests.cases

    found = {}
    for module in pkgutil.iter_modules(tests.cases.__path__):
        found[module.name] = list(importlib.import_module(f"tests.cases.{module.name}").ROWS)
    return found


def halves(rows: list[Row]) -> list[Row]:
    """The first row of each operation on f32 numbers, in f16 and bf16, where no row of its own is: OpenVINO says what it gives."""
    cases = [row for row in rows if isinstance(row, Case)]
    found: list[Row] = []
    for pair in dict.fromkeys((row.type, row.since) for row in cases):
        own = [row for row in cases if (row.type, row.since) == pair]
        kinds = {x.element.name for row in own for x in row.inputs}
        first = next(
            (row for row in own if row.gives is None and any(x.element.name == "f32" for x in row.inputs)), None
        )
        for name in ("f16", "bf16"):
            if first is not None and name not in kinds:
                inputs = tuple(typed(name, x.array) if x.element.name == "f32" else x for x in first.inputs)
                found.append(dataclasses.replace(first, inputs=inputs, name=f"{first.name}, in {name}"))
    return found


def odd(rows: list[Row], but: tuple[str, ...] = ()) -> list[Row]:
    """The first row of each operation on f32 numbers with NaN and both infinities among those of its first such input.

    OpenVINO says what it gives; of operations that have such a row, or are named in ``but``, there is none.
    """
    cases = [row for row in rows if isinstance(row, Case)]
    found: list[Row] = []
    for pair in dict.fromkeys((row.type, row.since) for row in cases):
        own = [row for row in cases if (row.type, row.since) == pair]
        if pair[0] in but or any(
            x.element.is_float and not np.isfinite(x.array).all() for row in own for x in row.inputs
        ):
            continue
        first = next(
            (
                row
                for row in own
                if row.gives is None and any(x.element.name == "f32" and x.array.size > 2 for x in row.inputs)
            ),
            None,
        )
        if first is not None:
            index = next(i for i, x in enumerate(first.inputs) if x.element.name == "f32" and x.array.size > 2)
            array = first.inputs[index].array.copy()
            array.flat[[0, array.size // 3, 2 * array.size // 3]] = np.nan, np.inf, -np.inf
            inputs = tuple(typed("f32", array) if i == index else x for i, x in enumerate(first.inputs))
            found.append(dataclasses.replace(first, inputs=inputs, name=f"{first.name}, with NaN and infinities"))
    return found


def emptied(rows: list[Row], *types: str, inputs: tuple[int, ...] = (0,), axis: int = 0) -> list[Row]:
    """The first row of each of these operations, of which ``inputs`` have nothing left along ``axis``: OpenVINO says what it gives."""
    found: list[Row] = []
    for pair in dict.fromkeys((row.type, row.since) for row in rows if row.type in types):
        first = next(
            row
            for row in rows
            if isinstance(row, Case) and (row.type, row.since) == pair and row.inputs[inputs[0]].array.ndim > axis
        )
        cut = tuple(Typed(x.element, x.array.take([], axis)) if i in inputs else x for i, x in enumerate(first.inputs))
        found.append(
            dataclasses.replace(first, inputs=cut, gives=None, name=f"{first.name}, with nothing along axis {axis}")
        )
    return found
