"""irexec judge"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import click

from irexec.cli import render
from irexec.cli.option_groups import (
    Option,
    OptionGroup,
    command,
    flag,
    given_flags,
    is_node_data,
    node_data_option,
    option,
    refuse_without,
    settings,
)
from irexec.cli.options import (
    DYNAMIC_QUANTIZATION,
    INPUTS,
    LIMITS,
    LOAD_STATE,
    STEPS,
    WEIGHTS,
    InputOptions,
    LimitOptions,
    WeightsOptions,
)
from irexec.cli.render import progress_bar
from irexec.cli.runtime_options import ARITHMETIC_NAMES, ENVIRONMENTS, FUNCTION_NAMES, PROPERTIES, RUNTIME_NAMES
from irexec.cli.values import FilePath
from irexec.tools.judge import Judgement, JudgeOptions
from irexec.tools.judge import judge as judge_runtime
from irexec.tools.judge.judgement import judgement_sections
from irexec.tools.judge.run import record_script as write_script
from irexec.tools.run.input_sources import InputSource, files_read

EXIT_CODES = {
    "agrees": 0, "bug": 1, "fusion": 10, "precision": 11, "open": 12, "model": 13, "no-bound": 14, "unexplained": 15,
}  # fmt: skip
_TYPES = ("f16", "bf16", "int8", "int4")
"""Types of irexec.tools.sensitivity, which completion must not load."""

_RUNTIME = OptionGroup(
    "The runtime",
    JudgeOptions,
    {
        "runtime": option(
            f"The runtime that is judged: {RUNTIME_NAMES}; or tensors that were recorded in it, a .npz or a folder of "
            "infer --dump-layers.",
            metavar="RUNTIME|TENSORS",
        ),
        "properties": PROPERTIES,
        "arithmetic": option(
            "Arithmetic that it is held to; default: what the runtime says, or the types of the model.",
            choices=ARITHMETIC_NAMES,
        ),
        "functions": option(
            "Published errors of functions that it is held to; default: ieee for CPUs, else opencl.",
            choices=FUNCTION_NAMES,
        ),
        "environments": ENVIRONMENTS,
        "dynamic_quantization": DYNAMIC_QUANTIZATION,
    },
)
_STEPS = OptionGroup(INPUTS.heading, JudgeOptions, {"steps": STEPS, "load_state": LOAD_STATE})
_OUTPUT = OptionGroup(
    "Output",
    SimpleNamespace,
    {
        "output": option(
            "-o", "--output", "Draw the judgement too: .html, a page with the graph, or .svg.", type=FilePath()
        ),
        "is_inside": flag("--inside", "Also tell a wrong transformation of OpenVINO from a wrong kernel."),
        "shows_all": flag("--verbose", "Show every tensor or layer."),
        "form": Option(("--format",), node_data_option.settings),
        "as_json": flag("--json", "Versioned JSON instead of text."),
    },
)


@command()
@click.argument("model", type=FilePath())
@_RUNTIME(
    "runtime",
    dynamic_quantization="Let the runtime quantise the rows that are multiplied by weights of 4 and 8 bits, by groups "
    "of this size, and hold it to that.",
)
@INPUTS("inputs")
@_STEPS("steps", steps=f"{STEPS.settings['help']} Default: 2 with state, else 1.")
@WEIGHTS("files", only=("weights",))
@LIMITS("limits", timeout="Stop a run that takes longer; exit code 124.")
@option(
    "--bundle",
    "Write what an issue tracker needs: the smallest model with the verdict, its inputs, their interval, a script that "
    "needs openvino and numpy, and a report.",
    metavar="DIR",
)
@flag("--strip-weights", "Random weights in the bundle, where the verdict allows them.")
@option(
    "--record-script",
    "Judge nothing: write a script that records MODEL in OpenVINO where the device is, and beside it the inputs.",
    metavar="FILE",
)
@option(
    "--sensitivity",
    "Judge no runtime: measure how much of the error of the results each layer makes that has fewer bits.",
    choices=_TYPES,
)
@option(
    "--against",
    "Judge no runtime: the same with the weights and ranges of this quantised model, layer by layer.",
    metavar="MODEL",
)
@option("--target", "SNR in decibels that the results need; default: 40, for int8 and int4 30.", type=float)
@_OUTPUT("shown")
def judge(
    model: str,
    runtime: JudgeOptions,
    inputs: InputOptions,
    steps: JudgeOptions,
    files: WeightsOptions,
    limits: LimitOptions,
    bundle: str | None,
    strip_weights: bool,
    record_script: str | None,
    sensitivity: str | None,
    against: str | None,
    target: float | None,
    shown: SimpleNamespace,
) -> int:
    """Judge a runtime with MODEL (an .xml or .onnx): is it wrong, or does it round as it may?

    \b
    irexec judge model.xml -i x.npz --runtime openvino
    irexec judge model.xml --runtime openvino:GPU -p INFERENCE_PRECISION_HINT=f16
    irexec judge model.onnx --runtime onnxruntime -o page.html
    irexec judge model.xml --runtime openvino==2024.1.0
    irexec judge model.xml --runtime 'command:./runner' --bundle fault/
    irexec judge model.xml --inside
    irexec judge model.xml --record-script record.py
    irexec judge model.xml --runtime recorded.npz
    irexec judge model.xml -i x.npz --sensitivity int8
    irexec judge model.xml -i x.npz --against quantised.xml

    Each layer is judged from the inputs that the runtime itself had: its values lie in the interval that correct
    implementations of the arithmetic give, or they are a bug. A layer without a rule has no bound, and is not accused.

    Exit codes: 0 agrees, 1 bug of the runtime, 10 bug while inner tensors are not observed, 11 precision, 12 left open
    by the specification, 13 NaN or infinity of the model itself, 14 differs where nothing has a bound, 15 not
    explained.
    """
    request = settings(JudgeOptions, inputs, files, limits, **_RUNTIME.of(runtime), **_STEPS.of(steps))
    if record_script is not None:
        return _recorded_script(model, record_script, request, inputs.sources)
    if sensitivity is not None and against is not None:
        raise click.UsageError("--against has the types of its model: no --sensitivity")
    if sensitivity is not None or against is not None:
        changed: dict[str, Any] = {"type": sensitivity} if against is None else {"against": against}
        if target is not None:
            changed["target"] = target
        return _sensitivity(model, request, inputs.sources, changed, shown.shows_all, shown.as_json)
    is_data = is_node_data(shown.form, shown.as_json)
    if target is not None:
        raise click.UsageError("--target needs --sensitivity or --against")
    if bundle is None:
        refuse_without("bundle", "strip_weights")
    if shown.output is not None:
        from irexec.tools.graph.beside import check_picture

        check_picture(shown.output, files_read(model, files.weights, inputs.sources))
    if shown.is_inside:
        _refuse("--inside writes no bundle", ("bundle", "strip_weights"))
        _refuse("--inside is about the whole model", ("form",))
        from irexec.cli.inside import checked_inside

        checked = checked_inside(model, runtime.runtime, request, inputs.sources, shown.output, shown.as_json)
        if checked.verdict == "transformation" or not isinstance(checked.kernel, Judgement):
            return 1
        return EXIT_CODES[checked.kernel.verdict]
    named: dict[str, Any] = {"sources": inputs.sources, "notify": render.note_line, "output": shown.output}
    with progress_bar(f"judging {runtime.runtime}", 1.0):
        if bundle is None:
            found = judge_runtime(model, None, request, **named)
        else:
            from irexec.tools.bundling import judge_into

            found = judge_into(bundle, model, None, request, strip_weights=strip_weights, **named)
    if is_data:
        from irexec.tools.node_data import of_judgement

        render.json_document(of_judgement(found))
    else:
        render.result(shown.as_json, found.as_dict, judgement_sections(found, shown.shows_all), found.notes)
    return EXIT_CODES[found.verdict]


def _sensitivity(
    model: str,
    request: JudgeOptions,
    sources: Sequence[InputSource],
    changed: dict[str, Any],
    shows_all: bool,
    as_json: bool,
) -> int:
    names = (
        "runtime", "properties", "arithmetic", "environments", "bundle", "strip_weights", "timeout", "is_inside",
        "output", "form",
    )  # fmt: skip
    _refuse(f"--{'against' if 'against' in changed else 'sensitivity'} judges no runtime", names)
    from irexec.tools.sensitivity import SensitivityOptions, sensitivity_sections
    from irexec.tools.sensitivity import sensitivity as measured

    options = settings(SensitivityOptions, request, **changed)
    with progress_bar(f"measuring {model}", 1.0) as advance:
        found = measured(model, None, options, sources=sources, notify=render.note_line, advance=advance)
    render.result(as_json, found.as_dict, sensitivity_sections(found, shows_all))
    return 0


def _refuse(reason: str, names: Sequence[str]) -> None:
    for given in given_flags(names):
        raise click.UsageError(f"{reason}: no {given}")


def _recorded_script(model: str, script: str, request: JudgeOptions, sources: Sequence[InputSource]) -> int:
    names = (
        "runtime", "arithmetic", "environments", "steps", "load_state", "bundle", "strip_weights", "sensitivity",
        "against", "target", "timeout", "is_inside", "output", "shows_all", "form", "as_json",
    )  # fmt: skip
    _refuse("--record-script judges nothing", names)
    made = write_script(model, script, request, sources=sources, notify=render.note_line)
    render.lines(
        [
            f"{made.script} and {made.inputs}: take them, with the model, to where the device is",
            f"python {made.script} GPU recorded.npz",
        ]
    )
    return 0
