"""Contents as lines of text: for ``str(result)``, for files, and with styles for a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from irexec.display.document import (
    Amount,
    Column,
    Content,
    Curve,
    Definitions,
    Guided,
    HistogramChart,
    Section,
    Table,
    Text,
    is_empty,
)
from irexec.display.layout import cell_len, layout, row_lines
from irexec.messages import cut, visible

_PARTS = " ▏▎▍▌▋▊▉█"
_HEIGHTS = " ▁▂▃▄▅▆▇█"
_LEVELS = " .:-=+*#@"
SHADE = "░"
BLOCKS = f"{_PARTS}{_HEIGHTS}{SHADE}"
"""Every character that is not ASCII; a file that cannot hold them gets ``ascii=True``."""


def bar(part: float, width: int, *, ascii: bool = False, shade: bool = False) -> str:
    """A bar that fills a part, 0 to 1, of ``width`` columns; a part above 0 can be seen.

    Args:
        shade: a lighter bar, of whole columns.
    """
    eighths = round(min(1.0, max(0.0, part)) * width * 8)
    if part > 0:
        eighths = max(1, eighths)
    if ascii or shade:
        return ("." if ascii and shade else "#" if ascii else SHADE) * -(-eighths // 8)
    return _PARTS[8] * (eighths // 8) + _PARTS[eighths % 8].strip()


def curve(values: Sequence[float], width: int, *, ascii: bool = False) -> str:
    """Values over time as one line of at most ``width`` characters; each shows the largest of its values."""
    highest, levels = max(values, default=0), _LEVELS if ascii else _HEIGHTS
    if highest <= 0:
        return " " * min(width, len(values))
    columns = min(width, len(values))
    starts = [i * len(values) // columns for i in range(columns + 1)]
    largest = [max(values[first:last]) for first, last in pairwise(starts)]
    # A value above 0 can be seen.
    return "".join(levels[max(round(value / highest * 8), 1 if value > 0 else 0)] for value in largest)


Line = list[tuple[str, str]]
"""The pieces of a line, each with its style: that of a Text, or "header" or "rule" of a table."""

_SENTENCE, _LINE = 2_000, 10_000
"""Maximum number of characters in a cell with a sentence, and in a line."""

_GUIDES = str.maketrans("│├└─", "||`-")


@dataclass(frozen=True)
class TextFormat:
    """Where text is shown.

    Attributes:
        width: columns of a line; None for any number.
        ascii: whether charts and trees are drawn with ASCII characters only.
        rows: the maximum number of rows of a table; None for all.
        longest: characters of a cell that is a name; names in a file may have any length, and padding repeats it.
        has_lines: whether rules and ellipses may be drawn with other characters than ASCII.
        rest: the text after the number of omitted rows.
        unfolds: whether folded sections are shown.
    """

    width: int | None = None
    ascii: bool = False
    rows: int | None = None
    longest: int = 300
    has_lines: bool = False
    rest: str = ""
    unfolds: bool = False


_PROMPT = TextFormat(longest=40)
_CURVE = 80
"""Columns of a chart where the width is not limited."""


def plain(contents: Content) -> str:
    """Contents as text."""
    return "\n".join("".join(piece for _, piece in line).rstrip() for line in lines(contents, _PROMPT))


def lines(contents: Content, frame: TextFormat) -> Iterator[Line]:
    """The lines of contents, with an empty line before and after a table with a header; folded sections are left
    out."""
    before: object = None
    for content in _flat(contents, frame.unfolds):
        drawn = list(_drawn(content, frame))
        if before not in (None, "") and drawn and (_has_header(content) or _has_header(before)):
            yield []
        yield from drawn
        before = content if drawn else before


def _has_header(content: object) -> bool:
    return isinstance(content, Table) and any(column.title for column in content.all_columns())


def _flat(contents: Content, unfolds: bool) -> Iterator[Content]:
    if isinstance(contents, Section):
        if unfolds or not contents.is_folded:
            yield ""
            yield Text(contents.title, "title")
            yield from _flat(contents.contents, unfolds)
    elif isinstance(contents, Iterable) and not isinstance(contents, str):
        for content in contents:
            yield from _flat(content, unfolds)
    elif contents is not None:
        yield contents


def _drawn(content: Content, frame: TextFormat) -> Iterator[Line]:
    match content:
        case Table():
            yield from table_lines(content, frame)
        case Curve(values, scale):
            width = max(8, (frame.width or _CURVE) - len(scale) - 1)
            yield [("", f"{curve(values, width, ascii=frame.ascii)} {scale}")]
        case HistogramChart():
            yield from ([("", line)] for line in _histogram(content, frame))
        case Definitions():
            pairs = [(term, cell_text(value)) for term, value in content.shown()]
            width = max((len(term) for term, _ in pairs), default=0)
            yield from ([("header", f"{term:<{width}}  "), ("", cut(value, _LINE))] for term, value in pairs)
        case Text(text, style):
            for line in [visible(cut(text, _LINE))] if style == "code" else _wrapped(text, frame):
                yield [(style, line)]
        case _:
            yield from ([("", line)] for line in _wrapped(str(content), frame))


_LEAD = re.compile(r"(?:[-+~=] )? *")
"""The sign of a line of a patch, and its indentation."""


def _wrapped(text: str, frame: TextFormat) -> list[str]:
    """A line of text, broken at words; lines after the first repeat its sign and are indented further."""
    text = visible(cut(text, _LINE))
    if frame.width is None or cell_len(text) <= frame.width:
        return [text]
    lead = _LEAD.match(text)
    start = lead[0] if lead else ""
    return filled(text[len(start) :].split(" "), frame.width, start, f"{start}  ")


def filled(parts: Iterable[str], width: int | None, first: str = "", other: str | None = None) -> list[str]:
    """Lines of as many parts as fit, a space between them; no part is broken.

    Args:
        parts: texts without line breaks.
        width: columns of a line; None for one line.
        first, other: indentation of the first line and of the others; ``other`` is ``first`` unless given.
    """
    found: list[str] = []
    used = 0
    for part in parts:
        size = cell_len(part)
        if found and (width is None or used + 1 + size <= width):
            found[-1] += f" {part}"
            used += 1 + size
        else:
            indent = first if not found or other is None else other
            found.append(f"{indent}{part}")
            used = cell_len(indent) + size
    return found


def table_lines(table: Table, frame: TextFormat) -> Iterator[Line]:
    """The lines of a table: its header and a rule, unless no column has a title, and its rows."""
    limit = min((size for size in (table.limit, frame.rows) if size is not None), default=len(table.rows))
    columns = table.all_columns()
    used = [i for i, column in enumerate(columns) if column.kind != "chart"]
    contents = [[columns[i].cell(row, i) for i in used] for row in table.rows[:limit]]
    columns = [columns[i] for i in used]
    cells = [[_cell(value, columns[i], frame) for i, value in enumerate(row)] for row in contents]
    if table.hide_empty and cells:
        kept = [i for i in range(len(columns)) if any(row[i] for row in cells)] or list(range(len(columns)))
        columns = [columns[i] for i in kept]
        cells = [[row[i] for i in kept] for row in cells]
        contents = [[row[i] for i in kept] for row in contents]
    bands = layout(columns, cells, frame.width)
    if _has_header(table):
        headers = [column.title for column in columns]
        yield from (_styled(pieces, ["header"] * len(columns)) for pieces in row_lines(columns, headers, bands))
        yield [("rule", ("─" if frame.has_lines else "-") * max(band.width for band in bands))]
    for row, values in zip(cells, contents, strict=True):
        styles = [value.style if isinstance(value, Text) else "" for value in values]
        for pieces in row_lines(columns, row, bands, "…" if frame.has_lines else "..."):
            yield _styled(pieces, styles)
    if len(table.rows) > limit:
        yield [("", f"... and {len(table.rows) - limit:,} more {table.what}{frame.rest}")]


def _styled(pieces: Iterable[tuple[int | None, str]], styles: Sequence[str]) -> Line:
    return [("" if column is None else styles[column], piece) for column, piece in pieces]


def _cell(value: Content, column: Column, frame: TextFormat) -> str:
    limit = _SENTENCE if column.kind == "sentence" else frame.longest
    if isinstance(value, Guided):
        guide = value.guide.translate(_GUIDES) if frame.ascii else value.guide
        return guide + _cell(value.text, column, frame)
    text = visible(cut(cell_text(value), limit))
    return cut(text, limit)


def cell_text(value: Content) -> str:
    """The text of a cell; a float has six significant digits."""
    if is_empty(value):
        return ""
    if isinstance(value, Amount | Text):
        return value.text
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _histogram(chart: HistogramChart, frame: TextFormat) -> Iterator[str]:
    """A line for each interval."""
    numbers = [f"{count:,}" for count in chart.counts]
    label_width, number_width = max(map(len, chart.labels), default=0), max(map(len, numbers), default=0)
    room = max(8, (frame.width or _CURVE) - label_width - number_width - 4)
    for label, number, (part, light) in zip(chart.labels, numbers, chart.parts(), strict=True):
        drawn = bar(part, room, ascii=frame.ascii) if part else ""
        left = room - len(drawn)
        if light and left > 0:
            drawn += bar(light * room / left, left, ascii=frame.ascii, shade=True)
        yield f"{label:>{label_width}}  {number:>{number_width}}  {drawn}".rstrip()


LINES = "─…"
"""Characters of rules and ellipses; a file that cannot hold them gets ``has_lines=False``."""

__all__ = ["LINES", "SHADE", "Line", "TextFormat", "cell_text", "filled", "lines", "plain", "table_lines"]
