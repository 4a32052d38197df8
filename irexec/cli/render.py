"""The only file that formats: tables for people, versioned JSON for programs.

Tables and JSON go to stdout; notes, warnings, errors and progress go to stderr.
"""

from __future__ import annotations

import io
import json
import math
import os
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from irexec.cli.streams import encodable, file_of, put, showing
from irexec.cli.tables import Column, layout, row_lines

SCHEMA = 1
_COLOURS = {"error": "bold red", "warning": "yellow", "note": "cyan", "info": "cyan"}


def _print(text: Text, stderr: bool = False) -> None:
    buffer = io.StringIO()
    Console(file=buffer, highlight=False, force_terminal=file_of(stderr).isatty()).print(text, soft_wrap=True)
    put(buffer.getvalue(), stderr)


def line(text: str = "") -> None:
    """A line of plain text."""
    _print(Text(_visible(text)))


def remark(text: str) -> None:
    """A line for people on stderr."""
    _print(Text(_visible(text)), stderr=True)


def note_line(text: str) -> None:
    """A note on stderr."""
    _marked("note", text)


def warning_line(text: str) -> None:
    """A warning on stderr."""
    _marked("warning", text)


def error_line(text: str) -> None:
    """An error on stderr."""
    _marked("error", text)


def _marked(kind: str, text: str) -> None:
    _print(Text.assemble((f"{kind}: ", _COLOURS[kind]), _visible(text)), stderr=True)


def _visible(text: str) -> str:
    """The text with escapes for control characters, which a name may hold and a terminal would obey."""
    return "".join(c if c == "\n" or unicodedata.category(c) != "Cc" else repr(c)[1:-1] for c in text)


@contextmanager
def progress(text: str) -> Iterator[None]:
    """Show that work is going on: on stderr while the block lasts, and only where that is a terminal."""
    console = Console(file=sys.stderr, highlight=False)
    if not console.is_terminal or console.is_dumb_terminal:
        yield
        return
    status = console.status(Text(_visible(text)))
    with showing(status), status:
        yield


def table(
    headers: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    right: Iterable[int] = (),
    whole: Iterable[int] = (),
    sentences: Iterable[int] = (),
    title: str | None = None,
    hide_empty: bool = False,
) -> None:
    """A table that fits the terminal.

    Args:
        headers: the titles of the columns.
        rows: the cells; None is blank, floats are written in six digits.
        right: columns of numbers, which are aligned to the right and never shortened.
        whole: other columns that are never shortened, such as shapes.
        sentences: columns that are wrapped at words; every other column is shortened with an ellipsis where it must be.
        title: a line above the table.
        hide_empty: leave out columns that are empty in every row.
    """
    numeric, fixed, prose = set(right), set(whole), set(sentences)
    columns = [
        Column(header, "value" if i in numeric | fixed else "sentence" if i in prose else "name", i in numeric)
        for i, header in enumerate(headers)
    ]
    cells = [[_cell(value) for value in row] for row in rows]
    if hide_empty:
        used = [i for i in range(len(headers)) if any(row[i] for row in cells)]
        headers, columns = [headers[i] for i in used], [columns[i] for i in used]
        cells = [[row[i] for i in used] for row in cells]
    utf = encodable("─…", sys.stdout) == "─…"
    bands = layout(columns, cells, _width())
    lines = [] if title is None else [Text(_visible(title))]
    lines += [_assembled(pieces, ["bold"] * len(headers)) for pieces in row_lines(columns, headers, bands)]
    lines.append(Text(("─" if utf else "-") * max(band.width for band in bands), style="dim"))
    for row in cells:
        styles = [_COLOURS.get(cell, "") for cell in row]
        lines += [_assembled(pieces, styles) for pieces in row_lines(columns, row, bands, "…" if utf else "...")]
    _print(Text("\n").join(lines))


def _assembled(pieces: Iterable[tuple[int | None, str]], styles: Sequence[str]) -> Text:
    """One line of a table; nothing trails in it."""
    text = Text.assemble(*(piece if column is None else (piece, styles[column]) for column, piece in pieces))
    text.rstrip()
    return text


def fill(parts: Iterable[str], indent: str = "") -> list[str]:
    """Lines of as many parts as fit the terminal, a space between them; no part is broken, and in a file there is one line."""
    width = _width()
    lines: list[str] = []
    for part in parts:
        if lines and (width is None or cell_len(lines[-1]) + 1 + cell_len(part) <= width):
            lines[-1] += f" {part}"
        else:
            lines.append(f"{indent}{part}")
    return lines


def _width() -> int | None:
    """The columns of the terminal, or of COLUMNS if that is set; None in a file or pipe, where nothing is cut."""
    given = os.environ.get("COLUMNS", "")
    if given.isdigit() and int(given):
        return int(given)
    return Console(file=sys.stdout).width if sys.stdout.isatty() else None


def _cell(value: Any) -> str:
    return "" if value is None else number(value) if isinstance(value, float) else _visible(str(value))


def number(value: float) -> str:
    """A number in at most six significant digits."""
    return f"{value:.6g}"


def as_json(document: dict[str, Any]) -> None:
    """A JSON document with its schema's version; NaN becomes null, infinities become text."""
    put(json.dumps({"schema": SCHEMA, **_plain(document)}, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def error_json(kind: str, message: str, code: int) -> None:
    """An error as the only document on stdout, unless stdout is what failed."""
    try:
        as_json({"error": {"type": kind, "message": message, "exit_code": code}})
    except OSError:
        # The same error has just been reported on stderr.
        return


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    if isinstance(value, str | int | float | bool) or value is None:
        return value
    return str(value)


def sizes(shape: Sequence[Any]) -> str:
    """A shape for people."""
    return "[" + ",".join(map(str, shape)) + "]"
