"""irexec infer"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from irexec.cli import render
from irexec.cli.option_groups import OptionGroup, command, flag, is_given, json_option, option, refuse_without, settings
from irexec.cli.options import (
    INPUTS,
    LIMITS,
    LOAD_STATE,
    STEPS,
    WEIGHTS,
    InputOptions,
    LimitOptions,
    ToleranceOptions,
    WeightsOptions,
    tolerance,
)
from irexec.cli.render import as_given, note_mapping, reads_stdin, reducing, show_next_command, spinner_then_bar
from irexec.cli.run_options import COMPUTE, IMAGE, TRAP, ComputeOptions, show_trap_notes
from irexec.cli.values import ALTERNATIVE, FilePath
from irexec.messages import counted
from irexec.runtime.program import WeightsMode
from irexec.tools.arrays.statistics import BINS, histogram
from irexec.tools.images import IMAGE_SUFFIXES, ImageOptions
from irexec.tools.run.infer import InferOptions, Notifier
from irexec.tools.run.infer import infer as run_once
from irexec.tools.run.infer_report import InferReport
from irexec.tools.run.input_sources import InputSource
from irexec.tools.trapping import TrapOptions


def _results(**values: Any) -> InferOptions:
    if not values["topk"]:
        refuse_without("topk", "labels", "class_axis", "softmax")
    if values["tensors"] and values["every_tensor"]:
        raise click.UsageError("--tensor selects tensors and --all selects every one: use either of them")
    if values["reference"] is None:
        refuse_without("assert", "rtol", "atol")
    return InferOptions(**values)


_RESULTS = OptionGroup(
    "Results",
    _results,
    {
        "output": option(
            "-o", "--output", "Write the results to a .npz, or a result that is an image to a .png.", type=FilePath()
        ),
        "tensors": option(
            "--tensor",
            "Show this tensor instead of the results, by tensor name, layer, id or layer:port; may be repeated.",
            multiple=True,
            metavar="NAME",
        ),
        "every_tensor": flag("--all", "Show every tensor instead of the results."),
        "topk": option("Show the classes with the largest scores of each result.", type=click.IntRange(1)),
        "class_axis": option("--axis", "The axis of the classes for --topk; default: from the shape.", type=int),
        "softmax": flag("For --topk: scores are softmax of the values, for results that are logits."),
        "labels": option("Names of the classes of --topk, one per line.", type=FilePath()),
        "dump_folder": option(
            "--dump-layers", "Write every tensor, inputs too, to a .npy in this folder.", type=FilePath()
        ),
        "save_inputs": option("Write the inputs to a .npz, with which -i repeats the run.", type=FilePath()),
        "reference": option(
            "--assert",
            "Compare with the arrays of a .npz by tensor or layer name; exit code 1 if they differ.",
            type=FilePath(),
        ),
    },
)


def _bars(show_histograms: bool, bins: int) -> int | None:
    """The maximum number of bars; None without --histogram."""
    if not show_histograms:
        refuse_without("histogram", "bins")
    return bins if show_histograms else None


_STATE = OptionGroup(
    "Steps and state",
    InferOptions,
    {
        "steps": STEPS,
        "load_state": LOAD_STATE,
        "save_state": option("Write the variables after the last step to a .npz.", type=FilePath()),
    },
)
_BARS = OptionGroup(
    "Results",
    _bars,
    {
        "show_histograms": flag("--histogram", "Show the values of each tensor as bars."),
        "bins": option("For --histogram: maximum number of bars.", type=click.IntRange(1, 10_000), default=BINS),
    },
)


@command()
@click.argument("model", type=FilePath())
@INPUTS(
    "inputs",
    given={
        "help": "A .npy, .npz or image, a .txt with a string on each line, - for a .npy or .npz on standard input, "
        "text:STRING, or random, zeros or ones; may be repeated."
    },
    shapes=f"Set the shape of an input; may be repeated. {ALTERNATIVE}",
)
@_STATE("state")
@WEIGHTS("files")
@IMAGE("image")
@_RESULTS("results")
@_BARS("bars")
@tolerance("--assert", rtol=1e-4, atol=1e-5)("tolerances")
@TRAP("trap")
@COMPUTE("compute")
@LIMITS(
    "limits",
    timeout="Stop the run after this time, between two layers or two iterations of a loop; exit code 124.",
)
@option(
    "--weights",
    "compressed",
    "How to hold 4-bit and 8-bit weights: as stored (packed), as f32 (unpacked), or, if memory allows, in "
    "bytes (auto).",
    choices=["auto", "packed", "unpacked"],
    default="auto",
)
@flag("--strict", "Refuse a model in which validate finds any error.")
@json_option
def infer(
    model: str,
    inputs: InputOptions,
    state: InferOptions,
    files: WeightsOptions,
    image: ImageOptions,
    results: InferOptions,
    bars: int | None,
    tolerances: ToleranceOptions,
    trap: TrapOptions | None,
    compute: ComputeOptions,
    limits: LimitOptions,
    compressed: WeightsMode,
    strict: bool,
    as_json: bool,
) -> int:
    """Run MODEL (an .xml or .onnx) once on arrays, images or generated values.

    \b
    irexec infer model.xml -i x=a.npy -i y=b.npy -o out.npz
    irexec infer model.xml -i cat.png --scale 255 --topk 5 --labels classes.txt
    irexec infer model.xml -i random --shape "x[1,3,64,64]" --dump-layers all/
    irexec infer model.xml -i noisy.png --scale 255 -o clean.png
    irexec infer model.xml -i x.npy --trap nan,inf,f16
    """
    _check_image(inputs.sources, str(results.output or ""))
    request = settings(
        InferOptions, results, inputs, files, tolerances, compute, limits,
        image=image, trap=trap, compressed=compressed, strict=strict, **_STATE.of(state),
    )  # fmt: skip
    if request.mmap and not as_json:
        note_mapping(model, request.weights)
    with spinner_then_bar(f"running {model}", 1) as advance:
        report = run_once(model, inputs.sources, request, Notifier(render.note_line, render.warning_line), advance)
    histograms = [] if bars is None else [histogram(array, bars, name=name) for name, array in report.tensors.items()]
    if report.dumped is not None:
        render.remark(f"{request.dump_folder}: {counted(report.dumped, 'tensor')}")
    if as_json:
        shown = {} if bars is None else {"histograms": histograms}
        render.as_json(report.as_dict() | shown)
    else:
        if report.trap is not None:
            show_trap_notes(report.trap)
        render.show(report.sections())
        render.show([["", found.sections()] for found in histograms])
        if not reads_stdin(inputs.given) and request.weights is None and request.image == ImageOptions():
            same = as_given(inputs.given, request.shapes, request.seed, request.steps, request.load_state)
            _offer_next_command(model, report, list(same))
    return 1 if report.is_trapped or (report.comparison is not None and not report.comparison.agrees) else 0


def _offer_next_command(model: str, report: InferReport, inputs: Sequence[str]) -> None:
    """Show the next command: for NaN and infinities that a layer makes, or for results that differ."""
    trap = None if report.trap is None else report.trap.trap
    if trap is not None and trap.kind in ("nan", "inf") and trap.origin != "input":
        show_next_command(*reducing(model), "--trap", trap.kind, *inputs)
    elif report.comparison is not None and not report.comparison.agrees:
        show_next_command("compare", model, "--a-runtime", "reference", *inputs)


def _check_image(sources: Sequence[InputSource], output: str) -> None:
    """Refuse options about images where no image is read or written."""
    reads_image = any(source.kind == "image" for source in sources)
    for name in IMAGE.options:
        writes_image = output.lower().endswith(".png") and name != "resize"
        if is_given(name) and not reads_image and not writes_image:
            raise click.UsageError(f"--{name} is for images, and no -i is one ({', '.join(IMAGE_SUFFIXES)})")
