"""Codes of findings: a table of meanings, and the explanation of one code. It loads nothing that reads a model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from irexec.display import Column, Content, Table, Text, sections_of
from irexec.ir.codes import Code


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
