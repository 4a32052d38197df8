"""One part of a job: its items are read, grouped by shape, run in batches, and written to one file.

What is written depends on the items and the job alone, not on which process does it, or when: a part that is done again
gives the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, MutableSequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from irexec.compile.memory_limit import MemoryLimit
from irexec.errors import IrexecError
from irexec.tools.batch.items import Item
from irexec.tools.batch.job import BatchJob
from irexec.tools.batch.part_files import ItemRow, write_part
from irexec.tools.batch.predictor import Predictor
from irexec.tools.batch.readers import ItemReader
from irexec.tools.run.results import has_classes, ranking

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
