"""irexec bench"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

import click

from irexec.analysis.text_table import amount
from irexec.cli import render
from irexec.cli.limit_options import max_memory_option
from irexec.cli.measuring_options import measuring_options
from irexec.cli.paths import FilePath
from irexec.cli.precision_option import precision_option
from irexec.cli.progress import progress_bar
from irexec.cli.shape_option import ShapeOptions, shapes_by_input
from irexec.messages import counted
from irexec.runtime.precision import Precision
from irexec.tools.measure.bench import OTHERS, BenchOptions, BenchReport, EngineResult
from irexec.tools.measure.bench import bench as measure
from irexec.tools.run.input_sources import parse_input_source

_LINES: tuple[tuple[str, Callable[[EngineResult], str]], ...] = (
    ("median", lambda one: f"{one.p50:.3f} ms"),
    ("minimum", lambda one: f"{one.minimum:.3f} ms"),
    ("90 % within", lambda one: f"{one.p90:.3f} ms"),
    ("99 % within", lambda one: f"{one.p99:.3f} ms"),
    ("runs per second", lambda one: f"{one.throughput:.1f}"),
    ("load and compile", lambda one: f"{one.load:.1f} ms"),
    ("first run", lambda one: f"{one.first:.1f} ms"),
    ("peak memory", lambda one: amount(one.peak_bytes)),
)


@click.command()
@click.argument("model", type=FilePath())
@measuring_options(
    50,
    runs="How many runs of each engine are measured.",
    threads="How many threads each engine uses; default: its own.",
)
@precision_option("Of irexec: ")
@max_memory_option(
    "Refuse tensors that would make irexec's process hold more memory than this, such as 2G; default: all that is left."
)
@click.option(
    "--against",
    multiple=True,
    type=click.Choice(OTHERS),
    help="Measure this runtime too, if it is installed; may be repeated.",
)
@click.option(
    "--onnx", type=FilePath(), help="The ONNX model for --against onnxruntime; default: MODEL with the suffix .onnx."
)
@click.option("--json", "as_json", is_flag=True, help="Versioned JSON instead of a table.")
def bench(
    model: str, inputs: tuple[str, ...], weights: str | None, shapes: tuple[ShapeOptions, ...], seed: int, runs: int, threads: int | None,
    precision: Precision, max_memory: int | None, against: tuple[str, ...], onnx: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Measure how fast MODEL (an .xml or .onnx) runs: latency, throughput, load and compile time, and peak memory.

    \b
    irexec bench model.xml
    irexec bench model.xml --threads 1 --against openvino
    irexec bench model.xml --shape "x[8,3,224,224]" --runs 200

    Each engine has a process of its own. They run in turns, a few runs at a time, so that what else the machine does falls on
    all of them. OpenVINO computes in f32.
    """
    others = tuple(dict.fromkeys(against))
    if onnx is not None and "onnxruntime" not in others:
        raise click.UsageError("--onnx is for --against onnxruntime, which is not given")
    sources = [parse_input_source(text) for text in inputs]
    options = BenchOptions(
        weights=weights, shapes=shapes_by_input(shapes, "--shape"), seed=seed, threads=threads, precision=precision,
        max_memory=max_memory, runs=runs, against=others, onnx=onnx,
    )  # fmt: skip
    with progress_bar(f"measuring {model}", runs * (1 + len(others))) as advance:
        report = measure(model, sources, options, render.note_line, advance)
    if as_json:
        render.as_json({"model": model, **asdict(report)})
    else:
        _show(report)


def _show(report: BenchReport) -> None:
    names = [f"{one.engine} {one.version.split('-')[0]}" for one in report.engines]
    render.table(
        ("", *names), [(title, *map(cell, report.engines)) for title, cell in _LINES], right=range(1, len(names) + 1)
    )
    render.line()
    inputs = " ".join(f"{name}{render.sizes(shape)}" for name, shape in report.shapes.items())
    threads = "the default number of threads" if report.threads is None else counted(report.threads, "thread")
    render.line(f"{counted(report.runs, 'run')} with {threads}{f', inputs {inputs}' if inputs else ''}")
    for one in report.engines[1:]:
        render.line(f"{one.engine} / irexec: {one.ratio:.2f} (median; above 1, irexec is faster)")
