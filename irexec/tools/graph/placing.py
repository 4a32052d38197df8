"""One image of all frames, cut into columns where it is much higher than wide."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from irexec.ir.order import grouped
from irexec.tools.graph.drawing import WIDTH, Box, Drawing, Link, box_of_item, frame_title
from irexec.tools.graph.layout import FrameLayout, Point, Size, lay_out

PAD, HEAD = 14.0, 24.0
"""Pixels between a frame and its content, and of its title."""
CUT = 30.0
"""Pixels around a part of a model, for the ends of lines to the rest."""


@dataclass(frozen=True)
class PlacedBox:
    """A box and its upper left corner; ``box`` is None for an unfolded frame, which has a title."""

    item: int
    x: float
    y: float
    width: float
    height: float
    box: Box | None
    title: str = ""


@dataclass(frozen=True)
class PlacedLine:
    """A line: the points that it passes, from the bottom of one box to the top of another.

    Attributes:
        points: two at each row that the line passes.
        link: the tensor and its ends.
        straight: True for a line that is too long to be laid out.
        is_continued: True for the part of a line that begins at a connector.
    """

    points: tuple[Point, ...]
    link: Link
    straight: bool
    is_continued: bool = False


@dataclass(frozen=True)
class Connector:
    """A number at the end of a line; the line continues at the same number in another column."""

    x: float
    y: float
    text: str


@dataclass
class Placed:
    """A drawing in pixels; frames come before their content."""

    boxes: list[PlacedBox] = field(default_factory=list)
    lines: list[PlacedLine] = field(default_factory=list)
    connectors: list[Connector] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0


def place(drawing: Drawing) -> Placed:
    """A drawing in pixels."""
    layouts: dict[int, FrameLayout] = {}
    # The upper left corner of each item in the content of its frame, and its size.
    corners: dict[int, tuple[float, float, float, float]] = {}
    # Frames come after the frames around them.
    for frame in reversed(drawing.frames):
        if frame.index == 0 or not frame.folded:
            sizes = [_size(drawing, item, layouts) for item in frame.items]
            layout = layouts[frame.index] = lay_out(frame, sizes)
            for item, (x, y), (width, height) in zip(frame.items, layout.centres, sizes, strict=True):
                corners[item] = x - width / 2, y, width, height
    margin = CUT if drawing.cut else PAD
    placed = Placed(width=layouts[0].width + 2 * margin, height=layouts[0].height + 2 * margin)
    waiting = [(0, margin, margin)]
    while waiting:
        index, x, y = waiting.pop()
        for item in drawing.frames[index].items:
            left, top, width, height = corners[item]
            is_open = ~item in layouts
            box = None if is_open else box_of_item(drawing, item)
            title = frame_title(drawing, drawing.frames[~item]) if is_open else ""
            placed.boxes.append(PlacedBox(item, x + left, y + top, width, height, box, title))
            if is_open:
                waiting.append((~item, x + left + PAD, y + top + PAD + HEAD))
        for link, bends in zip(drawing.frames[index].links, layouts[index].bends, strict=True):
            first, last = (_end(link, index, corners, layouts, is_source=is_source) for is_source in (True, False))
            points = tuple((x + a, y + b) for a, b in (first, *(bends or ()), last))
            placed.lines.append(PlacedLine(points, link, bends is None))
    return placed


def folded_size(drawing: Drawing, item: int) -> Size:
    """Width and height of the box of an item."""
    return WIDTH, box_of_item(drawing, item).height


def _size(drawing: Drawing, item: int, layouts: Mapping[int, FrameLayout]) -> Size:
    inner = layouts.get(~item)
    return folded_size(drawing, item) if inner is None else (inner.width + 2 * PAD, inner.height + 2 * PAD + HEAD)


def _end(
    link: Link, frame: int, corners: Mapping[int, tuple[float, float, float, float]],
    layouts: Mapping[int, FrameLayout], *, is_source: bool,
) -> Point:  # fmt: skip
    """Where a line begins or ends: at the middle of a box, at the tensor's exit or entry of an open frame."""
    item, tensor, around = link.source if is_source else link.target, link.tensor, layouts[frame]
    if item is None:
        return (around.entries[tensor], -PAD - HEAD) if is_source else (around.exits[tensor], around.height + PAD)
    left, top, width, height = corners[item]
    inner = layouts.get(~item)
    ports = {} if inner is None else inner.exits if is_source else inner.entries
    return left + PAD + ports[tensor] if tensor in ports else left + width / 2, top + height if is_source else top


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
    if not columns and placed.height >= max(_HIGH, 2 * _SHAPE * placed.width):
        columns = round(math.sqrt(placed.height / (placed.width + _GUTTER) / _SHAPE))
    cuts = _cuts(placed, columns or 1)
    if not cuts:
        return placed
    numbers: dict[tuple[tuple[int, int], int], str] = {}
    lines = sorted(placed.lines, key=lambda line: (line.points[0][1], line.points[0][0]))
    pieces = grouped((k, (piece, ends)) for line in lines for k, piece, ends in _pieces(line, cuts, numbers))
    found = Placed()
    left = PAD
    for k, (top, bottom) in enumerate(pairwise([0.0, *cuts, placed.height])):
        boxes = [part for box in placed.boxes if (part := _part(box, top, bottom))]
        inside = pieces.get(k, [])
        # The left and the right end of a column.
        sides = [(box.x, box.x + box.width) for box in boxes] + [(x, x) for line, _ in inside for x, _ in line.points]
        low, high = min((low for low, _ in sides), default=0.0), max((high for _, high in sides), default=0.0)
        dx, dy = left - low, (_RADIUS + 2 if k else 0.0) - top
        found.boxes += [replace(box, x=box.x + dx, y=box.y + dy) for box in boxes]
        found.lines += [replace(line, points=tuple((x + dx, y + dy) for x, y in line.points)) for line, _ in inside]
        found.connectors += [replace(end, x=end.x + dx, y=end.y + dy) for _, ends in inside for end in ends]
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
