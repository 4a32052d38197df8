"""Columns for long graphs: an image that is much higher than wide is cut like text."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from irexec.tools.graph.layout import Point
from irexec.tools.graph.placing import PAD, Connector, Placed, PlacedBox, PlacedLine

_HIGH, _SHAPE = 1_600.0, 1.3
"""Height in pixels above which an image is cut, and height of the result divided by its width."""
_GUTTER, _STUB = 36.0, 22.0
_RADIUS = 8.0
_CROSSING = 60.0
"""Pixels by which a cut moves to be crossed by one line less."""


def wrapped(placed: Placed, columns: int | None = None) -> Placed:
    """The drawing in columns; a line from one column to another ends at a number in both.

    Args:
        placed: a drawing in pixels.
        columns: their number; None for one, or for a long graph the number that makes the image about square.
    """
    number = columns or _columns(placed)
    cuts = _cuts(placed, number)
    if not cuts:
        return placed
    numbers: dict[tuple[tuple[int, int], int], str] = {}
    lines = sorted(placed.lines, key=lambda line: (line.points[0][1], line.points[0][0]))
    pieces = [piece for line in lines for piece in _pieces(line, cuts, numbers)]
    found = Placed()
    left = PAD
    for k, (top, bottom) in enumerate(pairwise([0.0, *cuts, placed.height])):
        boxes = [part for box in placed.boxes if (part := _part(box, top, bottom))]
        inside = [line for of, line, _ in pieces if of == k]
        low, high = _extent(boxes, inside)
        dx, dy = left - low, (_RADIUS + 2 if k else 0.0) - top
        found.boxes += [replace(box, x=box.x + dx, y=box.y + dy) for box in boxes]
        found.lines += [replace(line, points=tuple((x + dx, y + dy) for x, y in line.points)) for line in inside]
        found.connectors += [
            replace(end, x=end.x + dx, y=end.y + dy) for of, _, ends in pieces if of == k for end in ends
        ]
        left += high - low + _GUTTER
        found.height = max(found.height, bottom + dy + _RADIUS + 4)
    found.width = left - _GUTTER + PAD
    return found


def _part(box: PlacedBox, top: float, bottom: float) -> PlacedBox | None:
    """The part of a box that is in a column; all of it or None unless the box is an unfolded frame."""
    low, high = max(box.y, top), min(box.y + box.height, bottom)
    if low >= high:
        return None
    return replace(box, y=low, height=high - low, title="" if low > box.y else box.title)


def _columns(placed: Placed) -> int:
    if placed.height < max(_HIGH, 2 * _SHAPE * placed.width):
        return 1
    return max(1, round(math.sqrt(placed.height / (placed.width + _GUTTER) / _SHAPE)))


def _cuts(placed: Placed, columns: int) -> list[float]:
    """The heights of the cuts, which no box crosses and few lines, at about equal distances."""
    free: list[float] = []
    bottom = 0.0
    for box in sorted((box for box in placed.boxes if box.box), key=lambda box: box.y):
        if box.y > bottom and bottom:
            free.append((bottom + box.y) / 2)
        bottom = max(bottom, box.y + box.height)
    spans = [(line.points[0][1], line.points[-1][1]) for line in placed.lines if not line.straight]
    found: list[float] = []
    for k in range(1, columns):
        wanted = placed.height * k / columns
        near = [y for y in free if abs(y - wanted) < placed.height / columns / 2 and (not found or y > found[-1])]
        if near:
            found.append(min(near, key=lambda y: _CROSSING * sum(a < y < b for a, b in spans) + abs(y - wanted)))
    return found


def _pieces(
    line: PlacedLine, cuts: Sequence[float], numbers: dict[tuple[tuple[int, int], int], str]
) -> Iterable[tuple[int, PlacedLine, list[Connector]]]:
    """The parts of a line by column, with the numbers at their ends."""
    first, last = (bisect_right(cuts, line.points[i][1]) for i in (0, -1))
    if first == last:
        yield first, line, []
        return
    if line.straight:
        (x, y), (to_x, to_y) = line.points[0], line.points[-1]
        text = numbers.setdefault((line.link.tensor, -1), str(len(numbers) + 1))
        for k, points in ((first, ((x, y), (x, y + _STUB))), (last, ((to_x, to_y - _STUB), (to_x, to_y)))):
            part = PlacedLine(points, line.link, False, is_continued=k == last)
            yield k, part, [Connector(*points[1 if k == first else 0], text)]
        return
    passed: list[Point] = [line.points[0]]
    ends: list[Connector] = []
    for (x, y), (to_x, to_y) in pairwise(line.points):
        k = bisect_right(cuts, y)
        if bisect_right(cuts, to_y) > k:
            text = numbers.setdefault((line.link.tensor, k), str(len(numbers) + 1))
            at = cuts[k]
            part = PlacedLine((*passed, (x, at)), line.link, False, is_continued=bool(ends))
            yield k, part, [*ends, Connector(x, at, text)]
            passed, ends = [(to_x, at)], [Connector(to_x, at, text)]
        passed.append((to_x, to_y))
    yield last, PlacedLine(tuple(passed), line.link, False, is_continued=bool(ends)), ends


def _extent(boxes: Sequence[PlacedBox], lines: Sequence[PlacedLine]) -> tuple[float, float]:
    """The left and the right end of a column."""
    sides = [(box.x, box.x + box.width) for box in boxes] + [(x, x) for line in lines for x, _ in line.points]
    return min((low for low, _ in sides), default=0.0), max((high for _, high in sides), default=0.0)
