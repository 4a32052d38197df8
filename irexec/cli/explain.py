"""irexec explain"""

from __future__ import annotations

from dataclasses import asdict

import click

from irexec.cli import render
from irexec.cli.option_groups import command
from irexec.ir.codes import Code, findings
from irexec.ir.codes import explain as explained


@command()
@click.argument("names", metavar="[CODE]...", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Versioned JSON instead of text.")
def explain(names: tuple[str, ...], as_json: bool) -> None:
    """Explain each finding CODE of validate: its meaning, an example and how to repair it; without a CODE, list all of them.

    \b
    irexec explain IR103
    irexec explain IR103 ON201 --json
    """
    rows = [explained(name) for name in names] or list(findings().values())
    if as_json:
        render.as_json({"codes": [asdict(row) for row in rows]})
    elif names:
        for number, row in enumerate(rows):
            render.lines([*([""] if number else []), *explanation(row).split("\n")])
    else:
        render.table(
            ("code", "severity", "meaning"), [(row.code, row.severity, row.meaning) for row in rows], sentences=(2,)
        )


def explanation(row: Code) -> str:
    """What a code means, with an example and the repair, in lines that fit the terminal."""
    meaning = _sentence(f"{row.meaning[0].upper()}{row.meaning[1:]}.")
    example = "\n".join(f"  {line}" for line in row.example.split("\n"))
    return f"{row.code} {row.name} ({row.severity})\n{meaning}\n\nExample:\n{example}\n\n{_sentence(f'Repair: {row.repair}')}"


def _sentence(text: str) -> str:
    return "\n".join(render.fill(text.split(" ")))
