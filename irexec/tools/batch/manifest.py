"""The progress of a job, in an SQLite file beside its output, and the output: one file of all parts.

Tables: ``job`` (key, value): the SHA-256 of the model and the options that determine the results. ``items``: each
item's name, state ("waiting", "done" or "failed"), error, and position in the output: number of the part, and row.
"""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from irexec.errors import InputError, ModelError, UnsupportedError
from irexec.io.files import new_file
from irexec.tools.arrays.files import npz_member, open_arrays, storable, write_header
from irexec.tools.batch.items import APPLICATION, Items, load_pyarrow
from irexec.tools.batch.parts import ITEM, Format, PartResult, join_csv

try:
    import sqlite3
except ImportError:
    # Pyodide has it as a package of its own.
    raise UnsupportedError("batch needs sqlite3, which this Python does not have") from None

_SCHEMA = """
CREATE TABLE job (key TEXT PRIMARY KEY, value TEXT);
CREATE TABLE parts (number INTEGER PRIMARY KEY);
CREATE TABLE items (
    id INTEGER PRIMARY KEY, name TEXT, state TEXT NOT NULL DEFAULT 'waiting', error TEXT, part INTEGER, row INTEGER
);
"""
_VERSION, _MANIFEST = "1", "irexec batch"
_OWN = {"what", "version", "items", "part_size"}
"""Keys of the manifest itself."""


