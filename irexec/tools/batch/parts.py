"""Parts of a batch: jobs, their readers and files.

What is written depends on the items and the job alone, not on which process does it, or when: a part that is done again
gives the same bytes.

.npz: ``item`` has the names of the items with results, and each result is an array whose axis 0 is that of ``item``;
where results differ in shape, the result of row 3 is ``NAME/3``. .npy: the only result, without names. .parquet, .jsonl
and .csv: a row or line for each item; a failed item has the reason as ``error``.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
from collections.abc import Iterable, Iterator, Mapping, MutableSequence, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np

from irexec.compile.memory_limit import MemoryLimit
from irexec.errors import InputError, IrexecError
from irexec.io.files import new_file
from irexec.io.onnx_bytes import is_onnx_file
from irexec.ir.dims import shape_text
from irexec.tools.arrays.files import storable, write_npz
from irexec.tools.batch.items import Item, ItemReader, load_pyarrow
from irexec.tools.batch.predictor import Predictor, PredictorOptions
from irexec.tools.images import ImageOptions
from irexec.tools.run.results import has_classes, ranking

Format = Literal["npz", "npy", "parquet", "jsonl", "csv"]
FORMATS: tuple[Format, ...] = ("npz", "npy", "parquet", "jsonl", "csv")
_CHUNK = 16 << 20


@dataclass(frozen=True, kw_only=True)
class BatchJob:
    """A description that is the same for every process of a job, and each time the job is resumed.

    Attributes:
        model: the path of the .xml or .onnx.
        predictor: how it is read and run.
        image: how images become inputs.
        batch_size: items of a run, unless the model fixes the number.
        column: the column of tables with the items.
        form: form of the output.
        topk: number of classes that replace the values of each result, along ``class_axis``.
        softmax: whether the scores of these classes are softmax of the values.
        labels: the names of the classes, if any.
    """

    model: str
    predictor: PredictorOptions = field(default_factory=PredictorOptions)
    image: ImageOptions = field(default_factory=ImageOptions)
    batch_size: int | None = None
    column: str | None = None
    form: Format = "npz"
    topk: int | None = None
    class_axis: int | None = None
    labels: tuple[str, ...] | None = None
    softmax: bool = False

    def described(self) -> dict[str, str]:
        """Texts of all options that determine the output; they are compared when the job is resumed."""
        # The first four do not change the results, and shapes are compared as texts.
        others = ("max_memory", "mmap", "threads", "bin", "shapes")
        options = {name: value for name, value in asdict(self.predictor).items() if name not in others} | {
            "image": asdict(self.image),
            "batch_size": self.batch_size,
            "column": self.column,
            "format": self.form,
            "topk": self.topk,
            "class_axis": self.class_axis,
            "softmax": self.softmax,
            "labels": None if self.labels is None else hashlib.sha256("\n".join(self.labels).encode()).hexdigest(),
            "shapes": {str(name): shape_text(shape) for name, shape in (self.predictor.shapes or {}).items()},
        }
        return {name: json.dumps(value, sort_keys=True, default=str) for name, value in options.items()}


def model_hash(path: str, bin: str | None) -> str:
    """SHA-256 of the files of a model.

    Raises:
        InputError: a file cannot be read.
    """
    found = hashlib.sha256()
    weights = Path(bin) if bin else Path(path).with_suffix(".bin")
    for file in [Path(path), *([weights] if weights.is_file() and not is_onnx_file(path) else [])]:
        try:
            with open(file, "rb") as opened:
                while chunk := opened.read(_CHUNK):
                    found.update(chunk)
        except OSError as error:
            raise InputError(f"{file}: cannot be read: {error.strerror or error}") from None
    return found.hexdigest()


def difference(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    """Differences between the texts of two jobs; "" without any."""
    names = [name for name in now if before.get(name) != now[name]]
    return "; ".join(f"{name} was {before.get(name)}, and is {now[name]}" for name in names)


def plain(value: Any) -> Any:
    """An array or value for JSON: NaN is null, infinities are texts."""
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, float) and not abs(value) < float("inf"):
        return None if value != value else "inf" if value > 0 else "-inf"
    return value


Arrays = Mapping[str, np.ndarray]
Shapes = tuple[tuple[str, tuple[int, ...], str], ...]


@dataclass(frozen=True)
class PartTask:
    """A part that is to be done.

    Attributes:
        number: of the part, from 0.
        file: the file to write.
        items: of the part.
        singly: the numbers of batches whose items are run one by one, since a process died of one of them.
        skipped: positions of items that are not run, with the reason.
    """

    number: int
    file: Path
    items: tuple[Item, ...]
    singly: frozenset[int] = frozenset()
    skipped: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PartResult:
    """A part that is done.

    Attributes:
        number: of the part.
        rows: for each item its row in the file, or None.
        errors: for each item the reason for which it has none, or None.
        note: the first that reading the items gave; "" if none.
        is_flushed: whether the file is on the disk, whatever happens to the machine.
    """

    number: int
    rows: tuple[int | None, ...]
    errors: tuple[str | None, ...]
    note: str = ""
    is_flushed: bool = True


DONE, BATCH, POSITION = range(3)
"""Indices of the numbers of a process: finished items of its part, the batch under way, and the position of the item
under way by itself; -1 for none of the last two."""
NOTHING_DONE = (0, -1, -1)


class PartRunner:
    """Does parts of a job in one process.

    Args:
        job: the job of the parts.
        progress: receives the numbers of DONE, BATCH and POSITION; another process may share them.
        flushes: whether each file is flushed to the disk, which takes as long as some items of most models.
    """

    def __init__(self, job: BatchJob, progress: MutableSequence[int] | None = None, *, flushes: bool = True) -> None:
        self._job, self._flushes = job, flushes
        self._progress = list(NOTHING_DONE) if progress is None else progress
        self._predictor = Predictor(job.model, job.predictor).load()
        self._reader = ItemReader(self._predictor, job.image, job.column, MemoryLimit(job.predictor.max_memory))

    def __call__(self, task: PartTask) -> PartResult:
        """Read, run and write a part.

        Raises:
            ModelError: the file cannot be written.
        """
        notes: list[str] = []
        self._reader.notify = notes.append
        rows: list[ItemRow] = [ItemRow(item.name) for item in task.items]
        for number, positions, arrays in self._batches(task, rows):
            self._progress[BATCH] = number
            self._run(task, rows, number, positions, arrays)
            self._progress[BATCH] = -1
        self._reader.close()
        written = write_part(task.file, rows, self._job.form, self._flushes)
        return PartResult(
            task.number, tuple(written), tuple(row.error for row in rows), notes[0] if notes else "", self._flushes
        )

    def _batches(self, task: PartTask, rows: list[ItemRow]) -> Iterator[tuple[int, list[int], list[Arrays]]]:
        """The items in batches of the same shapes: number, positions and arrays of each batch.

        An item that cannot be read is an error of its row.
        """
        size, number = self._predictor.batching.size(self._job.batch_size), 0
        waiting: dict[Shapes, tuple[list[int], list[Arrays]]] = {}
        for position, item in enumerate(task.items):
            if position in task.skipped:
                self._fail(rows[position], task.skipped[position])
                continue
            try:
                arrays = self._reader.read(item)
            except IrexecError as error:
                self._fail(rows[position], str(error))
                continue
            key = tuple((name, array.shape, array.dtype.str) for name, array in arrays.items())
            positions, group = waiting.setdefault(key, ([], []))
            positions.append(position)
            group.append(arrays)
            if len(positions) == size:
                yield number, *waiting.pop(key)
                number += 1
        for rest, (positions, group) in enumerate(waiting.values(), number):
            yield rest, positions, group

    def _run(
        self, task: PartTask, rows: list[ItemRow], number: int, positions: list[int], arrays: list[Arrays]
    ) -> None:
        if number not in task.singly:
            try:
                self._keep(rows, positions, self._predictor.predict(arrays, self._job.batch_size))
                return
            except IrexecError as error:
                if len(positions) == 1:
                    self._fail(rows[positions[0]], str(error))
                    return
        # One item does not fit the model, or ended a process: each runs by itself, so that the others have results.
        for position, each in zip(positions, arrays, strict=True):
            self._progress[POSITION] = position
            try:
                self._keep(rows, [position], self._predictor.predict([each], self._job.batch_size))
            except IrexecError as error:
                self._fail(rows[position], str(error))
            self._progress[POSITION] = -1

    def _keep(self, rows: list[ItemRow], positions: list[int], results: list[dict[str, np.ndarray]]) -> None:
        kept = [self._ranked(result) if self._job.topk else result for result in results]
        for position, result in zip(positions, kept, strict=True):
            rows[position].results = result
        self._progress[DONE] += len(positions)

    def _fail(self, row: ItemRow, reason: str) -> None:
        row.error = reason
        self._progress[DONE] += 1

    def _ranked(self, result: Arrays) -> dict[str, np.ndarray]:
        """The classes with the largest scores in place of the values: index, score and, with labels, label."""
        job, found, batching = self._job, dict[str, np.ndarray](), self._predictor.batching
        is_one_of_many = batching.has_axis and batching.is_divisible
        for name, array in result.items():
            array = array[None] if is_one_of_many else array
            if has_classes(array):
                order, scores = ranking(name, array, job.topk or 1, job.labels, job.class_axis, softmax=job.softmax)
            else:
                order, scores = np.zeros((1, 0), np.int64), np.zeros((1, 0))
            shape = (-1, order.shape[-1]) if math.prod(order.shape[:-1]) > 1 else (-1,)
            found[f"{name}.class"] = order.reshape(shape)
            found[f"{name}.score"] = scores.reshape(shape)
            if job.labels is not None:
                found[f"{name}.label"] = np.array(job.labels, object)[order].reshape(shape)
        return found


ITEM, ERROR = "item", "error"


@dataclass
class ItemRow:
    """Results or error of an item.

    Attributes:
        name: name of the item.
        results: results by name; empty after an error.
        error: the reason why results are missing.
    """

    name: str
    results: dict[str, np.ndarray] = field(default_factory=dict)
    error: str | None = None


def write_part(path: Path, rows: Sequence[ItemRow], form: Format, flushes: bool = True) -> list[int | None]:
    """Write the results, whole or not at all; ``flushes`` as for ``replacing``.

    Returns:
        For each item its index along axis 0, its row or its line in the file; None if it has none there.

    Raises:
        ModelError: the file cannot be written.
        InputError: the results cannot be written in this form.
    """
    done = [row for row in rows if row.error is None]
    listed = rows if form in ("parquet", "jsonl", "csv") else done
    names = _result_names(listed)
    taken = {"npy": (), "npz": (ITEM,)}.get(form, (ITEM, ERROR))
    for name in names:
        if name in taken:
            raise InputError(
                f"the result {name!r} has the name that the items' {name}s have in the file: "
                "choose another --format or --tensor"
            )
    with new_file(path, flushes=flushes) as file:
        _WRITERS[form](file, listed)
    index = {id(row): i for i, row in enumerate(listed)}
    return [index.get(id(row)) for row in rows]


def _write_npz(file: IO[bytes], rows: Sequence[ItemRow]) -> None:
    arrays: dict[str, np.ndarray] = {ITEM: np.array([row.name for row in rows], object)}
    for name in _result_names(rows):
        results = [row.results[name] for row in rows]
        is_one = len({array.shape for array in results}) == 1
        arrays |= {name: np.stack(results)} if is_one else {f"{name}/{i}": array for i, array in enumerate(results)}
    write_npz(file, arrays)


def _write_npy(file: IO[bytes], rows: Sequence[ItemRow]) -> None:
    names = _result_names(rows)
    if len(names) > 1:
        raise InputError(
            f"a .npy takes one result, there are {', '.join(names)}: choose one with --tensor, or another --format"
        )
    arrays = [row.results[name] for name in names for row in rows]
    shapes = sorted({array.shape for array in arrays})
    if len(shapes) > 1:
        raise InputError(
            f"a .npy takes results of one shape, items have {list(shapes[0])} and {list(shapes[1])}: "
            "choose another --format"
        )
    np.lib.format.write_array(
        file, storable(np.stack(arrays)) if arrays else np.zeros(0, np.float32), allow_pickle=False
    )


def _write_jsonl(file: IO[bytes], rows: Sequence[ItemRow]) -> None:
    for row in rows:
        said: dict[str, Any] = {ITEM: row.name} | {name: plain(array.tolist()) for name, array in row.results.items()}
        said |= {} if row.error is None else {ERROR: row.error}
        file.write(json.dumps(said, ensure_ascii=True, allow_nan=False).encode() + b"\n")


def _write_parquet(file: IO[bytes], rows: Sequence[ItemRow]) -> None:
    arrow = load_pyarrow()
    columns: dict[str, Any] = {ITEM: arrow.array([row.name for row in rows], arrow.string())}
    for name in _result_names(rows):
        arrays = [row.results.get(name) for row in rows]
        first = next(array for array in arrays if array is not None)
        kind = arrow.string() if first.dtype.kind in "OU" else arrow.from_numpy_dtype(first.dtype)
        for _ in range(first.ndim):
            kind = arrow.list_(kind)
        columns[name] = arrow.array([None if array is None else array.tolist() for array in arrays], kind)
    columns[ERROR] = arrow.array([row.error for row in rows], arrow.string())
    arrow.parquet.write_table(arrow.table(columns), file)


def _write_csv(file: IO[bytes], rows: Sequence[ItemRow]) -> None:
    found = []
    columns = {ITEM: None}
    for row in rows:
        texts = {ITEM: row.name}
        for name, array in row.results.items():
            texts |= dict(_csv_columns(name, array))
        columns |= dict.fromkeys(texts)
        found.append(texts if row.error is None else texts | {ERROR: row.error})
    _write_csv_rows(file, [*columns, ERROR], found)


_WRITERS = {"npz": _write_npz, "npy": _write_npy, "jsonl": _write_jsonl, "parquet": _write_parquet, "csv": _write_csv}


def _result_names(rows: Iterable[ItemRow]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row.results))


MAX_COLUMNS = 10_000
"""The maximum number of elements of a result of one item."""


def _csv_columns(name: str, array: np.ndarray) -> Iterator[tuple[str, str]]:
    """The columns of a result and their texts: ``y`` for a scalar, ``y[2]`` or ``y[0,1]`` for each element of an array.

    Raises:
        InputError: the result has too many elements.
    """
    if array.size > MAX_COLUMNS:
        raise InputError(
            f"a .csv takes results of at most {MAX_COLUMNS:,} elements, {name!r} has {array.size:,}: "
            "choose another --format"
        )
    for index in np.ndindex(array.shape):
        where = f"[{','.join(map(str, index))}]" if index else ""
        yield f"{name}{where}", str(array[index])


def _write_csv_rows(file: IO[bytes], columns: Sequence[str], rows: Iterable[dict[str, str]]) -> None:
    """Write a header and rows, in UTF-8, as RFC 4180 specifies; a missing value is empty."""
    text = io.TextIOWrapper(file, "utf-8", "backslashreplace", newline="", write_through=True)
    writer = csv.DictWriter(text, columns, restval="")
    writer.writeheader()
    writer.writerows(rows)
    text.flush()
    text.detach()


def join_csv(file: IO[bytes], parts: Sequence[Path]) -> None:
    """Write the rows of all parts under the union of their columns, between those of the item and of the error."""
    names: dict[str, None] = {}
    for part in parts:
        with open(part, encoding="utf-8", newline="") as read:
            names |= dict.fromkeys(next(csv.reader(read), []))
    columns = [ITEM, *(name for name in names if name not in (ITEM, ERROR)), ERROR]
    _write_csv_rows(file, columns, (row for part in parts for row in _rows(part)))


def _rows(part: Path) -> Iterator[dict[str, str]]:
    with open(part, encoding="utf-8", newline="") as read:
        yield from csv.DictReader(read)
