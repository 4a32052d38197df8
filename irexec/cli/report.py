"""irexec report"""

from __future__ import annotations

import click

import irexec
from irexec.cli import render
from irexec.cli.option_groups import command, flag, option, refuse_without, settings
from irexec.cli.options import LIMITS, MEASURING, WEIGHTS, InputOptions, LimitOptions, WeightsOptions
from irexec.cli.render import progress_bar
from irexec.cli.run_options import COMPUTE, ComputeOptions
from irexec.cli.values import FilePath
from irexec.display import sections_of
from irexec.tools.report import ReportOptions
from irexec.tools.report import report as write_report

_SWITCH = click.Choice(["on", "off"])


@command()
@click.argument("model", type=FilePath())
@option("-o", "--output", "The .html to write.", type=FilePath(), required=True)
@option("--title", "The heading of the page; default: the name of the file.")
@option(
    "--weights",
    "has_weights",
    "Statistics and histograms of all constants, for which all constants are read.",
    type=_SWITCH,
    default="on",
)
@option("--graph", "has_graph", "A drawing of the graph.", type=_SWITCH, default="on")
@flag("--profile", "is_run", "Run the model and show the time of each step.")
@flag("--json", "as_json", "Versioned JSON about what was written.")
@MEASURING(
    "inputs",
    given="For --profile: as for irexec infer; may be repeated. Default: random.",
    seed="For --profile: for random inputs.",
    runs="For --profile: number of measured runs.",
)
@WEIGHTS("files")
@COMPUTE("compute", only=("precision",), prefix="For --profile: ")
@LIMITS(
    "limits",
    prefix="For --profile: ",
    timeout="stop after this time in all runs together; the report then has no times.",
)
def report(
    model: str,
    output: str,
    title: str | None,
    has_weights: str,
    has_graph: str,
    is_run: bool,
    as_json: bool,
    inputs: InputOptions,
    files: WeightsOptions,
    compute: ComputeOptions,
    limits: LimitOptions,
) -> None:
    """Write one .html that says everything about MODEL: an .xml, an .onnx or an execution graph.

    \b
    irexec report model.xml -o report.html
    irexec report model.xml -o report.html --profile -i image.npy
    irexec report large.xml -o report.html --weights off --title "Release 3"

    The page needs no other file and no network. It has the findings of validate, inputs and outputs, the graph, every
    layer with its cost, element types, memory and the histograms of weights. A model with errors has a report too.
    """
    if not is_run:
        refuse_without("profile", "given", "seed", "runs", "threads", "precision", "max_memory", "timeout")
    options = settings(
        ReportOptions, inputs, files, compute, limits,
        title=title, has_weights=has_weights == "on", has_graph=has_graph == "on", is_run=is_run,
        inputs=tuple(inputs.sources), made_by=f"irexec {irexec.__version__}",
    )  # fmt: skip
    written = write_report(model, output, options, notify=render.note_line, progress=progress_bar)
    document = {"model": model, "report": written.path, "bytes": written.bytes, "layers": written.layers}
    document |= {"findings": written.findings, "sections": written.sections, "notes": written.notes}
    render.result(as_json, lambda: document, sections_of(written))
