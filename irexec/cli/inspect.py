"""irexec inspect"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from irexec.analysis.model import Model, Port
from irexec.api import read_model
from irexec.cli import render
from irexec.ir.dims import shape_text
from irexec.tools.inspect import Summary, WeightLine, histogram, layers, summarize, weights


@click.command(short_help="Say what an .xml is made of.")
@click.argument("model", type=click.Path())
@click.option("--bin", "weights_path", type=click.Path(), help="The weights, if not beside the model under the same name.")
@click.option("--layers", "show_layers", is_flag=True, help="Every layer with the types and shapes that inference gives.")
@click.option("--ops", "show_ops", is_flag=True, help="How many layers of each operation.")
@click.option("--weights", "show_weights", is_flag=True, help="Statistics of every constant.")
@click.option("--json", "as_json", is_flag=True, help="Versioned json instead of tables.")
def inspect(model: str, weights_path: str | None, show_layers: bool, show_ops: bool, show_weights: bool, as_json: bool) -> None:
    """Say what MODEL (an .xml) is made of."""
    read = read_model(model, weights_path)
    summary = summarize(read)
    constants = weights(read) if show_weights else []
    if as_json:
        render.as_json(_document(read, summary, show_layers, show_ops, constants if show_weights else None))
        return
    _summary(model, summary)
    if show_ops:
        render.line()
        render.table(("operation", "layers"), summary.ops.items(), right=(1,))
    if show_layers:
        render.line()
        rows = [
            (x.id, x.path + x.name, f"{x.type}-{x.version.removeprefix('opset')}", "\n".join(x.inputs), "\n".join(x.outputs))
            for x in layers(read)
        ]
        render.table(("id", "layer", "operation", "inputs", "outputs"), rows, right=(0,))
    if show_weights:
        render.line()
        headers = ("id", "constant", "type", "shape", "bytes", "min", "max", "mean", "std", "zeros", "NaN/Inf")
        lines = [
            (w.id, w.name, w.element, render.sizes(w.shape), w.bytes, w.min, w.max, w.mean, w.std, f"{w.zeros:.1%}", w.not_finite or None)
            for w in constants
        ]
        render.table(headers, lines, right=(0, 4, 5, 6, 7, 8, 9, 10))


def _summary(path: str, summary: Summary) -> None:
    render.line(f"{path}: {summary.name or 'no name'}, IR version {summary.version}")
    bodies = f", {summary.bodies} bodies" if summary.bodies else ""
    render.line(f"{summary.layers} layers of {len(summary.ops)} operations{bodies}")
    render.line(f"{summary.constants} constants, {summary.weight_numbers:,} numbers, {summary.weight_bytes:,} bytes")
    rows = [("input", *_port(port)) for port in summary.inputs] + [("output", *_port(port)) for port in summary.outputs]
    render.table(("", "name", "type", "shape", "also called"), rows)
    for sentence in summary.unsupported:
        render.line(f"not supported: {sentence}")


def _port(port: Port) -> tuple[str, str, str, str]:
    others = ", ".join(name for name in port.names if name != port.name)
    return port.name, str(port.element or "?"), shape_text(port.shape), others


def _document(model: Model, summary: Summary, show_layers: bool, show_ops: bool, constants: Sequence[WeightLine] | None) -> dict[str, Any]:
    document = _plain_summary(summary)
    if show_ops:
        document["ops"] = histogram(model)
    if show_layers:
        document["layers"] = [asdict(line) for line in layers(model)]
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
