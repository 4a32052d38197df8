"""A job from Python: the model, the sources and the output as arguments."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from irexec.errors import InputError
from irexec.tools.batch.parts import FORMATS, BatchJob, Format
from irexec.tools.batch.predictor import PredictorOptions
from irexec.tools.batch.run import BatchOptions, BatchReport, BatchWatch, ErrorMode
from irexec.tools.batch.run import batch as run_job
from irexec.tools.images import ImageOptions


def batch(
    model: str | os.PathLike[str],
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    topk: int | None = None,
    labels: Sequence[str] | None = None,
    class_axis: int | None = None,
    softmax: bool = False,
    image: ImageOptions | None = None,
    batch_size: int | None = None,
    column: str | None = None,
    format: Format | None = None,
    jobs: int | None = None,
    resume: bool = False,
    restart: bool = False,
    errors: ErrorMode = "skip",
    limit: int | None = None,
    shuffle_seed: int | None = None,
    options: PredictorOptions | None = None,
    watch: BatchWatch | None = None,
) -> BatchReport:
    """Run a model over many items, in several processes.

    Results are in the order of the items, whatever the number of processes. ``OUTPUT.sqlite`` records the progress, so
    that a job can be resumed after any interruption. A script calls this function under
    ``if __name__ == "__main__":``, and is a file: each process imports it.

    Args:
        model: the path of an .xml or .onnx.
        sources: images, folders of images, .npy, .npz or .parquet files, or patterns such as ``"frames/**/*.png"``.
        output: a file that ends in .npz, .npy, .parquet, .jsonl or .csv; any other path is a folder with one file for
            each part.
        topk: the number of most probable classes to write for each result, in place of its values.
        labels: the names of the classes.
        class_axis: the axis of the classes.
        softmax: whether the scores of the classes are softmax of the values.
        image: how images become inputs.
        batch_size: the number of items of a run, where the model accepts any number.
        column: the column of a .parquet file with the items; by default its only column.
        format: the format of the files in a folder; "npz" by default.
        jobs: the number of processes; by default one for each core.
        resume: continue the job that writes this output.
        restart: delete what an earlier job has written to this output, and start anew.
        errors: "skip" items that cannot be read or run, or "stop" at the first.
        limit: the maximum number of items.
        shuffle_seed: shuffle the items.
        options: how the model is read and run.
        watch: receives progress.

    Raises:
        InputError: an argument does not fit, or the output exists.
        ModelError, NodeError, UnsupportedError: the model or a file cannot be read, or the output cannot be written.
    """
    names = [sources] if isinstance(sources, str | os.PathLike) else list(sources)
    job = BatchJob(
        model=os.fspath(model),
        predictor=options or PredictorOptions(),
        image=image or ImageOptions(),
        batch_size=batch_size,
        column=column,
        form=format_of(os.fspath(output), format),
        topk=topk,
        class_axis=class_axis,
        labels=None if labels is None else tuple(labels),
        softmax=softmax,
    )
    request = BatchOptions(
        output=os.fspath(output),
        jobs=jobs,
        resume=resume,
        restart=restart,
        errors=errors,
        limit=limit,
        shuffle_seed=shuffle_seed,
    )
    return run_job([os.fspath(name) for name in names], job, request, watch)


def format_of(output: str, given: Format | None) -> Format:
    """The format of an output: that of its suffix, or for a folder the one that is given.

    Raises:
        InputError: the suffix is that of another format.
    """
    suffix = Path(output).suffix[1:]
    named = next((form for form in FORMATS if form == suffix), None)
    if named and given and named != given:
        raise InputError(f"--format {given} is for a folder, and -o {output} ends in .{named}")
    return named or given or "npz"
