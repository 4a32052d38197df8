"""irexec bench"""

from __future__ import annotations

import click

from irexec.cli import render
from irexec.cli.option_groups import command, json_option, option, settings
from irexec.cli.options import LIMITS, MEASURING, WEIGHTS, InputOptions, LimitOptions, WeightsOptions
from irexec.cli.render import progress_bar
from irexec.cli.run_options import COMPUTE, ComputeOptions
from irexec.cli.values import FilePath
from irexec.tools.measure import OTHERS, BenchOptions
from irexec.tools.measure import bench as measure


@command()
@click.argument("model", type=FilePath())
@MEASURING("inputs", runs={"default": 50, "help": "Number of measured runs of each engine."})
@WEIGHTS("files", only=("weights",))
@COMPUTE("compute", only=("precision", "native", "dynamic_quantization"), prefix="Of irexec: ")
@LIMITS(
    "limits",
    only=("threads", "max_memory"),
    threads="Number of threads of each engine; default: the engine's own.",
    max_memory="Refuse tensors with which irexec's process would exceed this memory; default: all available.",
)
@option("--against", "Measure this runtime too, if it is installed; may be repeated.", choices=OTHERS, multiple=True)
@option("--onnx", "The ONNX model for --against onnxruntime; default: MODEL with the suffix .onnx.", type=FilePath())
@json_option
def bench(
    model: str,
    inputs: InputOptions,
    files: WeightsOptions,
    compute: ComputeOptions,
    limits: LimitOptions,
    against: tuple[str, ...],
    onnx: str | None,
    as_json: bool,
) -> None:
    """Measure how fast MODEL (an .xml or .onnx) runs: latency, throughput, load and compile time, and peak memory.

    \b
    irexec bench model.xml
    irexec bench model.xml --threads 1 --against openvino
    irexec bench model.xml --shape "x[8,3,224,224]" --runs 200

    Each engine has a process of its own. They run in turns, a few runs at a time, so that what else the machine does
    falls on all of them. OpenVINO computes in f32.
    """
    others = tuple(dict.fromkeys(against))
    if onnx is not None and "onnxruntime" not in others:
        raise click.UsageError("--onnx is for --against onnxruntime, which is not given")
    options = settings(BenchOptions, inputs, files, compute, limits, against=others, onnx=onnx)
    with progress_bar(f"measuring {model}", inputs.runs * (1 + len(others))) as advance:
        report = measure(model, inputs.sources, options, render.note_line, advance)
    render.result(as_json, lambda: {"model": model, **report.as_dict()}, report.sections())
