"""The last steps: constants that are read through other layers, and layers in the place of one of another type."""

from __future__ import annotations

from irexec.analysis.matching.assignment import Assignment
from irexec.analysis.matching.side import Side

_DEPTH = 8
"""Layers between a constant and its consumer that are looked through."""


def pair_through(state: Assignment) -> None:
    """Pair constants of which one is read directly, the other through layers that only its graph has, if both have as many elements."""
    for i in state.open_a():
        if state.a.nodes[i].constant is not None:
            _pair(state, i, _through(state.a, state.b, state.to_b, state.to_a, i))
    for j in state.open_b():
        if state.b.nodes[j].constant is not None:
            i = _through(state.b, state.a, state.to_a, state.to_b, j)
            _pair(state, i, j)


def _pair(state: Assignment, i: int, j: int) -> None:
    if i >= 0 and j >= 0 and state.is_open(i, j):
        state.add(i, j, "through")


def _through(side: Side, other: Side, partners: list[int], back: list[int], i: int) -> int:
    """The constant of the other side that the consumer of constant ``i`` reads through unpaired layers; -1 if there is none."""
    constant = side.nodes[i].constant
    for _, port, user in side.uses[i]:
        partner = partners[user]
        sources = other.sources[partner] if partner >= 0 else []
        source = sources[port] if port < len(sources) else None
        for _ in range(_DEPTH):
            if source is None or back[source[0]] >= 0:
                break
            found = other.nodes[source[0]].constant
            if found is not None and constant is not None and found.count == constant.count:
                return source[0]
            source = other.sources[source[0]][0] if other.sources[source[0]] else None
    return -1


def pair_in_place(state: Assignment) -> None:
    """Pair layers of different types if all their edges lead to pairs, at the same ports, both from sources and to readers."""
    for i in state.open_a():
        source = next((source for source in state.a.sources[i] if source is not None), None)
        if source is None or not state.a.uses[i] or state.to_b[source[0]] < 0:
            continue
        for _, _, j in state.b.uses[state.to_b[source[0]]]:
            if state.to_a[j] < 0 and state.b.uses[j] and state.edges(i, j) == 1.0:
                state.add(i, j, "place")
                break
