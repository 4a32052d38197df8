"""Reports of results: a line for each, the most probable classes, agreement with a reference."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irexec.display import Column, Content, Table
from irexec.errors import InputError, ModelError
from irexec.io.reading import open_regular, reading
from irexec.ir.dims import shape_text
from irexec.messages import counted
from irexec.records import Record, Records

PREDICTIONS = 1_000_000
"""The maximum number of listed classes; each takes half a kilobyte, a thousand times more than its value."""
_POSITIONS = 100
"""Number of positions whose classes are shown."""


@dataclass(frozen=True)
class TensorLine(Record):
    """One tensor in short; the statistics are None where there is nothing to compute them from."""

    name: str
    type: str
    shape: tuple[int, ...]
    min: float | None
    max: float | None
    mean: float | None
    nans: int
    first: tuple[Any, ...]


def describe(name: str, array: np.ndarray) -> TensorLine:
    """A tensor in one line; NaN are counted and left out of the statistics."""
    first = tuple(array.ravel()[:4].tolist())
    kind = "string" if array.dtype == object else str(array.dtype)
    values = array if array.dtype.kind in "fiub" else np.zeros(0)
    # Also the conversion of a signalling NaN is an invalid operation.
    with np.errstate(all="ignore"):
        values = values.astype(np.float64)
        finite = values[~np.isnan(values)]
        nans = values.size - finite.size
        if finite.size == 0:
            return TensorLine(name, kind, array.shape, None, None, None, nans, first)
        numbers = float(finite.min()), float(finite.max()), float(finite.mean())
        return TensorLine(name, kind, array.shape, *numbers, nans, first)


@dataclass(frozen=True)
class Prediction(Record):
    """One of the most probable classes of a result.

    Attributes:
        output: the result.
        position: the index along every axis but that of the classes.
        rank: 1 for the class with the maximum score.
        index, label: the class; the label is "" where no labels are given.
        score: its value.
    """

    output: str
    position: tuple[int, ...]
    rank: int
    index: int
    label: str
    score: float


def predictions_sections(predictions: Sequence[Prediction]) -> Iterator[Content]:
    """The classes of the first positions, and the number of other positions."""
    positions = list(dict.fromkeys((p.output, p.position) for p in predictions))
    shown = set(positions[:_POSITIONS])
    where = Column("output", lambda p: f"{p.output}{shape_text(p.position)}")
    columns = [
        *([where] if len(positions) > 1 else []),
        Column("rank", "rank", "number"),
        Column("class", "index", "number"),
        Column("label", "label"),
        Column("score", "score", "number"),
    ]
    rows = [p for p in predictions if (p.output, p.position) in shown]
    yield Table(columns, rows, caption="most probable classes", what="classes")
    if len(positions) > len(shown):
        yield f"{len(positions) - len(shown)} more positions, which --json lists"


def class_axis(shape: Sequence[int]) -> int:
    """The axis of a result along which classes are ranked, unless the user names it.

    It is the only axis after the first that is longer than 1. Where there are several it is the last axis of three
    (batch, positions, classes) and the second of four and more (batch, classes, height, width).
    """
    if len(shape) == 1:
        return 0
    longer = [axis for axis in range(1, len(shape)) if shape[axis] > 1]
    if len(longer) == 1:
        return longer[0]
    return len(shape) - 1 if len(shape) <= 3 else 1


def predictions(
    results: Mapping[str, np.ndarray],
    count: int,
    labels: Sequence[str] | None = None,
    axis: int | None = None,
    *,
    softmax: bool = False,
) -> Records[Prediction]:
    """The ``count`` classes of the highest scores, at every position of every numeric result.

    Args:
        results: arrays by name; scalars, empty arrays and texts have no classes.
        count: number of classes at each position.
        labels: the names of the classes.
        axis: the axis of the classes; ``class_axis`` decides where it is None.
        softmax: whether scores are softmax of the values along the axis of the classes.

    Raises:
        InputError: a result has no such axis, or more classes than there are labels; or there would be more than
            ``PREDICTIONS`` classes in all.
    """
    ranked = {name: array for name, array in results.items() if has_classes(array)}
    sizes = {name: _listed_size(name, array, count, axis) for name, array in ranked.items()}
    if sum(sizes.values()) > PREDICTIONS:
        name = max(sizes, key=sizes.__getitem__)
        raise InputError(
            f"{counted(sizes[name], 'class')} would be listed for result {name!r} of shape {list(ranked[name].shape)}, "
            f"and {PREDICTIONS:,} in all is the limit: -o writes the values themselves"
        )
    return Records(
        prediction
        for name, array in ranked.items()
        for prediction in _listed(name, array, count, labels, axis, softmax)
    )


def has_classes(array: np.ndarray) -> bool:
    """Whether an array has classes to rank: scalars, empty arrays and texts have none."""
    return array.ndim > 0 and array.size > 0 and array.dtype.kind in "fiu"


def ranking(
    name: str,
    array: np.ndarray,
    count: int,
    labels: Sequence[str] | None,
    axis: int | None,
    *,
    softmax: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """The ``count`` classes with the highest scores at each position, and their scores: both (positions..., classes).

    Arguments and errors are those of ``predictions``; among equal scores the lower class is first, and NaN is last.
    """
    scores = np.moveaxis(array, _axis(name, array, axis), -1)
    if labels is not None and len(labels) < scores.shape[-1]:
        result = f"result {name!r} of shape {list(array.shape)}"
        raise InputError(
            f"there are {counted(len(labels), 'label')} for the {scores.shape[-1]} classes of {result}: "
            "--axis names another axis, --tensor another result"
        )
    with np.errstate(all="ignore"):
        scores = _softmax(scores) if softmax else scores
        order = np.argsort(-scores.astype(np.float64), axis=-1, kind="stable")[..., :count]
        return order, np.take_along_axis(scores, order, axis=-1).astype(np.float64)


def _softmax(values: np.ndarray) -> np.ndarray:
    """Softmax along the last axis, in float64."""
    values = values.astype(np.float64)
    powers = np.exp(values - values.max(axis=-1, keepdims=True))
    found: np.ndarray = powers / powers.sum(axis=-1, keepdims=True)
    return found


def _axis(name: str, array: np.ndarray, axis: int | None) -> int:
    if axis is None:
        return class_axis(array.shape)
    if not -array.ndim <= axis < array.ndim:
        raise InputError(f"--axis {axis} is not an axis of result {name!r}, which has shape {list(array.shape)}")
    return axis


def _listed_size(name: str, array: np.ndarray, count: int, axis: int | None) -> int:
    classes = array.shape[_axis(name, array, axis)]
    return array.size // classes * min(count, classes)


def _listed(
    name: str, array: np.ndarray, count: int, labels: Sequence[str] | None, axis: int | None, softmax: bool
) -> Iterator[Prediction]:
    order, scores = ranking(name, array, count, labels, axis, softmax=softmax)
    for position in np.ndindex(*order.shape[:-1]):
        for rank, (index, score) in enumerate(zip(order[position].tolist(), scores[position].tolist(), strict=True), 1):
            yield Prediction(name, position, rank, index, labels[index] if labels is not None else "", score)


def read_labels(path: str) -> list[str]:
    """One label per line; errors are those of ``read_lines``."""
    return read_lines(path, "a list of labels")


def read_lines(path: str, what: str) -> list[str]:
    """The lines of a file, which is ``what`` in messages.

    Raises:
        ModelError: the file cannot be read, or is not in UTF-8.
    """
    try:
        with reading(path), io.TextIOWrapper(open_regular(path), encoding="utf-8-sig") as lines:
            return [line.rstrip("\r\n") for line in lines]
    except UnicodeDecodeError as error:
        raise ModelError(f"{path}: not {what} in UTF-8: it has the byte 0x{error.object[error.start]:02x}") from None
