"""irexec ops"""

from __future__ import annotations

from collections import Counter

import click

from irexec.cli import render
from irexec.cli.convert import onnx_support
from irexec.cli.convert_to_onnx import require_converters
from irexec.cli.option_groups import command, flag, json_option, option
from irexec.cli.values import FilePath
from irexec.display import Column, Table, Text
from irexec.io.onnx_bytes import is_onnx_file
from irexec.reading import read_model
from irexec.tools.operations import coverage, matching, operations_table, supported, unsupported


@command()
@click.argument("names", nargs=-1)
@option(
    "--check",
    "An .xml or .onnx: list what of it is not supported; exit code 4 if anything is.",
    type=FilePath(),
    metavar="MODEL",
)
@flag("--onnx", "How each operation is written as ONNX: one node, several, or why it cannot be.")
@json_option
def ops(names: tuple[str, ...], check: str | None, onnx: bool, as_json: bool) -> int:
    """List the operations that irexec runs; with NAMES, those of that type, with their inputs and attributes.

    \b
    irexec ops GroupConvolution
    irexec ops conv
    irexec ops --check model.xml
    irexec ops --onnx Pool

    A NAME that is not a type stands for every type that contains it, in any letter case.
    """
    if check is not None:
        if names:
            raise click.UsageError(
                f"--check looks at every operation of the model, {names[0]!r} cannot be given with it"
            )
        if onnx:
            raise click.UsageError("--onnx is about operations, not about a model, and cannot be given with --check")
        return _check(check, as_json)
    if onnx:
        return _onnx(names, as_json)
    lines = matching(names) if names else supported()
    contents = [operations_table(lines, bool(names)), None if names else coverage().sections()]
    render.result(as_json, lambda: {"coverage": coverage(), "operations": lines}, contents)
    return 0


def _onnx(names: tuple[str, ...], as_json: bool) -> int:
    """The table of the export to ONNX; of NAMES those operations that ``matching`` finds."""
    require_converters()
    from converters.ir_to_onnx.registry import onnx_table

    wanted = {(line.type, line.version) for line in (matching(names) if names else supported())}
    lines = [line for line in onnx_table() if (line.type, line.version) in wanted]
    counts = Counter(line.onnx for line in lines)
    total = ", ".join(f"{counts[kind]} {kind}" for kind in ("exact", "composed", "not expressible"))
    columns = [Column("type", "type"), Column("version", "version"), Column("ONNX", "onnx")]
    table = Table([*columns, Column("how", "how", "sentence")], lines, what="operations")
    render.result(as_json, lambda: {"onnx": lines}, [table, Text(total, "title")])
    return 0


def _check(path: str, as_json: bool) -> int:
    missing = onnx_support(path) if is_onnx_file(path) else unsupported(read_model(path))
    contents = [missing, f"{path}: {f'{len(missing)} not supported' if missing else 'everything is supported'}"]
    render.result(as_json, lambda: {"model": path, "unsupported": missing}, contents)
    return 4 if missing else 0
