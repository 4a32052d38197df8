"""Where boxes and lines go: a layered layout of each frame.

The layout is that of igraph (``layout_sugiyama``: barycentres against crossings, Brandes and Koepf for coordinates), which is
written in C, has been maintained for twenty years and comes as wheels without further libraries. It is given the rows, so that it
only has to order and align. Measured for networks of 500, 5,000 and 20,000 layers with branches and skips, on one core: 0.01 s,
0.06 s and 1.7 s, 0.4 s without the longest lines. fast-sugiyama (Rust) took 0.04 s, 2.2 s and 17 s, since it ranks by itself; grandalf
(Python) is not maintained any more; Graphviz's dot is not on PyPI.

Each line takes a vertex in every row that it passes. Those of an attention mask to every block, or of skips over a whole network,
would be most of the vertices: they took most of the time (13 s for 20,000 layers) and moved everything else aside. So the longest
lines are not laid out as soon as there are more than ``_BENDS`` such vertices for each box, those of lines over at most ``_SHORT``
rows not counted; they are drawn straight, and pale.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from irexec.errors import UnsupportedError
from irexec.ir.order import sort_by_producers
from irexec.tools.graph.drawing import Frame

_SHORT, _BENDS, _MIN_BENDS = 8, 0.5, 100
_ROUNDS = 24


@dataclass(frozen=True)
class FrameLayout:
    """The positions in one frame, in columns of one box's width and in rows, which begin with 0.

    Attributes:
        positions: column and row of each item, in the order of ``Frame.items``.
        entries: column of each tensor that comes from outside; they are above the first row.
        exits: column of each tensor that goes outside; they are below the last row.
        bends: for each link of the frame the columns at which it passes the rows between; None for one that is drawn straight
            because it is too far.
        columns: the largest column.
        rows: how many rows there are.
    """

    positions: tuple[tuple[float, int], ...]
    entries: Mapping[tuple[int, int], float]
    exits: Mapping[tuple[int, int], float]
    bends: tuple[tuple[float, ...] | None, ...]
    columns: float
    rows: int


def load_igraph() -> Any:
    """The package igraph.

    Raises:
        UnsupportedError: it is not installed.
    """
    try:
        import igraph
    except ImportError:
        raise UnsupportedError("igraph is not installed, which lays out graphs: pip install 'irexec[graph]'") from None
    return igraph


def lay_out(frame: Frame) -> FrameLayout:
    """The layout of one frame; frames in it are boxes as any other.

    Raises:
        UnsupportedError: igraph is not installed.
    """
    igraph = load_igraph()
    vertices = _Vertices(frame)
    pairs = [(vertices.of[("in", link.tensor) if link.source is None else link.source],
              vertices.of[("out", link.tensor) if link.target is None else link.target]) for link in frame.links]  # fmt: skip
    rows = _rows(len(vertices.of), pairs, vertices.first, vertices.last)
    columns, routes = _columns(igraph, rows, _near(pairs, rows))
    return _layout(frame, vertices, rows, columns, [routes.get(pair) for pair in pairs])


class _Vertices:
    """The vertices of a frame: its items, and what comes from outside or goes there."""

    def __init__(self, frame: Frame) -> None:
        self.of: dict[Any, int] = {item: i for i, item in enumerate(frame.items)}
        self.first, self.last = [], []
        for link in frame.links:
            if link.source is None and ("in", link.tensor) not in self.of:
                self.first.append(self.of.setdefault(("in", link.tensor), len(self.of)))
            if link.target is None and ("out", link.tensor) not in self.of:
                self.last.append(self.of.setdefault(("out", link.tensor), len(self.of)))


def _rows(count: int, pairs: Sequence[tuple[int, int]], first: Sequence[int], last: Sequence[int]) -> list[int]:
    """A row for each vertex, after those of all before it; what nothing comes before stands right before what reads it."""
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
        # On a cycle, which a damaged model may have, those before that have no row yet do not count.
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


Routes = dict[tuple[int, int], tuple[float, ...]]
"""Of each line the columns in the rows that it passes."""


def _columns(igraph: Any, rows: Sequence[int], near: Sequence[tuple[int, int]]) -> tuple[list[float], Routes]:
    """The column of each vertex, and the lines; parts of the graph that nothing connects stand beside each other where rows are taken."""
    members = igraph.Graph(len(rows), near).connected_components().membership
    parts: list[list[int]] = [[] for _ in range(max(members, default=-1) + 1)]
    for i, k in enumerate(members):
        parts[k].append(i)
    lines: list[list[tuple[int, int]]] = [[] for _ in parts]
    for pair in near:
        lines[members[pair[0]]].append(pair)
    columns = [0.0] * len(rows)
    routes: Routes = {}
    taken: dict[int, float] = {}
    for part, inside in sorted(zip(parts, lines, strict=True), key=lambda one: -len(one[0])):
        found, bends = _part(igraph, part, inside, rows)
        left = _leftmost(taken, found, bends, rows)
        columns_of_part = {i: x + left for i, x in found.items()}
        for i, x in columns_of_part.items():
            columns[i] = x
        routes |= {pair: tuple(x + left for x in bend) for pair, bend in bends.items()}
    return columns, routes


def _part(
    igraph: Any, part: Sequence[int], lines: Sequence[tuple[int, int]], rows: Sequence[int]
) -> tuple[dict[int, float], Routes]:
    """The layout of one connected part. igraph leaves out rows without a vertex, so it is not given any."""
    if len(part) == 1:
        return {part[0]: 0.0}, {}
    number = {i: k for k, i in enumerate(part)}
    used = sorted({rows[i] for i in part})
    dense = {row: k for k, row in enumerate(used)}
    graph = igraph.Graph(len(part), [(number[a], number[b]) for a, b in lines], directed=True)
    layout = graph.layout_sugiyama(layers=[dense[rows[i]] for i in part], maxiter=_ROUNDS)
    coords = layout.coords
    columns = {i: round(coords[k][0], 2) for i, k in number.items()}
    routes: Routes = {}
    for (a, b), points in zip(lines, layout.edge_routing, strict=True):
        at = {used[round(y)]: round(x, 2) for x, y in points}
        x, bend = columns[a], []
        for row in range(rows[a] + 1, rows[b]):
            x = at.get(row, x)
            bend.append(x)
        routes[a, b] = tuple(bend)
    return _apart(columns, routes, rows)


_BOX, _LINE_OF_BOX, _LINE = 1.0, 0.6, 0.15
"""Columns between two boxes, a line and a box, and two lines, at least."""


def _apart(columns: Mapping[int, float], routes: Routes, rows: Sequence[int]) -> tuple[dict[int, float], Routes]:
    """The same in the same order, with enough space between neighbours in each row, which igraph does not always leave."""
    # Vertices by their number, positions of lines by the line and its row.
    cells: dict[int, list[tuple[float, bool, Any]]] = defaultdict(list)
    for i, x in columns.items():
        cells[rows[i]].append((x, True, i))
    for (a, b), bend in routes.items():
        for k, x in enumerate(bend):
            cells[rows[a] + 1 + k].append((x, False, (a, b, k)))
    moved: dict[Any, float] = {}
    for row in cells.values():
        row.sort(key=lambda cell: cell[0])
        gaps = [_BOX if a and b else _LINE_OF_BOX if a or b else _LINE for (_, a, _), (_, b, _) in pairwise(row)]
        to_right, to_left = [x for x, _, _ in row], [x for x, _, _ in row]
        for k, gap in enumerate(gaps):
            to_right[k + 1] = max(to_right[k + 1], to_right[k] + gap)
        for k, gap in reversed(list(enumerate(gaps))):
            to_left[k] = min(to_left[k], to_left[k + 1] - gap)
        # Both are far enough apart, and so is what lies in their middle.
        moved |= {
            key: round((right + left) / 2, 3) for (_, _, key), right, left in zip(row, to_right, to_left, strict=True)
        }
    bends = {(a, b): tuple(moved[a, b, k] for k in range(len(bend))) for (a, b), bend in routes.items()}
    return {i: moved[i] for i in columns}, bends


def _leftmost(taken: dict[int, float], columns: Mapping[int, float], routes: Routes, rows: Sequence[int]) -> float:
    """How far a part is moved so that it is to the right of all before it; what it takes of each row is added to ``taken``."""
    spans: dict[int, tuple[float, float]] = {}
    cells = [(rows[i], x) for i, x in columns.items()]
    cells += [(rows[a] + 1 + k, x) for (a, _), bend in routes.items() for k, x in enumerate(bend)]
    for row, x in cells:
        low, high = spans.get(row, (x, x))
        spans[row] = (min(low, x), max(high, x))
    left = max((taken.get(row, -1.0) + 1.0 - low for row, (low, _) in spans.items()), default=0.0)
    for row, (_, high) in spans.items():
        taken[row] = high + left
    return left


def _layout(
    frame: Frame,
    vertices: _Vertices,
    rows: Sequence[int],
    columns: Sequence[float],
    bends: Sequence[tuple[float, ...] | None],
) -> FrameLayout:
    """The columns as igraph gives them, moved so that the first is 0."""
    used = [*columns] + [x for bend in bends for x in bend or ()]
    left = min(used, default=0.0)
    top = 1 if vertices.first else 0
    column = [round(x - left, 2) for x in columns]
    ports: dict[str, dict[tuple[int, int], float]] = {"in": {}, "out": {}}
    for key, i in vertices.of.items():
        if isinstance(key, tuple):
            ports[key[0]][key[1]] = column[i]
    positions = tuple((column[i], rows[i] - top) for i in range(len(frame.items)))
    return FrameLayout(
        positions, ports["in"], ports["out"], tuple(None if bend is None else tuple(round(x - left, 2) for x in bend) for bend in bends),
        max((x - left for x in used), default=0.0), max((row for _, row in positions), default=-1) + 1,
    )  # fmt: skip
