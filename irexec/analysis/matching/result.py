"""The pairs that matching found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from irexec.ir.graph import Graph, Node, Value
from irexec.messages import counted


@dataclass(frozen=True, slots=True)
class Pair:
    """A layer of each graph that are the same one.

    Attributes:
        a, b: the layers.
        reason: why they are paired: "name and structure", "structure", "name", "contents", "neighbours", "order",
            "through" (a constant that is read through layers which only one graph has), "replaced" (of another type,
            between the same neighbours) or "value" (it was known).
    """

    a: Node
    b: Node
    reason: str


@dataclass(frozen=True, slots=True)
class ValuePair:
    """A tensor of each graph that are the same one.

    Attributes:
        a, b: the values.
        reason: "tensor name", or that of the pair of layers.
    """

    a: Value
    b: Value
    reason: str


@dataclass(frozen=True, repr=False)
class Matching:
    """Pairs of equal layers of graph ``a`` and graph ``b``.

    Attributes:
        a, b: the graphs.
        pairs: one to one, in topological order of ``a``.
        only_a, only_b: the layers without a partner, in topological order.
        bodies: the matchings of the bodies that both layers of a pair have, by the layer of ``a`` and the name of the
            body.
    """

    a: Graph
    b: Graph
    pairs: list[Pair]
    only_a: list[Node]
    only_b: list[Node]
    bodies: dict[tuple[Node, str], Matching] = field(default_factory=dict)
    _by_a: dict[Node, Pair] = field(init=False)
    _by_b: dict[Node, Pair] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_a", {pair.a: pair for pair in self.pairs})
        object.__setattr__(self, "_by_b", {pair.b: pair for pair in self.pairs})

    def in_b(self, node: Node) -> Node | None:
        """The partner of a layer of ``a``."""
        pair = self._by_a.get(node)
        return None if pair is None else pair.b

    def in_a(self, node: Node) -> Node | None:
        """The partner of a layer of ``b``."""
        pair = self._by_b.get(node)
        return None if pair is None else pair.a

    def walk(self, path: str = "") -> Iterator[tuple[str, Matching]]:
        """This matching and those of all bodies, each with its path in ``a``: the layers and bodies that lead to it."""
        yield path, self
        for (node, name), inner in self.bodies.items():
            yield from inner.walk(f"{path}{node.name}/{name}/")

    def __repr__(self) -> str:
        only_a, only_b = counted(len(self.only_a), "layer"), len(self.only_b)
        return f"<Matching: {counted(len(self.pairs), 'pair')}, {only_a} only in a, {only_b} only in b>"


def value_pairs(matching: Matching) -> list[ValuePair]:
    """The tensors of both graphs that are the same, one to one, in topological order of ``a``; those of bodies are not
    included.

    A tensor name that both graphs have decides, unless the layers that have it are paired with others by structure;
    then the layers do, output by output. Where a layer without a partner has a tensor name of the other graph (a fused
    layer has the name of the last one that it was made of), the names alone make a pair.
    """
    found: dict[Value, ValuePair] = {}
    taken: set[Value] = set()

    def add(a: Value, b: Value, reason: str) -> None:
        if a not in found and b not in taken:
            found[a] = ValuePair(a, b, reason)
            taken.add(b)

    named = _named(matching.b)
    for value in _values(matching.a):
        other = next((named[name] for name in value.names if name in named), None)
        if other is not None and _may_be(matching, value, other):
            add(value, other, "tensor name")
    for pair in matching.pairs:
        for a, b in zip(pair.a.outputs, pair.b.outputs, strict=False):
            add(a, b, pair.reason)
    order = [pair.a for pair in matching.pairs]
    order += matching.only_a
    return [found[value] for node in order for value in node.outputs if value in found]


def _may_be(matching: Matching, a: Value, b: Value) -> bool:
    """Whether a common tensor name makes two values a pair: their layers are each other's, or one of them has no
    partner."""
    partner, other = matching.in_b(a.node), matching.in_a(b.node)
    return (partner is b.node) or partner is None or other is None


def _named(graph: Graph) -> dict[str, Value]:
    """The values by tensor name, without names that several have."""
    found: dict[str, Value | None] = {}
    for value in _values(graph):
        for name in value.names:
            found[name] = None if name in found and found[name] is not value else value
    return {name: value for name, value in found.items() if value is not None}


def _values(graph: Graph) -> Iterator[Value]:
    return (value for node in graph.nodes for value in node.outputs)
