"""One file of the parts of a job, which are read one after the other."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from irexec.errors import InputError
from irexec.io.files import new_file
from irexec.tools.arrays.files import ArrayFile, npz_member, open_arrays, storable, write_header
from irexec.tools.batch.items import load_pyarrow
from irexec.tools.batch.parts import ITEM, Format, join_csv

_CHUNK = 16 << 20


def assemble(target: Path, parts: Sequence[Path], form: Format) -> None:
    """Write the rows of all parts, in their order, to one file, whole or not at all.

    Raises:
        InputError: the results cannot be in one file of this form.
        ModelError: a part cannot be read, or the file not be written.
    """
    with new_file(target) as file:
        _ASSEMBLERS[form](file, parts)


def _join_lines(file: IO[bytes], parts: Sequence[Path]) -> None:
    for part in parts:
        with open(part, "rb") as read:
            shutil.copyfileobj(read, file, 1 << 20)


def _join_tables(file: IO[bytes], parts: Sequence[Path]) -> None:
    """A group of rows for each part. A part without any result lacks the columns of the results."""
    arrow = load_pyarrow()
    schema = max((arrow.parquet.read_schema(part) for part in parts), key=len)
    with arrow.parquet.ParquetWriter(file, schema) as writer:
        for part in parts:
            table = arrow.concat_tables(
                [schema.empty_table(), arrow.parquet.read_table(part)], promote_options="default"
            )
            writer.write_table(table)


def _join_array(file: IO[bytes], parts: Sequence[Path]) -> None:
    pieces = [piece for part in parts for piece in _pieces(part, "", 0) if piece.count]
    if len({piece.kind for piece in pieces}) > 1:
        shapes = ", ".join(str(list(shape)) for _, shape in sorted({piece.kind for piece in pieces})[:2])
        raise InputError(f"a .npy takes results of one shape, items have {shapes}: choose another --format")
    _write_joined(file, pieces or _pieces(parts[0], "", 0))


def _join_archives(file: IO[bytes], parts: Sequence[Path]) -> None:
    names, rows = [], []
    for part in parts:
        with open_arrays(part) as arrays:
            rows.append(arrays.header(ITEM).shape[0])
            names.append(arrays.names)
    starts = [sum(rows[:i]) for i in range(len(rows))]
    results = dict.fromkeys(
        _result(name, found) for found, count in zip(names, rows, strict=True) if count for name in found
    )
    with zipfile.ZipFile(file, "w") as archive:
        for name in {ITEM: None, **results}:
            filled = [(part, start) for part, start, count in zip(parts, starts, rows, strict=True) if count]
            pieces = [piece for part, start in filled for piece in _pieces(part, name, start)]
            _write_result(archive, name, pieces)


def _result(name: str, names: Sequence[str]) -> str:
    """The result to which an array of a part belongs.

    ``y`` for the array ``y``, and for ``y/3`` unless the latter is a result itself.
    """
    base, _, row = name.rpartition("/")
    return base if base and row.isdigit() and base not in names and f"{base}/0" in names else name


@dataclass(frozen=True)
class _Piece:
    """The items of one result in one array of a part.

    Attributes:
        part, name: the file and the array.
        start: the row of the first.
        count: number of items; they are axis 0 of the array unless it is ``alone``.
        dtype, shape: of an item.
    """

    part: Path
    name: str
    start: int
    count: int
    dtype: np.dtype
    shape: tuple[int, ...]
    alone: bool = False

    @property
    def kind(self) -> tuple[str, tuple[int, ...]]:
        """Pieces of the same kind can be one array."""
        return ("U" if self.dtype.kind == "U" else self.dtype.str), self.shape

    def items(self) -> np.ndarray:
        """The items along axis 0."""
        with open_arrays(self.part) as file:
            array = file.read(self.name)
        return array[None] if self.alone else array


def _pieces(part: Path, name: str, start: int) -> list[_Piece]:
    with open_arrays(part) as file:
        if name not in file.names:
            return list(_single(file, part, name, start))
        header = file.header(name)
        return [_Piece(part, name, start, header.shape[0], header.dtype, header.shape[1:])]


def _single(file: ArrayFile, part: Path, name: str, start: int) -> Iterator[_Piece]:
    row = 0
    while f"{name}/{row}" in file.names:
        header = file.header(f"{name}/{row}")
        yield _Piece(part, f"{name}/{row}", start + row, 1, header.dtype, header.shape, alone=True)
        row += 1


def _write_result(archive: zipfile.ZipFile, name: str, pieces: Sequence[_Piece]) -> None:
    """A result as one array, or as one of each item where they have different shapes."""
    if not pieces:
        with npz_member(archive, name) as member:
            np.lib.format.write_array(member, np.zeros(0, "U1"), allow_pickle=False)
    elif len({piece.kind for piece in pieces}) == 1:
        with npz_member(archive, name) as member:
            _write_joined(member, pieces)
    else:
        for piece in pieces:
            for row, item in enumerate(piece.items(), piece.start):
                with npz_member(archive, f"{name}/{row}") as member:
                    np.lib.format.write_array(member, storable(np.asarray(item)), allow_pickle=False)


def _write_joined(file: IO[bytes], pieces: Sequence[_Piece]) -> None:
    """Pieces of one kind as one array; texts as long as the longest of them."""
    dtype = max((piece.dtype for piece in pieces), key=lambda each: each.itemsize)
    write_header(file, dtype, (sum(piece.count for piece in pieces), *pieces[0].shape))
    for piece in pieces:
        data = np.ascontiguousarray(piece.items().astype(dtype, copy=False)).view(np.uint8).reshape(-1)
        for start in range(0, data.size, _CHUNK):
            file.write(data[start : start + _CHUNK].tobytes())


_ASSEMBLERS = {
    "npz": _join_archives,
    "npy": _join_array,
    "jsonl": _join_lines,
    "parquet": _join_tables,
    "csv": join_csv,
}
