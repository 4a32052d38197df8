"""Pieces of Markdown: tables, fences, docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; cells are Markdown already."""
    lines = ["| " + " | ".join(headers) + " |", "|" + " --- |" * len(headers)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def fence(text: str, language: str = "text") -> str:
    """A code block."""
    return f"```{language}\n{text.rstrip()}\n```\n"


def code(text: str) -> str:
    """Code within a line; an empty text is shown as such."""
    return f"`{text}`" if text else '`""`'


def prose(docstring: str) -> str:
    """A docstring as Markdown: code between double backticks stays, other marks have no meaning."""
    parts = re.split(r"(``.+?``)", inspect.cleandoc(docstring), flags=re.DOTALL)
    return "".join(f"`{part[2:-2]}`" if part.startswith("``") else _plain(part) for part in parts)


def _plain(text: str) -> str:
    escaped = re.sub(r"([*_<>\[\]`$])", r"\\\1", text)
    # At the beginning of a line these would begin a list or a heading.
    return re.sub(r"(?m)^(\s*)([-+#])", r"\1\\\2", escaped)


def sentence(docstring: str) -> str:
    """The first paragraph of a docstring in one line, without its source."""
    first = inspect.cleandoc(docstring).split("\n\n")[0].replace("\n", " ")
    return prose(first.split(" Source: ")[0])
