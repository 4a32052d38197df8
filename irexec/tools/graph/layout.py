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

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from irexec.ir.order import sort_by_producers
from irexec.tools.graph.coordinates import assign
from irexec.tools.graph.drawing import DrawnFrame
from irexec.tools.graph.ordering import Layered, reduce_crossings

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
    centres, routes = _columns(rows, widths, _near(pairs, rows))
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


Routes = dict[tuple[int, int], tuple[float, ...]]
"""The horizontal positions of each line in the rows that it passes."""


def _columns(
    rows: Sequence[int], widths: Sequence[float], near: Sequence[tuple[int, int]]
) -> tuple[list[float], Routes]:
    """Horizontal centres of the vertices and of the lines."""
    layered = Layered.of(rows, near)
    reduce_crossings(layered)
    centres = assign(layered, widths)
    return centres, {pair: tuple(centres[k] for k in chain) for pair, chain in zip(near, layered.chains, strict=True)}


def _in_pixels(
    vertices: _Vertices, sizes: Sequence[Size], rows: Sequence[int], centres: Sequence[float],
    routes: Sequence[tuple[float, ...] | None], pairs: Sequence[tuple[int, int]],
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
