"""A job from its sources to its output: begun, or resumed after any interruption."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Protocol

from irexec.api import save_model
from irexec.display import Content, Text
from irexec.errors import InputError
from irexec.io.onnx_bytes import is_onnx_file
from irexec.io.reading import writing
from irexec.messages import counted, is_address, silent
from irexec.records import Record, Report
from irexec.tools.batch.items import MANIFEST, PARTS, Items, find_items
from irexec.tools.batch.manifest import Manifest, assemble
from irexec.tools.batch.parts import FORMATS, BatchJob, Format, PartResult, PartTask, difference, model_hash
from irexec.tools.batch.pool import Processes
from irexec.tools.batch.predictor import Described, PredictorOptions, described
from irexec.tools.images import ImageOptions, load_pillow

_PARTS, _LARGEST_PART = 64, 256
"""Approximate number of parts of a job, so that processes end at about the same time, and maximum number of items in a
part, unless a batch has more."""

ErrorMode = Literal["skip", "stop"]


@dataclass(frozen=True, kw_only=True)
class BatchOptions:
    """Options of a job: its output and its processes.

    Attributes:
        output: a file that ends in .npz, .npy, .parquet, .jsonl or .csv, or a folder for a file of each part.
        jobs: number of processes; None for the number of usable cores.
        resume: continue a started job, or start a new one.
        restart: delete the output of an earlier job, and start anew.
        errors: "skip" items that cannot be read or run, or "stop" after the first.
        limit, shuffle_seed: as for find_items.
    """

    output: str
    jobs: int | None = None
    resume: bool = False
    restart: bool = False
    errors: ErrorMode = "skip"
    limit: int | None = None
    shuffle_seed: int | None = None


@dataclass(frozen=True)
class PartDone(Record):
    """A finished part of a job.

    Attributes:
        number: number of the part.
        items: number of its items.
        failures: name and reason of each item that failed.
        done, total: items of the job with a result or an error, and all of them.
    """

    number: int
    items: int
    failures: tuple[tuple[str, str], ...]
    done: int
    total: int


@dataclass(frozen=True)
class BatchReport(Report):
    """Outcome of a job.

    Attributes:
        output, manifest: the paths.
        items: number of items.
        done, failed, waiting: number of items with a result, with an error, and with neither.
        resumed: number of items with a result or an error from before.
        batch_size: number of items of a run.
    """

    output: str
    manifest: str
    items: int
    done: int
    failed: int
    waiting: int
    resumed: int
    batch_size: int

    def sections(self) -> list[Content]:
        """The number of items with a result, and of those without."""
        before = f", {self.resumed} of them before" if self.resumed else ""
        failed = f", {self.failed} failed" if self.failed else ""
        waiting = f", {self.waiting} are waiting (--resume continues)" if self.waiting else ""
        return [Text(f"{self.output}: {self.done} of {self.items} items{before}{failed}{waiting}", "title")]


@dataclass(frozen=True)
class BatchWatch:
    """Callbacks of a job.

    Attributes:
        part: receives each finished part.
        progress: receives the number of items with a result or an error, and the number of all items.
        note: receives notes for the user.
    """

    part: Callable[[PartDone], None] = silent
    progress: Callable[[int, int], None] = silent
    note: Callable[[str], None] = silent


class Engine(Protocol):
    """An executor of the parts of a job.

    Attributes:
        count: maximum number of processes.
    """

    count: int

    def run(self, tasks: Iterator[PartTask], advance: Callable[[int], None]) -> Generator[PartResult, None, None]:
        """Do the tasks, and yield each result as soon as it is ready.

        ``advance`` receives the number of items that running parts have finished.
        """


MakeEngine = Callable[[BatchJob, int | None], Engine]
"""Creates the engine of a job with a number of processes, None for the default."""


def run_job(
    sources: Sequence[str],
    job: BatchJob,
    options: BatchOptions,
    watch: BatchWatch | None = None,
    engine: MakeEngine = Processes,
) -> BatchReport:
    """Run a model over all items of the sources.

    The results are in the order of the items, and the same for any number of processes and interruptions. The manifest,
    ``OUTPUT.sqlite``, records the progress.

    Args:
        sources: as for find_items.
        job, options: the work to do.
        watch: takes what happens.
        engine: makes what does the parts, of the job and the number of processes: those of this machine unless given.

    Raises:
        InputError: a source, an option or the output does not fit, or a job that is resumed was another.
        ModelError, NodeError, UnsupportedError: the model or a file cannot be read, or the output not be written.
    """
    watch = watch or BatchWatch()
    output = BatchOutput(options.output, job)
    items = find_items(
        sources, limit=options.limit, shuffle_seed=options.shuffle_seed, column=job.column, exclude=output.paths,
        note=watch.note,
    )  # fmt: skip
    if not len(items):
        raise InputError(f"{', '.join(sources)}: there are no items")
    # Elsewhere the nodes of a cluster read the images.
    if engine is Processes and items.has_images:
        load_pillow()
    model = described(job.model, job.predictor)
    if not model.batching.is_divisible:
        watch.note("the model gives results that cannot be cut into those of several items, so that each run takes one")
    if options.resume and options.restart:
        raise InputError("--resume and --restart contradict each other")
    if options.restart:
        output.discard()
    with output.open(options.resume) as manifest:
        part_size = _begun(manifest, items, job, model, options)
        run = _Run(items, part_size, output, manifest, watch)
        resumed = run.done
        if run.pending:
            run.do(engine(replace(job, model=output.shared_model(model)), options.jobs), options.errors)
        counts = manifest.counts()
        if not counts.get("waiting"):
            output.complete(-(-len(items) // part_size))
    return BatchReport(
        options.output, str(output.manifest), len(items),
        counts.get("done", 0), counts.get("failed", 0), counts.get("waiting", 0),
        resumed, model.batching.size(job.batch_size),
    )  # fmt: skip


def _begun(manifest: Manifest, items: Items, job: BatchJob, model: Described, options: BatchOptions) -> int:
    """Begin the job, or check that it is the one that was begun; returns the items of a part."""
    description = job.described() | {"model": model_hash(job.model, job.predictor.bin)}
    if manifest.is_empty:
        # A multiple of the batch size, so that all batches but the last are full.
        batch_size = model.batching.size(job.batch_size)
        wanted = min(_LARGEST_PART, -(-len(items) // _PARTS))
        part_size = max(1, -(-wanted // batch_size)) * batch_size
        manifest.begin(description, items, part_size)
        return part_size
    before = manifest.description()
    others = sorted(manifest.options() ^ description.keys())
    if others:
        raise InputError(
            f"{manifest.path}: was written by another version of irexec, with other options ({', '.join(others)}): "
            "name another output"
        )
    differs = difference(before, description) or manifest.same_items(items)
    if differs:
        raise InputError(f"{options.output} was begun as another job: {differs}; name another output")
    return manifest.part_size()


class BatchOutput:
    """Where the results go: the folder of parts, the file that they become, and the manifest.

    Attributes:
        folder: of the parts.
        file: the joined file of all parts; None if the folder is the output.
        manifest: the file of the manifest.
        paths: written files that could be mistaken for items.
    """

    def __init__(self, output: str, job: BatchJob) -> None:
        path = Path(output)
        if is_address(output):
            raise InputError(
                f"-o {output} is an address: results are written to a local file, which other programs copy"
            )
        if path.name in ("", ".."):
            raise InputError(
                f"-o {output!r} does not end in the name of a file or folder, beside which the manifest is written"
            )
        is_file = path.suffix[1:] in FORMATS
        if is_file and path.suffix[1:] != job.form:
            raise InputError(f"-o {path} ends in {path.suffix}, and --format is {job.form}")
        if not is_file and path.suffix and not path.is_dir() and not output.endswith(("/", os.sep)):
            forms = ", ".join(f".{form}" for form in FORMATS)
            raise InputError(
                f"-o {output}: {path.suffix} is none of {forms}; for a folder of this name write {output}/"
            )
        self._path, self._form = path, job.form
        self.file = path if is_file else None
        self._model, self._converted = job.model, path.with_name(f"{path.name}.model")
        self.folder = path.with_name(f"{path.name}{PARTS}") if is_file else path
        self.manifest = path.with_name(f"{path.name}{MANIFEST}")
        self.paths = (path, self.folder)

    @contextmanager
    def open(self, resume: bool) -> Iterator[Manifest]:
        """The manifest, with the folder made. A new job that an error ends before a part is done leaves neither.

        Raises:
            InputError: the output exists, and is not a job to resume.
            ModelError: nothing can be written there.
        """
        if self.manifest.exists():
            if not resume:
                raise InputError(self._started())
        elif self._is_taken():
            missing = f", and there is no {self.manifest} from which it could be resumed: name another"
            raise InputError(f"-o {self._path} exists{missing if resume else ': name another output'}")
        was_there = self.folder.exists()
        manifest = self._made()
        with closing(manifest):
            is_new = manifest.is_empty
            try:
                yield manifest
            except BaseException:
                if is_new and (manifest.is_empty or not manifest.finished()):
                    manifest.close()
                    # Delete what open() and the parts under way have made; ``was_there`` is an empty folder of the
                    # user's.
                    for made in [*(self.folder.iterdir() if was_there else [self.folder]), self._converted]:
                        shutil.rmtree(made, ignore_errors=True) if made.is_dir() else made.unlink(missing_ok=True)
                    self._delete_manifest()
                raise

    def _started(self) -> str:
        """The sentence about the job whose manifest exists; raises InputError as ``Manifest``."""
        with closing(Manifest(self.manifest)) as manifest:
            counts = {} if manifest.is_empty else manifest.counts()
        total = sum(counts.values())
        done = total - counts.get("waiting", 0)
        if total and done == total:
            return (
                f"-o {self._path} is the output of a complete job ({counted(total, 'item')}): "
                "--restart replaces it, or name another"
            )
        return (
            f"a job that writes {self._path} was started ({done:,} of {counted(total, 'item')} done): "
            "--resume continues it, --restart starts anew"
        )

    def discard(self) -> None:
        """Delete the output of an earlier job and its manifest. Files of others in a folder stay.

        Raises:
            InputError: the output was not written by a job, or another process writes it.
        """
        if not self.manifest.exists():
            if self._is_taken():
                raise InputError(f"-o {self._path} exists and has no manifest {self.manifest}: name another output")
            return
        Manifest(self.manifest).close()
        if self.file is None:
            for part in self.folder.glob(f"part-[0-9]*.{self._form}"):
                part.unlink()
        else:
            self.file.unlink(missing_ok=True)
            shutil.rmtree(self.folder, ignore_errors=True)
        shutil.rmtree(self._converted, ignore_errors=True)
        self._delete_manifest()

    def _is_taken(self) -> bool:
        """True if the output exists, and is not an empty folder."""
        path = self._path
        return os.path.lexists(path) and not (path.is_dir() and not any(path.iterdir()))

    def _delete_manifest(self) -> None:
        for end in ("", "-wal", "-shm"):
            Path(f"{self.manifest}{end}").unlink(missing_ok=True)

    def _made(self) -> Manifest:
        with writing(self.folder):
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            manifest = Manifest(self.manifest)
            if not self.is_complete:
                self.folder.mkdir(exist_ok=True)
        return manifest

    def part(self, number: int) -> Path:
        """The file of a part."""
        return self.folder / f"part-{number:06d}.{self._form}"

    @property
    def is_complete(self) -> bool:
        """Whether the parts have become one file."""
        return self.file is not None and self.file.exists()

    def complete(self, parts: int) -> None:
        """Make the one file of all parts, and delete them."""
        shutil.rmtree(self._converted, ignore_errors=True)
        if self.file is None:
            return
        if not self.is_complete:
            assemble(self.file, [self.part(number) for number in range(parts)], self._form)
        shutil.rmtree(self.folder, ignore_errors=True)

    def shared_model(self, model: Described) -> str:
        """The model that processes read: an IR, since processes share mapped weights.

        An ONNX model is written as IR.
        """
        if not is_onnx_file(self._model):
            return self._model
        self._converted.mkdir(exist_ok=True)
        save_model(model.model, self._converted / "model.xml")
        return str(self._converted / "model.xml")


class _Run:
    """The unfinished parts of a job, and their results.

    Attributes:
        done: number of items with a result or an error.
        pending: the numbers of the parts to do.
    """

    def __init__(
        self, items: Items, part_size: int, output: BatchOutput, manifest: Manifest, watch: BatchWatch
    ) -> None:
        self._items, self._size, self._output, self._manifest, self._watch = items, part_size, output, manifest, watch
        numbers = range(-(-len(items) // part_size))
        finished = manifest.finished() & {*numbers}
        # A part whose file was deleted is done again.
        missing = set() if output.is_complete else {number for number in finished if not output.part(number).exists()}
        if missing:
            manifest.forget(missing)
            finished -= missing
        self.done = sum(min(part_size, len(items) - number * part_size) for number in finished)
        self.pending = [number for number in numbers if number not in finished]
        self._noted = False

    def do(self, engine: Engine, errors: str) -> None:
        """Do the parts."""
        tasks, total = map(self._task, self.pending), len(self._items)
        self._watch.progress(self.done, total)
        results = engine.run(tasks, lambda more: self._watch.progress(min(self.done + more, total), total))
        with closing(results):
            for result in results:
                if self._keep(result) and errors == "stop":
                    return

    def _task(self, number: int) -> PartTask:
        start, stop = number * self._size, min((number + 1) * self._size, len(self._items))
        return PartTask(number, self._output.part(number), tuple(self._items[i] for i in range(start, stop)))

    def _keep(self, result: PartResult) -> bool:
        """Remember a part that is done; returns whether an item of it failed."""
        first = result.number * self._size
        self._manifest.keep(result, first)
        self.done += len(result.rows)
        if result.note and not self._noted:
            self._noted = True
            self._watch.note(f"{result.note} (said of the first item only)")
        failures = tuple(
            (self._items[first + i].name, error) for i, error in enumerate(result.errors) if error is not None
        )
        self._watch.part(PartDone(result.number, len(result.rows), failures, self.done, len(self._items)))
        return bool(failures)


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
