"""The .bin with a model's weights. The first access reads a small file, and maps a large one where the system can."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np

from irexec.errors import ModelError
from irexec.io.open_file import OpenFile
from irexec.io.reading import NotRegularFileError
from irexec.io.record import BinRecord, record_of
from irexec.ir.forks import new_lock

if TYPE_CHECKING:
    import mmap

READ_AT_ONCE = 16 << 20
"""Bytes of a file up to which it is read, not mapped: that takes milliseconds, and another program that shortens it
does no harm.
"""

_POINTER = b"version https://git-lfs.github.com/spec/"
_HTML = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html)\b", re.I | re.S
)
_LARGEST_POINTER = 1024


def other_file_message(name: str, start: bytes) -> str | None:
    """The message for what a failed download leaves in place of a file: a Git LFS pointer, which Git writes for a file
    that was not fetched, or an HTML page. None for any other file.
    """
    if _HTML.match(start):
        return f"{name} is an HTML page, probably the page that GitHub shows of the file: download the raw file"
    if not start.startswith(_POINTER):
        return None
    sizes = [line.removeprefix(b"size ") for line in start.splitlines() if line.startswith(b"size ")]
    size = f" (size {sizes[0].decode()})" if sizes and sizes[0].isdigit() else ""
    return f"{name} is a Git LFS pointer{size}: run git lfs pull"


def is_locked_by_reading() -> bool:
    """True on Windows, where a file that is open or mapped cannot be replaced, so that a model could not be saved over
    its own files.
    """
    return os.name == "nt"


class Weights:
    """The bytes of a model's constants.

    A file is open from the start, so that another file of its name changes nothing; if it is changed itself before it
    is read or mapped, that is an error. It can be pickled: a file is opened again where the first byte is asked for,
    and must have the same bytes as far as the sample of its record shows; bytes in memory go along. A copy is the
    object itself, which never changes.

    Args:
        path: the file.
        data: the bytes in memory, in place of a file.
        mapped: map the file if it is large; otherwise it is read at once, so that what happens to it later has no
            effect.

    Attributes:
        path: the file; None for bytes in memory, or where there are no weights at all.
        size: the number of bytes; 0 where they cannot be read.
        defect: why no byte can be read; None if they can be.

    Raises:
        ModelError: the file is changed while it is read at once.
    """

    def __init__(
        self, path: Path | None = None, data: bytes | np.ndarray | None = None, *, mapped: bool = True
    ) -> None:
        self.path, self.mapped = path, mapped
        self._data = None if data is None else _flat(data)
        self._mapping: mmap.mmap | None = None
        self._file: OpenFile | None = None
        self._unpickled: BinRecord | None = None
        self._lock = new_lock()
        self.defect: str | None = None if data is not None else self._opened()
        self.size = self._file.size if self._file is not None else 0 if self._data is None else self._data.size

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
                self._data = self._load()
            return self._data[offset : offset + size]

    def release(self, offset: int, size: int) -> None:
        """Give the memory of a mapped range back to the system, which reads it from the file again when it is asked
        for.

        Of a range that does not exist there is nothing to give back: damaged files say that their constants lie
        anywhere.
        """
        with self._lock:
            if self._mapping is None:
                return
            import mmap

            if not hasattr(mmap, "MADV_DONTNEED"):
                return
            first = -(-offset // mmap.PAGESIZE) * mmap.PAGESIZE
            whole = (min(offset + size, len(self._mapping)) - first) // mmap.PAGESIZE * mmap.PAGESIZE
            if whole > 0:
                self._mapping.madvise(mmap.MADV_DONTNEED, first, whole)

    def record(self, *, whole: bool) -> BinRecord:
        """The size and checksums of the bytes; ``whole`` reads all of them, as many at a time as take little memory.

        Raises:
            ModelError: they cannot be read.
        """
        return record_of(self.size, self._part, whole=whole)

    def _part(self, offset: int, size: int) -> Any:
        """A range of the bytes for reading once: a file is not mapped for it."""
        with self._lock:
            if self._file is not None:
                return self._file.read(offset, size)
        self.release(0, offset)
        return self.read(offset, size)

    def _opened(self) -> str | None:
        """Open the file, and read it unless it is to be mapped; returns why that is not possible."""
        if self.path is None:
            return "no weights are given"
        try:
            file = OpenFile(self.path)
            pointer = other_file_message(self._name(), file.read(0, _LARGEST_POINTER))
            if pointer is None and self.mapped and not is_locked_by_reading():
                self._file = file
            elif pointer is None:
                self._data = file.read_all()
        except FileNotFoundError:
            return f"{self._name()} does not exist"
        except NotRegularFileError as error:
            return f"{self._name()} is {error.kind}, not a regular file"
        except (OSError, ValueError) as error:
            return f"{self._name()} cannot be read: {getattr(error, 'strerror', None) or error}"
        return pointer

    def _name(self) -> str:
        return "the weights" if self.path is None else self.path.name

    def _load(self) -> np.ndarray:
        """All bytes, mapped or read. The file is closed: a mapping holds it."""
        if self._unpickled is not None:
            file = Weights(self.path, mapped=self.mapped)
            changed = file.defect or self._unpickled.difference(file.record(whole=False))
            if changed is not None:
                raise ModelError(f"{self.path} is not the file that the model was read with: {changed}")
            self._file, self._unpickled = file._file, None
            if file._data is not None:
                return file._data
        if self._file is None or self.size == 0:
            return np.zeros(0, np.uint8)
        self._mapping = self._file.map() if self.size > READ_AT_ONCE else None
        data = self._file.read_all() if self._mapping is None else np.frombuffer(self._mapping, np.uint8)
        self._file.close()
        self._file = None
        return data

    def __copy__(self) -> Weights:
        return self

    def __deepcopy__(self, memo: Any) -> Weights:
        return self

    def __getstate__(self) -> dict[str, Any]:
        """State for pickling: for a file, also its expected size and record."""
        data = self._data if self.path is None else None
        record = self.record(whole=False) if self.path is not None and self.size else None
        return {
            "path": self.path,
            "mapped": self.mapped,
            "size": self.size,
            "defect": self.defect,
            "_data": data,
            "_unpickled": record,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=new_lock(), _mapping=None, _file=None)
        if self._data is not None:
            self._data.flags.writeable = False


@dataclass(frozen=True, slots=True)
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


_SHARED: WeakValueDictionary[tuple[Path, int, int, int, int], Weights] = WeakValueDictionary()
_SHARED_LOCK = new_lock()


def shared_weights(path: Path) -> Weights:
    """The weights in a file, which all that ask for it share as long as one of them is in use and the file is the same.

    For files of which many tensors are asked for one by one: each Weights has a file open.
    """
    try:
        state = path.stat()
    except OSError:
        return Weights(path)
    key = (path, state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns)
    with _SHARED_LOCK:
        found = _SHARED.get(key)
        if found is None:
            found = _SHARED[key] = Weights(path)
        return found


def _flat(data: bytes | np.ndarray) -> np.ndarray:
    """The bytes of an array in the order of its elements, read-only."""
    if not isinstance(data, np.ndarray):
        return np.frombuffer(data, np.uint8)
    flat = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
    flat.flags.writeable = False
    return flat
