"""Documents as text.

Layout of tables in a given width: numbers stay whole, names are shortened with an ellipsis, sentences are wrapped at
words.

A table whose numbers alone are wider than the terminal is broken into bands: the columns that do not fit continue on an
indented line of their own, so that no column is dropped and no value is cut.
"""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
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
from irexec.messages import cut, visible

GAP = 2
_INDENT = 4
_ALIKE, _PREFIX = 3, 4
"""The number of rows, and of characters, from which a common beginning of names stands above a table."""
_NAME, _SENTENCE = 10, 30
"""The widths down to which a name is shortened and a sentence is wrapped before the table is broken into bands."""


@dataclass(frozen=True)
class Band:
    """Columns that stand side by side: their indices, their widths and the indentation of the line."""

    columns: tuple[int, ...]
    widths: tuple[int, ...]
    indent: int

    @property
    def width(self) -> int:
        """The width of the line."""
        return self.indent + sum(self.widths) + GAP * (len(self.widths) - 1)


def layout(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int | None) -> list[Band]:
    """The bands of a table at most ``width`` wide; None is unlimited."""
    natural = [
        max(cell_len(line) for text in (column.title, *(row[i] for row in rows)) for line in text.split("\n"))
        for i, column in enumerate(columns)
    ]
    if width is None:
        return [Band(tuple(range(len(columns))), tuple(natural), 0)]
    minimum = [
        min(size, max(cell_len(column.title), _SENTENCE if column.kind == "sentence" else _NAME))
        if column.kind in ("name", "path", "sentence")
        else size
        for column, size in zip(columns, natural, strict=True)
    ]
    bands: list[Band] = []
    for indices in _split(minimum, width):
        indent = _INDENT if bands else 0
        widths = _allot([natural[i] for i in indices], [minimum[i] for i in indices], width - indent)
        bands.append(Band(tuple(indices), tuple(widths), indent))
    return bands


def _split(minimum: Sequence[int], width: int) -> list[list[int]]:
    """The columns in lines that fit, each at its minimum width."""
    lines: list[list[int]] = [[]]
    used = 0
    for i, size in enumerate(minimum):
        if lines[-1] and used + GAP + size > width:
            lines.append([])
            used = _INDENT - GAP
        used += size + (GAP if lines[-1] or len(lines) > 1 else 0)
        lines[-1].append(i)
    return lines


def _allot(natural: Sequence[int], minimum: Sequence[int], width: int) -> list[int]:
    """Natural widths, the widest reduced first until the line fits or nothing can be reduced."""
    widths = list(natural)
    excess = sum(widths) + GAP * (len(widths) - 1) - width
    while excess > 0:
        shrinkable = [i for i, size in enumerate(widths) if size > minimum[i]]
        if not shrinkable:
            break
        widths[max(shrinkable, key=lambda i: widths[i])] -= 1
        excess -= 1
    return widths


def row_lines(
    columns: Sequence[Column], cells: Sequence[str], bands: Sequence[Band], ellipsis: str = "…"
) -> Iterator[list[tuple[int | None, str]]]:
    """The lines of one row, each as pieces of text with the column that they come from; None for the space between."""
    for band in bands:
        fitted = [
            _fitted(columns[i], cells[i], width, ellipsis) for i, width in zip(band.columns, band.widths, strict=True)
        ]
        for k in range(max(map(len, fitted))):
            pieces: list[tuple[int | None, str]] = [(None, " " * band.indent)]
            for texts, i, width in zip(fitted, band.columns, band.widths, strict=True):
                text = texts[k] if k < len(texts) else ""
                space = " " * max(0, width - cell_len(text))
                pieces += [(None, space), (i, text)] if columns[i].is_number else [(i, text), (None, space)]
                pieces.append((None, " " * GAP))
            yield pieces


def _fitted(column: Column, text: str, width: int, ellipsis: str) -> list[str]:
    """The lines of one cell, none wider than ``width`` unless it is a value."""
    if column.kind in ("name", "path"):
        cut_to = shortened if column.kind == "name" else shortened_inside
        return [cut_to(line, width, ellipsis) for line in text.split("\n")]
    if column.kind == "sentence":
        return [part for line in text.split("\n") for part in _wrapped(line, width)] or [""]
    return text.split("\n")


def shortened(text: str, width: int, ellipsis: str = "…") -> str:
    """The text, cut at the end and marked with an ellipsis where it is wider than ``width``."""
    if cell_len(text) <= width:
        return text
    return _chopped(text, max(0, width - cell_len(ellipsis)))[0].rstrip() + ellipsis


