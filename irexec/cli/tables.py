"""Layout of tables in a given width: numbers stay whole, names are shortened with an ellipsis, sentences are wrapped at words.

A table whose numbers alone are wider than the terminal is broken into bands: the columns that do not fit continue on an
indented line of their own, so that no column is dropped and no value is cut.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len, chop_cells, set_cell_size

GAP = 2
_INDENT = 4
_NAME, _SENTENCE = 10, 30
"""The widths down to which a name is shortened and a sentence is wrapped before the table is broken into bands."""


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes:
        header: its title.
        kind: "value" is never shortened, "name" may be shortened, "sentence" may be wrapped.
        right: whether its cells are aligned to the right.
    """

    header: str
    kind: Literal["value", "name", "sentence"]
    right: bool = False


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
        max(cell_len(line) for text in (c.header, *(row[i] for row in rows)) for line in _lines(text))
        for i, c in enumerate(columns)
    ]
    if width is None:
        return [Band(tuple(range(len(columns))), tuple(natural), 0)]
    minimum = [
        min(size, _minimum(column)) if column.kind != "value" else size
        for column, size in zip(columns, natural, strict=True)
    ]
    bands: list[Band] = []
    for indices in _split(minimum, width):
        indent = _INDENT if bands else 0
        widths = _allot([natural[i] for i in indices], [minimum[i] for i in indices], width - indent)
        bands.append(Band(tuple(indices), tuple(widths), indent))
    return bands


def _minimum(column: Column) -> int:
    return max(cell_len(column.header), _NAME if column.kind == "name" else _SENTENCE)


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
                pieces += [(None, space), (i, text)] if columns[i].right else [(i, text), (None, space)]
                pieces.append((None, " " * GAP))
            yield pieces


def _fitted(column: Column, text: str, width: int, ellipsis: str) -> list[str]:
    """The lines of one cell, none wider than ``width`` unless it is a value."""
    if column.kind == "value":
        return _lines(text)
    if column.kind == "name":
        return [shortened(line, width, ellipsis) for line in _lines(text)]
    return [part for line in _lines(text) for part in _wrapped(line, width)] or [""]


def _lines(text: str) -> list[str]:
    return text.split("\n")


def shortened(text: str, width: int, ellipsis: str = "…") -> str:
    """The text, cut at the end and marked with an ellipsis where it is wider than ``width``."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(0, width - cell_len(ellipsis))).rstrip() + ellipsis


def _wrapped(text: str, width: int) -> list[str]:
    """Lines of whole words; only a single word wider than the line is broken."""
    if cell_len(text) <= width:
        return [text]
    lines: list[str] = []
    # textwrap counts characters, which is exact but for wide ones, which chop_cells then cuts.
    for line in textwrap.wrap(text, width, break_on_hyphens=False):
        lines += chop_cells(line, width) if cell_len(line) > width else [line]
    return lines
