"""Inferred facts of bodies, remembered so that no body is inferred twice from the same facts of its Parameters.

The rule of a loop infers its body several times, and so does that of a loop inside it. Without remembering, the
innermost of nested loops would be inferred 3**depth times and more.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from irexec.ir.facts import Fact
from irexec.ir.graph import Graph, Value

MAX_INFERENCES = 100
"""Number of different facts of its Parameters that a body is inferred from. After these, its Parameters count as
unknown."""

Key = tuple[Hashable, ...]


@dataclass(frozen=True, eq=False)
class _Inferred:
    """One inference of a body: the facts of the values of its own graph, and the keys of the bodies of its nodes."""

    facts: dict[Value, Fact]
    inside: tuple[tuple[Graph, Key], ...]


class BodyFacts:
    """The inferences of the bodies of one node, nested ones included.

    Args:
        facts: of every value; the values of a body have the facts of the last inference, made or recalled.
    """

    def __init__(self, facts: dict[Value, Fact]) -> None:
        self._facts = facts
        self._made: dict[Graph, dict[Key, _Inferred]] = {}
        self._current: dict[Graph, Key] = {}

    def clear(self) -> None:
        """Forget all inferences; the facts stay."""
        self._made.clear()
        self._current.clear()

    def count(self, graph: Graph) -> int:
        """Number of inferences of a body that are kept."""
        return len(self._made.get(graph, ()))

    def recall(self, graph: Graph, key: Key) -> bool:
        """Set the facts of a body to those of an earlier inference; False if there is none."""
        found = self._made.get(graph, {}).get(key)
        if found is None:
            return False
        if self._current[graph] != key:
            self._facts.update(found.facts)
            self._current[graph] = key
            for body, inner in found.inside:
                self.recall(body, inner)
        return True

    def keep(self, graph: Graph, key: Key) -> None:
        """Keep the facts that a body has now."""
        values = (value for node in graph.nodes for value in node.outputs)
        bodies = (body.graph for node in graph.nodes for body in node.bodies.values())
        inside = tuple((body, self._current[body]) for body in bodies if body in self._current)
        self._made.setdefault(graph, {})[key] = _Inferred(
            {value: self._facts[value] for value in values if value in self._facts}, inside
        )
        self._current[graph] = key


def key_of(given: Sequence[Fact]) -> Key:
    """Key that two inferences of a body from equal facts have in common."""
    return tuple(map(_key, given))


def _key(fact: Fact) -> Hashable:
    value = fact.value
    if value is None:
        return fact.element, fact.shape
    # An object array holds integers, Dims or texts: all hashable, and other for other values.
    return (
        fact.element,
        fact.shape,
        value.dtype.str,
        tuple(value.ravel().tolist()) if value.dtype == object else value.tobytes(),
    )
