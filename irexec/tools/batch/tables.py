"""Items in a column of a .parquet, which pyarrow reads: images as their bytes, and arrays as lists."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import numpy as np

from irexec.errors import InputError, ModelError, UnsupportedError


def load_pyarrow() -> Any:
    """pyarrow with its parquet module; raises UnsupportedError if it is not installed."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise UnsupportedError(".parquet needs pyarrow, which is not installed: pip install pyarrow") from None
    return pyarrow


def row_count(path: str, column: str | None) -> int:
    """The rows of a table.

    Raises:
        ModelError: it cannot be read.
        InputError: it has no such column.
        UnsupportedError: pyarrow is not installed.
    """
    with closing(ParquetTable(path, column)) as table:
        return table.count


class ParquetTable:
    """A .parquet, of which one group of rows is held at a time.

    Attributes:
        count: of rows.
        column: the column of the items.

    Raises:
        ModelError, InputError, UnsupportedError: as for ``row_count``.
    """

    def __init__(self, path: str, column: str | None) -> None:
        self._path, self._arrow = path, load_pyarrow()
        try:
            self._file = self._arrow.parquet.ParquetFile(path)
        except (OSError, self._arrow.ArrowException) as error:
            raise ModelError(f"{path}: cannot be read: {error}") from None
        names = self._file.schema_arrow.names
        if column is None and len(names) != 1:
            raise InputError(f"{path} has the columns {', '.join(names)}: choose one with --column")
        if column is not None and column not in names:
            raise InputError(f"{path} has no column {column!r}, but {', '.join(names)}")
        self.column: str = column or names[0]
        self.count: int = self._file.metadata.num_rows
        self._ends = np.cumsum([self._file.metadata.row_group(i).num_rows for i in range(self._file.num_row_groups)])
        self._held: tuple[int, Any] | None = None

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def value(self, row: int) -> Any:
        """The value in a row: bytes, text, a number, or an array of what is a list.

        Raises:
            ModelError: the file is damaged, or the value is none of these.
        """
        group = int(np.searchsorted(self._ends, row, side="right"))
        if self._held is None or self._held[0] != group:
            self._held = None
            try:
                self._held = group, self._file.read_row_group(group, columns=[self.column]).column(0).combine_chunks()
            except (OSError, self._arrow.ArrowException) as error:
                raise ModelError(f"{self._path}: cannot be read: {error}") from None
        start = int(self._ends[group - 1]) if group else 0
        found = unwrapped(self._held[1][row - start].as_py())
        if found is None or isinstance(found, dict):
            raise ModelError(
                f"{self._path}, row {row}: column {self.column!r} has {'no value' if found is None else 'a record'}"
            )
        return found


def unwrapped(value: Any) -> Any:
    """The bytes of a record of them and a path, as data sets of images have it; any other value as it is."""
    return value["bytes"] if isinstance(value, dict) and isinstance(value.get("bytes"), bytes) else value
