"""The order of the vertices in each row, such that few lines cross."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

_ROUNDS, _PATIENCE = 24, 4
"""Maximum number of sweeps, and number of sweeps without improvement that ends the search."""


@dataclass
class Layered:
    """A graph whose lines lead from one row to the next: a long line has a vertex in each row that it passes.

    Attributes:
        order: the vertices of each row, from left to right.
        row_of: the row of each vertex.
        before, after: the vertices above and below each vertex that lines connect to it.
        chains: the vertices of each line between its ends.
        boxes: the number of vertices that are boxes; they come first.
    """

    order: list[list[int]]
    row_of: list[int]
    before: list[list[int]]
    after: list[list[int]]
    chains: list[list[int]]
    boxes: int

    @classmethod
    def of(cls, rows: Sequence[int], lines: Sequence[tuple[int, int]]) -> Layered:
        """The graph with these rows of its boxes and these lines, which lead downwards."""
        row_of = list(rows)
        before: list[list[int]] = [[] for _ in rows]
        after: list[list[int]] = [[] for _ in rows]
        chains = []
        for a, b in lines:
            chain = list(range(len(row_of), len(row_of) + rows[b] - rows[a] - 1))
            row_of += range(rows[a] + 1, rows[b])
            before += [[] for _ in chain]
            after += [[] for _ in chain]
            for upper, lower in pairwise([a, *chain, b]):
                after[upper].append(lower)
                before[lower].append(upper)
            chains.append(chain)
        order: list[list[int]] = [[] for _ in range(max(row_of, default=-1) + 1)]
        layered = cls(order, row_of, before, after, chains, len(rows))
        layered._by_depth_first_search()
        return layered

    def _by_depth_first_search(self) -> None:
        """The vertices in the order of a walk along the lines from the topmost vertices."""
        met = [False] * len(self.row_of)
        for start in sorted(range(self.boxes), key=lambda v: self.row_of[v]):
            waiting = [start]
            while waiting:
                v = waiting.pop()
                if not met[v]:
                    met[v] = True
                    self.order[self.row_of[v]].append(v)
                    waiting += reversed(self.after[v])

    def crossings(self) -> int:
        """Number of crossings of lines."""
        position = self.positions()
        found = 0
        for members in self.order[1:]:
            if len(members) > 1:
                seen: list[int] = []
                for v in members:
                    above = [position[u] for u in self.before[v]]
                    found += sum(len(seen) - bisect_right(seen, place) for place in above)
                    for place in above:
                        insort(seen, place)
        return found

    def positions(self) -> list[int]:
        """The position of each vertex in its row."""
        position = [0] * len(self.row_of)
        for members in self.order:
            for k, v in enumerate(members):
                position[v] = k
        return position


def reduce_crossings(part: Layered) -> None:
    """Sort each row by the barycentres of the row above, then of the row below, and so on; keeps the best order.

    Source: Sugiyama, Tagawa, Toda 1981; neighbours are exchanged as in Gansner et al. 1993.
    """
    wide = [k for k, members in enumerate(part.order) if len(members) > 1]
    best, order, waited = part.crossings(), [list(members) for members in part.order], 0
    for i in range(_ROUNDS):
        if not best or waited == _PATIENCE:
            break
        position = part.positions()
        for k in wide if i % 2 == 0 else reversed(wide):
            _sort(part.order[k], part.before if i % 2 == 0 else part.after, position)
        for k in wide:
            _exchange(part.order[k], part, position)
        found = part.crossings()
        waited = 0 if found < best else waited + 1
        if found < best:
            best, order = found, [list(members) for members in part.order]
    part.order = order


def _sort(members: list[int], neighbours: Sequence[Sequence[int]], position: list[int]) -> None:
    """Sort a row by the mean position of the neighbours; a vertex without neighbours keeps its position."""
    keys = {v: sum(position[u] for u in near) / len(near) for v in members if (near := neighbours[v])}
    sorted_ones = iter(sorted(keys, key=keys.__getitem__))
    members[:] = [next(sorted_ones) if v in keys else v for v in members]
    for k, v in enumerate(members):
        position[v] = k


def _exchange(members: list[int], part: Layered, position: list[int]) -> None:
    """Exchange neighbours in a row where this reduces crossings."""
    for k in range(len(members) - 1):
        v, w = members[k], members[k + 1]
        gain = 0
        for neighbours in (part.before, part.after):
            for a in neighbours[v]:
                for b in neighbours[w]:
                    gain += (position[a] > position[b]) - (position[a] < position[b])
        if gain > 0:
            members[k], members[k + 1] = w, v
            position[v], position[w] = k + 1, k
