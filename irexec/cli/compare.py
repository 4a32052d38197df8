"""irexec compare"""

from __future__ import annotations

import click

from irexec.cli import render
from irexec.cli.option_groups import (
    Option,
    OptionGroup,
    command,
    flag,
    is_node_data,
    node_data_option,
    option,
    settings,
)
from irexec.cli.options import LIMITS, LOAD_STATE, MEASURING, STEPS, InputOptions, LimitOptions
from irexec.cli.render import after_compare, as_given, progress_bar, reads_stdin
from irexec.cli.run_options import COMPUTE, ComputeOptions, precision_as
from irexec.cli.runtime_options import ENVIRONMENTS, PROPERTIES, RUNTIME, RUNTIME_NAMES
from irexec.cli.values import FilePath, Parsed
from irexec.tools.arrays.agreement import METRICS
from irexec.tools.compare import CompareOptions, Comparison
from irexec.tools.compare import compare as compare_models
from irexec.tools.compare.comparison import comparison_sections
from irexec.tools.compare.scopes import record_torch as write_recorder
from irexec.tools.run.input_sources import files_read


def _pair_of_names(text: str) -> tuple[str, str]:
    one, _, other = text.partition("=")
    if not one or not other or "=" in other:
        raise ValueError(f"{text!r} is not a pair of names, expected A=B")
    return one, other


def _runtime(side: str) -> Option:
    return option(
        f"--{side.lower()}-runtime",
        f"The runtime of {side}: {RUNTIME_NAMES}. reference: irexec's reference kernels; onnx: the reference "
        "evaluator of onnx.",
        type=RUNTIME,
        metavar="RUNTIME",
    )


_RUNTIMES = OptionGroup(
    "Runtimes and weights",
    CompareOptions,
    {
        "a_runtime": _runtime("A"),
        "b_runtime": _runtime("B"),
        "properties": PROPERTIES,
        "environments": ENVIRONMENTS,
        "a_weights": option("--a-bin", "The weights of A; default: the .bin beside it.", type=FilePath()),
        "b_weights": option("--b-bin", "The weights of B; default: the .bin beside it.", type=FilePath()),
    },
)
_RUNS = OptionGroup(
    MEASURING.heading,
    CompareOptions,
    {
        "runs": Option(
            ("--steps", "--runs"),
            STEPS.settings
            | {"help": f"{STEPS.settings['help']} Default: 2 with state, else 1.", "type": click.IntRange(1, 1000)},
        ),
        "load_state": LOAD_STATE,
    },
)
_COMPARISON = OptionGroup(
    "Comparison",
    CompareOptions,
    {
        "metric": option("Decides whether tensors agree; default: max, or snr after quantisation.", choices=METRICS),
        "rtol": option("Relative tolerance of max; default: 1e-4 for f32, 0.01 for f16, 0.05 for bf16.", type=float),
        "atol": option(
            "Absolute tolerance of max; default: rtol times the root mean square of A's tensor.", type=float
        ),
        "threshold": option(
            "Of the other metrics: at most 0.001 (rel), at least 0.999 (cosine) or 30 dB (snr).", type=float
        ),
        "maps": option(
            "--map",
            "Pair these two tensors; may be repeated.",
            multiple=True,
            type=Parsed("pair", _pair_of_names),
            metavar="A=B",
        ),
        "inputs_of": option(
            "--from-inputs-of", "The inputs of the other model are tensors of this one.", choices=["A", "B"]
        ),
        "isolate": flag("Run each layer of B alone, with the tensors of A as inputs: errors do not add up."),
        "tries": option("Maximum number of inputs; ends at the first fault.", type=click.IntRange(1, 1000)),
        "strict": flag(
            "Count tensors that are paired by structure alone, even if everything computed from them agrees."
        ),
    },
)


