"""irexec reduce"""

from __future__ import annotations

import shlex
from types import SimpleNamespace
from typing import Any

import click

from irexec.analysis.evaluate import Precision
from irexec.cli import render
from irexec.cli.option_groups import OptionGroup, command, flag, is_given, json_option, option, refuse_without, settings
from irexec.cli.options import INPUTS, LIMITS, LOAD_STATE, STEPS, WEIGHTS, InputOptions, LimitOptions, WeightsOptions
from irexec.cli.render import Advance, progress_bar
from irexec.cli.run_options import COMPUTE, ComputeOptions, precision_as
from irexec.cli.values import FilePath, Parsed
from irexec.tools.engines.runtimes import OWN, precision_beside
from irexec.tools.reduce.checks import KINDS, Check, CommandCheck, FindingCheck, ValuesCheck
from irexec.tools.reduce.reduction import DoesNotFail, ReduceOptions
from irexec.tools.reduce.reduction import reduce as run_reduction
from irexec.tools.reduce.search import Step
from irexec.tools.reduce.sections import reduction_sections
from irexec.tools.run.shapes import Shapes

_CHECKS = {"command": "check", "finding": "finding", "against": "against", "trap": "trap"}
"""The parameters that say what a failure is, and their options."""
_NOTHING_FAILS = 1


def _kinds(text: str) -> tuple[str, ...]:
    kinds = tuple(dict.fromkeys(part.strip().lower() for part in text.split(",")))
    unknown = next((kind for kind in kinds if kind not in KINDS), None)
    if unknown is not None:
        raise ValueError(f"{unknown!r} is not one of {', '.join(KINDS)}")
    return kinds


def _check(failure: SimpleNamespace, shapes: Shapes, precision: Precision, timeout: float) -> Check:
    """The check that tells whether a model fails."""
    if failure.command is not None:
        return CommandCheck(failure.command, timeout, failure.expect_text)
    if failure.finding is not None:
        return FindingCheck(failure.finding, failure.release)
    if failure.trap is not None:
        return ValuesCheck(failure.trap, timeout, precision)
    from irexec.tools.reduce.against import check_against

    return check_against(
        failure.against or "", shapes=shapes, rtol=failure.rtol, atol=failure.atol, precision=precision, timeout=timeout
    )


def _failure(**values: Any) -> SimpleNamespace:
    """Definition of a failure: exactly one of ``command``, ``finding``, ``against`` and ``trap`` is given."""
    given = [f"--{name}" for parameter, name in _CHECKS.items() if is_given(parameter)]
    if len(given) != 1:
        expected = ", ".join(f"--{name}" for name in _CHECKS.values())
        said = f"{' and '.join(given)} are given" if given else "none is given"
        raise click.UsageError(f"one of {expected} says what a failure is, and {said}")
    for name, names in (("check", ("expect_text",)), ("finding", ("release",)), ("against", ("rtol", "atol"))):
        if f"--{name}" not in given:
            refuse_without(name, *names)
    return SimpleNamespace(**values)


_FAILURE = OptionGroup(
    "The failure",
    _failure,
    {
        "command": option(
            "--check",
            "The model fails if this command fails; {} stands for the .xml, {inputs} for the .npz.",
            metavar="COMMAND",
        ),
        "expect_text": option(
            "The output of --check contains this text if the model fails, whatever the exit code is.", metavar="TEXT"
        ),
        "finding": option(
            "The model fails if irexec validate has this finding, such as IR107, or IR911 of --portability.",
            metavar="CODE",
        ),
        "release": option("--for", "For --finding: of this release of OpenVINO, such as 2023.3.", metavar="RELEASE"),
        "against": option(
            "The model fails if its values differ from those of another version of it (.xml, .onnx) or from "
            "recorded tensors (a .npz or folder), or if openvino, onnxruntime, onnx or reference refuses it or has "
            "other results.",
            type=FilePath(),
            metavar="MODEL|TENSORS|RUNTIME",
        ),
        "rtol": option("Relative tolerance of --against; default: as for irexec compare.", type=click.FloatRange(0)),
        "atol": option("Absolute tolerance of --against; default: as for irexec compare.", type=click.FloatRange(0)),
        "trap": option(
            "The model fails if results have NaN (nan) or infinities (inf) and its inputs have none.",
            type=Parsed("nan,inf", _kinds),
        ),
    },
)
_STEPS = OptionGroup(INPUTS.heading, ReduceOptions, {"steps": STEPS, "load_state": LOAD_STATE})


