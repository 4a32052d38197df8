"""irexec explain"""

from __future__ import annotations

import click

from irexec.analysis.codes import explain as explained
from irexec.analysis.codes import findings
from irexec.cli import render
from irexec.cli.option_groups import command, json_option
from irexec.tools.sections import code_sections, codes_table


@command()
@click.argument("names", metavar="[CODE]...", nargs=-1)
@json_option
def explain(names: tuple[str, ...], as_json: bool) -> None:
    """Explain each finding CODE of validate: its meaning, an example and how to repair it; without a CODE,
    list all of them.

    \b
    irexec explain IR103
    irexec explain IR103 ON201 --json
    """
    rows = [explained(name) for name in names] or list(findings().values())
    if as_json:
        render.as_json({"codes": rows})
    elif names:
        render.show([["", code_sections(row)] if number else code_sections(row) for number, row in enumerate(rows)])
    else:
        render.show(codes_table(rows))
