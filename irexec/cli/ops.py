"""irexec ops"""

from __future__ import annotations

import click

from irexec.api import read_model
from irexec.cli import render
from irexec.cli.convert import onnx_support
from irexec.cli.option_groups import command, json_option, option
from irexec.cli.values import FilePath
from irexec.tools.operations import coverage, matching, operations_table, supported, unsupported


@command()
@click.argument("names", nargs=-1)
@option(
    "--check",
    "An .xml or .onnx: list what of it is not supported; exit code 4 if anything is.",
    type=FilePath(),
    metavar="MODEL",
)
@json_option
def ops(names: tuple[str, ...], check: str | None, as_json: bool) -> int:
    """List the operations that irexec runs; with NAMES, those of that type, with their inputs and attributes.

    \b
    irexec ops GroupConvolution
    irexec ops conv
    irexec ops --check model.xml

    A NAME that is not a type stands for every type that contains it, in any letter case.
    """
    if check is not None:
        if names:
            raise click.UsageError(
                f"--check looks at every operation of the model, {names[0]!r} cannot be given with it"
            )
        return _check(check, as_json)
    lines = matching(names) if names else supported()
    contents = [operations_table(lines, bool(names)), None if names else coverage().sections()]
    render.result(as_json, lambda: {"coverage": coverage(), "operations": lines}, contents)
    return 0


def _check(path: str, as_json: bool) -> int:
    missing = onnx_support(path) if path.lower().endswith(".onnx") else unsupported(read_model(path))
    contents = [missing, f"{path}: {f'{len(missing)} not supported' if missing else 'everything is supported'}"]
    render.result(as_json, lambda: {"model": path, "unsupported": missing}, contents)
    return 4 if missing else 0