@command()
@click.argument("model", type=FilePath())
@option(
    "-o", "--output", "The .xml to write; its .bin and its inputs (.npz) have its name.", type=FilePath(), required=True
)
@flag("--keep-shapes", "Keep sizes that the model leaves open; by default they become those of the run.")
@flag("--resume", "Resume an interrupted reduction with the same -o.")
@json_option
@_FAILURE("failure")
@INPUTS("inputs")
@_STEPS("steps")
@WEIGHTS("files", only=("weights",))
@COMPUTE("compute", only=("precision",), precision=precision_as("as the runtime of --against does, or f32"))
@LIMITS(
    "limits",
    only=("timeout",),
    timeout="Limit of each check; a check that takes longer is a failure of its own kind.  [default: 60]",
)
def reduce(
    model: str,
    output: str,
    keep_shapes: bool,
    resume: bool,
    as_json: bool,
    failure: SimpleNamespace,
    inputs: InputOptions,
    steps: ReduceOptions,
    files: WeightsOptions,
    compute: ComputeOptions,
    limits: LimitOptions,
) -> int:
    """Reduce MODEL (an .xml or .onnx) to the smallest part that still fails, and write it with its inputs.

    \b
    irexec reduce faulty.xml -o min.xml --against model.xml
    irexec reduce model.xml -o min.xml --against openvino
    irexec reduce model.xml -o min.xml --finding IR107
    irexec reduce model.xml -o min.xml --trap nan -i image.npy
    irexec reduce model.xml -o min.xml --check 'python check.py {} {inputs}'

    Layers are cut off by bisection, then left out one at a time. What they gave to the others is recorded in one run,
    and becomes inputs and constants of what is left. A part is kept only if it fails in the same way as MODEL: with the
    same exit code, finding or error. Against another version of the model, both are run once, and the layers are tried
    first at which they begin to differ; parts get the tensors of the other version as inputs.

    --check is run without a shell; exit code 0 passes, 2 and 125 say that a part cannot be tested, any other one fails.
    Exit code 1 says that MODEL itself does not fail.
    """
    seconds = 60.0 if limits.timeout is None else limits.timeout
    own = compute.precision or precision_beside(failure.against or OWN[0])
    check = _check(failure, inputs.shapes, own, seconds)
    options = settings(
        ReduceOptions, inputs, files,
        output=output, keep_shapes=keep_shapes, resume=resume, precision=own, timeout=seconds, **_STEPS.of(steps),
    )  # fmt: skip
    try:
        with check, progress_bar(f"reducing {model}", 1) as advance:
            report = run_reduction(
                model, check, inputs.sources, options, notify=render.note_line, progress=_Shown(advance)
            )
    except DoesNotFail as error:
        render.error_line(f"{model}: {error}")
        if as_json:
            render.error_json(type(error).__name__, str(error), _NOTHING_FAILS)
        return _NOTHING_FAILS
    command = {"arguments": list(report.command), "text": shlex.join(report.command)}
    document = report.as_dict() | {"model": model, "command": command}
    render.result(as_json, lambda: document, reduction_sections(report), report.notes)
    return 0


class _Shown:
    """Shows on a bar how many layers are left of those that there were."""

    def __init__(self, advance: Advance) -> None:
        self._advance, self._shown = advance, 0.0

    def __call__(self, step: Step) -> None:
        part = 1 - step.layers / max(1, step.of)
        self._advance(part - self._shown, f"{step.layers} of {step.of} layers left, {step.checks} checks")
        self._shown = part
