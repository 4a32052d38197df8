"""What is said of results: a line on each, the most probable classes, agreement with a reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irexec.errors import ModelError


@dataclass(frozen=True)
class TensorLine:
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
    """A tensor in one line."""
    first = tuple(array.ravel()[:4].tolist())
    kind = "string" if array.dtype == object else str(array.dtype)
    if array.size == 0 or array.dtype.kind not in "fiub":
        return TensorLine(name, kind, array.shape, None, None, None, 0, first)
    numbers = array.astype(np.float64)
    nans = int(np.isnan(numbers).sum())
    finite = numbers[~np.isnan(numbers)]
    if finite.size == 0:
        return TensorLine(name, kind, array.shape, None, None, None, nans, first)
    with np.errstate(all="ignore"):
        return TensorLine(name, kind, array.shape, float(finite.min()), float(finite.max()), float(finite.mean()), nans, first)


@dataclass(frozen=True)
class Class:
    """One of the most probable classes of a result."""

    output: str
    row: int
    rank: int
    index: int
    label: str
    score: float


def top_classes(results: Mapping[str, np.ndarray], count: int, labels: Sequence[str] = ()) -> list[Class]:
    """The ``count`` greatest of each row (all axes after the first) of every float result."""
    found = []
    for name, array in results.items():
        if array.ndim == 0 or array.size == 0 or array.dtype.kind not in "fiu":
            continue
        rows = array.reshape(array.shape[0], -1) if array.ndim > 1 else array.reshape(1, -1)
        for number, row in enumerate(rows):
            order = np.argsort(-row.astype(np.float64), kind="stable")[:count]
            for rank, index in enumerate(order.tolist(), 1):
                label = labels[index] if index < len(labels) else ""
                found.append(Class(name, number, rank, index, label, float(row[index])))
    return found


def read_labels(path: str) -> list[str]:
    """One label a line.

    Raises:
        ModelError: the file cannot be read.
    """
    try:
        with open(path, encoding="utf-8") as lines:
            return [line.rstrip("\r\n") for line in lines]
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise ModelError(f"{path}: not a readable list of labels: {error}") from None


@dataclass(frozen=True)
class Agreement:
    """One tensor against its reference.

    Attributes:
        name: the tensor.
        agrees: whether every number is within the tolerances, and type class and shape are the same.
        largest: the largest absolute difference; None where the shapes differ.
        message: what differs; "" where nothing does.
    """

    name: str
    agrees: bool
    largest: float | None
    message: str


def compare(name: str, actual: np.ndarray, reference: np.ndarray, rtol: float, atol: float) -> Agreement:
    """Whether |actual - reference| <= atol + rtol * |reference| everywhere; NaN equals NaN."""
    if actual.shape != reference.shape:
        return Agreement(name, False, None, f"shape {list(actual.shape)}, the reference has {list(reference.shape)}")
    if actual.dtype.kind not in "fiub" or reference.dtype.kind not in "fiub":
        same = bool(np.all(actual == reference))
        return Agreement(name, same, None, "" if same else "differs from the reference")
    with np.errstate(all="ignore"):
        a, r = actual.astype(np.float64), reference.astype(np.float64)
        close = np.isclose(a, r, rtol=rtol, atol=atol, equal_nan=True)
        gaps = np.abs(a - r)[~((a == r) | (np.isnan(a) & np.isnan(r)))]
    largest = float(np.nanmax(gaps, initial=0.0)) if gaps.size and not np.isnan(gaps).all() else (0.0 if not gaps.size else float("nan"))
    if close.all():
        return Agreement(name, True, largest, "")
    where = tuple(int(i) for i in np.unravel_index(int(np.argmin(close)), close.shape))
    wrong = int((~close).sum())
    text = f"{wrong} of {close.size} numbers differ, the first at {list(where)}: {a[where]:g}, the reference has {r[where]:g}"
    return Agreement(name, False, largest, text)
