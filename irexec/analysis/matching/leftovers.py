"""The last steps: constants that are read through other layers, and layers that replace one of another type."""

from __future__ import annotations

from irexec.analysis.matching.assignment import Assignment
from irexec.analysis.matching.side import Side, Source

_DEPTH = 8
"""Layers between a constant and its consumer that are looked through."""


def pair_through(state: Assignment) -> None:
    """Pair constants with as many elements that the same input of a pair reads, through layers that only one graph has,
    on either side."""
    readers = {user for i in state.open_a() for _, _, user in state.a.uses[i]}
    readers |= {state.to_a[user] for j in state.open_b() for _, _, user in state.b.uses[j]}
    for i in sorted((i for i in readers if i >= 0 and state.to_b[i] >= 0), key=lambda i: state.a.rank[i]):
        for one, other in zip(state.a.sources[i], state.b.sources[state.to_b[i]], strict=False):
            mine, theirs = _constant(state.a, one, state.to_b), _constant(state.b, other, state.to_a)
            if (
                mine >= 0
                and theirs >= 0
                and state.is_open(mine, theirs)
                and _count(state.a, mine) == _count(state.b, theirs)
            ):
                state.add(mine, theirs, "through")


def _constant(side: Side, source: Source | None, partners: list[int]) -> int:
    """The unpaired constant that a source is, or is computed from by unpaired layers as their first input; -1 if there
    is none."""
    for _ in range(_DEPTH):
        if source is None or partners[source[0]] >= 0:
            return -1
        if side.nodes[source[0]].constant is not None:
            return source[0]
        source = side.sources[source[0]][0] if side.sources[source[0]] else None
    return -1


def _count(side: Side, i: int) -> int:
    constant = side.nodes[i].constant
    return -1 if constant is None else constant.count


def pair_in_order(state: Assignment) -> None:
    """Pair unpaired Parameters and Results of the same position if both graphs have as many of them."""
    for type in ("Parameter", "Result"):
        mine = [i for i, node in enumerate(state.a.nodes) if node.type == type]
        theirs = [j for j, node in enumerate(state.b.nodes) if node.type == type]
        if len(mine) == len(theirs):
            for i, j in zip(mine, theirs, strict=True):
                if state.is_open(i, j):
                    state.add(i, j, "order")


def pair_in_place(state: Assignment) -> None:
    """Pair layers of different types if all their edges lead to pairs, at the same ports, both from sources and to
    readers."""
    for i in state.open_a():
        source = next((source for source in state.a.sources[i] if source is not None), None)
        if source is None or not state.a.uses[i] or state.to_b[source[0]] < 0:
            continue
        for _, _, j in state.b.uses[state.to_b[source[0]]]:
            if state.to_a[j] < 0 and state.b.uses[j] and state.edges(i, j) == 1.0:
                state.add(i, j, "replaced")
                break
