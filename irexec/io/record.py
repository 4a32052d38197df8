"""Record in an .xml of the .bin that was written with it: the .bin of another model is recognised.

They are attributes of <net>, which OpenVINO ignores and does not write again: in rt_info, it would copy them beside
another .bin.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

from irexec.io.reading import open_regular

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
            bytes where they are no more than that. It takes milliseconds, however long the file, and differs where a
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
        return (
            None
            if found.sample == self.sample
            else f"the CRC-32 of its sample is {found.sample:08x}, expected {self.sample:08x}"
        )


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
