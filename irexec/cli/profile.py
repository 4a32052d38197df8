"""irexec profile"""

from __future__ import annotations

import click

from irexec.cli import render
from irexec.cli.option_groups import (
    command,
    flag,
    given_flags,
    is_node_data,
    json_option,
    node_data_option,
    option,
    settings,
)
from irexec.cli.options import LIMITS, MEASURING, WEIGHTS, InputOptions, LimitOptions, WeightsOptions
from irexec.cli.render import spinner_then_bar
from irexec.cli.run_options import COMPUTE, ComputeOptions
from irexec.cli.values import FilePath
from irexec.runtime.profile import Grouping, Profile, SortKey
from irexec.tools.inspect.cost import cost
from irexec.tools.measure import ProfileOptions
from irexec.tools.measure import profile as measure
from irexec.tools.run.shapes import Shapes, read_with_shapes, reshape_for_display
from irexec.tools.sections.plans import grouped

_FOR_RUNNING = (
    "given", "mmap", "seed", "runs", "show_all", "threads", "precision", "optimize", "native", "dynamic_quantization",
    "trace", "max_memory", "timeout", "by", "sort", "form",
)  # fmt: skip


@command()
@click.argument("model", type=FilePath())
@MEASURING("inputs")
@WEIGHTS("files")
@COMPUTE("compute", optimize="Run only the reference kernels, every layer as a step of its own.")
@LIMITS("limits", timeout="Stop after this time in all runs together; exit code 124.")
@option(
    "--by", "A row for each step (default), each layer or each type of operation.", choices=["step", "layer", "type"]
)
@option(
    "--sort",
    "The largest first; default: in the order of running, or time if rows are left out.",
    choices=["time", "macs", "memory"],
)
@flag("--all", "show_all", "Every row; default: the twenty largest.")
@option("--trace", "Write every time to this .json in Chrome's trace event format.", type=FilePath())
@flag("--static", "is_static", "Deprecated: irexec inspect MODEL --cost shows the same table.")
@node_data_option
@json_option
def profile(
    model: str,
    inputs: InputOptions,
    files: WeightsOptions,
    compute: ComputeOptions,
    limits: LimitOptions,
    by: Grouping | None,
    sort: SortKey | None,
    show_all: bool,
    trace: str | None,
    is_static: bool,
    form: str | None,
    as_json: bool,
) -> None:
    """Run MODEL (an .xml or .onnx) several times and show the time and the cost of every step.

    \b
    irexec profile model.xml --sort time
    irexec profile model.xml -i image.npy --by type --threads 1
    irexec profile model.xml --trace trace.json

    A step computes one layer, or several that were fused: it is named by its main layer, and +2 says that two more are
    computed with it. A MAC is one product and one sum of a convolution, matrix product, recurrent cell or attention;
    two floating-point operations. Bytes are those of all inputs and outputs, weights included.
    """
    if is_static:
        # Refuse options about a run, which --static does without.
        for given in given_flags(_FOR_RUNNING):
            raise click.UsageError(f"{given} is about running the model, which --static does not")
        _show_costs(model, files.weights, inputs.shapes, as_json)
        return
    is_data = is_node_data(form, as_json)
    options = settings(ProfileOptions, inputs, files, compute, limits, trace=trace)
    with spinner_then_bar(f"running {model}", 1) as advance:
        found = measure(model, inputs.sources, options, render.note_line, advance)
    if is_data:
        from irexec.tools.node_data import of_profile

        render.json_document(of_profile(found))
        return
    _show(model, found, by or "step", sort, None if show_all else _SHOWN, as_json)


_SHOWN = 20


def _show(path: str, found: Profile, by: Grouping, sort: SortKey | None, limit: int | None, as_json: bool) -> None:
    if not as_json:
        render.show(grouped(found, by, sort, limit))
        return
    document = {
        name: getattr(found, name)
        for name in ("threads", "kernels", "runs", "milliseconds", "minimum", "observed", "in_steps")
    }
    rows = [row.as_dict() for row in found.rows(by, sort)]
    render.as_json({"model": path} | document | {"cost": found.cost.as_dict(), "by": by, "rows": rows})


def _show_costs(path: str, weights: str | None, shapes: Shapes, as_json: bool) -> None:
    """The table of ``inspect --cost``."""
    render.note_line("--static is deprecated: irexec inspect MODEL --cost shows the same table")
    with render.progress(f"reading {path}"):
        model = read_with_shapes(path, weights, shapes)
        reshape_for_display(model, shapes)
        found = cost(model)
    render.result(as_json, lambda: {"model": path, **found.as_dict()}, found.sections())
