"""The match of two models, step by step: keys, neighbours, assignments, leftovers; and the pairs that result."""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from irexec.analysis.matching.keys import NO_KEY, Assignment, Numbers, Side, SideKeys, Source, joined, keys_of
from irexec.ir.graph import Graph, Node, Value
from irexec.ir.order import grouped
from irexec.ir.process import collection_paused
from irexec.messages import counted

_STEPS = 4_000_000
"""Comparisons after which the rest of a pair of sequences is left as it is."""


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


def aligned(a: Sequence[int], b: Sequence[int]) -> list[tuple[int, int]]:
    """Pairs of positions of equal elements, both increasing: a longest common subsequence, or a shorter one of long
    sequences.

    Equal ends are taken first, then elements that are unique on both sides split the sequences (patience diff). The
    parts between them are searched by Myers' algorithm, within a budget.
    """
    found: list[tuple[int, int]] = []
    waiting = [(0, len(a), 0, len(b))]
    budget = _STEPS
    while waiting:
        first, last, start, stop = waiting.pop()
        while first < last and start < stop and a[first] == b[start]:
            found.append((first, start))
            first, start = first + 1, start + 1
        while first < last and start < stop and a[last - 1] == b[stop - 1]:
            last, stop = last - 1, stop - 1
            found.append((last, stop))
        if first == last or start == stop:
            continue
        splits = _splits(a, b, (first, last), (start, stop))
        if splits:
            edges = [(first - 1, start - 1), *splits, (last, stop)]
            found += splits
            waiting += [(i + 1, k, j + 1, m) for (i, j), (k, m) in pairwise(edges)]
        else:
            shortest, used = _shortest(a[first:last], b[start:stop], budget)
            budget -= used
            found += [(first + i, start + j) for i, j in shortest]
    return sorted(found)


def _splits(
    a: Sequence[int], b: Sequence[int], mine: tuple[int, int], theirs: tuple[int, int]
) -> list[tuple[int, int]]:
    """The longest increasing run of elements that are unique in both ranges."""
    positions = _once(b, *theirs)
    pairs = [(i, positions[key]) for key, i in _once(a, *mine).items() if key in positions]
    pairs.sort()
    tails: list[int] = []
    before: list[int] = []
    for k, (_, j) in enumerate(pairs):
        low = bisect_left(tails, j, key=lambda tail: pairs[tail][1])
        before.append(tails[low - 1] if low else -1)
        tails[low : low + 1] = [k]
    chain: list[tuple[int, int]] = []
    k = tails[-1] if tails else -1
    while k >= 0:
        chain.append(pairs[k])
        k = before[k]
    return chain[::-1]


def _once(keys: Sequence[int], first: int, last: int) -> dict[int, int]:
    found: dict[int, int] = {}
    for i in range(first, last):
        found[keys[i]] = -1 if keys[i] in found else i
    return {key: i for key, i in found.items() if i >= 0}


def _shortest(a: Sequence[int], b: Sequence[int], budget: int) -> tuple[list[tuple[int, int]], int]:
    """Pairs along a shortest edit script, and the comparisons made; none if the budget does not suffice. Source: Myers
    1986."""
    ends, traces, used = {1: 0}, [], 0
    for edits in range(len(a) + len(b) + 1):
        traces.append(dict(ends))
        for diagonal in range(-edits, edits + 1, 2):
            down = diagonal == -edits or (diagonal != edits and ends.get(diagonal - 1, -1) < ends.get(diagonal + 1, -1))
            x = ends.get(diagonal + 1, 0) if down else ends[diagonal - 1] + 1
            y = x - diagonal
            while x < len(a) and y < len(b) and a[x] == b[y]:
                x, y, used = x + 1, y + 1, used + 1
            ends[diagonal] = x
            if x >= len(a) and y >= len(b):
                return list(_backwards(traces, len(a), len(b))), used
        used += 2 * edits + 1
        if used > budget:
            return [], used
    return [], used


def _backwards(traces: list[dict[int, int]], x: int, y: int) -> Iterator[tuple[int, int]]:
    for edits in range(len(traces) - 1, -1, -1):
        ends, diagonal = traces[edits], x - y
        down = diagonal == -edits or (diagonal != edits and ends.get(diagonal - 1, -1) < ends.get(diagonal + 1, -1))
        previous = diagonal + 1 if down else diagonal - 1
        start_x = ends.get(previous, 0)
        start_y = start_x - previous
        while x > start_x and y > start_y and x > 0 and y > 0:
            x, y = x - 1, y - 1
            yield x, y
        x, y = start_x, start_y


_FEW = 64
"""Combinations of open neighbours up to which all are candidates; beyond, those that are equal, in order."""

Candidate = tuple[float, int, int, int, int]
"""Minus the score, the ranks of both layers, and the layers."""


class Spread:
    """Candidates beside pairs, in the order of their score."""

    def __init__(self, assignment: Assignment) -> None:
        self._state = assignment

    def run(self, minimum: float, candidates: Iterable[tuple[int, int]] = (), reason: str = "neighbours") -> None:
        """Pair candidates that score at least ``minimum``, and continue from each.

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
            groups = grouped(((port, output) if keys_a is None else keys_a[i], i) for port, (i, output) in mine)
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
            if min(mine, theirs) < 0 or not state.is_open(mine, theirs):
                continue
            if _count(state.a, mine) == _count(state.b, theirs):
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
    a, b = state.keys_a, state.keys_b
    return [*state.unique_pairs(a.name, b.name), *state.unique_pairs(a.tensors, b.tensors)]


def _pair_equal(state: Assignment, spread: Spread) -> None:
    """Pair layers that several others are equal to, in topological order; neighbours follow each at once."""
    a, b = state.keys_a, state.keys_b
    both_a, both_b = list(zip(a.up, a.down, strict=True)), list(zip(b.up, b.down, strict=True))
    for keys_a, keys_b in ((both_a, both_b), (a.up, b.up), (a.down, b.down), (a.around, b.around)):
        groups = grouped((keys_b[j], j) for j in reversed(state.open_b()))
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
