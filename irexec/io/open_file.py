"""A file that is kept open while its contents may still be asked for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from irexec.errors import ModelError
from irexec.io.reading import open_regular, reading

if TYPE_CHECKING:
    import mmap

_CHUNK = 16 << 20


class OpenFile:
    """An open file. Another file that is renamed to its path has no effect; a change of the file itself is an error.

    Attributes:
        path: of the file.
        size: the number of bytes when it was opened.

    Raises:
        OSError: it cannot be opened, or is not a regular file.
        ValueError: the path has a NUL.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = open_regular(path)
        state = os.fstat(self._file.fileno())
        self.size, self._modified = state.st_size, state.st_mtime_ns

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self.close()

    def close(self) -> None:
        """Close the file; a mapping of it stays."""
        self._file.close()

    def read(self, offset: int, size: int) -> bytes:
        """Bytes of a range, fewer where the file ends before; raises ModelError if they cannot be read."""
        with reading(self.path):
            self._file.seek(offset)
            return self._file.read(size)

    def read_all(self) -> np.ndarray:
        """All bytes, read-only; raises ModelError if they cannot be read, or the file has been changed since it was
        opened.
        """
        data = np.empty(self.size, np.uint8)
        with reading(self.path):
            self._file.seek(0)
            for start in range(0, self.size, _CHUNK):
                self._file.readinto(data[start : start + _CHUNK].data)
        self._check_unchanged()
        data.flags.writeable = False
        return data

    def map(self) -> mmap.mmap | None:
        """A mapping of all bytes, of which there must be some; None where the system maps no files, or not this one.

        Raises:
            ModelError: the file has been changed since it was opened.
        """
        self._check_unchanged()
        try:
            import mmap

            return mmap.mmap(self._file.fileno(), self.size, access=mmap.ACCESS_READ)
        except (ImportError, OSError, ValueError):
            return None

    def _check_unchanged(self) -> None:
        state = os.fstat(self._file.fileno())
        if state.st_size != self.size:
            raise ModelError(
                f"{self.path} has been changed since it was opened: it had {self.size} bytes, now {state.st_size}"
            )
        if state.st_mtime_ns != self._modified:
            raise ModelError(f"{self.path} has been changed since it was opened: it was written to again")
