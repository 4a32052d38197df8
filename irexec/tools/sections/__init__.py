"""Sections of what the layers below the tools return: these say what they hold, and how it looks is registered here, by
type. The package itself renders values for ``irexec.records``, and codes of findings; it loads nothing that reads a
model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from irexec.display import Column, Content, Table, Text, plain, sections_of
from irexec.ir.codes import Code


def text(value: object) -> str:
    """The sections of a value as text, as ``irexec.records`` prints it."""
    _register()
    return plain(sections_of(value))


def html(value: object) -> str:
    """The sections of a value as HTML for a notebook."""
    from irexec.display.hypertext import notebook

    _register()
    return notebook(value)


def _register() -> None:
    """Import the modules that register sections: the printed value may be of any type."""
    from irexec.tools.sections import models, plans, runs  # noqa: F401


@sections_of.register
def code_sections(row: Code) -> Iterable[Content]:
    """The meaning of a code, an example and the repair."""
    return [
        Text(f"{row.code} {row.name} ({row.severity})", "title"),
        f"{row.meaning[0].upper()}{row.meaning[1:]}.",
        "",
        "Example:",
        [Text(f"  {line}", "code") for line in row.example.split("\n")],
        "",
        f"Repair: {row.repair}",
    ]


def codes_table(rows: Sequence[Code]) -> Table:
    """Codes and their meanings."""
    columns = [
        Column("code", "code"),
        Column("severity", lambda row: Text(row.severity, row.severity)),
        Column("meaning", "meaning", "sentence"),
    ]
    return Table(columns, rows, what="codes")
