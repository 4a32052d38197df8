"""From columns and rows to pixels: boxes as large as what is in them, unfolded frames around their content.

The script of the page, irexec/tools/graph/placing.js, does the same whenever a reader folds or unfolds a frame.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from irexec.tools.graph.boxes import WIDTH, Box, box_of_item, frame_title
from irexec.tools.graph.drawing import Drawing, Frame, Link
from irexec.tools.graph.layout import FrameLayout, lay_out

GAP_X, GAP_Y = 28.0, 40.0
"""Pixels between boxes, and between rows."""
_LANE = 22.0
"""Pixels of a column in which there are lines but no box."""
PAD, HEAD = 14.0, 24.0
"""Pixels between a frame and what is in it, and of its title."""
_CUT = 30.0
"""Pixels around a part of a model, whose boxes have ends of lines to the rest of it."""

Point = tuple[float, float]


@dataclass(frozen=True)
class PlacedBox:
    """A box at the position of its upper left corner; ``box`` is None for an unfolded frame, which has a title instead."""

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
        points: at each row that it passes, one where it comes and one where it goes.
        link: what it stands for.
        straight: whether it was not laid out, because it is too long.
    """

    points: tuple[Point, ...]
    link: Link
    straight: bool


@dataclass
class Placed:
    """Everything of a drawing in pixels; frames come before what is in them."""

    boxes: list[PlacedBox] = field(default_factory=list)
    lines: list[PlacedLine] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0


def place(drawing: Drawing) -> Placed:
    """A drawing in pixels.

    Raises:
        UnsupportedError: igraph is not installed.
    """
    placed = Placed()
    sizes: dict[int, _Places] = {}
    for frame in reversed(drawing.frames):
        if frame.index == 0 or not frame.folded:
            sizes[frame.index] = _Places(drawing, frame, lay_out(frame), sizes)
    margin = _CUT if drawing.cut else PAD
    waiting = [(0, margin, margin)]
    while waiting:
        index, x, y = waiting.pop()
        waiting += sizes[index].put(placed, x, y, sizes)
    placed.width, placed.height = sizes[0].width + 2 * margin, sizes[0].height + 2 * margin
    return placed


