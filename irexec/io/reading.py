"""Reading files: regular ones alone, since a FIFO may block for ever and a device may never end; errors of the system
as errors of irexec that name the file; JSON files that may have been damaged; the record of a .bin.

The entries of a record are attributes of <net>, which OpenVINO ignores and does not write again: in rt_info, it would
copy them beside another .bin.
"""

from __future__ import annotations

import errno
import os
import stat
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import IO, Any

from irexec.errors import ModelError

_KINDS = {
    stat.S_IFDIR: "a folder", stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}  # fmt: skip
# Where a path leads to something else after it was checked, opening it does not block.
_FLAGS = getattr(os, "O_NONBLOCK", 0)


def open_regular(path: str | Path) -> BufferedReader:
    """Open a regular file, or a link to one, for reading bytes; it never blocks.

    Raises:
        OSError: it cannot be opened, or is something else: a folder, a FIFO, a device or a socket.
        ValueError: the path has a NUL.
    """
    check_regular(path)
    file = open(path, "rb", opener=_open)  # noqa: SIM115 - the caller closes it
    mode = os.fstat(file.fileno()).st_mode
    if not stat.S_ISREG(mode):
        file.close()
        raise NotRegularFileError(path, mode)
    return file


def _open(path: str, flags: int) -> int:
    return os.open(path, flags | _FLAGS)


def check_regular(path: str | Path) -> None:
    """Raise OSError unless the path leads to a regular file; before it is opened, which may have an effect on a
    device."""
    mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode):
        raise NotRegularFileError(path, mode)


def is_same_file(one: str | Path, other: str | Path) -> bool:
    """Whether two paths lead to the same file, also by links."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        # One of them does not exist.
        return os.path.realpath(one) == os.path.realpath(other)
    except ValueError:
        # A path has a NUL.
        return False


class NotRegularFileError(OSError):
    """A path does not lead to a regular file.

    Attributes:
        kind: the kind of its target, such as "a folder".
    """

    def __init__(self, path: str | Path, mode: int) -> None:
        self.kind = _KINDS.get(stat.S_IFMT(mode), "something else")
        super().__init__(errno.EINVAL, f"it is {self.kind}, not a regular file", str(path))


def file_error(path: str | Path, sentence: str) -> OSError:
    """An OSError whose ``strerror`` is a sentence of our own."""
    return OSError(errno.EINVAL, sentence, str(path))


def reading(path: str | Path) -> AbstractContextManager[None]:
    """Raise an OSError of the block as ModelError: the file cannot be read."""
    return _named(path, "read")


def writing(path: str | Path) -> AbstractContextManager[None]:
    """Raise an OSError of the block as ModelError: the file cannot be written."""
    return _named(path, "written")


@contextmanager
def _named(path: str | Path, what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ModelError(f"{path}: cannot be {what}: {error.strerror or error}") from None


def read_json(path: str | Path) -> Any:
    """The document in a file.

    Raises:
        OSError: the file cannot be read, or is not a regular one.
        ValueError: it is not JSON in a Unicode encoding, or is nested deeper than Python reads.
    """
    with open_regular(path) as file:
        return parse_json(file.read())


def parse_json(text: bytes) -> Any:
    """The document of a text; raises ValueError as ``read_json`` does."""
    # Every command imports this module.
    import json

    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deep") from None


RECORD_ATTRIBUTES = ("bin_size", "bin_sample", "bin_crc32")
_SIZE, _SAMPLE, _CRC32 = RECORD_ATTRIBUTES
_BLOCKS, _BLOCK = 64, 4096
_CHUNK = 16 << 20


@dataclass(frozen=True)
class BinRecord:
    """The size of a .bin and its checksums.

    Attributes:
        size: in bytes.
        sample: the CRC-32 of 64 blocks of 4,096 bytes at equal distances, from the first bytes to the last; of all
            bytes of a smaller file. It takes milliseconds, however long the file, and differs where a
            model was trained again.
        checksum: the CRC-32 of all bytes; None if it is not known.
    """

    size: int
    sample: int
    checksum: int | None

    @classmethod
    def of(cls, attributes: Mapping[str, str]) -> BinRecord | None:
        """The record in the attributes of <net>; None without one."""
        try:
            return cls(int(attributes[_SIZE]), int(attributes[_SAMPLE], 16), int(attributes[_CRC32], 16))
        except (KeyError, ValueError):
            return None

    @property
    def attributes(self) -> dict[str, str]:
        """Attributes of <net> for the record, which has a checksum."""
        return {_SIZE: str(self.size), _SAMPLE: f"{self.sample:08x}", _CRC32: f"{self.checksum or 0:08x}"}

    def difference(self, found: BinRecord) -> str | None:
        """The first difference of another .bin; None if no difference is known."""
        if found.size != self.size:
            return f"it has {found.size} bytes, expected {self.size}"
        if found.checksum is not None and self.checksum is not None and found.checksum != self.checksum:
            return f"its CRC-32 is {found.checksum:08x}, expected {self.checksum:08x}"
        if found.sample != self.sample:
            return f"the CRC-32 of its sample is {found.sample:08x}, expected {self.sample:08x}"
        return None


def record_of(size: int, read: Callable[[int, int], Any], *, whole: bool) -> BinRecord:
    """The record of bytes that ``read`` gives by offset and size; ``whole`` reads all of them for the checksum."""
    chunks = [(offset, min(_CHUNK, size - offset)) for offset in range(0, size, _CHUNK)]
    return BinRecord(size, _checksum(_sampled(size), read), _checksum(chunks, read) if whole else None)


def _checksum(ranges: Sequence[tuple[int, int]], read: Callable[[int, int], Any]) -> int:
    """The CRC-32 of ranges, each an offset and a size, one after the other."""
    checksum = 0
    for offset, size in ranges:
        checksum = zlib.crc32(read(offset, size), checksum)
    return checksum


def _sampled(size: int) -> list[tuple[int, int]]:
    """Offset and size of the blocks of a sample."""
    if size <= _BLOCKS * _BLOCK:
        return [(0, size)]
    return [(i * (size - _BLOCK) // (_BLOCKS - 1), _BLOCK) for i in range(_BLOCKS)]


class RecordedFile:
    """A new .bin and the record of what is written to it.

    Args:
        file: open for writing, with its path as name.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._size = self._checksum = 0

    def write(self, data: Any) -> None:
        """Write bytes."""
        view = memoryview(data).cast("B")
        for start in range(0, len(view), _CHUNK):
            self._checksum = zlib.crc32(view[start : start + _CHUNK], self._checksum)
        self._file.write(view)
        self._size += len(view)

    def record(self) -> BinRecord:
        """The record of all that has been written; the sample is read from the file again."""
        self._file.flush()
        with open_regular(self._file.name) as file:

            def read(offset: int, size: int) -> bytes:
                file.seek(offset)
                return file.read(size)

            return BinRecord(self._size, _checksum(_sampled(self._size), read), self._checksum)
