"""Models and weights as users pass them: a path, bytes, an array, or an open file; the mapped .bin."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeAlias
from weakref import WeakValueDictionary

import numpy as np

from irexec.errors import InputError, ModelError
from irexec.io.reading import BinRecord, NotRegularFileError, open_regular, reading, record_of
from irexec.io.xml import Progress, Reader, XmlElement, parse
from irexec.ir.process import new_lock

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
        path: the file; None for bytes in memory, or for a model without weights.
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


ModelSource: TypeAlias = str | os.PathLike[str] | bytes | bytearray | memoryview | BinaryIO
WeightsSource: TypeAlias = ModelSource | np.ndarray | None
_BYTES = (bytes, bytearray, memoryview)
_HINTS = {".bin": " (the weights? the model is the .xml beside them)"}


class Source(NamedTuple):
    """The bytes of a .xml, what messages call it, and its path if it has one."""

    data: bytes
    name: str
    path: Path | None

    def parse(self, opened: Reader, parts: Mapping[str, Reader], progress: Progress | None) -> XmlElement:
        """Parse it as irexec.io.xml.parse does; raises ModelError if it is not XML."""
        other = other_file_message(self.name, self.data[:1024])
        if other is not None:
            raise ModelError(other)
        try:
            return parse(self.data, self.name, opened, parts, progress)
        except ModelError as error:
            hint = "" if self.path is None else _HINTS.get(self.path.suffix.lower(), "")
            if not hint:
                raise
            raise ModelError(f"{error}{hint}") from None


def read_source(model: ModelSource | Source) -> Source:
    """The bytes of a .xml, or of an ONNX model; a Source is one already.

    Raises:
        ModelError: it cannot be read.
        InputError: it is not a path, bytes or a file.
    """
    if isinstance(model, Source):
        return model
    if isinstance(model, _BYTES):
        return Source(bytes(model), "<bytes>", None)
    if hasattr(model, "read"):
        name = getattr(model, "name", None)
        return Source(_read(model, "the model"), name if isinstance(name, str) else "<file>", None)
    path = _path(model, "the model")
    try:
        with open_regular(path) as file:
            return Source(file.read(), str(path), path)
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise ModelError(f"{str(path)!r} cannot be read: {error}") from None


def weights_of(weights: WeightsSource, beside: Path | None, *, mapped: bool) -> Weights:
    """The weights as given, or the .bin beside a .xml; a file is ``mapped``, or read at once.

    Raises:
        ModelError: the file that is given cannot be read.
        InputError: it is not a path, bytes, an array or a file.
    """
    if weights is None:
        return Weights(None if beside is None else beside.with_suffix(".bin"), mapped=mapped)
    if isinstance(weights, np.ndarray):
        if weights.dtype.hasobject:
            raise InputError("the weights are an array of objects, expected the bytes of a .bin")
        return Weights(data=weights)
    if isinstance(weights, _BYTES):
        return Weights(data=bytes(weights))
    if hasattr(weights, "read"):
        return Weights(data=_read(weights, "the weights"))
    path = _path(weights, "the weights")
    found = Weights(path, mapped=mapped)
    if found.defect is not None:
        owner = "the" if beside is None else f"{beside}: the"
        raise ModelError(f"{owner} weights {str(path)!r} cannot be read: {found.defect}")
    return found


def _path(given: object, what: str) -> Path:
    if not isinstance(given, str | os.PathLike):
        raise InputError(f"{what} is a {type(given).__name__}, expected a path, bytes or a file open for reading bytes")
    if isinstance(given, str) and given.lstrip().startswith("<"):
        raise InputError(f"{what} is XML text, expected a path or bytes: pass text.encode()")
    return Path(given)


def _read(file: Any, what: str) -> bytes:
    try:
        data = file.read()
    except (OSError, ValueError) as error:
        raise ModelError(f"{what} cannot be read from {file!r}: {error}") from None
    if not isinstance(data, bytes):
        raise InputError(f"{what} is a file open for reading text, expected one open for reading bytes")
    return data
