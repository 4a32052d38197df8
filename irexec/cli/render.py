"""The only place that formats: tables for people, versioned json for programs.

Human text and json go to stdout, remarks and errors to stderr.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

SCHEMA = 1
_COLOURS = {"error": "bold red", "warning": "yellow", "info": "cyan"}


def _console(stderr: bool = False) -> Console:
    """A console as wide as its text where nobody looks at a terminal, so that nothing is cut."""
    file = sys.stderr if stderr else sys.stdout
    return Console(file=file, highlight=False, soft_wrap=True, width=None if file.isatty() else 1000)


def _put(text: str, stderr: bool = False) -> None:
    """Text as it is, to where somebody reads it; without a word where nobody does any more, so that the exit code stays true."""
    file = sys.stderr if stderr else sys.stdout
    try:
        file.write(text)
        file.flush()
    except BrokenPipeError:
        # The interpreter must not complain about it at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), file.fileno())


def _print(drawn: Text | Table, stderr: bool = False, soft_wrap: bool = True) -> None:
    console = _console(stderr)
    with console.capture() as captured:
        console.print(drawn, soft_wrap=soft_wrap)
    text = captured.get()
    # A table fills its last column with blanks, which nobody wants in a file.
    _put(text if console.is_terminal else "".join(line.rstrip() + "\n" for line in text.splitlines()), stderr)


def flush() -> None:
    """Everything said so far is written."""
    _put("")


def line(text: str = "") -> None:
    """A line of plain text."""
    _print(Text(text))


def remark(text: str) -> None:
    """A line for people on stderr."""
    _print(Text(text), stderr=True)


def warning_line(text: str) -> None:
    """A warning on stderr."""
    _print(Text.assemble(("warning: ", _COLOURS["warning"]), text), stderr=True)


def error_line(text: str) -> None:
    """An error on stderr."""
    _print(Text.assemble(("error: ", _COLOURS["error"]), text), stderr=True)


def table(headers: Sequence[str], rows: Iterable[Sequence[Any]], *, right: Iterable[int] = (), title: str | None = None) -> None:
    """A table; ``right`` are the columns that hold numbers."""
    drawn = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False, show_edge=False)
    numeric = set(right)
    for i, header in enumerate(headers):
        drawn.add_column(header, justify="right" if i in numeric else "left", overflow="fold", no_wrap=i in numeric)
    for row in rows:
        drawn.add_row(*(_cell(value) for value in row))
    _print(drawn, soft_wrap=False)


def _cell(value: Any) -> Text:
    text = "" if value is None else number(value) if isinstance(value, float) else str(value)
    return Text(text, style=_COLOURS.get(text, ""))


def number(value: float) -> str:
    """A number in at most six significant digits."""
    return f"{value:.6g}"


def as_json(document: dict[str, Any]) -> None:
    """A json document with its schema's version; NaN and infinities become null and text."""
    _put(json.dumps({"schema": SCHEMA, **_plain(document)}, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def error_json(kind: str, message: str, code: int) -> None:
    """An error as the only document on stdout."""
    as_json({"error": {"type": kind, "message": message, "exit_code": code}})


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
