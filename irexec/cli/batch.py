"""irexec batch"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import click

from irexec.cli import render
from irexec.cli.image_options import image_from, image_options
from irexec.cli.limit_options import max_memory_option
from irexec.cli.paths import FilePath
from irexec.cli.precision_option import precision_option
from irexec.cli.progress import progress_bar
from irexec.cli.shape_option import METAVAR, ShapeOptions, ShapeType, shapes_by_input
from irexec.cli.usage import refuse_without
from irexec.cli.weights_option import no_mmap
from irexec.tools.batch.batch import format_of
from irexec.tools.batch.job import FORMATS, Job
from irexec.tools.batch.pool import Processes
from irexec.tools.batch.predictor import PredictorOptions
from irexec.tools.batch.run import BatchOptions, BatchReport, MakeEngine, PartDone, Watch
from irexec.tools.batch.run import batch as run_job
from irexec.tools.run.results import read_labels

_FAILURES_SHOWN = 20


@click.command()
@click.argument("model", type=FilePath())
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True, type=FilePath())
@click.option(
    "-o", "--output", required=True, type=FilePath(), help="A new .npz, .npy, .parquet or .jsonl, or a new folder/."
)
@click.option("--format", "form", type=click.Choice(FORMATS), help="Of the files in a folder; default: npz.")
@click.option(
    "--jobs", type=click.IntRange(1, 4096), help="How many processes; default: as many as there are cores to run on."
)
@click.option(
    "--engine",
    type=click.Choice(["local", "ray"]),
    default="local",
    show_default=True,
    help="Processes here, or of a Ray cluster.",
)
@click.option("--address", help="The Ray cluster: auto, or HOST:PORT of its head; default: one that is started here.")
@click.option(
    "--batch-size", type=click.IntRange(1), help="Items of a run, where the model takes any number; default: 8."
)
@click.option("--rebatch", is_flag=True, help="Let a model of a fixed batch take any number of items.")
@click.option("--resume", is_flag=True, help="Go on with the job that writes this output, if it was begun.")
@click.option(
    "--errors",
    type=click.Choice(["skip", "stop"]),
    default="skip",
    show_default=True,
    help="After an item that cannot be read or run.",
)
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the first N items.")
@click.option(
    "--shuffle-seed", type=click.IntRange(0), metavar="SEED", help="Take the items in a random order, before --limit."
)
@click.option("--column", help="The column of a .parquet that has the items; default: the only one.")
@click.option(
    "--tensor", "tensors", multiple=True, metavar="NAME", help="Give this tensor, not the results; may be repeated."
)
@click.option(
    "--topk",
    type=click.IntRange(1),
    metavar="K",
    help="Give the K most probable classes of each result, not its values.",
)
@click.option("--axis", "class_axis", type=int, help="The axis of the classes for --topk, of a result of all items.")
@click.option("--labels", type=FilePath(), help="Names of the classes of --topk, one per line.")
@image_options
@click.option(
    "--shape",
    "shapes",
    multiple=True,
    type=ShapeType(),
    metavar=METAVAR,
    help="Give an input this shape; may be repeated.",
)
@click.option("--bin", type=FilePath(), help="The weights, if not beside the model under the same name.")
@no_mmap
@click.option(
    "--weights",
    type=click.Choice(["auto", "packed", "unpacked"]),
    default="auto",
    show_default=True,
    help="As for irexec infer.",
)
@precision_option()
@max_memory_option("How much memory each process may hold, such as 2G; default: all that is left.")
@click.option(
    "--json", "as_json", is_flag=True, help="A line of versioned JSON for each part that is done, and one in the end."
)
def batch(model: str, sources: tuple[str, ...], shapes: tuple[ShapeOptions, ...], as_json: bool, **options: Any) -> int:
    """Run MODEL (an .xml or .onnx) over all items of each SOURCE.

    \b
    irexec batch model.xml photos/ -o classes.jsonl --topk 5 --labels names.txt
    irexec batch model.xml 'frames/**/*.png' -o features.npz --tensor pool5
    irexec batch model.xml inputs.npy -o results/ --format npy --jobs 4
    irexec batch model.xml photos/ -o classes.jsonl --topk 5 --resume

    A SOURCE is an image, a .npy or .npz (items along the first axis), a .parquet (an item in each row), a .txt with a path in each
    line, a folder, or a pattern. Results are in the order of the items, the same for any number of processes.

    What is done is remembered in OUTPUT.sqlite: after any end --resume goes on, and the result is that of a run without an end.
    Exit code 1 if an item failed.
    """
    if not options["topk"]:
        refuse_without("topk", "labels", "class_axis")
    labels = options.pop("labels")
    names = ("bin", "rebatch", "tensors", "weights", "precision", "max_memory", "mmap")
    predictor = PredictorOptions(
        shapes=shapes_by_input(shapes, "--shape"), **{name: options.pop(name) for name in names}
    )
    job = Job(
        model=model,
        predictor=predictor,
        image=image_from(options),
        form=format_of(options["output"], options.pop("form")),
        labels=tuple(read_labels(labels)) if labels else None,
        **{name: options.pop(name) for name in ("batch_size", "column", "topk", "class_axis")},
    )
    engine = _engine(options.pop("engine"), options.pop("address"))
    request = BatchOptions(**options)
    with _watched(as_json) as watch:
        report = run_job(sources, job, request, watch, engine)
    if as_json:
        render.json_line({"event": "end", **asdict(report)})
    else:
        _show(report)
    return 1 if report.failed else 0


def _engine(name: str, address: str | None) -> MakeEngine:
    """What makes the engine of a job."""
    if name == "local":
        if address is not None:
            raise click.UsageError("--address is for --engine ray, which is not given")
        return Processes
    # Ray takes seconds to import.
    from irexec.integrations.ray_data import RayActors, load_ray

    load_ray()
    return lambda job, count: RayActors(job, count, address)


@contextmanager
def _watched(as_json: bool) -> Iterator[Watch]:
    """What shows the progress: a bar, a line for each item that failed, and with --json a line for each part."""
    with progress_bar("running", 0, "items") as advance:
        shown = [0, 0]

        def progress(done: int, total: int) -> None:
            advance(done - shown[0], total=total)
            shown[0] = max(done, shown[0])

        def part(done: PartDone) -> None:
            for name, reason in done.failures:
                if shown[1] < _FAILURES_SHOWN or as_json:
                    render.error_line(f"{name}: {reason}" if name not in reason else reason)
                shown[1] += 1
            if as_json:
                render.json_line({"event": "part", **asdict(done)})

        yield Watch(part, progress, render.note_line)
        if shown[1] > _FAILURES_SHOWN and not as_json:
            render.remark(f"{shown[1] - _FAILURES_SHOWN} more items failed, which the manifest lists")


def _show(report: BatchReport) -> None:
    before = f", {report.resumed} of them before" if report.resumed else ""
    failed = f", {report.failed} failed" if report.failed else ""
    waiting = f", {report.waiting} are waiting (--resume goes on)" if report.waiting else ""
    render.line(f"{report.output}: {report.done} of {report.items} items{before}{failed}{waiting}")
