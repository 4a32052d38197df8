"""Results of a job as .csv: a row for each item, a column for each element of each result."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

import numpy as np

from irexec.errors import InputError

MAX_COLUMNS = 10_000
"""The maximum number of elements of a result of one item."""


def columns_of(name: str, array: np.ndarray) -> Iterator[tuple[str, str]]:
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


def write_rows(file: IO[bytes], columns: Sequence[str], rows: Iterable[dict[str, str]]) -> None:
    """Write a header and rows, in UTF-8, as RFC 4180 specifies; a missing value is empty."""
    text = io.TextIOWrapper(file, "utf-8", "backslashreplace", newline="", write_through=True)
    writer = csv.DictWriter(text, columns, restval="")
    writer.writeheader()
    writer.writerows(rows)
    text.flush()
    text.detach()


def join(file: IO[bytes], parts: Sequence[Path], first: str, last: str) -> None:
    """Write the rows of all parts under the union of their columns, between the columns ``first`` and ``last``."""
    names: dict[str, None] = {}
    for part in parts:
        with open(part, encoding="utf-8", newline="") as read:
            names |= dict.fromkeys(next(csv.reader(read), []))
    columns = [first, *(name for name in names if name not in (first, last)), last]
    write_rows(file, columns, (row for part in parts for row in _rows(part)))


def _rows(part: Path) -> Iterator[dict[str, str]]:
    with open(part, encoding="utf-8", newline="") as read:
        yield from csv.DictReader(read)
