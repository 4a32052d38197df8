"""Neighbours of pairs become pairs, best candidates first."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator

from irexec.analysis.matching.assignment import Assignment
from irexec.analysis.matching.side import Side, Source

_FEW = 64
"""Combinations of open neighbours up to which all are candidates; beyond, those that are equal, in order."""

Candidate = tuple[float, int, int, int, int]
"""Minus the score, the ranks of both layers, and the layers."""


class Spread:
    """Candidates beside pairs, in the order of their score."""

    def __init__(self, assignment: Assignment) -> None:
        self._state = assignment

    def run(self, minimum: float, candidates: Iterable[tuple[int, int]] = (), reason: str = "neighbours") -> None:
        """Pair candidates that score at least ``minimum``, and go on from each.

        Args:
            minimum: the score.
            candidates: to begin with, beside the neighbours of fresh pairs.
            reason: the reason of new pairs whose names differ.
        """
        state = self._state
        heap: list[Candidate] = []
        for i, j in candidates:
            self._push(heap, i, j, minimum)
        self._push_fresh(heap, minimum)
        while heap:
            negative, _, _, i, j = heapq.heappop(heap)
            if not state.is_open(i, j):
                continue
            score = state.score(i, j)
            if score < -negative - 1e-9:
                self._push(heap, i, j, minimum)
                continue
            state.add(i, j, "name" if state.keys_a.name[i] == state.keys_b.name[j] else reason)
            self._push_fresh(heap, minimum)

    def revisit(self) -> None:
        """Look at the neighbours of every pair again."""
        state = self._state
        near = {i for k in state.open_a() for i in _neighbours(state.a, k) if state.to_b[i] >= 0}
        near |= {state.to_a[j] for k in state.open_b() for j in _neighbours(state.b, k) if state.to_a[j] >= 0}
        state.fresh = [(i, state.to_b[i]) for i in sorted(near, key=lambda i: state.a.rank[i])]

    def _push(self, heap: list[Candidate], i: int, j: int, minimum: float) -> None:
        state = self._state
        if state.is_open(i, j):
            score = state.score(i, j)
            if score >= minimum:
                heapq.heappush(heap, (-score, state.a.rank[i], state.b.rank[j], i, j))

    def _push_fresh(self, heap: list[Candidate], minimum: float) -> None:
        fresh, self._state.fresh = self._state.fresh, []
        for i, j in fresh:
            for k, m in self._beside(i, j):
                self._push(heap, k, m, minimum)

    def _beside(self, i: int, j: int) -> Iterator[tuple[int, int]]:
        """Candidates among the sources and the readers of a pair."""
        state = self._state
        mine, theirs = _open(state.a.sources[i], state.to_b), _open(state.b.sources[j], state.to_a)
        yield from self._combined(mine, theirs)
        users = [(port, (user, output)) for output, port, user in state.a.uses[i] if state.to_b[user] < 0]
        if users:
            yield from self._combined(
                users, [(port, (user, output)) for output, port, user in state.b.uses[j] if state.to_a[user] < 0]
            )

    def _combined(self, mine: list[tuple[int, Source]], theirs: list[tuple[int, Source]]) -> Iterator[tuple[int, int]]:
        if len(mine) * len(theirs) <= _FEW:
            yield from ((one[0], other[0]) for _, one in mine for _, other in theirs)
            return
        state = self._state
        for keys_a, keys_b in (
            (state.keys_a.name, state.keys_b.name),
            (state.keys_a.contents, state.keys_b.contents),
            (None, None),
        ):
            groups: dict[object, list[int]] = {}
            for port, (i, output) in mine:
                groups.setdefault((port, output) if keys_a is None else keys_a[i], []).append(i)
            later = {key: iter(group) for key, group in groups.items()}
            for port, (j, output) in theirs:
                i = next(later.get((port, output) if keys_b is None else keys_b[j], iter(())), -1)
                if i >= 0:
                    yield i, j


def _open(sources: list[Source | None], partners: list[int]) -> list[tuple[int, Source]]:
    return [(port, source) for port, source in enumerate(sources) if source is not None and partners[source[0]] < 0]


def _neighbours(side: Side, i: int) -> Iterator[int]:
    yield from (source[0] for source in side.sources[i] if source is not None)
    yield from (user for _, _, user in side.uses[i])
