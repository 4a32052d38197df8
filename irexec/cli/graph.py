"""irexec graph"""

from __future__ import annotations

import click

from irexec.cli import render
from irexec.cli.limit_options import max_memory_option, timeout_option
from irexec.cli.measuring_options import measuring_options
from irexec.cli.paths import FilePath
from irexec.cli.precision_option import precision_option
from irexec.cli.shape_option import ShapeOptions, shapes_by_input
from irexec.cli.usage import is_given, refuse_without
from irexec.cli.weights_option import no_mmap
from irexec.messages import counted
from irexec.runtime.precision import Precision
from irexec.tools.graph.create import GraphOptions, create
from irexec.tools.graph.drawing import Drawing
from irexec.tools.graph.files import (
    FORMATS,
    Format,
    GraphFile,
    check_format,
    check_graph_file,
    format_of,
    rendered,
    write_graph,
)
from irexec.tools.run.input_sources import files_read, parse_input_source

_FOR_PROFILE = ("inputs", "seed", "runs", "threads", "precision", "max_memory", "timeout", "no_optimize")
_TEXT_FORMATS = [name for name in FORMATS if name != "png"]


@click.command()
@click.argument("model", type=FilePath())
@click.option("-o", "--output", type=FilePath(), help="The file: .svg, .html, .png, .mmd (Mermaid) or .dot (Graphviz).")
@click.option(
    "--format", "form", type=click.Choice(_TEXT_FORMATS), help="What is printed without -o.", show_default="mmd"
)
@click.option(
    "--around", multiple=True, metavar="LAYER", help="Draw only what is near this layer or tensor; may be repeated."
)
@click.option(
    "--hops", type=click.IntRange(0), default=3, show_default=True, help="For --around: at most so many edges away."
)
@click.option(
    "--from",
    "from_",
    multiple=True,
    metavar="LAYER",
    help="Draw only what depends on this layer or tensor; may be repeated.",
)
@click.option(
    "--to", multiple=True, metavar="LAYER", help="Draw only what this layer or tensor depends on; may be repeated."
)
@click.option("--bodies", is_flag=True, help="Draw the bodies of loops and branches in their layers.")
@click.option(
    "--cluster/--no-cluster",
    default=None,
    help="Fold layers of a common name, such as encoder/layer.3, into a block; images and pages of more than 60 boxes do.",
)
@click.option(
    "--columns",
    type=click.IntRange(1, 100),
    help="For .svg and .png: divide a long graph between so many columns.  [default: as many as fit its length]",
)
@click.option("--findings", is_flag=True, help="Mark what irexec validate finds.")
@click.option("--profile", "times", is_flag=True, help="Run the model and mark the time of each layer.")
@click.option(
    "--no-statistics", is_flag=True, help="For .html: do not read constants for minimum, maximum, mean and deviation."
)
@click.option("--scale", type=click.FloatRange(0.01, 10), default=1.0, show_default=True, help="For .png: its size.")
@measuring_options(
    5, runs="For --profile: how many runs are measured.", threads="For --profile: how many threads work on a step."
)
@no_mmap
@precision_option("For --profile: ")
@max_memory_option()
@timeout_option("For --profile: stop after this time in all runs together; exit code 124.")
@click.option(
    "--no-optimize",
    is_flag=True,
    help="For --profile: run only the reference kernels, which gives every layer a time of its own.",
)
@click.option("--json", "as_json", is_flag=True, help="Versioned JSON: what is drawn, and what was written.")
def graph(
    model: str, output: str | None, form: Format | None, around: tuple[str, ...], hops: int, from_: tuple[str, ...], to: tuple[str, ...],
    bodies: bool, cluster: bool | None, columns: int | None, findings: bool, times: bool, no_statistics: bool, scale: float,
    inputs: tuple[str, ...],
    weights: str | None, mmap: bool, shapes: tuple[ShapeOptions, ...], seed: int, runs: int, threads: int | None, precision: Precision,
    max_memory: int | None, timeout: float | None, no_optimize: bool, as_json: bool,
) -> None:  # fmt: skip
    """Draw MODEL (an .xml or .onnx) as an image, as a page to search in, or as text.

    \b
    irexec graph model.xml -o model.html --cluster
    irexec graph model.xml -o part.svg --around conv1 --hops 2
    irexec graph model.xml -o part.png --from conv1 --to prob
    irexec graph model.xml -o model.html --findings --profile -i image.npy
    irexec graph model.xml > model.mmd

    A layer is named by one of its tensors, its name or its id, as in irexec infer. Constants are drawn in the layers that read
    them. Without -o, Mermaid is printed, which Markdown of GitHub and GitLab shows.
    """
    if not times:
        refuse_without("profile", *_FOR_PROFILE)
    if not around:
        refuse_without("around", "hops")
    if output is not None and form is not None:
        raise click.UsageError("--format is for what is printed; the suffix of -o says what is written")
    if output is None and as_json and form is not None:
        raise click.UsageError("--format and --json both say what is printed")
    format: Format = form or "mmd" if output is None else format_of(output)
    for name, needed in (("scale", ["png"]), ("no_statistics", ["html"]), ("columns", ["svg", "png"])):
        if format not in needed and is_given(name):
            raise click.UsageError(f"--{name.replace('_', '-')} is for .{' and .'.join(needed)}")
    if cluster is None and format in ("mmd", "dot"):
        cluster = False
    sources = [parse_input_source(text) for text in inputs]
    if output is None:
        check_format(format)
    else:
        check_graph_file(output, files_read(model, weights, sources))
    options = GraphOptions(
        weights=weights, mmap=mmap, shapes=shapes_by_input(shapes, "--shape"), seed=seed, threads=threads, precision=precision,
        max_memory=max_memory, timeout=timeout, optimize=not no_optimize, runs=runs,
        around=around, hops=hops, from_=from_, to=to, bodies=bodies, cluster=cluster,
        statistics=format == "html" and not no_statistics, findings=findings, times=times,
    )  # fmt: skip
    with render.progress(f"drawing {model}"):
        drawing = create(model, sources, options, render.note_line)
        written = (
            None
            if output is None
            else write_graph(drawing, output, scale=scale, columns=columns, notify=render.note_line)
        )
    _show(model, drawing, written, format, columns, as_json)


def _show(
    path: str, drawing: Drawing, written: GraphFile | None, format: Format, columns: int | None, as_json: bool
) -> None:
    if as_json:
        file = None if written is None else {"path": written.path, "format": written.format, "bytes": written.bytes}
        render.as_json({"model": path, "file": file, "total": drawing.total, **drawing.as_dict()})
    elif written is None:
        render.whole(rendered(drawing, format, columns=columns, notify=render.note_line).decode())
    else:
        folds = len(drawing.frames) - 1
        drawn = (
            counted(drawing.total, "layer")
            if len(drawing.layers) == drawing.total
            else f"{len(drawing.layers):,} of {counted(drawing.total, 'layer')}"
        )
        blocks = f", {counted(folds, 'block')} that {'folds' if folds == 1 else 'fold'}" if folds else ""
        render.line(
            f"{written.path}: {drawn}, {counted(drawing.constants, 'constant')} drawn in others{blocks}; {written.bytes:,} bytes"
        )
