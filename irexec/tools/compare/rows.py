"""Rows of a comparison from arrays, and what the rows say about each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from irexec.dtypes.elements import Element
from irexec.ir.graph import Node, Value
from irexec.tools.agreement import Agreement, agreement_of
from irexec.tools.compare.comparison import Layer, TensorRow
from irexec.tools.compare.pairs import TensorPair
from irexec.tools.compare.sides import tensor_name
from irexec.tools.compare.tolerances import Tolerances

ElementOf = Callable[[Value], Element | None]


def layer(value: Value, path: str = "") -> Layer:
    """The layer of a value, as it is reported."""
    node = value.node
    return Layer(f"{path}{node.name}", node.type, node.id, node.line, tensor_name(value))


@dataclass(frozen=True)
class Found:
    """A row with the value of B that it is about, and its position: rows in their order are those that B computes one after the other."""

    row: TensorRow
    value: Value
    position: tuple[int, ...]
    path: str = ""

    @property
    def order(self) -> tuple[int, ...]:
        """What sorts rows by the time at which their difference comes to be."""
        return (self.row.run, *self.position)


class Rows:
    """All rows, as they are found.

    Args:
        tolerances: of pairs.
        a_element, b_element: the element types of values.
        position: for each layer of B its position in topological order.
    """

    def __init__(self, tolerances: Tolerances, a_element: ElementOf, b_element: ElementOf, position: dict[Node, int]) -> None:
        self._tolerances, self._a_element, self._b_element = tolerances, a_element, b_element
        self._position = position
        self.found: list[Found] = []

    def add(self, pair: TensorPair, a: Sequence[np.ndarray], b: Sequence[np.ndarray]) -> TensorRow:
        """The row of a pair: of the first run in which it differs, else of the one with the largest difference."""
        row = self.row(pair, a, b)
        self.found.append(Found(row, pair.b, (self._position[pair.b.node], pair.b.index)))
        return row

    def row(self, pair: TensorPair, a: Sequence[np.ndarray], b: Sequence[np.ndarray]) -> TensorRow:
        """The row of a pair that is not one of all."""
        agreements = [self.agreement(pair, *arrays) for arrays in zip(a, b, strict=True)]
        run, agreement = worst(agreements)
        of_a = layer(pair.a) if isinstance(pair.a, Value) else None
        return TensorRow(of_a, layer(pair.b), pair.how, type_name(b[run]), b[run].shape, agreement, run + 1)

    def agreement(self, pair: TensorPair, a: np.ndarray, b: np.ndarray) -> Agreement:
        """Of two arrays."""
        elements = [self._b_element(pair.b), *([self._a_element(pair.a)] if isinstance(pair.a, Value) else [])]
        return agreement_of(tensor_name(pair.b), b, a, self._tolerances.of(*elements), "A")

    def sort(self) -> None:
        """Bring the rows into the order in which B computes them."""
        self.found.sort(key=lambda found: found.position)


def worst(agreements: Sequence[Agreement]) -> tuple[int, Agreement]:
    """The first that does not agree, else the one with the largest difference, and its index."""
    for i, agreement in enumerate(agreements):
        if not agreement.agrees:
            return i, agreement
    i = max(range(len(agreements)), key=lambda i: agreements[i].largest or 0.0)
    return i, agreements[i]


def type_name(array: np.ndarray) -> str:
    """NumPy's name of the type, or "string"."""
    return "string" if array.dtype.kind in "OU" else array.dtype.name


class Ancestors:
    """Which compared tensors a tensor is computed from, with none that is compared between them.

    Args:
        compared: the values of B that are compared.
        assigned: for each variable the values that are assigned to it: what a ReadValue gives in later runs.
    """

    def __init__(self, compared: Iterable[Value], assigned: dict[str, list[Value]]) -> None:
        self._compared, self._assigned = set(compared), assigned

    def of(self, value: Value) -> tuple[list[Value], list[Node]]:
        """The compared tensors, and the layers between, whose tensors are not compared."""
        found: dict[Value, None] = {}
        between: dict[Node, None] = {}
        waiting = self._sources(value.node)[::-1]
        seen: set[Node] = set()
        while waiting:
            source = waiting.pop()
            if source in self._compared:
                found[source] = None
            elif source.node not in seen:
                seen.add(source.node)
                if source.node.type not in ("Parameter", "Constant"):
                    between[source.node] = None
                    waiting += self._sources(source.node)[::-1]
        return list(found), list(between)

    def _sources(self, node: Node) -> list[Value]:
        sources = [value for value in node.inputs if value is not None]
        if node.type == "ReadValue":
            sources += self._assigned.get(node.attributes.get("variable_id", ""), [])
        return sources
