"""Sources of the inputs of a layer, in both models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from irexec.analysis.matching import Matching, Pair
from irexec.ir.graph import Node, Value
from irexec.tools.diff.result import Change
from irexec.tools.diff.value_changes import same_bytes

_LOOKED_AT = 64
"""Maximum number of values examined for the source of an edge, through layers of one model alone."""


@dataclass
class EdgeChanges:
    """Changes of the edges to one layer.

    Attributes:
        changes: inputs with another source.
        through: layers of one model alone that lie on an edge, each with the source of the edge, a value of A.
    """

    changes: list[Change] = field(default_factory=list)
    through: list[tuple[Node, Value]] = field(default_factory=list)


def edge_changes(matching: Matching, pair: Pair) -> EdgeChanges:
    """Changes of the inputs of a pair."""
    found = EdgeChanges()
    mine, theirs = pair.a.inputs, pair.b.inputs
    other: list[tuple[int, Value | None, Value | None]] = []
    for port in range(max(len(mine), len(theirs))):
        one = mine[port] if port < len(mine) else None
        two = theirs[port] if port < len(theirs) else None
        if not _same(matching, one, two):
            between = [] if one is None or two is None else _between(matching, one, two)
            found.through += between
            if not between:
                other.append((port, one, two))
    found.changes += _listed(matching, other)
    return found


def _same(matching: Matching, a: Value | None, b: Value | None) -> bool:
    if a is None or b is None:
        return a is b
    if a.index == b.index and matching.in_b(a.node) is b.node:
        return True
    # One constant with several readers may be several equal constants in the other model.
    return a.node.constant is not None and b.node.constant is not None and same_bytes(a.node.constant, b.node.constant)


def _listed(matching: Matching, changes: Sequence[tuple[int, Value | None, Value | None]]) -> Iterator[Change]:
    """Inputs with another source; the same sources in another order are one change."""
    partners = [None if a is None else (matching.in_b(a.node), a.index) for _, a, _ in changes]
    theirs = [None if b is None else (b.node, b.index) for _, _, b in changes]
    if len(changes) > 1 and all(theirs.count(each) == partners.count(each) for each in theirs):
        ports = ", ".join(str(port) for port, _, _ in changes)
        yield Change("wiring", f"inputs {ports}", _texts(a for _, a, _ in changes), _texts(b for _, _, b in changes))
        return
    for port, a, b in changes:
        yield Change("wiring", f"input {port}", source_text(a), source_text(b))


def _texts(values: Iterator[Value | None]) -> str:
    return ", ".join(source_text(value) or "nothing" for value in values)


def source_text(value: Value | None) -> str | None:
    """A value by its layer, with the index of the output where there are several."""
    if value is None:
        return None
    name = f"{value.node.id} {value.node.name}"
    return name if len(value.node.outputs) == 1 else f"{name}:{value.index}"


def _between(matching: Matching, a: Value, b: Value) -> list[tuple[Node, Value]]:
    """Layers without a partner between two values and their common source, each with that source in A.

    Empty without a common source.
    """
    mine, theirs = _reached(matching, a, in_a=True), _reached(matching, b, in_a=False)
    partners = {(matching.in_b(value.node), value.index): (value, path) for value, path in mine.items()}
    found: list[list[tuple[Node, Value]]] = []
    for value, path in theirs.items():
        start, before = partners.get((value.node, value.index), (None, []))
        if start is not None and (before or path):
            found.append([(node, start) for node in (*before, *path)])
    return min(found, key=len, default=[])


def _reached(matching: Matching, start: Value, *, in_a: bool) -> dict[Value, list[Node]]:
    """Values of paired layers from which layers without a partner compute ``start``, with the latter layers."""
    partner = matching.in_b if in_a else matching.in_a
    found: dict[Value, list[Node]] = {}
    waiting: list[tuple[Value, list[Node]]] = [(start, [])]
    seen = {start}
    while waiting and len(seen) < _LOOKED_AT:
        value, path = waiting.pop(0)
        if partner(value.node) is not None:
            found[value] = path
            continue
        for source in value.node.inputs:
            if source is not None and source not in seen:
                seen.add(source)
                waiting.append((source, [*path, value.node]))
    return found
