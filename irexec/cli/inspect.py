"""irexec inspect"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import click

from irexec.analysis.execution_graph import ExecutedLayer, description, executed_layers, is_execution_graph, times_by_type
from irexec.analysis.model import Model, Port
from irexec.api import read_model
from irexec.cli import render
from irexec.cli.limit_options import max_memory_option, threads_option
from irexec.cli.paths import FilePath
from irexec.cli.plan import plan_document, show_report
from irexec.cli.progress import progress_bar
from irexec.cli.shape_option import METAVAR, ShapeOptions, ShapeType, shapes_by_input
from irexec.cli.usage import refuse_without
from irexec.cli.weights_option import no_mmap
from irexec.compile.plan_report import PlanReport
from irexec.ir.dims import shape_text
from irexec.tools.inspect import LayerLine, Summary, edges, histogram, layers, summarize
from irexec.tools.plan import plan
from irexec.tools.weights import WeightLine, weights


@click.command()
@click.argument("model", type=FilePath())
@click.option("--bin", "weights_path", type=FilePath(), help="The weights; default: the .bin of the same name beside the model.")
@no_mmap
@click.option("--layers", "show_layers", is_flag=True, help="Every layer: inputs and where they come from, outputs, attributes.")
@click.option("--ops", "show_ops", is_flag=True, help="The number of layers of each operation.")
@click.option("--weights", "show_weights", is_flag=True, help="Statistics of every constant.")
@click.option(
    "--plan", "show_plan", is_flag=True, help="What would run: every step with its layers, kernel and memory, and what the passes did."
)
@click.option("--shape", "shapes", multiple=True, type=ShapeType(), metavar=METAVAR, help="For --plan: give an input this shape.")
@threads_option("For --plan: how many threads would work on a step.")
@max_memory_option("For --plan: refuse a model whose tensors take more memory than this, such as 2G; default: all that is left.")
@click.option("-v", "--verbose", is_flag=True, help="For --plan: also all layers of each step, and why passes left layers as they are.")
@click.option("--json", "as_json", is_flag=True, help="Versioned JSON instead of text.")
def inspect(
    model: str, weights_path: str | None, mmap: bool, show_layers: bool, show_ops: bool, show_weights: bool, show_plan: bool,
    shapes: tuple[ShapeOptions, ...], threads: int | None, max_memory: int | None, verbose: bool, as_json: bool,
) -> None:  # fmt: skip
    """Show what MODEL (an .xml or .onnx) consists of.

    MODEL may also be an execution graph of OpenVINO; then --layers shows the time, type, kernel and original layers of each layer.
    """
    if not show_plan:
        refuse_without("plan", "shapes", "threads", "max_memory", "verbose")
    with progress_bar(f"reading {model}", 1) as advance:
        read = read_model(model, weights_path, mmap=mmap, progress=advance)
    if is_execution_graph(read):
        if show_weights or show_plan:
            raise click.UsageError(f"{model} is an execution graph, which has no {'weights' if show_weights else 'plan'}")
        _execution_graph(model, read, show_layers, show_ops, as_json)
        return
    summary = summarize(read)
    constants = _weights(read, summary) if show_weights else None
    planned = _plan(model, weights_path, mmap, shapes, threads, max_memory) if show_plan else None
    # Not before: an error of what is asked for says more.
    _warn_of_problems(model, read)
    if as_json:
        document = _document(read, summary, show_layers, show_ops, constants)
        render.as_json(document | ({} if planned is None else {"plan": plan_document(planned)}))
        return
    _summary(model, summary)
    if show_ops:
        render.line()
        render.table(("operation", "layers"), summary.ops.items(), right=(1,))
    if show_layers:
        render.line()
        render.lines(line for layer in layers(read) for line in _layer_lines(layer))
    if constants is not None:
        render.line()
        _weight_table(constants)
    if planned is not None:
        render.line()
        show_report(planned, verbose)


def _warn_of_problems(path: str, model: Model) -> None:
    """Warn of the first error in the files, which may be why shapes are not known."""
    errors = [problem for problem in model.problems if problem.severity == "error"]
    if errors:
        render.warning_line(f"{errors[0].at(path)}: {errors[0].message}; irexec validate lists all that is wrong")


def _plan(
    model: str, weights: str | None, mmap: bool, shapes: tuple[ShapeOptions, ...], threads: int | None, max_memory: int | None
) -> PlanReport:
    with render.progress(f"compiling {model}"):
        return plan(model, weights, shapes_by_input(shapes, "--shape"), threads, mmap=mmap, max_memory=max_memory)


def _weights(model: Model, summary: Summary) -> list[WeightLine]:
    with progress_bar("reading weights", summary.weight_bytes) as advance:
        return weights(model, advance)


def _summary(path: str, summary: Summary) -> None:
    render.line(f"{path}: {summary.name or 'no name'}, IR version {summary.version}")
    bodies = f", {summary.bodies} bodies" if summary.bodies else ""
    render.line(f"{summary.layers} layers of {len(summary.ops)} operations{bodies}")
    render.line(f"{summary.constants} constants, {summary.weight_elements:,} elements, {summary.weight_bytes:,} bytes")
    rows = [("input", *_port(port)) for port in summary.inputs] + [("output", *_port(port)) for port in summary.outputs]
    render.table(("", "name", "type", "shape", "other names"), rows, whole=(2, 3))
    for sentence in summary.unsupported:
        render.line(f"not supported: {sentence}")


def _port(port: Port) -> tuple[str, str, str, str]:
    others = ", ".join(name for name in port.names if name != port.name)
    return port.name, str(port.element or "?"), shape_text(port.shape), others


def _layer_lines(layer: LayerLine) -> Iterator[str]:
    """A layer as indented text, one line for each port and one for the attributes; a table of it would be too wide."""
    line = "" if layer.line is None else f", line {layer.line}"
    yield f"{layer.id} {layer.path}{layer.name} ({layer.type}, {layer.version or 'no version'}{line})"
    inputs = zip(layer.input_ports, layer.inputs, layer.sources, strict=True)
    outputs = zip(layer.output_ports, layer.outputs, layer.tensor_names, strict=True)
    ports = [(f"input {port}", fact, f"from {source}" if source else "no edge arrives") for port, fact, source in inputs]
    ports += [(f"output {port}", fact, ", ".join(names)) for port, fact, names in outputs]
    widths = [max((len(port[column]) for port in ports), default=0) for column in (0, 1)]
    for name, fact, text in ports:
        yield f"    {name:{widths[0]}}  {fact:{widths[1]}}  {text}".rstrip()
    if layer.attributes:
        yield from render.fill((f'{name}="{value}"' for name, value in layer.attributes.items()), "    ")


def _weight_table(constants: Sequence[WeightLine]) -> None:
    headers = ("id", "constant", "type", "shape", "bytes", "min", "max", "mean", "std", "zeros", "NaN/Inf")
    rows = [
        (w.id, w.name, w.element, render.sizes(w.shape), w.bytes, w.min, w.max, w.mean, w.std, f"{w.zeros:.1%}", w.not_finite or None)
        for w in constants
    ]
    render.table(headers, rows, right=(0, 4, 5, 6, 7, 8, 9, 10), whole=(2, 3))


def _execution_graph(path: str, model: Model, show_layers: bool, show_ops: bool, as_json: bool) -> None:
    executed = executed_layers(model)
    types = times_by_type(executed)
    total = sum(line.microseconds for line in types)
    if as_json:
        document: dict[str, Any] = {"name": model.name, "execution_graph": True, "layer_count": len(executed), "microseconds": total}
        document |= {"types": [asdict(line) for line in types]} if show_ops else {}
        document |= {"layers": [asdict(layer) for layer in executed]} if show_layers else {}
        render.as_json(document)
        return
    measured = sum(layer.microseconds is not None for layer in executed)
    render.line(f"{path}: {model.name or 'no name'}")
    render.line(description(model))
    render.line(f"{measured} layers with a time, {total:,.0f} µs in all" if measured else "no layer has a time: it was not measured")
    if show_ops:
        render.line()
        render.table(("operation", "layers", "µs"), [(line.type, line.layers, line.microseconds) for line in types], right=(1, 2))
    if show_layers:
        render.line()
        headers = ("id", "layer", "operation", "µs", "type", "kernel", "fused layers")
        rows = [(e.id, e.name, e.type, e.microseconds, e.precision, e.kernel, _fused(e)) for e in executed]
        render.table(headers, rows, right=(0, 3))


def _fused(layer: ExecutedLayer) -> str:
    """The layers of the model that the layer was made from, without the one that has its own name."""
    return ", ".join(name for name in layer.original if name != layer.name)


def _document(model: Model, summary: Summary, show_layers: bool, show_ops: bool, constants: Sequence[WeightLine] | None) -> dict[str, Any]:
    document = _plain_summary(summary)
    if show_ops:
        document["ops"] = histogram(model)
    if show_layers:
        document["layers"] = [asdict(line) for line in layers(model)]
        document["edges"] = [asdict(edge) for edge in edges(model)]
    if constants is not None:
        document["weights"] = [asdict(line) for line in constants]
    return document


def _plain_summary(summary: Summary) -> dict[str, Any]:
    document = {name: value for name, value in vars(summary).items() if name not in ("inputs", "outputs")}
    for side, ports in (("inputs", summary.inputs), ("outputs", summary.outputs)):
        document[side] = [
            {"name": p.name, "names": list(p.names), "type": str(p.element) if p.element else None, "shape": shape_text(p.shape)}
            for p in ports
        ]
    return document
