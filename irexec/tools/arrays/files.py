"""Arrays in .npy and .npz files, and items along their first axis.

Only the arrays and items that are asked for are read; a file is open only as long as it is read.
"""

from __future__ import annotations

import io
import re
import sys
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from irexec.compile.memory_limit import MemoryLimit
from irexec.errors import InputError, ModelError
from irexec.io.files import Closing
from irexec.io.reading import open_regular
from irexec.messages import amount
from irexec.tools.arrays.npy import MAGIC, Header, Read, part_of, read_array, read_header

if TYPE_CHECKING:
    import zipfile

STDIN = "-"
_PASSED = "/dev/fd/"
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_SUFFIX = ".npy"
_ENCRYPTED = 1
_LONGEST_NAME = 65535
_ESCAPED = re.compile("%(25|2E|2F|3A|5C)")
_CHUNK = 1 << 20
# Bytes of the header in front of a member of a .zip, and where the lengths of the two texts after it are. Source:
# APPNOTE.TXT, 4.3.7.
_LOCAL_HEADER, _LENGTHS = 30, (slice(26, 28), slice(28, 30))
_STORED, _DEFLATED = 0, 8


class ArrayFile(Closing):
    """An open .npy or .npz.

    Attributes:
        names: of the arrays of a .npz; the array of a .npy has the name "".
        named: whether it is a .npz.
    """

    def __init__(self, file: IO[bytes], label: str, memory: MemoryLimit) -> None:
        """``label`` is what messages call the file, which belongs to this object if no ModelError is raised."""
        self._file, self._label, self._memory = file, label, memory
        self._archive: zipfile.ZipFile | None = None
        self._members: Mapping[str, zipfile.ZipInfo] = {}
        if _start(file).startswith(_ZIP):
            import zipfile

            with _damage(label):
                self._archive = zipfile.ZipFile(file)
                members = self._archive.infolist()
            self._members = _by_name(members, label)
        self.named = self._archive is not None
        self.names = tuple(self._members) if self.named else ("",)

    def close(self) -> None:
        """Close the file."""
        if self._archive is not None:
            self._archive.close()
        self._file.close()

    def read(self, name: str) -> np.ndarray:
        """The array of that name.

        Raises:
            ModelError: it cannot be read, or takes too much memory.
        """
        with self._opened(name) as opened:
            return read_array(*opened, self._memory)

    def header(self, name: str) -> Header:
        """The header of that array; raises ModelError if it cannot be read."""
        with self._opened(name) as opened:
            return read_header(*opened)

    @contextmanager
    def _opened(self, name: str) -> Iterator[tuple[Read, int, str]]:
        """A reader of the .npy of an array, its bytes, and its name in messages."""
        if self._archive is None:
            size = self._file.seek(0, io.SEEK_END)
            self._file.seek(0)
            yield _reader(self._file, self._label), size, self._label
            return
        member, where = self._members[name], f"{self._label}, array {name!r}"
        if member.flag_bits & _ENCRYPTED:
            raise ModelError(f"{where}: is encrypted")
        if member.compress_type not in (_STORED, _DEFLATED):
            raise ModelError(
                f"{where}: is compressed by method {member.compress_type} of .zip, expected 0 (stored) or 8 (deflated)"
            )
        with _damage(where):
            file = self._archive.open(member)
        with file:
            yield _reader(file, where), member.file_size, where

    def start(self, name: str) -> int | None:
        """Where the array begins in the file, with its header; None if it is compressed."""
        if self._archive is None:
            return 0
        member = self._members[name]
        if member.compress_type != _STORED:
            return None
        header = self.bytes_at(member.header_offset, _LOCAL_HEADER)
        lengths = (int.from_bytes(header[part], "little") for part in _LENGTHS)
        return member.header_offset + _LOCAL_HEADER + sum(lengths)

    def bytes_at(self, offset: int, count: int) -> bytes:
        """``count`` bytes of the file; raises ModelError if there are fewer, or they cannot be read."""
        with _damage(self._label):
            self._file.seek(offset)
            data = self._file.read(count)
        if len(data) < count:
            raise ModelError(
                f"{self._label}: ends at byte {offset + len(data):,}, expected at least {offset + count:,}"
            )
        return data


