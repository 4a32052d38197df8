"""The steps of matching in their order; the package says what each is for."""

from __future__ import annotations

from collections.abc import Iterable

from irexec.analysis.matching.alignment import aligned
from irexec.analysis.matching.assignment import Assignment
from irexec.analysis.matching.keys import NO_KEY, SideKeys, joined, keys_of
from irexec.analysis.matching.leftovers import pair_in_order, pair_in_place, pair_through
from irexec.analysis.matching.result import Matching, Pair
from irexec.analysis.matching.side import Numbers, Side
from irexec.analysis.matching.spread import Spread
from irexec.ir.garbage import collection_paused
from irexec.ir.graph import Graph, Node

_CERTAIN, _LIKELY, _POSSIBLE = 5.0, 2.5, 0.5
"""Scores that candidates must have at least, from step to step."""
_TRIED = 8
"""Equal layers of the other side that are compared before one is taken."""


def match_graphs(a: Graph, b: Graph, known: Iterable[tuple[Node, Node]] = ()) -> Matching:
    """Pair the layers of two graphs and of their bodies.

    Args:
        a, b: any graphs, damaged ones too; neither is changed.
        known: pairs of equal layers of any types, for example with equal values; the first pair of a layer counts.
    """
    with collection_paused():
        return _match(a, b, known)


def _match(a: Graph, b: Graph, known: Iterable[tuple[Node, Node]] = ()) -> Matching:
    numbers = Numbers()
    side_a, side_b = Side.of(a), Side.of(b)
    same = _indices(side_a, side_b, known)
    keys_a = keys_of(side_a, numbers, {i: k for k, (i, _) in enumerate(same)})
    keys_b = keys_of(side_b, numbers, {j: k for k, (_, j) in enumerate(same)})
    state = Assignment(side_a, side_b, keys_a, keys_b)
    for i, j in same:
        state.add(i, j, "value")
    _pair_unique(state, numbers)
    spread = Spread(state)
    spread.revisit()
    spread.run(_CERTAIN, _namesakes(state))
    _pair_equal(state, spread)
    spread.revisit()
    spread.run(_LIKELY, _namesakes(state))
    # Layers without readers, such as Results, are identified by little but their names.
    state.add_unique(
        _joined(numbers, state.keys_a, ("down", "name")), _joined(numbers, state.keys_b, ("down", "name")), "name"
    )
    _align(state, spread)
    spread.revisit()
    spread.run(_POSSIBLE, _namesakes(state))
    pair_in_order(state)
    pair_through(state)
    pair_in_place(state)
    return _result(a, b, state)


def _indices(a: Side, b: Side, known: Iterable[tuple[Node, Node]]) -> list[tuple[int, int]]:
    """Indices of the layers that are paired beforehand; of several pairs of one layer the first."""
    index_a, index_b = ({node: i for i, node in enumerate(side.nodes)} for side in (a, b))
    partners: dict[int, int] = {}
    taken: set[int] = set()
    for one, other in known:
        i, j = index_a[one], index_b[other]
        if i not in partners and j not in taken:
            partners[i] = j
            taken.add(j)
    return list(partners.items())


def _pair_unique(state: Assignment, numbers: Numbers) -> None:
    a, b = state.keys_a, state.keys_b
    for fields, reason in (
        (("up", "down", "name"), "name and structure"),
        (("up", "inner", "name"), "name and structure"),
        (("down", "read", "name"), "name and structure"),
        (("up", "inner", "tensors"), "name and structure"),
        (("down", "read", "tensors"), "name and structure"),
        (("up", "down", "computed"), "structure"),
        (("around", "neighbours"), "name and structure"),
    ):
        state.add_unique(_joined(numbers, a, fields), _joined(numbers, b, fields), reason)
    state.add_unique(a.weights, b.weights, "contents")
    state.add_unique(a.around, b.around, "structure", unless_named=True)
    state.add_unique(a.neighbours, b.neighbours, "name")


def _joined(numbers: Numbers, keys: SideKeys, fields: tuple[str, ...]) -> list[int]:
    columns = [getattr(keys, field) for field in fields]
    return columns[0] if len(columns) == 1 else joined(numbers, *columns)


def _namesakes(state: Assignment) -> list[tuple[int, int]]:
    """Unpaired layers whose name, or tensor names, one unpaired layer of each side has."""
    found = []
    for keys_a, keys_b in ((state.keys_a.name, state.keys_b.name), (state.keys_a.tensors, state.keys_b.tensors)):
        positions: dict[int, int] = {}
        for j in state.open_b():
            positions[keys_b[j]] = -1 if keys_b[j] in positions else j
        seen: dict[int, int] = {}
        for i in state.open_a():
            seen[keys_a[i]] = -1 if keys_a[i] in seen else i
        found += [
            (i, positions[key]) for key, i in seen.items() if key != NO_KEY and i >= 0 and positions.get(key, -1) >= 0
        ]
    return found


def _pair_equal(state: Assignment, spread: Spread) -> None:
    """Pair layers that several others are equal to, in topological order; neighbours follow each at once."""
    a, b = state.keys_a, state.keys_b
    both_a, both_b = list(zip(a.up, a.down, strict=True)), list(zip(b.up, b.down, strict=True))
    for keys_a, keys_b in ((both_a, both_b), (a.up, b.up), (a.down, b.down), (a.around, b.around)):
        groups: dict[object, list[int]] = {}
        for j in reversed(state.open_b()):
            groups.setdefault(keys_b[j], []).append(j)
        for i in state.open_a():
            # A constant is paired where it is read: equal ones are everywhere.
            group = None if a.computed[i] == NO_KEY else groups.get(keys_a[i])
            if state.to_b[i] >= 0 or not group:
                continue
            while group and state.to_a[group[-1]] >= 0:
                group.pop()
            tried = [j for j in group[: -_TRIED - 1 : -1] if state.is_open(i, j)]
            best = max(tried, key=lambda j: state.score(i, j), default=-1)
            if best >= 0 and state.score(i, best) >= _POSSIBLE:
                state.add(i, best, "structure")
                spread.run(_LIKELY)


def _align(state: Assignment, spread: Spread) -> None:
    """Pair what remains in topological order, by type and attributes, then by type."""
    for keys_a, keys_b in (
        (state.keys_a.contents, state.keys_b.contents),
        (state.keys_a.definition, state.keys_b.definition),
    ):
        open_a, open_b = state.open_a(), state.open_b()
        for k, m in aligned([keys_a[i] for i in open_a], [keys_b[j] for j in open_b]):
            i, j = open_a[k], open_b[m]
            if state.is_open(i, j) and state.score(i, j) >= _POSSIBLE:
                state.add(i, j, "order")
        spread.run(_LIKELY)


def _result(a: Graph, b: Graph, state: Assignment) -> Matching:
    nodes_a, nodes_b = state.a.nodes, state.b.nodes
    pairs = [Pair(nodes_a[i], nodes_b[state.to_b[i]], state.reasons[i]) for i in state.a.order if state.to_b[i] >= 0]
    bodies: dict[tuple[Node, str], Matching] = {}
    for pair in pairs:
        for name, body in pair.a.bodies.items():
            if name in pair.b.bodies:
                bodies[pair.a, name] = _match(body.graph, pair.b.bodies[name].graph)
    return Matching(a, b, pairs, [nodes_a[i] for i in state.open_a()], [nodes_b[j] for j in state.open_b()], bodies)
