"""irexec report"""

from __future__ import annotations

import click

import irexec
from irexec.analysis.text_table import amount
from irexec.cli import render
from irexec.cli.limit_options import max_memory_option, threads_option, timeout_option
from irexec.cli.paths import FilePath
from irexec.cli.precision_option import precision_option
from irexec.cli.progress import progress_bar
from irexec.cli.shape_option import METAVAR, ShapeOptions, ShapeType, shapes_by_input
from irexec.cli.usage import refuse_without
from irexec.cli.weights_option import no_mmap
from irexec.messages import counted
from irexec.runtime.precision import Precision
from irexec.tools.report import ReportOptions, WrittenReport
from irexec.tools.report import report as write_report
from irexec.tools.run.input_sources import parse_input_source

_SWITCH = click.Choice(["on", "off"])


@click.command()
@click.argument("model", type=FilePath())
@click.option("-o", "--output", type=FilePath(), required=True, help="The .html to write.")
@click.option("--title", help="The heading of the page; default: the name of the file.")
@click.option(
    "--bin", "weights_path", type=FilePath(), help="The weights, if not beside the model under the same name."
)
@no_mmap
@click.option(
    "--weights",
    type=_SWITCH,
    default="on",
    show_default=True,
    help="Statistics and histograms of all constants, which are read for it.",
)
@click.option(
    "--graph",
    type=_SWITCH,
    default="on",
    show_default=True,
    help="A drawing of the graph, if what it needs is installed.",
)
@click.option(
    "--shape",
    "shapes",
    multiple=True,
    type=ShapeType(),
    metavar=METAVAR,
    help="Give an input this shape; may be repeated.",
)
@click.option("--profile", "is_run", is_flag=True, help="Run the model and show the time of each step.")
@click.option(
    "-i", "--input", "inputs", multiple=True, metavar="[NAME=]SOURCE",
    help="For --profile: as for irexec infer; may be repeated. Default: random.",
)  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="For --profile: for random inputs.")
@click.option(
    "--runs",
    type=click.IntRange(1, 1_000_000),
    default=20,
    show_default=True,
    help="For --profile: how many runs are measured.",
)
@threads_option("For --profile: how many threads work on a step.")
@precision_option("For --profile: ")
@max_memory_option(
    "For --profile: refuse tensors that take more memory than this, such as 2G; default: all that is left."
)
@timeout_option("For --profile: stop after this time in all runs together; the report then has no times.")
@click.option("--json", "as_json", is_flag=True, help="Versioned JSON about what was written.")
def report(
    model: str, output: str, title: str | None, weights_path: str | None, mmap: bool, weights: str, graph: str,
    shapes: tuple[ShapeOptions, ...], is_run: bool, inputs: tuple[str, ...], seed: int, runs: int, threads: int | None,
    precision: Precision, max_memory: int | None, timeout: float | None, as_json: bool,
) -> None:  # fmt: skip
    """Write one .html that says everything about MODEL: an .xml, an .onnx or an execution graph.

    \b
    irexec report model.xml -o report.html
    irexec report model.xml -o report.html --profile -i image.npy
    irexec report large.xml -o report.html --weights off --title "Release 3"

    The page needs no other file and no network. It has the findings of validate, inputs and outputs, the graph, every layer with
    its cost, element types, memory and the histograms of weights. A model with errors has a report too.
    """
    if not is_run:
        refuse_without("profile", "inputs", "seed", "runs", "threads", "precision", "max_memory", "timeout")
    options = ReportOptions(
        weights=weights_path, shapes=shapes_by_input(shapes, "--shape"), seed=seed, threads=threads, precision=precision,
        max_memory=max_memory, mmap=mmap, timeout=timeout, title=title, has_weights=weights == "on", has_graph=graph == "on", is_run=is_run,
        inputs=tuple(map(parse_input_source, inputs)), runs=runs, made_by=f"irexec {irexec.__version__}",
    )  # fmt: skip
    written = write_report(model, output, options, notify=render.note_line, progress=progress_bar)
    _show(model, written, as_json)


def _show(model: str, written: WrittenReport, as_json: bool) -> None:
    if as_json:
        document = {"model": model, "report": written.path, "bytes": written.bytes, "layers": written.layers}
        render.as_json(document | {"findings": written.findings, "sections": written.sections, "notes": written.notes})
        return
    counts = [
        f"{count:,} {name}{'s' if count > 1 and name != 'info' else ''}" for name, count in written.findings.items()
    ]
    found = ", ".join(counts) or "no findings"
    render.line(f"{written.path}: {amount(written.bytes)}, {counted(written.layers, 'layer')}, {found}")
    for note in written.notes:
        render.line(f"not in the report: {note}")
