"""Pairs so far, and scores of how well two layers go together."""

from __future__ import annotations

from collections.abc import Sequence

from irexec.analysis.matching.keys import NO_KEY, Side, SideKeys

_NAME, _TENSORS, _ELSEWHERE = 4.0, 3.0, -1.5
_CONTENTS, _DEFINITION = 2.0, 1.5
_EDGES = 8.0
_ORDER = 0.5
"""Scores of a candidate: for an equal name, equal tensor names, an unpaired layer of its name on the other side,
equal contents or attributes, edges to pairs (each edge that leads elsewhere counts against the pair), and the same
position among Parameters or Results."""
_OTHER_PORT = 0.5
"""Score of an edge to a pair if it arrives at another input there; 1 at the same input."""
_MAX_USES = 32
"""Readers of a layer that are looked at for its score."""


class Assignment:
    """Pairs of layers by index.

    Attributes:
        a, b: the graphs.
        keys_a, keys_b: their keys.
        to_b, to_a: for each layer the index of its partner; -1 without one.
        reasons: for each layer of ``a`` why it is paired.
        fresh: the pairs that no neighbours were looked at from yet.
    """

    def __init__(self, a: Side, b: Side, keys_a: SideKeys, keys_b: SideKeys) -> None:
        self.a, self.b, self.keys_a, self.keys_b = a, b, keys_a, keys_b
        self.to_b, self.to_a = [-1] * len(a.nodes), [-1] * len(b.nodes)
        self.reasons = [""] * len(a.nodes)
        self.fresh: list[tuple[int, int]] = []
        self._named_a, self._named_b = _by_key(keys_a.name), _by_key(keys_b.name)
        self._position_a, self._position_b = _positions(a), _positions(b)

    def add(self, i: int, j: int, reason: str) -> None:
        """Pair layer ``i`` of ``a`` with layer ``j`` of ``b``."""
        self.to_b[i], self.to_a[j], self.reasons[i] = j, i, reason
        self.fresh.append((i, j))

    def is_open(self, i: int, j: int) -> bool:
        """Whether neither is paired and both have the same type."""
        return self.to_b[i] < 0 and self.to_a[j] < 0 and self.keys_a.type[i] == self.keys_b.type[j]

    def open_a(self) -> list[int]:
        """The unpaired layers of ``a`` in topological order."""
        return [i for i in self.a.order if self.to_b[i] < 0]

    def open_b(self) -> list[int]:
        """The unpaired layers of ``b`` in topological order."""
        return [j for j in self.b.order if self.to_a[j] < 0]

    def add_unique(
        self, keys_a: Sequence[int], keys_b: Sequence[int], reason: str, *, unless_named: bool = False
    ) -> None:
        """Pair the layers whose key no other unpaired layer of either side has.

        Args:
            keys_a, keys_b: of all layers of each side.
            reason: the reason of the pairs.
            unless_named: leave out those of which one has the name of another unpaired layer.
        """
        only_a, only_b = _unique(keys_a, self.to_b), _unique(keys_b, self.to_a)
        for key, i in only_a.items():
            j = only_b.get(key, -1)
            if i >= 0 and j >= 0 and self.is_open(i, j) and not (unless_named and self._elsewhere(i, j)):
                self.add(i, j, reason)

    def score(self, i: int, j: int) -> float:
        """How well two layers of the same type go together; at 0 nothing speaks for them or against them."""
        return self._names(i, j) + self._definitions(i, j) + _EDGES * self.edges(i, j)

    def _names(self, i: int, j: int) -> float:
        a, b = self.keys_a, self.keys_b
        score = _TENSORS if a.tensors[i] == b.tensors[j] != NO_KEY else 0.0
        if a.name[i] == b.name[j]:
            return score + _NAME
        return score + _ELSEWHERE * self._elsewhere(i, j)

    def _elsewhere(self, i: int, j: int) -> int:
        """Number of the two whose name an unpaired layer of the other side has too; 0 if their names are equal."""
        mine, theirs = self.keys_a.name[i], self.keys_b.name[j]
        if mine == theirs:
            return 0
        in_b = any(self.to_a[other] < 0 for other in self._named_b.get(mine, ()))
        in_a = any(self.to_b[other] < 0 for other in self._named_a.get(theirs, ()))
        return in_a + in_b

    def _definitions(self, i: int, j: int) -> float:
        a, b = self.keys_a, self.keys_b
        order = _ORDER if i in self._position_a and self._position_a[i] == self._position_b.get(j) else 0.0
        if a.contents[i] == b.contents[j]:
            return _CONTENTS + order
        return order + (_DEFINITION if a.definition[i] == b.definition[j] else 0.0)

    def edges(self, i: int, j: int) -> float:
        """From -1 to 1: the part of all edges that lead to pairs, less the part that leads elsewhere; at other ports
        they count half."""
        agreed, total = self._source_edges(i, j)
        more_agreed, more = self._use_edges(i, j)
        return (agreed + more_agreed) / max(1, total + more)

    def _source_edges(self, i: int, j: int) -> tuple[float, int]:
        mine, theirs = self.a.sources[i], self.b.sources[j]
        agreed = 0.0
        for one, other in zip(mine, theirs, strict=False):
            if one is None or other is None:
                continue
            partner = self.to_b[one[0]]
            if partner == other[0] and one[1] == other[1]:
                agreed += 1
            elif partner >= 0 and (partner, one[1]) in theirs:
                agreed += _OTHER_PORT
            elif partner >= 0 or self.to_a[other[0]] >= 0:
                agreed -= 1
        return agreed, max(len(mine), len(theirs))

    def _use_edges(self, i: int, j: int) -> tuple[float, int]:
        mine, theirs = self.a.uses[i], self.b.uses[j]
        agreed = 0.0
        for output, port, user in mine[:_MAX_USES]:
            partner = self.to_b[user]
            if partner >= 0:
                sources = self.b.sources[partner]
                is_same = port < len(sources) and sources[port] == (j, output)
                agreed += 1 if is_same else _OTHER_PORT if (j, output) in sources else -1
        return agreed, min(_MAX_USES, max(len(mine), len(theirs)))


def _unique(keys: Sequence[int], partners: Sequence[int]) -> dict[int, int]:
    """By key the only unpaired layer that has it; -1 where several have."""
    found: dict[int, int] = {}
    for i, key in enumerate(keys):
        if partners[i] < 0 and key != NO_KEY:
            found[key] = -1 if key in found else i
    return found


def _by_key(keys: Sequence[int]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for i, key in enumerate(keys):
        positions = found.setdefault(key, [])
        # Many layers of one name say nothing; to look at a few is enough.
        if len(positions) < 4:
            positions.append(i)
    return found


def _positions(side: Side) -> dict[int, tuple[str, int]]:
    """For Parameters and Results their position among their like."""
    counts = {"Parameter": 0, "Result": 0}
    found = {}
    for i, node in enumerate(side.nodes):
        if node.type in counts:
            found[i] = (node.type, counts[node.type])
            counts[node.type] += 1
    return found
