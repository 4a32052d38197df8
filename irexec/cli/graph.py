"""irexec graph"""

from __future__ import annotations

from typing import Any

import click

from irexec.cli import render
from irexec.cli.option_groups import OptionGroup, command, flag, is_given, option, refuse_without, settings
from irexec.cli.options import LIMITS, MEASURING, WEIGHTS, InputOptions, LimitOptions, WeightsOptions
from irexec.cli.run_options import COMPUTE, ComputeOptions
from irexec.cli.values import FilePath
from irexec.tools.graph.draw import (
    FORMATS,
    Format,
    GraphOptions,
    check_format,
    check_graph_file,
    create,
    format_of,
    rendered,
    write_graph,
)
from irexec.tools.run.input_sources import files_read

_FOR_PROFILE = (
    "given", "seed", "runs", "threads", "precision", "max_memory", "timeout", "optimize", "native",
    "dynamic_quantization",
)  # fmt: skip
_TEXT_FORMATS = [name for name in FORMATS if name != "png"]


def _drawn(**values: Any) -> GraphOptions:
    if not values["times"]:
        refuse_without("profile", *_FOR_PROFILE)
    if not values["around"]:
        refuse_without("around", "hops")
    return GraphOptions(**values)


_DRAWN = OptionGroup(
    "Drawing",
    _drawn,
    {
        "around": option(
            "Draw only what is near this layer or tensor; may be repeated.", multiple=True, metavar="LAYER"
        ),
        "hops": option("For --around: maximum number of edges away.", type=click.IntRange(0), default=3),
        "from_": option(
            "--from", "Draw only what depends on this layer or tensor; may be repeated.", multiple=True, metavar="LAYER"
        ),
        "to": option(
            "Draw only what this layer or tensor depends on; may be repeated.", multiple=True, metavar="LAYER"
        ),
        "bodies": flag("Draw the bodies of loops and branches in their layers."),
        "cluster": option(
            "--cluster/--no-cluster",
            "Fold layers of a common name, such as encoder/layer.3, into a block; images and pages of more "
            "than 60 boxes do.",
            default=None,
        ),
        "findings": flag("Mark what irexec validate finds."),
        "times": flag("--profile", "Run the model and mark the time of each layer."),
        "statistics": flag(
            "--no-statistics", "For .html: do not read constants for minimum, maximum, mean and deviation.", value=False
        ),
    },
)


@command()
@click.argument("model", type=FilePath())
@option(
    "-o",
    "--output",
    "The file: .svg, .html, .png, .mmd (Mermaid), .dot (Graphviz) or .json (Model Explorer).",
    type=FilePath(),
)
@option("--format", "form", "What is printed without -o.", choices=_TEXT_FORMATS, show_default="mmd")
@option(
    "--columns",
    "For .svg and .png: divide a long graph between this number of columns.  [default: as many as fit its length]",
    type=click.IntRange(1, 100),
)
@option("--scale", "For .png: its size.", type=click.FloatRange(0.01, 10), default=1.0)
@flag("--json", "as_json", "Versioned JSON: what is drawn, and what was written.")
@_DRAWN("drawn")
@MEASURING("inputs", runs={"default": 5, "help": "For --profile: number of measured runs."})
@WEIGHTS("files")
@COMPUTE("compute", prefix="For --profile: ")
@LIMITS("limits", prefix="For --profile: ")
def graph(
    model: str,
    output: str | None,
    form: Format | None,
    columns: int | None,
    scale: float,
    as_json: bool,
    drawn: GraphOptions,
    inputs: InputOptions,
    files: WeightsOptions,
    compute: ComputeOptions,
    limits: LimitOptions,
) -> None:
    """Draw MODEL (an .xml or .onnx) as an image, as a page to search in, or as text.

    \b
    irexec graph model.xml -o model.html --cluster
    irexec graph model.xml -o part.svg --around conv1 --hops 2
    irexec graph model.xml -o part.png --from conv1 --to prob
    irexec graph model.xml -o model.html --findings --profile -i image.npy
    irexec graph model.xml > model.mmd

    A layer is named by one of its tensors, its name or its id, as in irexec infer. Constants are drawn in the layers
    that read them. Without -o, Mermaid is printed, which Markdown of GitHub and GitLab shows.
    """
    if output is not None and form is not None:
        raise click.UsageError("--format is for what is printed; the suffix of -o says what is written")
    if output is None and as_json and form is not None:
        raise click.UsageError("--format and --json both say what is printed")
    format: Format = form or "mmd" if output is None else format_of(output)
    for name, needed in (("scale", ["png"]), ("statistics", ["html"]), ("columns", ["svg", "png"])):
        if format not in needed and is_given(name):
            raise click.UsageError(f"--{'no-' if name == 'statistics' else ''}{name} is for .{' and .'.join(needed)}")
    cluster = drawn.cluster
    if cluster is None and format in ("mmd", "dot", "model-explorer"):
        cluster = format == "model-explorer"
    if output is None:
        check_format(format)
    else:
        check_graph_file(output, files_read(model, files.weights, inputs.sources))
    options = settings(
        GraphOptions, drawn, inputs, files, compute, limits,
        cluster=cluster, statistics=format == "html" and drawn.statistics,
    )  # fmt: skip
    with render.progress(f"drawing {model}"):
        drawing = create(model, inputs.sources, options, render.note_line)
        written = None
        if output is not None:
            written = write_graph(drawing, output, scale=scale, columns=columns, notify=render.note_line)
    if as_json:
        render.as_json({"model": model, "file": written, "total": drawing.total, **drawing.as_dict()})
    elif written is None:
        render.verbatim(rendered(drawing, format, columns=columns, notify=render.note_line).decode())
    else:
        render.show(f"{written.path}: {drawing.counts()}; {written.bytes:,} bytes")
