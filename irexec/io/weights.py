"""The .bin with a model's weights: mapped when the first byte is asked for, never read as a whole."""

from __future__ import annotations

import mmap
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from irexec.errors import ModelError

_POINTER = b"version https://git-lfs.github.com/spec/"
_LARGEST_POINTER = 1024


def pointer_message(name: str, start: bytes) -> str | None:
    """What a Git LFS pointer stands for, if a file that starts so is one: Git leaves it in place of a file that was not fetched."""
    if not start.startswith(_POINTER):
        return None
    sizes = [line.removeprefix(b"size ") for line in start.splitlines() if line.startswith(b"size ")]
    size = f" (size {sizes[0].decode()})" if sizes and sizes[0].isdigit() else ""
    return f"{name} is a Git LFS pointer{size}: run git lfs pull"


class Weights:
    """The bytes of a model's constants.

    It can be pickled: a file is mapped again where it is unpickled, bytes in memory go along.

    Attributes:
        path: the file; None for bytes in memory, or where there are no weights at all.
        size: the number of bytes; 0 where they cannot be read.
        defect: why no byte can be read; None if they can be.
    """

    def __init__(self, path: Path | None = None, data: bytes | np.ndarray | None = None) -> None:
        self.path = path
        self._data = None if data is None else _flat(data)
        self._mapped: np.memmap | None = None
        self._lock = threading.Lock()
        self.defect = self._defect()
        self.size = 0
        if self._data is not None:
            self.size = self._data.size
        elif path is not None and self.defect is None:
            self.size = path.stat().st_size

    def slice(self, offset: int, size: int) -> WeightsSlice:
        """A range of the bytes, which need not exist."""
        return WeightsSlice(self, offset, size)

    def contains(self, offset: int, size: int) -> bool:
        """Whether a range of the bytes can be read."""
        return offset + size <= self.size

    def read(self, offset: int, size: int) -> np.ndarray:
        """A range of the bytes, read-only; raises ModelError if it cannot be read."""
        if not self.contains(offset, size):
            has = f"{self._name()} has {self.size} bytes" if self.defect is None else self.defect
            raise ModelError(f"bytes {offset}..{offset + size} cannot be read: {has}")
        with self._lock:
            if self._data is None:
                self._data = self._map()
            return self._data[offset : offset + size]

    def release(self, offset: int, size: int) -> None:
        """Give the memory of a mapped range back to the system, which reads it from the file again when it is asked for."""
        with self._lock:
            mapping = None if self._data is None else getattr(self._mapped, "_mmap", None)
            if mapping is None or not hasattr(mmap, "MADV_DONTNEED"):
                return
            first = -(-offset // mmap.PAGESIZE) * mmap.PAGESIZE
            whole = (offset + size - first) // mmap.PAGESIZE * mmap.PAGESIZE
            if whole > 0:
                mapping.madvise(mmap.MADV_DONTNEED, first, whole)

    def _defect(self) -> str | None:
        if self._data is not None:
            return None
        if self.path is None:
            return "no weights are given"
        if self.path.is_dir():
            return f"{self._name()} is a folder"
        try:
            with open(self.path, "rb") as file:
                return pointer_message(self._name(), file.read(_LARGEST_POINTER))
        except FileNotFoundError:
            return f"{self._name()} does not exist"
        except OSError as error:
            return f"{self._name()} cannot be read: {error.strerror or error}"

    def _name(self) -> str:
        return "the weights" if self.path is None else self.path.name

    def _map(self) -> np.ndarray:
        if self.size == 0 or self.path is None:
            return np.zeros(0, np.uint8)
        try:
            self._mapped = np.memmap(self.path, np.uint8, "r")
            return self._mapped.view(np.ndarray)
        except (OSError, ValueError) as error:
            raise ModelError(f"{self.path}: cannot be mapped: {error}") from None

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: not the mapping, nor the lock."""
        return {key: value for key, value in vars(self).items() if key not in ("_lock", "_mapped")} | (
            {} if self.path is None else {"_data": None}
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock(), _mapped=None)
        if self._data is not None:
            self._data.flags.writeable = False


@dataclass(frozen=True)
class WeightsSlice:
    """A range of the bytes of weights; calling it reads them."""

    weights: Weights
    offset: int
    size: int

    def __call__(self) -> np.ndarray:
        """The bytes: uint8, one dimension, read-only; raises ModelError if they cannot be read."""
        return self.weights.read(self.offset, self.size)

    def release(self) -> None:
        """The bytes are not needed for now."""
        self.weights.release(self.offset, self.size)


def _flat(data: bytes | np.ndarray) -> np.ndarray:
    """The bytes of an array in the order of its elements, read-only."""
    if not isinstance(data, np.ndarray):
        return np.frombuffer(data, np.uint8)
    flat = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
    flat.flags.writeable = False
    return flat
