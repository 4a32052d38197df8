"""Horizontal positions in a given order, near connected boxes, with lines as straight as possible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from irexec.tools.graph.ordering import Layered

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
