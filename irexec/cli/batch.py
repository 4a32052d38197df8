"""irexec batch"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import click

from irexec.cli import render
from irexec.cli.option_groups import OptionGroup, command, flag, option, refuse_without
from irexec.cli.options import LIMITS, SHAPES, WEIGHTS, InputOptions
from irexec.cli.render import progress_bar
from irexec.cli.run_options import COMPUTE, IMAGE
from irexec.cli.values import FilePath
from irexec.tools.batch.parts import FORMATS, BatchJob
from irexec.tools.batch.predictor import PredictorOptions
from irexec.tools.batch.run import BatchOptions, BatchWatch, MakeEngine, PartDone, format_of
from irexec.tools.batch.run import run_job as run_job
from irexec.tools.images import ImageOptions
from irexec.tools.run.results import read_labels

_FAILURES_SHOWN = 20


_JOB = OptionGroup(
    "Items and output",
    BatchOptions,
    {
        "output": option(
            "-o",
            "--output",
            "A new .npz, .npy, .parquet, .jsonl or .csv, or a new folder/.",
            required=True,
            type=FilePath(),
        ),
        "resume": flag("Resume the job that writes this output, if it was started."),
        "restart": flag("Delete what an earlier job has written to this output, and start anew."),
        "errors": option("After an item that cannot be read or run.", choices=["skip", "stop"]),
        "limit": option("Only the first N items.", type=click.IntRange(1), metavar="N"),
        "shuffle_seed": option(
            "Take the items in a random order, before --limit.", type=click.IntRange(0), metavar="SEED"
        ),
        "jobs": option("Number of processes; default: number of available cores.", type=click.IntRange(1, 4096)),
    },
)


def _engine(engine: str, address: str | None) -> MakeEngine:
    """The constructor of the engine of a job."""
    if engine == "local":
        refuse_without("engine ray", "address")
        # Not before: it needs processes, which a Python without sqlite3 may not have either.
        from irexec.tools.batch.pool import Processes

        return Processes
    # Ray takes seconds to import.
    from irexec.integrations.ray_data import RayActors, load_ray

    load_ray()
    return lambda job, count: RayActors(job, count, address)


_ENGINE = OptionGroup(
    "Items and output",
    _engine,
    {
        "engine": option("Processes here, or of a Ray cluster.", choices=["local", "ray"], default="local"),
        "address": option("The Ray cluster: auto, or HOST:PORT of its head; default: a new one on this machine."),
    },
)


def _results(labels: str | None, **values: Any) -> dict[str, Any]:
    """The arguments of BatchJob about the results of the items."""
    if not values["topk"]:
        refuse_without("topk", "labels", "class_axis", "softmax")
    return {**values, "labels": tuple(read_labels(labels)) if labels else None}


_RESULTS = OptionGroup(
    "Results",
    _results,
    {
        "form": option("--format", "Of the files in a folder; default: npz.", choices=FORMATS),
        "column": option("The column of a .parquet that has the items; default: the only one."),
        "batch_size": option("Items of a run, if the model takes any number; default: 8.", type=click.IntRange(1)),
        "topk": option(
            "Write the K classes with the largest scores of each result instead of its values.",
            type=click.IntRange(1),
            metavar="K",
        ),
        "class_axis": option("--axis", "The axis of the classes for --topk, of a result of all items.", type=int),
        "softmax": flag("For --topk: scores are softmax of the values, for results that are logits."),
        "labels": option("Names of the classes of --topk, one per line.", type=FilePath()),
    },
)
_PREDICTOR = OptionGroup(
    "Computation",
    PredictorOptions,
    {
        "tensors": option(
            "--tensor", "Write this tensor instead of the results; may be repeated.", multiple=True, metavar="NAME"
        ),
        "rebatch": flag("Let a model of a fixed batch take any number of items."),
        "weights": option("As for irexec infer.", choices=["auto", "packed", "unpacked"]),
        "bin": WEIGHTS.options["weights"],
        "mmap": WEIGHTS.options["mmap"],
        "precision": COMPUTE.options["precision"],
        "max_memory": LIMITS.options["max_memory"],
    },
)


@command()
@click.argument("model", type=FilePath())
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True, type=FilePath())
@_JOB("request")
@_ENGINE("engine")
@_RESULTS("results")
@SHAPES("inputs")
@IMAGE("image")
@_PREDICTOR("predictor", max_memory="Memory that each process may use, such as 2G; default: all available.")
@flag("--json", "as_json", "A line of versioned JSON for each part that is done, and one at the end.")
def batch(
    model: str,
    sources: tuple[str, ...],
    request: BatchOptions,
    engine: MakeEngine,
    results: dict[str, Any],
    inputs: InputOptions,
    image: ImageOptions,
    predictor: PredictorOptions,
    as_json: bool,
) -> int:
    """Run MODEL (an .xml or .onnx) over all items of each SOURCE.

    \b
    irexec batch model.xml photos/ -o classes.jsonl --topk 5 --labels names.txt
    irexec batch model.xml 'frames/**/*.png' -o features.npz --tensor pool5
    irexec batch model.xml inputs.npy -o results/ --format npy --jobs 4
    irexec batch model.xml photos/ -o classes.jsonl --topk 5 --resume

    A SOURCE is an image, a .npy or .npz (items along the first axis), a .parquet (an item in each row), a .txt with a
    path in each line, a folder, or a pattern. Results are in the order of the items, the same for any number of
    processes.

    OUTPUT.sqlite records what is done: after any interruption --resume continues the job, and the result is that of an
    uninterrupted one. Exit code 1 if an item failed.
    """
    results["form"] = format_of(request.output, results["form"])
    job = BatchJob(model=model, predictor=replace(predictor, shapes=inputs.shapes), image=image, **results)
    with _watched(as_json) as watch:
        report = run_job(sources, job, request, watch, engine)
    if as_json:
        render.json_line({"event": "end", **report.as_dict()})
    else:
        render.show(report.sections())
    return 1 if report.failed else 0


@contextmanager
def _watched(as_json: bool) -> Iterator[BatchWatch]:
    """The display of progress: a bar, a line for each failed item, and with --json a line for each part."""
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
                render.json_line({"event": "part", **done.as_dict()})

        yield BatchWatch(part, progress, render.note_line)
        if shown[1] > _FAILURES_SHOWN and not as_json:
            render.remark(f"{shown[1] - _FAILURES_SHOWN} more items failed, which the manifest lists")
