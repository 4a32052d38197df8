"""irexec inspect"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import click

from irexec.analysis.execution_graph import (
    description,
    executed_layers,
    is_execution_graph,
    times_by_type,
)
from irexec.analysis.model import Model
from irexec.analysis.shape_inference import Inference, infer_shapes
from irexec.cli import render
from irexec.cli.option_groups import OptionGroup, command, option
from irexec.cli.options import LIMITS, SHAPES, WEIGHTS, InputOptions, LimitOptions, WeightsOptions
from irexec.cli.paths import FilePath
from irexec.cli.progress import progress_bar
from irexec.cli.usage import refuse_without
from irexec.display import Column, Table
from irexec.ir.dims import shape_text
from irexec.ir.findings import Finding
from irexec.messages import counted
from irexec.tools.arrays.histogram import BINS, Histogram, constant_histogram, find_constant
from irexec.tools.inspect.cost import CostReport, cost
from irexec.tools.inspect.precision import PrecisionReport, precision
from irexec.tools.inspect.summary import Summary, edges, histogram, layer_text, layers, summarize
from irexec.tools.inspect.tree import TreeReport, tree
from irexec.tools.inspect.weights import WeightLine, weights, weights_table
from irexec.tools.run.shapes import Shapes, read_with_shapes, reshape_for_display
from irexec.tools.sections.executed import executed_table, times_table
from irexec.tools.sections.graphs import ports_table

if TYPE_CHECKING:
    from irexec.compile.plan_report import PlanReport
    from irexec.tools.inspect.memory import MemoryReport


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """The reports that the command line asks for."""

    show_layers: bool
    show_ops: bool
    show_weights: bool
    show_cost: bool
    show_tree: bool
    show_precision: bool
    show_memory: bool
    show_plan: bool
    histograms: tuple[str, ...]
    depth: int
    bins: int
    verbose: bool


def _asked(**values: Any) -> _Asked:
    asked = _Asked(**values)
    if not asked.show_plan:
        refuse_without("plan", "verbose")
    if not asked.show_plan and not asked.show_memory:
        refuse_without(("plan", "memory"), "threads", "max_memory")
    if not asked.show_tree:
        refuse_without("tree", "depth")
    if not asked.histograms:
        refuse_without("histogram", "bins")
    return asked


_REPORTS = OptionGroup(
    "Reports",
    _asked,
    {
        "show_layers": option(
            "--layers", is_flag=True, help="Every layer: inputs and where they come from, outputs, attributes."
        ),
        "show_ops": option("--ops", is_flag=True, help="The number of layers of each operation."),
        "show_weights": option("--weights", is_flag=True, help="Statistics of every constant."),
        "show_cost": option(
            "--cost", is_flag=True, help="MACs, parameters, bytes and arithmetic intensity of layers and types."
        ),
        "show_tree": option(
            "--tree", is_flag=True, help="The same for each branch of the layers' names, which / and . separate."
        ),
        "depth": option(
            "--depth",
            type=click.IntRange(1),
            default=3,
            show_default=True,
            help="For --tree: number of levels of branches.",
        ),
        "show_precision": option(
            "--precision", is_flag=True, help="The element types of weights and activations, and bits per weight."
        ),
        "show_memory": option(
            "--memory",
            is_flag=True,
            help="Peak of the tensors between layers, where it is, and what is then in memory.",
        ),
        "histograms": option(
            "--histogram",
            multiple=True,
            metavar="NAME",
            help="The values of this constant as bars; may be repeated.",
        ),
        "bins": option(
            "--bins",
            type=click.IntRange(1, 10_000),
            default=BINS,
            show_default=True,
            help="For --histogram: maximum number of bars.",
        ),
        "show_plan": option(
            "--plan",
            is_flag=True,
            help="The plan of a run: every step with its layers, kernel and memory, and what the passes did.",
        ),
        "verbose": option(
            "-v",
            "--verbose",
            is_flag=True,
            help="For --plan: also all layers of each step, and why passes left layers as they are.",
        ),
    },
)


@command()
@click.argument("model", type=FilePath())
@_REPORTS("asked")
@SHAPES("inputs", shapes={"help": "Set the shape of an input first; may be repeated."})
@WEIGHTS("files")
@LIMITS(
    "limits",
    only=("threads", "max_memory"),
    prefix="For --plan and --memory: ",
    threads={"help": "number of threads of a step."},
    max_memory={"help": "refuse a model that takes more memory, such as 2G; default: all available."},
)
@click.option("--json", "as_json", is_flag=True, help="Versioned JSON instead of text.")
def inspect(
    model: str, asked: _Asked, inputs: InputOptions, files: WeightsOptions, limits: LimitOptions, as_json: bool
) -> None:
    """Show what MODEL (an .xml or .onnx) consists of.

    \b
    irexec inspect model.xml --layers
    irexec inspect model.xml --cost --shape "x[1,3,224,224]"
    irexec inspect model.xml --memory --precision
    irexec inspect model.xml --tree --depth 2
    irexec inspect model.xml --histogram conv1.weight

    MODEL may also be an execution graph of OpenVINO; then --layers shows the time, type, kernel and original layers of
    each layer.
    """
    with progress_bar(f"reading {model}", 1) as advance:
        read = read_with_shapes(model, files.weights, inputs.shapes, mmap=files.mmap, progress=advance)
    if is_execution_graph(read):
        _refuse_for_execution_graph(model, asked, bool(inputs.shapes))
        _execution_graph(model, read, asked.show_layers, asked.show_ops, as_json)
        return
    problems = list(read.problems)
    reshape_for_display(read, inputs.shapes)
    parts = _Parts.of(model, files, read, asked, limits, inputs.shapes)
    # Not before: an error of what is asked for says more.
    _warn_of_problems(model, problems)
    if as_json:
        render.as_json(_document(read, parts, asked))
    else:
        _show(model, read, parts, asked)


@dataclass(frozen=True)
class _Parts:
    """The reports of a model; None for a report that is not asked for."""

    inference: Inference
    summary: Summary
    weights: list[WeightLine] | None
    cost: CostReport | None
    tree: TreeReport | None
    precision: PrecisionReport | None
    memory: MemoryReport | None
    plan: PlanReport | None
    histograms: list[Histogram]

    @staticmethod
    def of(
        path: str, files: WeightsOptions, model: Model, asked: _Asked, limits: LimitOptions, shapes: Shapes
    ) -> _Parts:
        """Everything that is asked for."""
        inference = infer_shapes(model, tolerant=True)
        summary = summarize(model, inference)
        weights = _weights(model, summary) if asked.show_weights else None
        histograms = _histograms(model, asked)
        return _Parts(
            inference,
            summary,
            weights,
            cost(model, inference) if asked.show_cost else None,
            tree(model, asked.depth, inference) if asked.show_tree else None,
            precision(model, inference) if asked.show_precision else None,
            _memory(path, model, limits, inference) if asked.show_memory else None,
            _plan(path, files, limits, shapes) if asked.show_plan else None,
            histograms,
        )


def _refuse_for_execution_graph(path: str, asked: _Asked, shapes: bool) -> None:
    """Refuse what an execution graph does not have."""
    absent = {
        "weights": asked.show_weights or bool(asked.histograms), "plan": asked.show_plan or asked.show_memory,
        "costs": asked.show_cost or asked.show_tree, "precisions of weights": asked.show_precision, "inputs to reshape": shapes,
    }  # fmt: skip
    for what, is_asked in absent.items():
        if is_asked:
            raise click.UsageError(f"{path} is an execution graph, which has no {what}")


def _show(path: str, model: Model, parts: _Parts, asked: _Asked) -> None:
    _summary(path, parts.summary)
    if asked.show_ops:
        operations = Table(["operation", Column("layers", kind="number")], list(parts.summary.ops.items()))
        render.show(["", operations])
    if asked.show_layers:
        render.show(["", (layer_text(layer) for layer in layers(model, parts.inference))])
    if parts.weights is not None:
        render.show(["", weights_table(parts.weights)])
    for part in (parts.tree, parts.precision, parts.cost, parts.memory, *parts.histograms):
        if part is not None:
            render.show(["", part.sections()])
    if parts.plan is not None:
        from irexec.tools.sections.plans import plan_sections

        render.show(["", plan_sections(parts.plan)], unfolds=asked.verbose)


def _histograms(model: Model, asked: _Asked) -> list[Histogram]:
    nodes = [find_constant(model, name) for name in asked.histograms]
    total = sum(node.constant.size for node in nodes if node.constant is not None)
    with progress_bar("reading weights", total) as advance:
        return [constant_histogram(node, asked.bins, advance) for node in nodes]


def _memory(path: str, model: Model, limits: LimitOptions, inference: Inference | None) -> MemoryReport:
    # The compiler is imported only where something is compiled.
    from irexec.tools.inspect.memory import memory

    with render.progress(f"compiling {path}"):
        return memory(model, threads=limits.threads, max_memory=limits.max_memory, inference=inference)


def _warn_of_problems(path: str, problems: Sequence[Finding]) -> None:
    """Warn of the first error in the files, which may be why shapes are not known."""
    errors = [problem for problem in problems if problem.severity == "error"]
    if errors:
        render.warning_line(f"{errors[0].at(path)}: {errors[0].message}; irexec validate lists all that is wrong")


def _plan(path: str, files: WeightsOptions, limits: LimitOptions, shapes: Shapes) -> PlanReport:
    from irexec.tools.inspect.plan import plan

    with render.progress(f"compiling {path}"):
        return plan(path, files.weights, shapes, limits.threads, mmap=files.mmap, max_memory=limits.max_memory)


def _weights(model: Model, summary: Summary) -> list[WeightLine]:
    with progress_bar("reading weights", summary.weight_bytes) as advance:
        return weights(model, advance)


def _summary(path: str, summary: Summary) -> None:
    render.line(f"{path}: {summary.name or 'no name'}, IR version {summary.version}")
    bodies = f", {counted(summary.bodies, 'body')}" if summary.bodies else ""
    render.line(f"{counted(summary.layers, 'layer')} of {counted(len(summary.ops), 'operation')}{bodies}")
    elements = counted(summary.weight_elements, "element")
    render.line(f"{counted(summary.constants, 'constant')}, {elements}, {counted(summary.weight_bytes, 'byte')}")
    render.show(ports_table({"input": summary.inputs, "output": summary.outputs}))
    for sentence in summary.unsupported:
        render.line(f"not supported: {sentence}")


def _execution_graph(path: str, model: Model, show_layers: bool, show_ops: bool, as_json: bool) -> None:
    executed = executed_layers(model)
    types = times_by_type(executed)
    total = sum(line.microseconds for line in types)
    if as_json:
        document: dict[str, Any] = {
            "name": model.name,
            "execution_graph": True,
            "layer_count": len(executed),
            "microseconds": total,
        }
        document |= {"types": [asdict(line) for line in types]} if show_ops else {}
        document |= {"layers": [asdict(layer) for layer in executed]} if show_layers else {}
        render.as_json(document)
        return
    measured = sum(layer.microseconds is not None for layer in executed)
    render.line(f"{path}: {model.name or 'no name'}")
    render.line(description(model))
    times = f"{counted(measured, 'layer')} with a time, {total:,.0f} µs in all"
    render.line(times if measured else "no layer has a time: it was not measured")
    if show_ops:
        render.show(["", times_table(types)])
    if show_layers:
        render.show(["", executed_table(executed)])


def _document(model: Model, parts: _Parts, asked: _Asked) -> dict[str, Any]:
    document = _plain_summary(parts.summary)
    if asked.show_ops:
        document["ops"] = histogram(model)
    if asked.show_layers:
        document["layers"] = [dict(vars(line)) for line in layers(model, parts.inference)]
        document["edges"] = [asdict(edge) for edge in edges(model)]
    if parts.weights is not None:
        document["weights"] = [asdict(line) for line in parts.weights]
    parts_by_name = {
        "cost": parts.cost, "tree": parts.tree, "precision": parts.precision, "memory": parts.memory, "plan": parts.plan,
    }  # fmt: skip
    document |= {name: part.as_dict() for name, part in parts_by_name.items() if part is not None}
    if parts.histograms:
        document["histograms"] = [found.as_dict() for found in parts.histograms]
    return document


def _plain_summary(summary: Summary) -> dict[str, Any]:
    document = {name: value for name, value in vars(summary).items() if name not in ("inputs", "outputs")}
    for side, ports in (("inputs", summary.inputs), ("outputs", summary.outputs)):
        document[side] = [
            {
                "name": p.name,
                "names": list(p.names),
                "type": str(p.element) if p.element else None,
                "shape": shape_text(p.shape),
            }
            for p in ports
        ]
    return document
