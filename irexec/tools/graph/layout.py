"""Positions of boxes and lines: a layered layout of each frame, in pixels.

Source: Sugiyama, Tagawa, Toda 1981. Each layer stands in a row below all that it reads, the order in a row reduces
crossings, and coordinates keep lines straight. Everything is linear in the number of layers.

Each line takes a vertex in every row that it passes. The lines of an attention mask to every block, or of skips over a
whole network, would be most of the vertices and move everything else aside. The longest lines are therefore not laid
out as soon as there are more than ``_BENDS`` such vertices for each box, lines over at most ``_SHORT`` rows not
counted; they are drawn straight, and pale.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise, starmap, zip_longest
from typing import Any

from irexec.ir.order import grouped, sort_by_producers
from irexec.tools.graph.drawing import DrawnFrame

_ROUNDS, _PATIENCE = 24, 4
"""Maximum number of sweeps, and number of sweeps without improvement that ends the search."""


class Layered:
    """A graph whose lines lead from one row to the next: a long line has a vertex in each row that it passes.

    Args:
        rows: of the boxes.
        lines: between boxes, downwards.

    Attributes:
        order: the vertices of each row, from left to right.
        row_of: the row of each vertex.
        before, after: the vertices above and below each vertex that lines connect to it.
        chains: the vertices of each line between its ends.
        boxes: the number of vertices that are boxes; they come first.
    """

    def __init__(self, rows: Sequence[int], lines: Sequence[tuple[int, int]]) -> None:
        self.boxes = len(rows)
        self.row_of = list(rows)
        self.before: list[list[int]] = [[] for _ in rows]
        self.after: list[list[int]] = [[] for _ in rows]
        self.chains = []
        for a, b in lines:
            chain = list(range(len(self.row_of), len(self.row_of) + rows[b] - rows[a] - 1))
            self.row_of += range(rows[a] + 1, rows[b])
            self.before += [[] for _ in chain]
            self.after += [[] for _ in chain]
            for upper, lower in pairwise([a, *chain, b]):
                self.after[upper].append(lower)
                self.before[lower].append(upper)
            self.chains.append(chain)
        # The vertices in the order of a walk along the lines from the topmost vertices.
        self.order: list[list[int]] = [[] for _ in range(max(self.row_of, default=-1) + 1)]
        met: set[int] = set()
        waiting = sorted(range(self.boxes), key=lambda v: rows[v])[::-1]
        while waiting:
            v = waiting.pop()
            if v not in met:
                met.add(v)
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
        waited += 1
        if (found := part.crossings()) < best:
            best, order, waited = found, [list(members) for members in part.order], 0
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
_GAPS = 14.0, 24.0, GAP_X
"""Pixels between neighbours of which none, one or both are boxes: the others are lines."""
_SWEEPS = 6


def assign(part: Layered, widths: Sequence[float]) -> list[float]:
    """The centre of each vertex, bends of lines included.

    Args:
        part: a graph, whose rows are in order.
        widths: of its boxes.
    """
    halves = [width / 2 for width in widths] + [0.0] * (len(part.row_of) - part.boxes)

    def between(v: int, w: int) -> float:
        """The smallest distance of the centres of two neighbours."""
        return halves[v] + halves[w] + _GAPS[(v < part.boxes) + (w < part.boxes)]

    # The members of each row, and their positions in the narrowest row.
    rows = [(members, list(accumulate(starmap(between, pairwise(members)), initial=0.0))) for members in part.order]
    chains = _chains(part)
    weights = {v: len(chain) for chain in chains for v in chain}
    above = {v: u for chain in chains for u, v in pairwise(chain)}
    below = {u: v for v, u in above.items()}
    centres = [0.0] * len(part.row_of)
    for members, offsets in rows:
        for v, offset in zip(members, offsets, strict=True):
            centres[v] = offset
    upwards, downwards = (rows[::-1], part.after, part.before, below), (rows, part.before, part.after, above)
    for ordered, nearest, others, chained in (upwards, downwards) * (_SWEEPS // 2):
        # Each vertex moves to the next of its chain, or to the mean of its neighbours in one row, else in the other.
        for members, offsets in ordered:
            near = [[chained[v]] if v in chained else nearest[v] or others[v] or [v] for v in members]
            wanted = [(sum(centres[u] for u in us) / len(us), weights[v]) for v, us in zip(members, near, strict=True)]
            for v, x in zip(members, _apart(wanted, offsets), strict=True):
                centres[v] = x
    _straighten(part, between, centres, chains)
    return centres


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


def _straighten(
    part: Layered, between: Callable[[int, int], float], centres: list[float], chains: Sequence[Sequence[int]]
) -> None:
    """Align the vertices of each chain exactly, in runs that are as long as the neighbours permit."""
    position = part.positions()
    for chain in chains:
        rest = list(chain)
        while len(rest) > 1:
            low, high, count = float("-inf"), float("inf"), 0
            for v in rest:
                row, k = part.order[part.row_of[v]], position[v]
                left = centres[row[k - 1]] + between(row[k - 1], v) if k else low
                right = centres[row[k + 1]] - between(v, row[k + 1]) if k + 1 < len(row) else high
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
    ends: list[tuple[Any, Any]] = [
        (
            ("in", link.tensor) if link.source is None else link.source,
            ("out", link.tensor) if link.target is None else link.target,
        )
        for link in frame.links
    ]
    # Items come first, then tensors that come from outside or go there.
    vertices = {key: i for i, key in enumerate(dict.fromkeys([*frame.items, *(key for pair in ends for key in pair)]))}
    ports = {key: i for key, i in vertices.items() if isinstance(key, tuple)}
    first, last = ({tensor: i for (of, tensor), i in ports.items() if of == side} for side in ("in", "out"))
    pairs = [(vertices[a], vertices[b]) for a, b in ends]
    rows = _rows(len(vertices), pairs, first.values(), last.values())
    near = _near(pairs, rows)
    layered = Layered(rows, near)
    reduce_crossings(layered)
    widths = [width for width, _ in sizes] + [0.0] * len(ports)
    centres = assign(layered, widths)
    # The leftmost box or line is at 0.
    sides = [(x - width / 2, x + width / 2) for x, width in zip_longest(centres, widths, fillvalue=0.0)]
    left = min((low for low, _ in sides), default=0.0)
    across = [round(x - left, 1) for x in centres]
    count, top = len(sizes), 1 if first else 0
    tops = _tops(rows[:count], [height for _, height in sizes], top)
    edges = [(upper, lower - GAP_Y) for upper, lower in pairwise(tops)]
    routes = {
        pair: tuple((across[v], y) for v in passed for y in edges[layered.row_of[v]])
        for pair, passed in zip(near, layered.chains, strict=True)
    }
    boxes = []
    for x, row, (_, height) in zip(across, rows, sizes, strict=False):
        upper, lower = edges[row]
        boxes.append((x, upper + (lower - upper - height) / 2))
    return FrameLayout(
        tuple(boxes), tuple(row - top for row in rows[:count]),
        {tensor: across[i] for tensor, i in first.items()}, {tensor: across[i] for tensor, i in last.items()},
        tuple(routes.get(pair) for pair in pairs),
        max((high - left for _, high in sides), default=0.0),
        max(0.0, tops[-1] - GAP_Y + (_END if last else 0.0)),
    )  # fmt: skip


def _rows(count: int, pairs: Sequence[tuple[int, int]], first: Collection[int], last: Collection[int]) -> list[int]:
    """The row of each vertex: below its producers; a vertex without any stands right above its first reader."""
    lines = dict.fromkeys((a, b) for a, b in pairs if a != b)
    after, above = grouped(lines), grouped((b, a) for a, b in lines)
    before = [above.get(i, []) for i in range(count)]
    order, stuck = sort_by_producers(before)
    rows = [0] * count
    entries, exits, top = set(first), set(last), 1 if first else 0
    for i in [*order, *stuck]:
        # On a cycle, which a damaged model may have, producers without a row do not count.
        rows[i] = 0 if i in entries else max((rows[j] + 1 for j in before[i]), default=top)
    for i in reversed(order):
        if not before[i] and i in after and i not in entries:
            rows[i] = min(rows[j] for j in after[i]) - 1
    bottom = max((row for i, row in enumerate(rows) if i not in exits), default=0) + 1
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


def _tops(rows: Sequence[int], heights: Sequence[float], top: int) -> list[float]:
    """The upper edge of each row, and of one more; a row of entries, if there is one, has no height."""
    highest = [0.0] * (max(rows, default=top - 1) + 1)
    for row, height in zip(rows, heights, strict=True):
        highest[row] = max(highest[row], height)
    tops = [0.0]
    for row, height in enumerate(highest):
        tops.append(tops[-1] + height + (_END if row < top else GAP_Y))
    return tops