def open_arrays(path: str | Path, accepted: str = ".npy or .npz", memory: MemoryLimit | None = None) -> ArrayFile:
    """Open a .npy or .npz.

    Args:
        path: the file; "-" is standard input.
        accepted: the kinds of files that the caller takes, for the message about any other.
        memory: the limit of each array.

    Raises:
        ModelError: the file does not exist, or is neither.
        InputError: standard input is a terminal.
    """
    label = "standard input" if path == STDIN else str(path)
    memory = memory or MemoryLimit()
    try:
        file = _open(path, label, memory)
    except FileNotFoundError:
        raise ModelError(f"{label}: no such file") from None
    except (OSError, ValueError) as error:
        raise ModelError(f"{label}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    try:
        start = _start(file)
        if not start:
            raise ModelError(f"{label}: is empty, expected a {accepted}")
        if not start.startswith((MAGIC, *_ZIP)):
            raise ModelError(f"{label}: not a readable {accepted}: it starts with {start!r}")
        return ArrayFile(file, label, memory)
    except BaseException:
        file.close()
        raise


def _open(path: str | Path, label: str, memory: MemoryLimit) -> IO[bytes]:
    """The file; in memory where it cannot be read twice: standard input, and a pipe that a shell passes for
    ``<(command)``."""
    if path == STDIN:
        if sys.stdin is None or sys.stdin.isatty():
            raise InputError("standard input is a terminal, not a .npy or .npz")
        return _held(sys.stdin.buffer, label, memory)
    if str(path).startswith(_PASSED) and Path(path).is_fifo():
        with open(path, "rb") as file:
            return _held(file, label, memory)
    return open_regular(path)


def _held(file: IO[bytes], label: str, memory: MemoryLimit) -> IO[bytes]:
    """All of a file, which may have no end; only its start if that is not the start of a .npy or .npz."""
    held = io.BytesIO()
    # While it grows its bytes are held twice.
    limit = memory.left() // 2
    while chunk := file.read(_CHUNK):
        is_other = not held.tell() and not chunk.startswith((MAGIC, *_ZIP))
        held.write(chunk)
        if is_other:
            break
        if held.tell() > limit:
            raise ModelError(f"{label}: has more than {amount(limit)}, which there is no memory for")
    return held


def _start(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read(len(MAGIC))


def _by_name(members: list[zipfile.ZipInfo], label: str) -> dict[str, zipfile.ZipInfo]:
    """The members by the names of their arrays."""
    found: dict[str, zipfile.ZipInfo] = {}
    for member in members:
        name = _array_name(member.filename.removesuffix(_SUFFIX))
        if name in found:
            raise ModelError(f"{label}: has two arrays of the name {name!r}")
        found[name] = member
    return found


def _reader(file: IO[bytes], where: str) -> Read:
    """A reader of the file that raises ModelError where it is damaged."""

    def read(count: int) -> bytes:
        with _damage(where):
            return file.read(count)

    return read


def damaged_errors() -> tuple[type[Exception], ...]:
    """Errors of zipfile: BadZipFile for most damage, EOFError for a member with too few bytes, ValueError for offsets
    before the start of the file and for names in another encoding than UTF-8, OverflowError for offsets of more than 63
    bits in memory, NotImplementedError for unknown versions and flags. zlib.error is the error of its decompressor."""
    from zipfile import BadZipFile

    return BadZipFile, zlib.error, EOFError, ValueError, OverflowError, NotImplementedError


@contextmanager
def _damage(where: str) -> Iterator[None]:
    """Raise errors of the library that reads a file as ModelError. Nothing else may be done in the block."""
    try:
        yield
    except OSError as error:
        raise ModelError(f"{where}: cannot be read: {error.strerror or error}") from None
    except damaged_errors() as error:
        raise ModelError(f"{where}: is damaged: {error}") from None


def write_npz(file: IO[bytes], arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays under any names; texts are written as NumPy's own string type.

    A name that leads out of the folder into which the archive may be unpacked is escaped; ``open_arrays`` gives it as
    it was.

    Raises:
        ModelError: a name is longer than those of a .zip can be.
    """
    import zipfile

    # Not by np.savez, which takes an array called "file" for an argument of its own.
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with npz_member(archive, name) as member:
                np.lib.format.write_array(member, storable(array), allow_pickle=False)


@contextmanager
def npz_member(archive: zipfile.ZipFile, name: str) -> Iterator[IO[bytes]]:
    """A new array of a .npz, open for writing its header and its elements.

    Raises:
        ModelError: the name is longer than those of a .zip can be.
    """
    filename = f"{_member_name(name)}{_SUFFIX}"
    if len(filename.encode()) > _LONGEST_NAME:
        raise ModelError(
            f"array {name[:40]!r}...: its name has {len(name)} characters, a .npz takes {_LONGEST_NAME} bytes of UTF-8"
        )
    with archive.open(filename, "w", force_zip64=True) as member:
        yield member


def write_header(file: IO[bytes], dtype: np.dtype, shape: tuple[int, ...]) -> None:
    """The header of a .npy, after which the elements follow in C order."""
    facts = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, facts)


def _member_name(name: str) -> str:
    """The name of a member: that of the array, unless whoever unpacks the archive would write outside of a folder.

    Then the dots of "..", the first of two slashes in front, backslashes and the colon of a drive are written as % and
    two digits, as in URLs, and so is the % of what looks like them. One slash in front stays: the tensor names of ONNX
    begin with it, numpy.savez writes it, numpy.load has it in its keys, and the programs that unpack leave it out.
    """
    plain = _ESCAPED.sub(r"%25\1", name).replace("\\", "%5C")
    escaped = "/".join("%2E%2E" if part == ".." else part for part in plain.split("/"))
    escaped = re.sub("^/(?=/)", "%2F", escaped)
    return re.sub(r"^(\w):", r"\1%3A", escaped)


def _array_name(member: str) -> str:
    """The name of the array that ``_member_name`` wrote so; any other name is as it is.

    Versions up to 0.1 wrote every slash in front as %2F.
    """
    name = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), member)
    written = _member_name(name)
    return name if member in (written, re.sub("^/", "%2F", written)) else member


def storable(array: np.ndarray) -> np.ndarray:
    """The array as a .npy can hold it: texts as NumPy's own string type."""
    return array.astype(str) if array.dtype == object else array


@dataclass(frozen=True)
class _Array:
    """One array: its header, and where its first item begins in the file; None if all of it must be read to have
    one."""

    header: Header
    start: int | None

    @property
    def count(self) -> int:
        return self.header.shape[0]

    @property
    def bytes(self) -> int:
        """Bytes of an item."""
        return self.header.bytes // max(1, self.count)


class ArrayItems:
    """An open file of items.

    Attributes:
        count: number of items.

    Args:
        path: a .npy or .npz whose arrays have the same size at axis 0.
        memory: the limit of an array that must be read at once: compressed, or in Fortran order.

    Raises:
        ModelError: the file cannot be read, or its arrays have no items, or different numbers of them.
    """

    def __init__(self, path: str, memory: MemoryLimit | None = None) -> None:
        self._path, self._whole = path, dict[str, np.ndarray]()
        self._file = open_arrays(path, memory=memory)
        try:
            self._arrays = {name: _array(self._file, name, path) for name in self._file.names}
            self.count = _count(self._arrays, path)
        except BaseException:
            self._file.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def item(self, index: int) -> dict[str, np.ndarray]:
        """The arrays of an item by name; that of a .npy has the name "".

        Raises:
            ModelError: the file is damaged, or there is not enough memory.
        """
        return {name: self._item(name, array, index) for name, array in self._arrays.items()}

    def _item(self, name: str, array: _Array, index: int) -> np.ndarray:
        if array.start is None:
            if name not in self._whole:
                self._whole[name] = self._file.read(name)
            return np.asarray(self._whole[name][index])
        data = self._file.bytes_at(array.start + index * array.bytes, array.bytes)
        return part_of(data, array.header, array.header.shape[1:], self._path)


def _array(file: ArrayFile, name: str, path: str) -> _Array:
    header, start = file.header(name), file.start(name)
    if not header.shape:
        where = f", array {name!r}" if name else ""
        raise ModelError(f"{path}{where}: is a scalar, expected items along the first axis")
    by_columns = header.fortran_order and len(header.shape) > 1
    return _Array(header, None if start is None or by_columns else start + header.length)


def _count(arrays: dict[str, _Array], path: str) -> int:
    if not arrays:
        raise ModelError(f"{path}: has no arrays")
    counts = {name: array.count for name, array in arrays.items()}
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{name!r} has {count}" for name, count in counts.items())
        raise ModelError(f"{path}: its arrays have different numbers of items along the first axis: {listed}")
    return next(iter(counts.values()))
