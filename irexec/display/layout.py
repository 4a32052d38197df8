"""Layout of tables in a given width: numbers stay whole, names are shortened with an ellipsis, sentences are wrapped at
words.

A table whose numbers alone are wider than the terminal is broken into bands: the columns that do not fit continue on an
indented line of their own, so that no column is dropped and no value is cut.
"""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from irexec.display.document import Column

GAP = 2
_INDENT = 4
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
        max(cell_len(line) for text in (column.title, *(row[i] for row in rows)) for line in _lines(text))
        for i, column in enumerate(columns)
    ]
    if width is None:
        return [Band(tuple(range(len(columns))), tuple(natural), 0)]
    minimum = [
        min(size, _minimum(column)) if column.kind in ("name", "sentence") else size
        for column, size in zip(columns, natural, strict=True)
    ]
    bands: list[Band] = []
    for indices in _split(minimum, width):
        indent = _INDENT if bands else 0
        widths = _allot([natural[i] for i in indices], [minimum[i] for i in indices], width - indent)
        bands.append(Band(tuple(indices), tuple(widths), indent))
    return bands


def _minimum(column: Column) -> int:
    return max(cell_len(column.title), _NAME if column.kind == "name" else _SENTENCE)


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
    if column.kind == "name":
        return [shortened(line, width, ellipsis) for line in _lines(text)]
    if column.kind == "sentence":
        return [part for line in _lines(text) for part in _wrapped(line, width)] or [""]
    return _lines(text)


def _lines(text: str) -> list[str]:
    return text.split("\n")


def shortened(text: str, width: int, ellipsis: str = "…") -> str:
    """The text, cut at the end and marked with an ellipsis where it is wider than ``width``."""
    if cell_len(text) <= width:
        return text
    return _chopped(text, max(0, width - cell_len(ellipsis)))[0].rstrip() + ellipsis


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