@command()
@click.argument("a", type=FilePath(), required=False)
@click.argument("b", type=FilePath(), required=False)
@_RUNTIMES("sides")
@MEASURING(
    "inputs",
    only=("given", "shapes", "seed"),
    given="As for infer: a file, or random, zeros or ones; infer --save-inputs writes scaled images.",
    shapes="Set the shape of an input of both; may be repeated.",
)
@_RUNS("runs")
@_COMPARISON("comparison")
@COMPUTE("compute", only=("precision",), precision=precision_as("as the other runtime does, or f32"))
@LIMITS(
    "limits",
    threads="Number of threads of each runtime; default: the runtime's own.",
    timeout="Stop a run that takes longer; exit code 124.",
)
@option(
    "--record-torch",
    "Compare nothing: write a script that records the modules of a PyTorch model, where torch is.",
    type=FilePath(),
    metavar="FILE.py",
)
@flag(
    "--inside",
    "is_inside",
    "A in OpenVINO: tell a wrong transformation from a wrong kernel; --b-runtime openvino==2024.6.0 is a release.",
)
@option("-o", "--output", "Draw the comparison too: .html, a page with both graphs, or .svg.", type=FilePath())
@flag("--all", "shows_all", "Show every tensor, not only those around the first that differs.")
@node_data_option
@flag("--json", "as_json", "Versioned JSON, with every tensor.")
def compare(
    a: str | None,
    b: str | None,
    sides: CompareOptions,
    inputs: InputOptions,
    runs: CompareOptions,
    comparison: CompareOptions,
    compute: ComputeOptions,
    limits: LimitOptions,
    record_torch: str | None,
    is_inside: bool,
    output: str | None,
    shows_all: bool,
    form: str | None,
    as_json: bool,
) -> int:
    """Find where two models diverge: every tensor of B against the same tensor of A, and the first layer that differs.

    \b
    irexec compare model.xml damaged.xml
    irexec compare model.onnx model.xml --a-runtime onnxruntime
    irexec compare model.xml --b-runtime openvino --isolate
    irexec compare tensors.npz model.xml -i image.npy
    irexec compare f32.xml int8.xml --metric snr --all
    irexec compare model.xml damaged.xml -o page.html
    irexec compare --record-torch record.py
    irexec compare torch.npz model.xml
    irexec compare model.xml --inside

    A and B are .xml or .onnx; A may also be a .npz of tensors, also of the modules of a PyTorch model, or a folder that
    infer --dump-layers wrote. Without B it
    is A in another runtime. Tensors are paired by tensor names, layer names, structure and values. A guess from
    structure is dropped if what is computed from it agrees. The exit code is 1 if anything differs.
    """
    if record_torch is not None:
        if a is not None:
            raise click.UsageError("--record-torch compares nothing: no A")
        write_recorder(record_torch)
        return 0
    if a is None:
        raise click.UsageError("Missing argument 'A'.")
    request = settings(CompareOptions, comparison, inputs, compute, limits, **_RUNTIMES.of(sides), **_RUNS.of(runs))
    if output is not None:
        from irexec.tools.graph.beside import check_picture

        check_picture(output, files_read(a, sides.a_weights, inputs.sources) | ({} if b is None else {b: "B"}))
    is_data = is_node_data(form, as_json)
    if is_inside:
        if is_data:
            raise click.UsageError("--inside is about the whole model: no --format")
        if b is not None:
            raise click.UsageError("--inside compares A with what OpenVINO makes of it: no B")
        from irexec.cli.inside import checked_inside

        checked = checked_inside(a, sides.b_runtime, request, inputs.sources, output, as_json)
        return 0 if checked.verdict == "neither" else 1
    with progress_bar(f"comparing {a}", 1.0) as advance:
        found = compare_models(
            a, b, None, request, sources=inputs.sources, notify=render.note_line, advance=advance, output=output
        )
    if is_data:
        from irexec.tools.node_data import of_comparison

        render.json_document(of_comparison(found))
        return 0 if found.agrees else 1
    render.result(as_json, found.as_dict, comparison_sections(found, shows_all), found.notes)
    if not as_json and _is_reducible(found, request) and not reads_stdin(inputs.given):
        same = list(as_given(inputs.given, request.shapes, request.seed, request.runs, request.load_state))
        after_compare(a, b, request.a_runtime, request.b_runtime, same)
    return 0 if found.agrees else 1


def _is_reducible(found: Comparison, request: CompareOptions) -> bool:
    """True if irexec reduce can cut out the part that diverges."""
    has_weights = request.a_weights is not None or request.b_weights is not None
    return found.first is not None and found.whole is None and len(found.rows) > 1 and not has_weights
