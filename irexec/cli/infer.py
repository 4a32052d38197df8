"""irexec infer"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from irexec.cli import render
from irexec.cli.image_options import IMAGE_OPTIONS, image_from, image_options
from irexec.cli.inspect_views import histogram_document
from irexec.cli.inspect_views import show_histograms as show_histograms_below
from irexec.cli.limit_options import max_memory_option, threads_option, timeout_option
from irexec.cli.next_steps import as_given, go_on, reads_stdin
from irexec.cli.paths import FilePath
from irexec.cli.precision_option import precision_option
from irexec.cli.progress import spinner_then_bar
from irexec.cli.shape_option import METAVAR, ShapeOptions, ShapeType, shapes_by_input
from irexec.cli.trap_options import show_trap, trap_document, trap_from, trap_options
from irexec.cli.usage import is_given
from irexec.cli.weights_option import no_mmap, note_mapping
from irexec.messages import counted, listed
from irexec.tools.arrays.histogram import BINS, histogram
from irexec.tools.images.files import IMAGE_SUFFIXES
from irexec.tools.images.images import ImageOptions
from irexec.tools.run.infer import Assertion, InferOptions, InferReport, Messages
from irexec.tools.run.infer import infer as run_once
from irexec.tools.run.input_sources import InputSource, parse_input_source
from irexec.tools.run.results import Prediction, describe

_POSITIONS_SHOWN = 100
_NAMES_SHOWN = 10


@click.command()
@click.argument("model", type=FilePath())
@click.option(
    "-i",
    "--input",
    "inputs",
    multiple=True,
    metavar="[NAME=]SOURCE",
    help="A .npy, .npz or image, - for a .npy or .npz on standard input, or random, zeros or ones; may be repeated.",
)
@click.option("--bin", "weights", type=FilePath(), help="The weights, if not beside the model under the same name.")
@no_mmap
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="For random inputs.")
@click.option(
    "--shape",
    "shapes",
    multiple=True,
    type=ShapeType(),
    metavar=METAVAR,
    help="Give an input this shape; may be repeated. NAME=1,3,?,2..8 means the same, NAME may be left out for the only input.",
)
@image_options
@click.option(
    "-o", "--output", type=FilePath(), help="Write the results to a .npz, or a result that is an image to a .png."
)
@click.option("--topk", type=click.IntRange(1), help="Show the most probable classes of each result.")
@click.option("--axis", type=int, help="The axis of the classes for --topk; guessed from the shape by default.")
@click.option("--labels", type=FilePath(), help="Names of the classes of --topk, one per line.")
@click.option(
    "--tensor",
    "tensors",
    multiple=True,
    metavar="NAME",
    help="Give this tensor, by tensor name, layer, id or layer:port, not the results.",
)
@click.option("--all", "every_tensor", is_flag=True, help="Give every tensor, not only the results.")
@click.option("--histogram", "show_histograms", is_flag=True, help="The values of each tensor that is shown as bars.")
@click.option(
    "--bins",
    type=click.IntRange(1, 10_000),
    default=BINS,
    show_default=True,
    help="For --histogram: how many bars at most.",
)
@click.option(
    "--dump-layers", "dump_folder", type=FilePath(), help="Write every tensor, inputs too, to a .npy in this folder."
)
@click.option("--save-inputs", type=FilePath(), help="Write the inputs to a .npz, with which -i repeats the run.")
@click.option(
    "--assert",
    "reference",
    type=FilePath(),
    help="Compare with the arrays of a .npz by tensor or layer name; exit code 1 if they differ.",
)
@click.option("--rtol", default=1e-4, show_default=True, help="Relative tolerance of --assert.")
@click.option("--atol", default=1e-5, show_default=True, help="Absolute tolerance of --assert.")
@trap_options
@threads_option("How many threads to use; by default as many as there are cores to run on.")
@click.option(
    "--weights",
    "compressed",
    type=click.Choice(["auto", "packed", "unpacked"]),
    default="auto",
    show_default=True,
    help="Decompress 4-bit and 8-bit weights on every run (packed), once (unpacked, faster), or as memory allows.",
)
@precision_option()
@max_memory_option()
@timeout_option("Stop the run after this time, between two layers or two iterations of a loop; exit code 124.")
@click.option("--no-optimize", is_flag=True, help="Run only the reference kernels.")
@click.option("--strict", is_flag=True, help="Refuse a model in which validate finds any error.")
@click.option("--json", "as_json", is_flag=True, help="Versioned JSON instead of tables.")
def infer(
    model: str, inputs: tuple[str, ...], shapes: tuple[ShapeOptions, ...], no_optimize: bool, show_histograms: bool, bins: int,
    as_json: bool, **options: Any,
) -> int:  # fmt: skip
    """Run MODEL (an .xml or .onnx) once on arrays, images or generated values.

    \b
    irexec infer model.xml -i x=a.npy -i y=b.npy -o out.npz
    irexec infer model.xml -i cat.png --scale 255 --topk 5 --labels classes.txt
    irexec infer model.xml -i random --shape "x[1,3,64,64]" --dump-layers all/
    irexec infer model.xml -i noisy.png --scale 255 -o clean.png
    irexec infer model.xml -i x.npy --trap nan,inf,f16
    """
    sources = [parse_input_source(text) for text in inputs]
    _check_usage(sources, str(options["output"] or ""))
    request = InferOptions(
        image=image_from(options),
        shapes=shapes_by_input(shapes, "--shape"),
        optimize=not no_optimize,
        class_axis=options.pop("axis"),
        trap=trap_from(options),
        **options,
    )
    if request.mmap and not as_json:
        note_mapping(model, request.weights)
    with spinner_then_bar(f"running {model}", 1) as advance:
        report = run_once(model, sources, request, Messages(render.note_line, render.warning_line), advance)
    histograms = (
        [histogram(array, bins, name=name) for name, array in report.tensors.items()] if show_histograms else []
    )
    if report.dumped is not None:
        render.remark(f"{request.dump_folder}: {counted(report.dumped, 'tensor')}")
    if as_json:
        render.as_json(
            _document(report) | ({"histograms": list(map(histogram_document, histograms))} if show_histograms else {})
        )
    else:
        _show(report)
        show_histograms_below(histograms)
        if not reads_stdin(inputs) and request.weights is None and request.image == ImageOptions():
            _go_on(model, report, list(as_given(inputs, request.shapes, request.seed)))
    return 1 if report.is_trapped or (report.comparison is not None and not report.comparison.agrees) else 0


def _go_on(model: str, report: InferReport, inputs: Sequence[str]) -> None:
    """The command that looks into what is wrong: into NaN and infinities that a layer makes, or into results that differ."""
    from irexec.tools.reduce.checks.values import KINDS

    trap = None if report.trap is None else report.trap.trap
    if trap is not None and trap.kind in KINDS and trap.origin != "input":
        go_on("reduce", model, "-o", "min.xml", "--trap", trap.kind, *inputs)
    elif report.comparison is not None and not report.comparison.agrees:
        go_on("compare", model, "--a-runtime", "reference", *inputs)


def _check_usage(sources: Sequence[InputSource], output: str) -> None:
    """Refuse options that would do nothing: whoever gives them expects that they do."""
    for name in ("labels", "axis"):
        if is_given(name) and not is_given("topk"):
            raise click.UsageError(f"--{name} is for --topk, which is not given")
    if is_given("tensors") and is_given("every_tensor"):
        raise click.UsageError("--tensor names the tensors to give, --all gives every one: use either of them")
    if is_given("bins") and not is_given("show_histograms"):
        raise click.UsageError("--bins is for --histogram, which is not given")
    reads_image = any(source.kind == "image" for source in sources)
    for name in IMAGE_OPTIONS:
        writes_image = output.lower().endswith(".png") and name != "resize"
        if is_given(name) and not reads_image and not writes_image:
            raise click.UsageError(f"--{name} is for images, and no -i is one ({', '.join(IMAGE_SUFFIXES)})")
    for name in ("rtol", "atol"):
        if is_given(name) and not is_given("reference"):
            raise click.UsageError(f"--{name} is for --assert, which is not given")


def _document(report: InferReport) -> dict[str, Any]:
    document: dict[str, Any] = {"outputs": [asdict(describe(name, array)) for name, array in report.tensors.items()]}
    if report.trap is not None:
        document["trap"] = trap_document(report.trap)
    if report.predictions is not None:
        document["topk"] = [vars(prediction) for prediction in report.predictions]
    if report.comparison is not None:
        document["assert"] = [asdict(agreement) for agreement in report.comparison.agreements]
        document["only_in_reference"] = report.comparison.only_in_reference
        document["only_in_results"] = report.comparison.only_in_results
    return document


def _show(report: InferReport) -> None:
    if report.trap is not None:
        show_trap(report.trap)
    if report.is_trapped:
        return
    if report.trap is not None and report.trap.kinds:
        render.line()
    lines = [describe(name, array) for name, array in report.tensors.items()]
    rows = [(x.name, x.type, render.sizes(x.shape), x.min, x.max, x.mean, x.nans or None) for x in lines]
    render.table(("output", "type", "shape", "min", "max", "mean", "NaN"), rows, right=(3, 4, 5, 6), whole=(1, 2))
    if report.predictions:
        _show_predictions(report.predictions)
    if report.comparison is not None:
        _show_comparison(report.comparison)


def _show_predictions(predictions: Sequence[Prediction]) -> None:
    """A table of classes; the position of each where there is more than one."""
    positions = list(dict.fromkeys((p.output, p.position) for p in predictions))
    shown = set(positions[:_POSITIONS_SHOWN])
    many, labelled = len(positions) > 1, any(p.label for p in predictions)
    headers = [*(("output",) if many else ()), "rank", "class", *(("label",) if labelled else ()), "score"]
    rows = [
        [
            *((p.output + render.sizes(p.position),) if many else ()),
            p.rank,
            p.index,
            *((p.label,) if labelled else ()),
            p.score,
        ]
        for p in predictions
        if (p.output, p.position) in shown
    ]
    render.line()
    render.table(headers, rows, right=(many, many + 1, len(headers) - 1))
    if len(positions) > len(shown):
        render.line(f"{len(positions) - len(shown)} more positions, which --json lists")


def _show_comparison(comparison: Assertion) -> None:
    render.line()
    rows = [(a.name, "agrees" if a.agrees else "differs", a.largest, a.message) for a in comparison.agreements]
    render.table(("compared", "", "largest difference", ""), rows, right=(2,), whole=(1,), sentences=(3,))
    for where, names in (("reference", comparison.only_in_reference), ("results", comparison.only_in_results)):
        if names:
            more = ", which --json lists" if len(names) > _NAMES_SHOWN else ""
            render.line(f"only in the {where}: {listed(names, _NAMES_SHOWN)}{more}")
