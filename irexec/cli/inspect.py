"""irexec inspect"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import click

from irexec.analysis.execution_graph import executed_layers, is_execution_graph, times_by_type
from irexec.analysis.model import Model
from irexec.analysis.shape_inference import Inference, infer_shapes
from irexec.cli import render
from irexec.cli.option_groups import (
    OptionGroup,
    command,
    flag,
    is_node_data,
    json_option,
    node_data_option,
    option,
    refuse_without,
)
from irexec.cli.options import DYNAMIC_QUANTIZATION, LIMITS, SHAPES, WEIGHTS, InputOptions, LimitOptions, WeightsOptions
from irexec.cli.render import progress_bar
from irexec.cli.values import FilePath
from irexec.display import Content, sections_of
from irexec.records import Report
from irexec.tools.arrays.statistics import BINS, Histogram, constant_histogram, find_constant
from irexec.tools.inspect.cost import cost
from irexec.tools.inspect.precision import precision
from irexec.tools.inspect.summary import Summary, edges, layers, operations_table, summarize, tree
from irexec.tools.inspect.weights import weights, weights_table
from irexec.tools.run.shapes import read_with_shapes, reshape_for_display
from irexec.tools.sections.models import executed_table, execution_summary, times_table


def _asked(**values: Any) -> SimpleNamespace:
    """The reports that the command line asks for: the values of the options of ``_REPORTS``."""
    asked = SimpleNamespace(**values)
    if not asked.show_plan:
        refuse_without("plan", "verbose", "native", "dynamic_quantization")
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
        "show_layers": flag("--layers", "Every layer: inputs and where they come from, outputs, attributes."),
        "show_ops": flag("--ops", "The number of layers of each operation."),
        "show_weights": flag("--weights", "Statistics of every constant."),
        "show_cost": flag("--cost", "MACs, parameters, bytes and arithmetic intensity of layers and types."),
        "show_tree": flag("--tree", "The same for each branch of the layers' names, which / and . separate."),
        "depth": option("For --tree: number of levels of branches.", type=click.IntRange(1), default=3),
        "show_precision": flag("--precision", "The element types of weights and activations, and bits per weight."),
        "show_memory": flag("--memory", "Peak of the tensors between layers, where it is, and what is then in memory."),
        "histograms": option(
            "--histogram", "The values of this constant as bars; may be repeated.", multiple=True, metavar="NAME"
        ),
        "values": option(
            "The numbers of this constant, of a large one the first and last; may be repeated.",
            multiple=True,
            metavar="NAME",
        ),
        "bins": option("For --histogram: maximum number of bars.", type=click.IntRange(1, 10_000), default=BINS),
        "show_plan": flag(
            "--plan", "The plan of a run: every step with its layers, kernel and memory, and what the passes did."
        ),
        "verbose": flag(
            "-v", "--verbose", "For --plan: also all layers of each step, and why passes left layers as they are."
        ),
        "native": flag("--no-native", "For --plan: with NumPy alone, without the C kernels.", value=False),
        "dynamic_quantization": DYNAMIC_QUANTIZATION,
    },
)


@command()
@click.argument("model", type=FilePath())
@_REPORTS("asked")
@SHAPES("inputs", shapes="Set the shape of an input first; may be repeated.")
@WEIGHTS("files")
@LIMITS(
    "limits",
    only=("threads", "max_memory"),
    prefix="For --plan and --memory: ",
    threads="number of threads of a step.",
    max_memory="refuse a model that takes more memory, such as 2G; default: all available.",
)
@node_data_option
@json_option
def inspect(
    model: str,
    asked: SimpleNamespace,
    inputs: InputOptions,
    files: WeightsOptions,
    limits: LimitOptions,
    form: str | None,
    as_json: bool,
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
    if is_node_data(form, as_json) and not asked.show_cost:
        raise click.UsageError("--format model-explorer needs --cost, whose MACs it has")
    with progress_bar(f"reading {model}", 1) as advance:
        read = read_with_shapes(model, files.weights, inputs.shapes, mmap=files.mmap, progress=advance)
    if is_execution_graph(read):
        _refuse_for_execution_graph(model, asked, bool(inputs.shapes))
        _show(execution_summary(read), list(_executed(read, asked)), asked, as_json)
        return
    problems = list(read.problems)
    reshape_for_display(read, inputs.shapes)
    inference = infer_shapes(read, tolerant=True)
    summary = summarize(read, inference)
    parts = [*_parts(read, inference, summary, asked), *_compiled(model, read, inference, asked, limits)]
    # The first error in the files may be why shapes are not known; not before, since an error of what is asked for says
    # more.
    errors = [problem for problem in problems if problem.severity == "error"]
    if errors:
        render.warning_line(f"{errors[0].at(model)}: {errors[0].message}; irexec validate lists all that is wrong")
    if form is not None:
        from irexec.tools.node_data import of_cost

        render.json_document(of_cost(cost(read, inference))[0])
        return
    _show(summary, parts, asked, as_json)


class _Part(NamedTuple):
    """A report that is asked for: its name in JSON, and its contents; None for what only JSON has."""

    name: str
    value: Any
    contents: Content


def _of(name: str, report: Report) -> _Part:
    return _Part(name, report, sections_of(report))


def _show(summary: Report, parts: Sequence[_Part], asked: SimpleNamespace, as_json: bool) -> None:
    if as_json:
        render.as_json({**summary.as_dict(), **{part.name: part.value for part in parts}})
        return
    render.show(sections_of(summary))
    for part in parts:
        if part.contents is not None:
            render.show(["", part.contents], unfolds=asked.verbose)


def _parts(model: Model, inference: Inference, summary: Summary, asked: SimpleNamespace) -> Iterator[_Part]:
    """The reports that need no compiler."""
    if asked.show_ops:
        yield _Part("ops", summary.ops, operations_table(summary.ops))
    if asked.show_layers:
        lines = layers(model, inference)
        yield _Part("layers", lines, map(sections_of, lines))
        yield _Part("edges", edges(model), None)
    if asked.show_weights:
        with progress_bar("reading weights", summary.weight_bytes) as advance:
            constants = weights(model, advance)
        yield _Part("weights", constants, weights_table(constants))
    if asked.show_tree:
        yield _of("tree", tree(model, asked.depth, inference))
    if asked.show_precision:
        yield _of("precision", precision(model, inference))
    if asked.show_cost:
        yield _of("cost", cost(model, inference))
    if asked.histograms:
        found = _histograms(model, asked)
        yield _Part("histograms", found, [["" if i else None, one.sections()] for i, one in enumerate(found)])
    if asked.values:
        nodes = [find_constant(model, name) for name in asked.values]
        texts = [[f"{node.name}: {node.outputs[0].fact}", *str(node.array).splitlines()] for node in nodes]
        yield _Part("values", {node.name: node.array.tolist() for node in nodes}, texts)


def _compiled(
    path: str, model: Model, inference: Inference, asked: SimpleNamespace, limits: LimitOptions
) -> Iterator[_Part]:
    """The reports about the compiled model. The compiler is imported only for these."""
    threads, max_memory = limits.threads, limits.max_memory
    if asked.show_memory:
        from irexec.tools.inspect.memory import memory

        with render.progress(f"compiling {path}"):
            yield _of("memory", memory(model, threads=threads, max_memory=max_memory, inference=inference))
    if asked.show_plan:
        from irexec.runtime.compiled_model import CompiledModel
        from irexec.tools.sections.plans import plan_sections

        with render.progress(f"compiling {path}"):
            found = CompiledModel(
                model, threads=threads, max_memory=max_memory, native=asked.native,
                dynamic_quantization=asked.dynamic_quantization,
            ).plan  # fmt: skip
        yield _Part("plan", found, plan_sections(found))


def _executed(model: Model, asked: SimpleNamespace) -> Iterator[_Part]:
    """The reports about an execution graph."""
    executed = executed_layers(model)
    if asked.show_ops:
        types = times_by_type(executed)
        yield _Part("types", types, times_table(types))
    if asked.show_layers:
        yield _Part("layers", executed, executed_table(executed))


def _refuse_for_execution_graph(path: str, asked: SimpleNamespace, shapes: bool) -> None:
    """Refuse what an execution graph does not have."""
    absent = {
        "weights": asked.show_weights or bool(asked.histograms or asked.values),
        "plan": asked.show_plan or asked.show_memory,
        "costs": asked.show_cost or asked.show_tree, "precisions of weights": asked.show_precision,
        "inputs to reshape": shapes,
    }  # fmt: skip
    for what, is_asked in absent.items():
        if is_asked:
            raise click.UsageError(f"{path} is an execution graph, which has no {what}")


def _histograms(model: Model, asked: SimpleNamespace) -> list[Histogram]:
    nodes = [find_constant(model, name) for name in asked.histograms]
    total = sum(node.constant.size for node in nodes if node.constant is not None)
    with progress_bar("reading weights", total) as advance:
        return [constant_histogram(node, asked.bins, advance) for node in nodes]
