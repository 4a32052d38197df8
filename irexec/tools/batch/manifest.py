"""The progress of a job, in an SQLite file beside its output.

Tables: ``job`` (key, value): the SHA-256 of the model and the options that determine the results. ``items``: each
item's name, state ("waiting", "done" or "failed"), error, and position in the output: number of the part, and row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from irexec.errors import InputError, ModelError, UnsupportedError
from irexec.tools.batch.items import APPLICATION, Items
from irexec.tools.batch.parts import PartResult

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
        facts = {
            "what": _MANIFEST,
            "version": _VERSION,
            "items": str(len(items)),
            "part_size": str(part_size),
            **description,
        }
        with self._errors(), self._transaction():
            for statement in _SCHEMA.strip().split(";")[:-1]:
                self._db.execute(statement)
            self._db.executemany("INSERT INTO job VALUES (?, ?)", facts.items())
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
