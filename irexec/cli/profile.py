"""irexec profile"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from irexec.cli import render
from irexec.cli.compute_options import COMPUTE, ComputeOptions
from irexec.cli.option_groups import command, settings
from irexec.cli.options import LIMITS, MEASURING, WEIGHTS, InputOptions, LimitOptions, WeightsOptions
from irexec.cli.paths import FilePath
from irexec.cli.progress import spinner_then_bar
from irexec.cli.usage import is_given
from irexec.messages import counted
from irexec.runtime.profile import Grouping, Profile, ProfileRow, SortKey, cost_line, table, totals
from irexec.tools.measure.profile import ProfileOptions, StaticProfile, static_profile
from irexec.tools.measure.profile import profile as measure

_FOR_RUNNING = ("given", "mmap", "seed", "runs", "threads", "precision", "optimize", "trace", "max_memory", "timeout")


@command()
@click.argument("model", type=FilePath())
@MEASURING("inputs")
@WEIGHTS("files")
@COMPUTE("compute", optimize={"help": "Run only the reference kernels, every layer as a step of its own."})
@LIMITS("limits", timeout={"help": "Stop after this time in all runs together; exit code 124."})
@click.option(
    "--by",
    type=click.Choice(["step", "layer", "type"]),
    help="A row for each step (default), each layer (default with --static) or each type of operation.",
)
@click.option(
    "--sort", type=click.Choice(["time", "macs", "memory"]), help="The largest first; default: in the order of running."
)
@click.option("--trace", type=FilePath(), help="Write every time to this .json in Chrome's trace event format.")
@click.option(
    "--static", "is_static", is_flag=True, help="Only what layers cost, without running them; needs no weights."
)
@click.option("--json", "as_json", is_flag=True, help="Versioned JSON instead of tables.")
def profile(
    model: str,
    inputs: InputOptions,
    files: WeightsOptions,
    compute: ComputeOptions,
    limits: LimitOptions,
    by: Grouping | None,
    sort: SortKey | None,
    trace: str | None,
    is_static: bool,
    as_json: bool,
) -> None:
    """Run MODEL (an .xml or .onnx) several times and show the time and the cost of every step.

    \b
    irexec profile model.xml --sort time
    irexec profile model.xml -i image.npy --by type --threads 1
    irexec profile model.xml --trace trace.json
    irexec profile model.xml --static --sort macs

    A step computes one layer, or several that were fused: it is named by its main layer, and +2 says that two more are
    computed with it. A MAC is one product and one sum of a convolution, matrix product, recurrent cell or attention; two
    floating-point operations. Bytes are those of all inputs and outputs, weights included.
    """
    if is_static:
        _refuse_running(by, sort)
        with render.progress(f"reading {model}"):
            costs = static_profile(model, files.weights, inputs.shapes)
        _show_static(model, costs, by or "layer", sort, as_json)
        return
    options = settings(ProfileOptions, inputs, files, compute, limits, trace=trace)
    with spinner_then_bar(f"running {model}", 1) as advance:
        found = measure(model, inputs.sources, options, render.note_line, advance)
    _show(model, found, by or "step", sort, as_json)


def _refuse_running(by: Grouping | None, sort: SortKey | None) -> None:
    """Refuse options about a run, which --static does without."""
    for parameter in click.get_current_context().command.params:
        if parameter.name in _FOR_RUNNING and is_given(parameter.name):
            raise click.UsageError(f"{parameter.opts[-1]} is about running the model, which --static does not")
    if by == "step" or sort == "time":
        raise click.UsageError(
            f"--static does not run the model, so there are no {'steps' if by == 'step' else 'times'}"
        )


def _show(path: str, found: Profile, by: Grouping, sort: SortKey | None, as_json: bool) -> None:
    rows = found.rows(by, sort)
    if as_json:
        document = {name: getattr(found, name) for name in ("threads", "runs", "milliseconds", "minimum", "in_steps")}
        render.as_json(
            {"model": path} | document | {"cost": asdict(found.cost), "by": by, "rows": list(map(_row, rows))}
        )
        return
    _table(rows, by)
    for text in totals(found):
        render.line(text)
    if by == "layer":
        render.line("the time of a step is at its main layer; fused layers have none")


def _show_static(path: str, costs: StaticProfile, by: Grouping, sort: SortKey | None, as_json: bool) -> None:
    rows = costs.rows(by, sort)
    if as_json:
        render.as_json(
            {
                "model": path,
                "cost": asdict(costs.cost),
                "by": by,
                "unknown": costs.unknown,
                "rows": list(map(_row, rows)),
            }
        )
        return
    _table(rows, by)
    render.line(cost_line(costs.cost))
    if costs.unknown:
        render.line(
            f"the shapes of {counted(len(costs.unknown), 'layer')} with MACs are not known; --shape gives those of inputs"
        )


def _table(rows: Sequence[ProfileRow], by: Grouping) -> None:
    headers, cells, right = table(rows, by)
    render.table(headers, cells, right=right, hide_empty=True)
    render.line()


def _row(row: ProfileRow) -> dict[str, Any]:
    return asdict(row) | {"gflops": row.gflops}
