"""The files with the results of a part: .npz, .npy, .parquet, .jsonl and .csv, each the same for the same results.

.npz: ``item`` has the names of the items with results, and each result is an array whose axis 0 is that of ``item``;
where results differ in shape, the result of row 3 is ``NAME/3``. .npy: the only result, without names. .parquet, .jsonl
and .csv: a row or line for each item; a failed item has the reason as ``error``.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

from irexec.errors import InputError
from irexec.io.files import new_file
from irexec.tools.arrays.files import storable, write_npz
from irexec.tools.batch.job import Format, plain
from irexec.tools.batch.tables import load_pyarrow

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
    _refuse_names(_result_names(listed), {"npy": (), "npz": (ITEM,)}.get(form, (ITEM, ERROR)))
    with new_file(path, flushes=flushes) as file:
        _WRITERS[form](file, listed)
    index = {id(row): i for i, row in enumerate(listed)}
    return [index.get(id(row)) for row in rows]


def _write_npz(file: IO[bytes], rows: Sequence[ItemRow]) -> None:
    arrays: dict[str, np.ndarray] = {ITEM: np.array([row.name for row in rows], object)}
    for name in _result_names(rows):
        arrays |= _stacked(name, [row.results[name] for row in rows])
    write_npz(file, arrays)


def _stacked(name: str, arrays: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    if len({array.shape for array in arrays}) == 1:
        return {name: np.stack(arrays)}
    return {f"{name}/{i}": array for i, array in enumerate(arrays)}


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


def _refuse_names(names: Iterable[str], taken: Collection[str]) -> None:
    for name in names:
        if name in taken:
            raise InputError(
                f"the result {name!r} has the name that the items' {name}s have in the file: "
                "choose another --format or --tensor"
            )


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
