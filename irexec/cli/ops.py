"""irexec ops"""

from __future__ import annotations

import difflib
from dataclasses import asdict

import click

from irexec.api import read_model
from irexec.cli import render
from irexec.cli.convert import onnx_support
from irexec.tools.inspect import Coverage, coverage, supported, unsupported


@click.command(short_help="List the operations that irexec runs.")
@click.argument("names", nargs=-1)
@click.option(
    "--check", type=click.Path(), metavar="MODEL", help="An .xml or .onnx: list what of it is not supported; exit code 4 if anything is."
)
@click.option("--json", "as_json", is_flag=True, help="Versioned json instead of a table.")
def ops(names: tuple[str, ...], check: str | None, as_json: bool) -> int:
    """List the operations that irexec runs; those of the given NAMES with their inputs and attributes."""
    if check is not None:
        if names:
            raise click.UsageError(f"--check looks at every operation of the model, {names[0]!r} cannot be given with it")
        return _check(check, as_json)
    lines = supported()
    types = {line.type.lower(): line.type for line in lines}
    for name in names:
        if name.lower() not in types:
            near = difflib.get_close_matches(name.lower(), types, 3)
            offer = f"; near it are {', '.join(types[key] for key in near)}" if near else ""
            raise click.UsageError(f"there is no operation {name!r}{offer}")
    wanted = {name.lower() for name in names}
    lines = [line for line in lines if not wanted or line.type.lower() in wanted]
    if as_json:
        render.as_json({"coverage": asdict(coverage()), "operations": [asdict(line) for line in lines]})
        return 0
    if wanted:
        rows = [(line.type, line.version, ", ".join(line.inputs), ", ".join(line.attributes), line.says) for line in lines]
        render.table(("type", "version", "inputs", "attributes", "what it does"), rows)
    else:
        render.table(("type", "version", "what it does"), [(line.type, line.version, line.says) for line in lines])
        render.line(_total(coverage()))
    return 0


def _total(found: Coverage) -> str:
    return (
        f"{found.supported} of {found.versions} versions of OpenVINO's operations up to opset{found.opset} "
        f"({found.types} types), {found.extensions} of others"
    )


def _check(path: str, as_json: bool) -> int:
    missing = onnx_support(path) if path.lower().endswith(".onnx") else unsupported(read_model(path))
    if as_json:
        render.as_json({"model": path, "unsupported": missing})
    else:
        for sentence in missing:
            render.line(sentence)
        render.line(f"{path}: {'everything is supported' if not missing else f'{len(missing)} not supported'}")
    return 4 if missing else 0
