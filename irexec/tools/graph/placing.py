"""One image of all frames: each unfolded frame is laid out with the sizes of its content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from irexec.tools.graph.boxes import WIDTH, Box, box_of_item, frame_title
from irexec.tools.graph.drawing import Drawing, DrawnFrame, Link
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
    contents: dict[int, _Content] = {}
    # Frames come after the frames around them.
    for frame in reversed(drawing.frames):
        if frame.index == 0 or not frame.folded:
            contents[frame.index] = _Content(drawing, frame, contents)
    placed = Placed()
    margin = CUT if drawing.cut else PAD
    waiting = [(0, margin, margin)]
    while waiting:
        index, x, y = waiting.pop()
        waiting += contents[index].put(placed, x, y)
    layout = contents[0].layout
    placed.width, placed.height = layout.width + 2 * margin, layout.height + 2 * margin
    return placed


def folded_size(drawing: Drawing, item: int) -> Size:
    """Width and height of the box of an item."""
    return WIDTH, box_of_item(drawing, item).height


class _Content:
    """The content of one unfolded frame."""

    layout: FrameLayout

    def __init__(self, drawing: Drawing, frame: DrawnFrame, contents: Mapping[int, _Content]) -> None:
        self._drawing, self._frame = drawing, frame
        self._open = {item: contents[~item].layout for item in frame.items if item < 0 and ~item in contents}
        sizes = [self._size(item) for item in frame.items]
        self.layout = lay_out(frame, sizes)
        self._boxes = {
            item: (x - width / 2, y, width, height)
            for item, (x, y), (width, height) in zip(frame.items, self.layout.centres, sizes, strict=True)
        }

    def _size(self, item: int) -> Size:
        if (inner := self._open.get(item)) is None:
            return folded_size(self._drawing, item)
        return inner.width + 2 * PAD, inner.height + 2 * PAD + HEAD

    def put(self, placed: Placed, x: float, y: float) -> list[tuple[int, float, float]]:
        """Add boxes and lines of a frame whose content begins at (x, y). Returns the origins of open frames in it."""
        further = []
        for item, (left, top, width, height) in self._boxes.items():
            is_open = item in self._open
            box = None if is_open else box_of_item(self._drawing, item)
            title = frame_title(self._drawing, self._drawing.frames[~item]) if is_open else ""
            placed.boxes.append(PlacedBox(item, x + left, y + top, width, height, box, title))
            if is_open:
                further.append((~item, x + left + PAD, y + top + PAD + HEAD))
        for link, bends in zip(self._frame.links, self.layout.bends, strict=True):
            points = (self._start(link), *(bends or ()), self._stop(link))
            placed.lines.append(PlacedLine(tuple((x + a, y + b) for a, b in points), link, bends is None))
        return further

    def _start(self, link: Link) -> Point:
        if link.source is None:
            return self.layout.entries[link.tensor], -PAD - HEAD
        left, top, width, height = self._boxes[link.source]
        return self._port(link, link.source, left + width / 2), top + height

    def _stop(self, link: Link) -> Point:
        if link.target is None:
            return self.layout.exits[link.tensor], self.layout.height + PAD
        left, top, width, _ = self._boxes[link.target]
        return self._port(link, link.target, left + width / 2), top

    def _port(self, link: Link, item: int, middle: float) -> float:
        """The horizontal position of a line at an item; of the tensor's entry or exit for an open frame."""
        inner = self._open.get(item)
        ports: Mapping[tuple[int, int], float] = {}
        if inner is not None:
            ports = inner.exits if item == link.source else inner.entries
        return self._boxes[item][0] + PAD + ports[link.tensor] if link.tensor in ports else middle