def shortened_inside(text: str, width: int, ellipsis: str = "…") -> str:
    """The text without its middle, marked with an ellipsis, where it is wider than ``width``: of a layer's name both
    the module, at the beginning, and the operation, at the end, tell it from others."""
    if cell_len(text) <= width:
        return text
    room = max(0, width - cell_len(ellipsis))
    head = _chopped(text, room // 2)[0] if room > 1 else ""
    tail = _chopped(text[::-1], room - cell_len(head))[0][::-1] if room else ""
    return f"{head}{ellipsis}{tail}"


def _wrapped(text: str, width: int) -> list[str]:
    """Lines of whole words; only a single word wider than the line is broken."""
    if cell_len(text) <= width:
        return [text]
    lines: list[str] = []
    # textwrap counts characters, which is exact but for wide ones.
    for line in textwrap.wrap(text, width, break_on_hyphens=False):
        lines += _chopped(line, width)
    return lines


def _chopped(text: str, width: int) -> list[str]:
    """The text in pieces of at most ``width`` columns, a single wide character excepted; one piece at least."""
    pieces, used = [""], 0
    for character in text:
        size = _columns(character)
        if used + size > width and pieces[-1]:
            pieces.append("")
            used = 0
        pieces[-1] += character
        used += size
    return pieces


def cell_len(text: str) -> int:
    """The number of columns of a terminal that a text takes."""
    return len(text) if text.isascii() else sum(map(_columns, text))


@cache
def _columns(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


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
    columns = min(width, len(values))
    if highest <= 0:
        return " " * columns
    starts = [i * len(values) // columns for i in range(columns + 1)]
    largest = [max(values[first:last]) for first, last in pairwise(starts)]
    # A value above 0 can be seen.
    return "".join(levels[max(round(value / highest * 8), 1 if value > 0 else 0)] for value in largest)


Line = list[tuple[str, str]]
"""The pieces of a line, each with its style: that of a Text, or "header" or "rule" of a table."""

_LONGEST_SENTENCE, _LONGEST_LINE = 2_000, 10_000
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
            yield from ([("header", f"{term:<{width}}  "), ("", cut(value, _LONGEST_LINE))] for term, value in pairs)
        case Text(text, style):
            for line in [visible(cut(text, _LONGEST_LINE))] if style == "code" else _wrapped_line(text, frame):
                yield [(style, line)]
        case _:
            yield from ([("", line)] for line in _wrapped_line(str(content), frame))


_LEAD = re.compile(r"(?:[-+~=] )? *")
"""The sign of a line of a patch, and its indentation."""


def _wrapped_line(text: str, frame: TextFormat) -> list[str]:
    """A line of text, broken at words; lines after the first repeat its sign and are indented further."""
    text = visible(cut(text, _LONGEST_LINE))
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
    cells, prefixes = _below_prefixes(columns, cells, frame.width)
    yield from ([("", f"{title}: all names begin with {prefix}")] for title, prefix in prefixes.items())
    bands = layout(columns, cells, frame.width)
    if _has_header(table):
        headers = [column.title for column in columns]
        titles = (_styled(pieces, ["header"] * len(columns)) for pieces in row_lines(columns, headers, bands))
        # Columns of a second line may have no titles.
        yield from (line for line in titles if any(text.strip() for _, text in line))
        yield [("rule", ("─" if frame.has_lines else "-") * max(band.width for band in bands))]
    for row, values in zip(cells, contents, strict=True):
        styles = [value.style if isinstance(value, Text) else "" for value in values]
        for pieces in row_lines(columns, row, bands, "…" if frame.has_lines else "..."):
            yield _styled(pieces, styles)
    if len(table.rows) > limit:
        yield [("", f"... and {len(table.rows) - limit:,} more {table.what}{frame.rest}")]


def _below_prefixes(
    columns: Sequence[Column], cells: list[list[str]], width: int | None
) -> tuple[list[list[str]], dict[str, str]]:
    """The cells without what all names of a column begin with, up to a ``/`` or ``.``; nothing of a table that fits.

    Returns:
        The cells, and the prefixes by the titles of their columns.
    """
    if width is None or len(cells) < _ALIKE or layout(columns, cells, None)[0].width <= width:
        return cells, {}
    prefixes = {}
    for i, column in enumerate(columns):
        if column.kind != "path":
            continue
        # All names lie between these two in order, and begin as they do.
        low, high = min(row[i] for row in cells), max(row[i] for row in cells)
        common = low[: next((k for k, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), len(low))]
        prefix = common[: max(common.rfind("/"), common.rfind(".")) + 1]
        if len(prefix) >= _PREFIX:
            prefixes[column.title] = prefix
            cells = [[*row[:i], row[i].removeprefix(prefix), *row[i + 1 :]] for row in cells]
    return cells, prefixes


def _styled(pieces: Iterable[tuple[int | None, str]], styles: Sequence[str]) -> Line:
    return [("" if column is None else styles[column], piece) for column, piece in pieces]


def _cell(value: Content, column: Column, frame: TextFormat) -> str:
    limit = _LONGEST_SENTENCE if column.kind == "sentence" else frame.longest
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
