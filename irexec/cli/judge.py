"""irexec judge"""

from __future__ import annotations

import click

from irexec.cli import render
from irexec.cli.option_groups import OptionGroup, command, flag, json_option, option, settings
from irexec.cli.options import INPUTS, LIMITS, WEIGHTS, InputOptions, LimitOptions, WeightsOptions
from irexec.cli.progress import progress_bar
from irexec.cli.runtime_options import ARITHMETIC_NAMES, PROPERTIES, RUNTIME_NAMES
from irexec.cli.values import FilePath
from irexec.tools.judge import JudgeOptions
from irexec.tools.judge import judge as judge_runtime
from irexec.tools.judge.sections import judgement_sections

EXIT_CODES = {"agrees": 0, "bug": 1, "fusion": 10, "precision": 11, "open": 12, "model": 13, "no-bound": 14}

_RUNTIME = OptionGroup(
    "The runtime",
    JudgeOptions,
    {
        "runtime": option(
            "--runtime",
            f"The runtime that is judged: {RUNTIME_NAMES}; or tensors that were recorded in it, a .npz or a folder of "
            "infer --dump-layers.",
            metavar="RUNTIME|TENSORS",
            default="openvino",
        ),
        "properties": PROPERTIES,
        "arithmetic": option(
            "--arithmetic",
            "Arithmetic that it is held to; default: what the runtime says, or the types of the model.",
            choices=ARITHMETIC_NAMES,
        ),
    },
)


@command()
@click.argument("model", type=FilePath())
@_RUNTIME("runtime")
@INPUTS("inputs")
@WEIGHTS("files", only=("weights",))
@LIMITS("limits", timeout="Stop a run that takes longer; exit code 124.")
@flag("--verbose", "shows_all", "Show every tensor.")
@json_option
def judge(
    model: str,
    runtime: JudgeOptions,
    inputs: InputOptions,
    files: WeightsOptions,
    limits: LimitOptions,
    shows_all: bool,
    as_json: bool,
) -> int:
    """Judge a runtime with MODEL (an .xml or .onnx): is it wrong, or does it round as it may?

    \b
    irexec judge model.xml -i x.npz --runtime openvino
    irexec judge model.xml --runtime openvino:GPU -p INFERENCE_PRECISION_HINT=f16
    irexec judge model.onnx --runtime onnxruntime
    irexec judge model.xml --runtime 'command:./runner'
    irexec judge model.xml --runtime recorded.npz

    Each layer is judged from the inputs that the runtime itself had: its values lie in the interval that correct
    implementations of the arithmetic give, or they are a bug. A layer without a rule has no bound, and is not accused.

    Exit codes: 0 agrees, 1 bug of the runtime, 10 bug while inner tensors are not observed, 11 precision, 12 left open
    by the specification, 13 NaN or infinity of the model itself, 14 differs where nothing has a bound.
    """
    request = settings(
        JudgeOptions, inputs, files, limits,
        runtime=runtime.runtime, properties=runtime.properties, arithmetic=runtime.arithmetic,
    )  # fmt: skip
    with progress_bar(f"judging {runtime.runtime}", 1.0):
        found = judge_runtime(model, None, request, sources=inputs.sources, notify=render.note_line)
    if as_json:
        render.as_json(found.as_dict())
    else:
        for note in found.notes:
            render.note_line(note)
        render.show(judgement_sections(found, shows_all))
    return EXIT_CODES[found.verdict]