class Manifest:
    """The open manifest of a job. Only one process at a time may open it.

    Args:
        path: of the file.

    Raises:
        InputError: another process has it open, or it is not a manifest.
        ModelError: it cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._errors():
            self._db = sqlite3.connect(path, timeout=0, isolation_level=None)
        try:
            self._lock()
        except BaseException:
            self._db.close()
            raise

    def _lock(self) -> None:
        with self._errors():
            self._db.execute("PRAGMA locking_mode=EXCLUSIVE")
        # The contents are checked first, since an id and a journal mode can be written into any database.
        if not self.is_empty:
            self.description()
        with self._errors():
            self._db.execute(f"PRAGMA application_id={APPLICATION}")
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            # The first transaction takes the lock, which lasts until the file is closed.
            with self._transaction():
                pass

    def close(self) -> None:
        """Close the file; SQLite deletes its files beside it."""
        with self._errors():
            self._db.close()

    def begin(self, description: Mapping[str, str], items: Items, part_size: int) -> None:
        """Begin a new job."""
        own = {"what": _MANIFEST, "version": _VERSION, "items": str(len(items)), "part_size": str(part_size)}
        with self._errors(), self._transaction():
            for statement in _SCHEMA.strip().split(";")[:-1]:
                self._db.execute(statement)
            self._db.executemany("INSERT INTO job VALUES (?, ?)", (own | dict(description)).items())
            self._db.executemany(
                "INSERT INTO items (id, name) VALUES (?, ?)", ((i, item.name) for i, item in enumerate(items))
            )

    @property
    def is_empty(self) -> bool:
        """True if no job was begun."""
        with self._errors():
            return not self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]

    def description(self) -> dict[str, str]:
        """Options with which the job was begun.

        Raises:
            InputError: the file is another database.
        """
        with self._errors():
            try:
                found = {str(key): str(value) for key, value in self._db.execute("SELECT key, value FROM job")}
            except sqlite3.OperationalError:
                found = {}
        if found.get("what") != _MANIFEST or found.get("version") != _VERSION:
            raise InputError(f"{self.path}: is not a manifest that this irexec batch has written")
        return found

    def options(self) -> set[str]:
        """Names of the options with which the job was begun."""
        return self.description().keys() - _OWN

    def part_size(self) -> int:
        """Number of items of a part.

        Raises:
            InputError: the file has no such number.
        """
        text = self.description().get("part_size", "")
        if not (text.isascii() and text.isdigit() and int(text[:10]) > 0):
            raise InputError(f"{self.path}: is damaged: its part_size is {text[:40]!r}")
        return int(text[:10])

    def same_items(self, items: Items) -> str:
        """First difference between the items of the job and the given items; "" without any."""
        with self._errors(), closing(self._db.execute("SELECT id, name FROM items ORDER BY id")) as rows:
            count = 0
            for number, name in rows:
                if number >= len(items) or items[number].name != name:
                    now = items[number].name if number < len(items) else "nothing"
                    return f"item {number} was {name}, and is {now}"
                count += 1
        return "" if count == len(items) else f"there were {count} items, and are {len(items)}"

    def finished(self) -> set[int]:
        """The parts that are done."""
        with self._errors():
            return {number for (number,) in self._db.execute("SELECT number FROM parts")}

    def counts(self) -> dict[str, int]:
        """Number of items in each state."""
        with self._errors():
            return dict(self._db.execute("SELECT state, count(*) FROM items GROUP BY state"))

    def keep(self, result: PartResult, first: int) -> None:
        """Store the result of a part in one transaction. ``first`` is the id of its first item."""
        rows = [
            ("done" if error is None else "failed", error, result.number, row, first + i)
            for i, (row, error) in enumerate(zip(result.rows, result.errors, strict=True))
        ]
        with self._errors(), self._transaction():
            self._db.executemany("UPDATE items SET state = ?, error = ?, part = ?, row = ? WHERE id = ?", rows)
            self._db.execute("INSERT INTO parts VALUES (?)", (result.number,))

    def forget(self, parts: Iterable[int]) -> None:
        """Mark parts as not done."""
        with self._errors(), self._transaction():
            for number in parts:
                self._db.execute("DELETE FROM parts WHERE number = ?", (number,))
                self._db.execute(
                    "UPDATE items SET state = 'waiting', error = NULL, part = NULL, row = NULL WHERE part = ?",
                    (number,),
                )

    def failures(self) -> Iterator[tuple[str, str]]:
        """Name and error of each item that failed."""
        with self._errors():
            yield from self._db.execute("SELECT name, error FROM items WHERE state = 'failed' ORDER BY id")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise errors of SQLite as errors of irexec."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise InputError(f"{self.path}: another run writes this output") from None
            raise ModelError(f"{self.path}: {error}") from None
        except sqlite3.DatabaseError as error:
            raise InputError(f"{self.path}: is not a manifest of irexec batch: {error}") from None


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
    """Write the tables of parts as one, with a group of rows for each part.

    A part without any result lacks the columns of the results.
    """
    arrow = load_pyarrow()
    schema = max((arrow.parquet.read_schema(part) for part in parts), key=len)
    with arrow.parquet.ParquetWriter(file, schema) as writer:
        for part in parts:
            tables = [schema.empty_table(), arrow.parquet.read_table(part)]
            writer.write_table(arrow.concat_tables(tables, promote_options="default"))


def _join_array(file: IO[bytes], parts: Sequence[Path]) -> None:
    pieces = [piece for part in parts for piece in _pieces(part, "", 0) if piece.count]
    if len({piece.kind for piece in pieces}) > 1:
        shapes = ", ".join(str(list(shape)) for _, shape in sorted({piece.kind for piece in pieces})[:2])
        raise InputError(f"a .npy takes results of one shape, items have {shapes}: choose another --format")
    _write_joined(file, pieces or _pieces(parts[0], "", 0))


def _join_archives(file: IO[bytes], parts: Sequence[Path]) -> None:
    starts, results, total = dict[Path, int](), {ITEM: None}, 0
    for part in parts:
        with open_arrays(part) as arrays:
            if count := arrays.header(ITEM).shape[0]:
                starts[part] = total
                results |= dict.fromkeys(_result(name, arrays.names) for name in arrays.names)
                total += count
    with zipfile.ZipFile(file, "w") as archive:
        for name in results:
            pieces = [piece for part, start in starts.items() for piece in _pieces(part, name, start)]
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
        if name in file.names:
            header = file.header(name)
            return [_Piece(part, name, start, header.shape[0], header.dtype, header.shape[1:])]
        pieces: list[_Piece] = []
        while (own := f"{name}/{len(pieces)}") in file.names:
            header = file.header(own)
            pieces.append(_Piece(part, own, start + len(pieces), 1, header.dtype, header.shape, alone=True))
        return pieces


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
