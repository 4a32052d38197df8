"""The .bin beside a model: mapped when the first byte is asked for, never read as a whole."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np

from irexec.errors import ModelError


class Weights:
    """The bytes that constants stand in.

    Attributes:
        path: the file; None for bytes in memory, or where there are none at all.
        size: the number of bytes; 0 where there is no file.
        exists: whether there is a file, or bytes in memory.
    """

    def __init__(self, path: Path | None = None, data: bytes | np.ndarray | None = None) -> None:
        self.path = path
        self._data = None if data is None else _flat(data)
        self._lock = threading.Lock()
        self.exists = data is not None
        self.size = 0 if self._data is None else self._data.size
        if path is not None and self._data is None:
            self.exists = path.is_file()
            self.size = path.stat().st_size if self.exists else 0

    def fetcher(self, offset: int, size: int) -> Callable[[], np.ndarray]:
        """A function that gives a range of the bytes, read-only."""

        def fetch() -> np.ndarray:
            if offset + size > self.size:
                raise ModelError(f"bytes {offset}..{offset + size} are asked for, {self._said()}")
            return self._bytes()[offset : offset + size]

        return fetch

    def _said(self) -> str:
        if self.exists:
            return f"{self.path or 'the .bin'} has {self.size} bytes"
        return "there is no .bin" if self.path is None else f"{self.path} is not there"

    def _bytes(self) -> np.ndarray:
        with self._lock:
            if self._data is None:
                self._data = self._map()
            return self._data

    def _map(self) -> np.ndarray:
        if self.size == 0 or self.path is None:
            return np.zeros(0, np.uint8)
        try:
            return np.memmap(self.path, np.uint8, "r").view(np.ndarray)
        except (OSError, ValueError) as error:
            raise ModelError(f"{self.path}: cannot be mapped: {error}") from None


def _flat(data: bytes | np.ndarray) -> np.ndarray:
    """The bytes of an array in the order of its elements, read-only."""
    if not isinstance(data, np.ndarray):
        return np.frombuffer(data, np.uint8)
    flat = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
    flat.flags.writeable = False
    return flat
