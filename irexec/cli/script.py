"""irexec script"""

from __future__ import annotations

from pathlib import Path

import click

from irexec.cli import render
from irexec.cli.option_groups import command, flag, json_option, option
from irexec.cli.values import FilePath, beside_model
from irexec.messages import counted


@command()
@click.argument("model", type=FilePath())
@option("-o", "--output", "The .py to write; default: MODEL with the suffix .py.", type=FilePath())
@flag("--overwrite", "Replace files that exist; default: refuse.")
@json_option
def script(model: str, output: str | None, overwrite: bool, as_json: bool) -> None:
    """Write MODEL as a Python script that makes it again, and its larger constants as the .npz beside the script.

    \b
    irexec script model.xml
    irexec script model.xml -o model.py
    python model.py again.xml

    Repeated parts of the model are functions, and small constants are in the script. The model that the
    script writes is the same: irexec diff finds no difference. The script is executed once before it is written.
    """
    from irexec.tools.script import script as write_script

    target = beside_model(model, ".py") if output is None else Path(output)
    with render.progress(f"writing {target}"):
        made = write_script(model, target, overwrite=overwrite)
    beside = "" if made.weights is None else f"; {made.weights}: {counted(made.constants, 'constant')}"
    blocks = f", {counted(made.blocks, 'repeated block')}" if made.blocks else ""
    text = f"{made.path}: {counted(made.lines, 'line')} for {counted(made.layers, 'layer')}{blocks}{beside}"
    render.result(as_json, made.as_dict, text)
