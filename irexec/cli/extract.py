"""irexec extract"""

from __future__ import annotations

import click

from irexec.cli import render
from irexec.cli.option_groups import command, flag, json_option, option
from irexec.cli.options import INPUTS, WEIGHTS, InputOptions, WeightsOptions
from irexec.cli.values import FilePath, Parsed
from irexec.messages import counted


def _names(text: str) -> tuple[str, ...]:
    """Names or ids of layers between commas; a name with a comma is an option of its own."""
    return tuple(part.strip() for part in text.split(","))


@command()
@click.argument("model", type=FilePath())
@option("--layers", "Layers by name or id; may be repeated.", multiple=True, type=Parsed("A,B", _names))
@option("--from", "starts", "This layer and all that depend on it; may be repeated.", multiple=True, metavar="LAYER")
@option("--to", "ends", "This layer and all on which it depends; may be repeated.", multiple=True, metavar="LAYER")
@option("-o", "--output", "The .xml to write; .bin and .npz are beside it.", required=True, type=FilePath())
@flag("--keep-shapes", "Leave sizes open that are not known before a run; default: those of the run.")
@json_option
@WEIGHTS("files")
@INPUTS("inputs")
def extract(
    model: str,
    layers: tuple[tuple[str, ...], ...],
    starts: tuple[str, ...],
    ends: tuple[str, ...],
    output: str,
    keep_shapes: bool,
    as_json: bool,
    files: WeightsOptions,
    inputs: InputOptions,
) -> int:
    """Write layers of MODEL as a model of their own, with the inputs that they have in a run.

    What other layers give to the chosen ones becomes inputs, whose values of a run of the whole model are written to
    the .npz; constants come along. With --from and --to the layers are those on the way.

    \b
    irexec extract model.xml --layers conv1,relu1 -o part.xml -i cat.png
    irexec extract model.xml --from conv1 --to relu5 -o part.xml
    irexec infer part.xml -i part.npz
    """
    if not (layers or starts or ends):
        raise click.UsageError("no layer is named: --layers, --from and --to do")
    # Not before: these run models.
    from irexec.tools.extracting import extract_files

    with render.progress(f"extracting from {model}"):
        made = extract_files(
            model,
            [name for several in layers for name in several],
            output,
            starts=starts,
            ends=ends,
            weights=files.weights,
            mmap=files.mmap,
            sources=inputs.sources,
            shapes=inputs.shapes,
            seed=inputs.seed,
            keep_shapes=keep_shapes,
            notify=render.note_line,
        )
    written = str(made.files.inputs) if made.files.inputs else None
    if as_json:
        ports = {"inputs": list(map(str, made.model.inputs)), "outputs": list(map(str, made.model.outputs))}
        render.as_json({"model": output, "arrays": written, "layers": len(made.model.nodes), **ports})
    else:
        beside = f"; its inputs are in {written}" if written else ""
        render.show(f"{output}: {counted(len(made.model.nodes), 'layer')}{beside}")
    return 0
