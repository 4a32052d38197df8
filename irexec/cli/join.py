"""irexec join"""

from __future__ import annotations

import click

from irexec.api import save_model
from irexec.cli import render
from irexec.cli.option_groups import OVERWRITE, command, json_option, option
from irexec.cli.values import SHAPES_GIVEN, FilePath, Parsed, ShapeOptions, pair, shapes_by_input
from irexec.errors import InputError, NodeError
from irexec.io.writer import check_model_files
from irexec.messages import counted
from irexec.reading import read_model
from irexec.tools.joining import join as join_models
from irexec.tools.run.input_sources import external_files, files_read
from irexec.tools.run.shapes import reshape


@command()
@click.argument("a", type=FilePath())
@click.argument("b", type=FilePath())
@option(
    "--map",
    "mapping",
    "An output of A that becomes an input of B; may be repeated, with one output for several inputs. Default: what has "
    "the same name, or the only output and input.",
    multiple=True,
    type=Parsed("OUTPUT=INPUT", pair, of_form=True),
    metavar="OUTPUT=INPUT",
)
@option("--shape", "Set the shape of an input of the new model; may be repeated.", **SHAPES_GIVEN)
@option("-o", "--output", "The .xml to write; the .bin is beside it.", required=True, type=FilePath())
@OVERWRITE
@json_option
def join(
    a: str,
    b: str,
    mapping: tuple[tuple[str, str], ...],
    shape: tuple[ShapeOptions, ...],
    output: str,
    overwrite: bool,
    as_json: bool,
) -> int:
    """Join two models: outputs of A become inputs of B.

    Other outputs of A, and all of B's, are outputs of the new model; other inputs of B are further inputs. Names that
    both models have are those of A; variables of B with such a name get a number.

    \b
    irexec join encoder.xml decoder.xml --map features=hidden -o both.xml
    """
    read = files_read(a, None) | files_read(b, None)
    check_model_files(output, read, overwrite=overwrite)
    with render.progress(f"reading {a} and {b}"):
        one, other = read_model(a), read_model(b)
    check_model_files(output, read | external_files(one) | external_files(other), overwrite=overwrite)
    try:
        joined = join_models(one, other, _sources(mapping) if mapping else None)
    except NodeError as error:
        raise InputError(f"{b} does not take the outputs of {a}: {error}") from error
    reshape(joined, shapes_by_input(shape, "--shape"))
    with render.progress(f"writing {output}"):
        save_model(joined, output, overwrite=overwrite)
    ports = {"inputs": list(map(str, joined.inputs)), "outputs": list(map(str, joined.outputs))}
    document = {"model": output, "layers": len(joined.nodes), **ports}
    render.result(as_json, lambda: document, f"{output}: {counted(len(joined.nodes), 'layer')}")
    return 0


def _sources(mapping: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """The outputs by inputs; InputError for an input that is given twice."""
    found: dict[str, str] = {}
    for source, given in mapping:
        if given in found:
            raise InputError(f"--map gives input {given!r} twice: {found[given]!r} and {source!r}")
        found[given] = source
    return found
