"""Positions of boxes and lines: a layered layout of each frame, in pixels.

Source: Sugiyama, Tagawa, Toda 1981. Each layer stands in a row below all that it reads (here), the order in a row
reduces crossings (ordering.py), and coordinates keep lines straight (coordinates.py). Everything is linear in the
number of layers.

Each line takes a vertex in every row that it passes. The lines of an attention mask to every block, or of skips over a
whole network, would be most of the vertices and move everything else aside. The longest lines are therefore not laid
out as soon as there are more than ``_BENDS`` such vertices for each box, lines over at most ``_SHORT`` rows not
counted; they are drawn straight, and pale.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from irexec.ir.order import sort_by_producers
from irexec.tools.graph.drawing import DrawnFrame

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


GAP_X = 28.0
"""Pixels between two boxes."""
_GAP_OF_LINE, _GAP_OF_LINES = 24.0, 14.0
"""Pixels between a line and a box, and between two lines."""
_SWEEPS = 6


def assign(part: Layered, widths: Sequence[float]) -> list[float]:
    """The centre of each vertex, bends of lines included.

    Args:
        part: a graph, whose rows are in order.
        widths: of its boxes.
    """
    space = _Space(part, widths)
    chains = _chains(part)
    weights = [0.0] * len(part.row_of)
    for chain in chains:
        for v in chain:
            weights[v] = float(len(chain))
    above = {v: u for chain in chains for u, v in pairwise(chain)}
    below = {u: v for v, u in above.items()}
    centres = [0.0] * len(part.row_of)
    for members in part.order:
        for v, offset in zip(members, space.offsets(members), strict=True):
            centres[v] = offset
    for k in range(_SWEEPS):
        if k % 2:
            _sweep(part.order, (part.before, part.after), above, weights, space, centres)
        else:
            _sweep(part.order[::-1], (part.after, part.before), below, weights, space, centres)
    _straighten(part, space, centres, chains)
    return centres


def _sweep(
    rows: Sequence[Sequence[int]], neighbours: tuple[Sequence[Sequence[int]], ...], chained: Mapping[int, int],
    weights: Sequence[float], space: _Space, centres: list[float],
) -> None:  # fmt: skip
    """Move each vertex to the next of its chain, or to the mean of its neighbours in the row above, else below."""
    for members in rows:
        wanted = []
        for v in members:
            near = next((near for side in neighbours if (near := side[v])), [v])
            near = [chained[v]] if v in chained else near
            wanted.append((sum(centres[u] for u in near) / len(near), weights[v]))
        for v, x in zip(members, _apart(wanted, space.offsets(members)), strict=True):
            centres[v] = x


class _Space:
    """Distances between neighbours in a row."""

    def __init__(self, part: Layered, widths: Sequence[float]) -> None:
        self._boxes = part.boxes
        self._halves = [width / 2 for width in widths]

    def between(self, v: int, w: int) -> float:
        """The smallest distance of the centres of two neighbours."""
        if v >= self._boxes and w >= self._boxes:
            return _GAP_OF_LINES
        if v < self._boxes and w < self._boxes:
            return self._halves[v] + self._halves[w] + GAP_X
        return self._halves[min(v, w)] + _GAP_OF_LINE

    def offsets(self, members: Sequence[int]) -> list[float]:
        """The positions of a row whose members are as near to each other as possible."""
        found = [0.0]
        for v, w in pairwise(members):
            found.append(found[-1] + self.between(v, w))
        return found


def _apart(wanted: Sequence[tuple[float, float]], offsets: Sequence[float]) -> list[float]:
    """Positions nearest to the wanted ones, with at least the distances of ``offsets``: isotonic regression.

    Args:
        wanted: position and weight of each member of a row.
        offsets: the positions of the narrowest row.
    """
    blocks: list[tuple[float, float, int]] = []
    for (x, weight), offset in zip(wanted, offsets, strict=True):
        mean, count = x - offset, 1
        while blocks and blocks[-1][0] > mean:
            other, heavy, more = blocks.pop()
            mean = (mean * weight + other * heavy) / (weight + heavy)
            weight, count = weight + heavy, count + more
        blocks.append((mean, weight, count))
    means = [mean for mean, _, count in blocks for _ in range(count)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]


def _chains(part: Layered) -> list[list[int]]:
    """Chains of vertices to be aligned vertically, connected by main lines; the longest chain first.

    The main line of a vertex leads to the neighbour with the longest path behind it; the middle one of several.
    """
    position = part.positions()
    up = _main_lines(part, part.order, part.before, position)
    down = _main_lines(part, part.order[::-1], part.after, position)
    chains = []
    for v in range(len(up)):
        if up[v] < 0 or down[up[v]] != v:
            chain = [v]
            while (following := down[chain[-1]]) >= 0 and up[following] == chain[-1]:
                chain.append(following)
            chains.append(chain)
    return sorted(chains, key=len, reverse=True)


def _main_lines(
    part: Layered, rows: Sequence[Sequence[int]], neighbours: Sequence[Sequence[int]], position: Sequence[int]
) -> list[int]:
    """The neighbour at the end of each vertex's main line; -1 without one, or where two are alike."""
    lengths = [0] * len(position)
    found = [-1] * len(position)
    for members in rows:
        for v in members:
            near = neighbours[v]
            longest = max((lengths[u] for u in near), default=0)
            lengths[v] = longest + (v < part.boxes)
            # A box before a line, where the paths behind both are equally long.
            ends = [u for u in near if lengths[u] == longest]
            ends = [u for u in ends if u < part.boxes] or ends
            if len(ends) % 2:
                found[v] = sorted(ends, key=position.__getitem__)[len(ends) // 2]
    return found


def _straighten(part: Layered, space: _Space, centres: list[float], chains: Sequence[Sequence[int]]) -> None:
    """Align the vertices of each chain exactly, in runs that are as long as the neighbours permit."""
    position = part.positions()
    for chain in chains:
        rest = list(chain)
        while len(rest) > 1:
            low, high, count = float("-inf"), float("inf"), 0
            for v in rest:
                row, k = part.order[part.row_of[v]], position[v]
                left = centres[row[k - 1]] + space.between(row[k - 1], v) if k else low
                right = centres[row[k + 1]] - space.between(v, row[k + 1]) if k + 1 < len(row) else high
                if count and max(low, left) > min(high, right):
                    break
                low, high, count = max(low, left), min(high, right), count + 1
            x = min(max(sorted(centres[v] for v in rest[:count])[count // 2], low), high)
            for v in rest[:count]:
                centres[v] = x
            rest = rest[count:]


GAP_Y, _END = 40.0, 18.0
"""Pixels between rows, and between a row and the entries or exits of a frame."""
_SHORT, _BENDS, _MIN_BENDS = 8, 0.5, 100

Point = tuple[float, float]
Size = tuple[float, float]


@dataclass(frozen=True)
class FrameLayout:
    """The positions in one frame, in pixels from the upper left corner of its content.

    Attributes:
        centres: horizontal centre and upper edge of each item, in the order of ``DrawnFrame.items``.
        rows: row of each item.
        entries: horizontal position of each tensor that comes from outside, above the content.
        exits: horizontal position of each tensor that goes outside, below the content.
        bends: for each link of the frame the points at which it passes the rows between its ends; None for a line that
            is drawn straight because it is too long.
        width, height: of the content.
    """

    centres: tuple[Point, ...]
    rows: tuple[int, ...]
    entries: Mapping[tuple[int, int], float]
    exits: Mapping[tuple[int, int], float]
    bends: tuple[tuple[Point, ...] | None, ...]
    width: float
    height: float


def lay_out(frame: DrawnFrame, sizes: Sequence[Size]) -> FrameLayout:
    """The layout of one frame.

    Args:
        frame: any frame; frames in it are boxes as any other.
        sizes: width and height of each of its items.
    """
    vertices = _Vertices(frame)
    pairs = [
        (
            vertices.of[("in", link.tensor) if link.source is None else link.source],
            vertices.of[("out", link.tensor) if link.target is None else link.target],
        )
        for link in frame.links
    ]
    rows = _rows(len(vertices.of), pairs, vertices.first, vertices.last)
    widths = [width for width, _ in sizes] + [0.0] * (len(vertices.of) - len(sizes))
    near = _near(pairs, rows)
    layered = Layered.of(rows, near)
    reduce_crossings(layered)
    centres = assign(layered, widths)
    # The horizontal positions of each line in the rows that it passes.
    routes = {pair: [centres[k] for k in chain] for pair, chain in zip(near, layered.chains, strict=True)}
    return _in_pixels(vertices, sizes, rows, centres, [routes.get(pair) for pair in pairs], pairs)


class _Vertices:
    """The vertices of a frame: its items, and the tensors that come from outside or go there."""

    def __init__(self, frame: DrawnFrame) -> None:
        self.of: dict[Any, int] = {item: i for i, item in enumerate(frame.items)}
        self.first: list[int] = []
        self.last: list[int] = []
        for link in frame.links:
            if link.source is None and ("in", link.tensor) not in self.of:
                self.first.append(self.of.setdefault(("in", link.tensor), len(self.of)))
            if link.target is None and ("out", link.tensor) not in self.of:
                self.last.append(self.of.setdefault(("out", link.tensor), len(self.of)))


def _rows(count: int, pairs: Sequence[tuple[int, int]], first: Sequence[int], last: Sequence[int]) -> list[int]:
    """The row of each vertex: below its producers; a vertex without any stands right above its first reader."""
    before: list[set[int]] = [set() for _ in range(count)]
    after: dict[int, set[int]] = defaultdict(set)
    for a, b in pairs:
        if a != b:
            before[b].add(a)
            after[a].add(b)
    order, stuck = sort_by_producers(before)
    rows = [0] * count
    fixed, top = set(first), 1 if first else 0
    for i in [*order, *stuck]:
        # On a cycle, which a damaged model may have, producers without a row do not count.
        rows[i] = 0 if i in fixed else max((rows[j] + 1 for j in before[i]), default=top)
    for i in reversed(order):
        if not before[i] and after[i] and i not in fixed:
            rows[i] = max(rows[i], min(rows[j] for j in after[i]) - 1)
    bottom = max((rows[i] for i in range(count) if i not in set(last)), default=0) + 1
    for i in last:
        rows[i] = bottom
    return rows


def _near(pairs: Sequence[tuple[int, int]], rows: Sequence[int]) -> list[tuple[int, int]]:
    """The lines that are laid out: downwards, the shortest first, as long as the long ones pass few rows in all."""
    left = max(_MIN_BENDS, _BENDS * len(rows))
    found = []
    for a, b in sorted(dict.fromkeys(pairs), key=lambda pair: rows[pair[1]] - rows[pair[0]]):
        passed = rows[b] - rows[a] - 1
        if passed > _SHORT:
            left -= passed
        if left < 0:
            break
        if passed >= 0:
            found.append((a, b))
    return found


def _in_pixels(
    vertices: _Vertices, sizes: Sequence[Size], rows: Sequence[int], centres: Sequence[float],
    routes: Sequence[Sequence[float] | None], pairs: Sequence[tuple[int, int]],
) -> FrameLayout:  # fmt: skip
    """The layout, moved so that its leftmost box or line is at 0, with rows as high as their highest box."""
    count, top = len(sizes), 1 if vertices.first else 0
    tops = _tops(rows[:count], [height for _, height in sizes], top)
    sides = [(centres[i] - width / 2, centres[i] + width / 2) for i, (width, _) in enumerate(sizes)]
    sides += [(x, x) for x in centres[count:]]
    left = min((low for low, _ in sides), default=0.0)
    ports: dict[str, dict[tuple[int, int], float]] = {"in": {}, "out": {}}
    for key, i in vertices.of.items():
        if isinstance(key, tuple):
            ports[key[0]][key[1]] = round(centres[i] - left, 1)
    bends: list[tuple[Point, ...] | None] = []
    for (a, _), route in zip(pairs, routes, strict=True):
        passed = [(round(x - left, 1), rows[a] + 1 + k) for k, x in enumerate(route or ())]
        points = [(x, y) for x, row in passed for y in (tops[row], tops[row + 1] - GAP_Y)]
        bends.append(None if route is None else tuple(points))
    boxes = []
    for i, (_, height) in enumerate(sizes):
        space = tops[rows[i] + 1] - GAP_Y - tops[rows[i]]
        boxes.append((round(centres[i] - left, 1), tops[rows[i]] + (space - height) / 2))
    return FrameLayout(
        tuple(boxes), tuple(row - top for row in rows[:count]), ports["in"], ports["out"], tuple(bends),
        max((high - left for _, high in sides), default=0.0),
        max(0.0, tops[-1] - GAP_Y + (_END if vertices.last else 0.0)),
    )  # fmt: skip


def _tops(rows: Sequence[int], heights: Sequence[float], top: int) -> list[float]:
    """The upper edge of each row, and of one more; a row of entries, if there is one, has no height."""
    highest = [0.0] * (max(rows, default=top - 1) + 1)
    for row, height in zip(rows, heights, strict=True):
        highest[row] = max(highest[row], height)
    tops = [0.0]
    for row, height in enumerate(highest):
        tops.append(tops[-1] + height + (_END if row < top else GAP_Y))
    return tops