class _Places:
    """The positions in one unfolded frame, relative to the corner of its content; width and height are those of the content."""

    width: float
    height: float

    def __init__(self, drawing: Drawing, frame: Frame, layout: FrameLayout, inner: Mapping[int, _Places]) -> None:
        self._drawing, self._frame, self._layout = drawing, frame, layout
        self._boxes = [None if self._open(item) else box_of_item(drawing, item) for item in frame.items]
        sizes = [
            (WIDTH, box.height) if box else (inner[~item].width + 2 * PAD, inner[~item].height + 2 * PAD + HEAD)
            for item, box in zip(frame.items, self._boxes, strict=True)
        ]
        self._sizes = dict(zip(frame.items, sizes, strict=True))
        columns = [column for column, _ in layout.positions]
        self._columns = Columns(columns, [size[0] for size in sizes], layout.columns)
        self._tops = _tops(
            [row for _, row in layout.positions],
            [size[1] for size in sizes],
            layout.rows,
            GAP_Y if layout.entries else 0.0,
        )
        self.width = self._columns.width
        self.height = max(0.0, self._tops[-1] - (0.0 if layout.exits else GAP_Y))
        self._at = dict(zip(frame.items, layout.positions, strict=True))

    def _open(self, item: int) -> bool:
        return item < 0 and not self._drawing.frames[~item].folded

    def put(self, placed: Placed, x: float, y: float, inner: Mapping[int, _Places]) -> list[tuple[int, float, float]]:
        """Add the boxes and lines of the frame, whose content begins at (x, y), and say where the frames in it begin."""
        further = []
        for item, box in zip(self._frame.items, self._boxes, strict=True):
            left, top, width, height = self._rectangle(item)
            title = "" if box else frame_title(self._drawing, self._drawing.frames[~item])
            placed.boxes.append(PlacedBox(item, x + left, y + top, width, height, box, title))
            if box is None:
                further.append((~item, x + left + PAD, y + top + PAD + HEAD))
        for link, bends in zip(self._frame.links, self._layout.bends, strict=True):
            points = tuple((x + a, y + b) for a, b in self._points(link, bends, inner))
            placed.lines.append(PlacedLine(points, link, bends is None))
        return further

    def _rectangle(self, item: int) -> tuple[float, float, float, float]:
        column, row = self._at[item]
        width, height = self._sizes[item]
        space = self._tops[row + 1] - GAP_Y - self._tops[row]
        return self._columns.at(column) - width / 2, self._tops[row] + (space - height) / 2, width, height

    def _points(self, link: Link, bends: Sequence[float] | None, inner: Mapping[int, _Places]) -> list[Point]:
        start, row = self._end(link.source, link, inner, is_source=True)
        stop, _ = self._end(link.target, link, inner, is_source=False)
        points = [start]
        for i, column in enumerate(bends or ()):
            passed = row + 1 + i
            x = self._columns.at(column)
            points += [(x, self._tops[passed]), (x, self._tops[passed + 1] - GAP_Y)]
        return [*points, stop]

    def _end(self, item: int | None, link: Link, inner: Mapping[int, _Places], *, is_source: bool) -> tuple[Point, int]:
        """Where a line begins or ends, and the row of that."""
        if item is None:
            if is_source:
                return (self._columns.at(self._layout.entries[link.tensor]), -PAD - HEAD), -1
            return (self._columns.at(self._layout.exits[link.tensor]), self.height + PAD), self._layout.rows
        left, top, width, height = self._rectangle(item)
        x = left + width / 2
        if self._open(item):
            positions = inner[~item]
            ports = positions._layout.exits if is_source else positions._layout.entries
            if link.tensor in ports:
                x = left + PAD + positions._columns.at(ports[link.tensor])
        return (x, top + height if is_source else top), self._at[item][1]


class Columns:
    """Positions of columns in pixels: stretched where boxes are wide, narrow where there are only lines.

    Args:
        columns: of each box; a box takes half a column on each side.
        widths: of each box.
        last: the largest column of anything.
    """

    def __init__(self, columns: Sequence[float], widths: Sequence[float], last: float) -> None:
        ends = {-0.5, last + 0.5, *(c - 0.5 for c in columns), *(c + 0.5 for c in columns)}
        self._ends = sorted(ends)
        at = {end: i for i, end in enumerate(self._ends)}
        per_column = [_LANE] * (len(self._ends) - 1)
        for column, width in set(zip(columns, widths, strict=True)):
            for i in range(at[column - 0.5], at[column + 0.5]):
                per_column[i] = max(per_column[i], width + GAP_X)
        self._stretch = per_column
        self._starts = [0.0]
        for i, pixels in enumerate(per_column):
            self._starts.append(self._starts[-1] + pixels * (self._ends[i + 1] - self._ends[i]))
        self.width = max(0.0, self._starts[-1] - GAP_X)

    def at(self, column: float) -> float:
        """The position of a column's middle."""
        return (self._position(column - 0.5) + self._position(column + 0.5)) / 2 - GAP_X / 2

    def _position(self, x: float) -> float:
        i = min(max(bisect_right(self._ends, x) - 1, 0), len(self._stretch) - 1)
        return self._starts[i] + (x - self._ends[i]) * self._stretch[i]


def _tops(rows: Sequence[int], heights: Sequence[float], count: int, first: float) -> list[float]:
    """The upper end of each row, and of one more."""
    highest = [0.0] * count
    for row, height in zip(rows, heights, strict=True):
        highest[row] = max(highest[row], height)
    tops = [first]
    for height in highest:
        tops.append(tops[-1] + height + GAP_Y)
    return tops
