"""Arrays in NumPy's .npy format, the header of which is not trusted.

``numpy.lib.format`` parses the header. Its length is limited before it is read, and its type and sizes are checked and
compared with the bytes that follow and with the memory before anything is allocated. Pickled objects are refused.

Source: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
"""

from __future__ import annotations

import io
import math
import re
import tokenize
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.lib import format

from irexec.compile.memory_limit import MemoryLimit
from irexec.dtypes.codecs import check_code_points
from irexec.errors import ModelError, OpError
from irexec.messages import sentence

MAGIC = b"\x93NUMPY"

Read = Callable[[int], bytes]
"""Returns the next bytes of a file, at most as many as asked for, and none at its end."""

_HEADER_LIMIT = 10_000
"""Bytes of the longest header that is read; the header of an array of 64 dimensions has some 1,500."""

_MAX_RANK = 64
_CHUNK = 1 << 20
_REFUSED = {"c": "complex numbers", "O": "Python objects", "V": "raw bytes", "M": "dates", "m": "time differences"}
_EXPECTED = "expected booleans, integers, floats or text"
_LONG = re.compile(rb"(\d)L\b")
_PARSE_ERRORS = (ValueError, TypeError, SyntaxError, KeyError, RecursionError, MemoryError, tokenize.TokenError)
"""Exceptions of NumPy and of ``ast.literal_eval`` for a damaged header."""


@dataclass(frozen=True)
class Header:
    """The header of a .npy.

    Attributes:
        dtype: of the elements as they are stored.
        shape: of the array.
        fortran_order: whether the elements are stored with the first axis varying fastest.
        length: the bytes of the file before the first element.
    """

    dtype: np.dtype
    shape: tuple[int, ...]
    fortran_order: bool
    length: int

    @property
    def count(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """The bytes of all elements."""
        return self.count * self.dtype.itemsize


def read_array(read: Read, size: int, where: str, memory: MemoryLimit) -> np.ndarray:
    """The array of a .npy in this machine's byte order; texts as NumPy's own string type.

    Args:
        read: returns the bytes from the start of the file.
        size: bytes of the whole file.
        where: its name in messages.
        memory: the limit of the array.

    Raises:
        ModelError: it is not a .npy of booleans, integers, floats or text, is longer or shorter than its header says,
            or takes too much memory.
    """
    header = read_header(read, size, where)
    # Bytes that are decoded take four more each.
    try:
        memory.check_memory(
            header.bytes * (5 if header.dtype.kind == "S" else 1), f"{header.dtype.name} of shape {list(header.shape)}"
        )
    except OpError as error:
        raise ModelError(f"{where}: {error}") from None
    elements = _elements(read, header, where)
    return elements.reshape(header.shape[::-1]).T if header.fortran_order else elements.reshape(header.shape)


def read_header(read: Read, size: int, where: str) -> Header:
    """The header of a .npy of ``size`` bytes.

    Raises:
        ModelError: as for ``read_array``, but for the memory that the elements take.
    """
    header = _header(read, where)
    if header.length + header.bytes != size:
        expected = f"{header.bytes:,} bytes of {header.dtype.name} of shape {list(header.shape)}"
        raise ModelError(
            f"{where}: has {size - header.length:,} bytes after its header, which says that it has {expected}"
        )
    return header


def part_of(data: bytes, header: Header, shape: tuple[int, ...], where: str) -> np.ndarray:
    """Elements of a .npy from their bytes, as an array of the given shape."""
    return _checked(_native(np.frombuffer(bytearray(data), header.dtype)), where).reshape(shape)


def _header(read: Read, where: str) -> Header:
    start = _start(read, len(MAGIC) + 2)
    if not start.startswith(MAGIC):
        raise ModelError(f"{where}: is not a .npy: it starts with {start[: len(MAGIC)]!r}")
    version = tuple(start[len(MAGIC) :])
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise ModelError(
            f"{where}: has version {'.'.join(map(str, version))} of the .npy format, expected 1.0, 2.0 or 3.0"
        )
    count = 2 if version == (1, 0) else 4
    length = int.from_bytes(_exactly(read, count, where), "little")
    if length > _HEADER_LIMIT:
        raise ModelError(f"{where}: has a header of {length:,} bytes, of which at most {_HEADER_LIMIT:,} are read")
    # Python 2 wrote sizes as 3L, of which NumPy warns.
    text = _LONG.sub(rb"\1 ", _exactly(read, length, where))
    content = io.BytesIO(length.to_bytes(count, "little") + text)
    shape, fortran_order, dtype = _parsed(content, version, where)
    _check_type(dtype, where)
    _check_shape(shape, dtype, where)
    return Header(dtype, shape, fortran_order, len(start) + count + length)


def _parsed(content: io.BytesIO, version: tuple[int, ...], where: str) -> tuple[tuple[int, ...], bool, np.dtype]:
    """The header as NumPy reads it. Version 3 differs from 2 by names of fields in UTF-8, and records are refused."""
    parse = format.read_array_header_1_0 if version == (1, 0) else format.read_array_header_2_0
    try:
        return parse(content)
    except _PARSE_ERRORS as error:
        raise ModelError(f"{where}: its header cannot be read: {sentence(str(error))[:200]}") from None


def _check_type(dtype: np.dtype, where: str) -> None:
    if dtype.names is not None or dtype.subdtype is not None:
        raise ModelError(f"{where}: holds records, {_EXPECTED}")
    if dtype.kind in _REFUSED:
        raise ModelError(f"{where}: holds {_REFUSED[dtype.kind]} ({dtype.str}), {_EXPECTED}")
    if dtype.kind not in "biufSU" or dtype.itemsize == 0:
        raise ModelError(f"{where}: its header has the type {dtype.str!r}, {_EXPECTED}")


def _check_shape(shape: tuple[int, ...], dtype: np.dtype, where: str) -> None:
    if any(type(size) is not int or size < 0 for size in shape):
        raise ModelError(f"{where}: its header has a shape of {sentence(str(shape))}, expected a tuple of sizes")
    if len(shape) > _MAX_RANK:
        raise ModelError(f"{where}: has {len(shape)} dimensions, of which NumPy allows {_MAX_RANK}")
    if math.prod(size for size in shape if size) * dtype.itemsize > np.iinfo(np.intp).max:
        raise ModelError(f"{where}: an array of shape {list(shape)} is too large")


def _start(read: Read, count: int) -> bytes:
    """The next bytes, fewer only at the end of the file."""
    found = b""
    while len(found) < count and (more := read(count - len(found))):
        found += more
    return found


def _exactly(read: Read, count: int, where: str) -> bytes:
    found = _start(read, count)
    if len(found) < count:
        raise ModelError(f"{where}: ends within the header of a .npy")
    return found


def _elements(read: Read, header: Header, where: str) -> np.ndarray:
    """All elements in the order of the file."""
    try:
        elements = np.empty(header.count, header.dtype)
    except MemoryError:
        raise ModelError(f"{where}: needs {header.bytes:,} bytes of memory, which are not available") from None
    raw = elements.view(np.uint8)
    done = 0
    while done < raw.size and (chunk := read(min(_CHUNK, raw.size - done))):
        raw[done : done + len(chunk)] = np.frombuffer(chunk, np.uint8)
        done += len(chunk)
    if done < raw.size or read(1):
        raise ModelError(f"{where}: is not as long as it says: {done:,} of {raw.size:,} bytes were read")
    return _checked(_native(elements), where)


def _native(elements: np.ndarray) -> np.ndarray:
    """The same values in this machine's byte order; booleans other than 0 and 1 are true."""
    if elements.dtype.kind == "b":
        return elements.view(np.uint8) != 0
    if elements.dtype.isnative:
        return elements
    return elements.byteswap(inplace=True).view(elements.dtype.newbyteorder("="))


def _checked(elements: np.ndarray, where: str) -> np.ndarray:
    """The same elements; bytes are decoded as UTF-8."""
    if elements.dtype.kind == "S":
        try:
            return np.char.decode(elements, "utf-8")
        except UnicodeDecodeError as error:
            raise ModelError(f"{where}: holds text that is not UTF-8: {error.reason}") from None
    if elements.dtype.kind == "U":
        try:
            check_code_points(elements)
        except OpError as error:
            raise ModelError(f"{where}: is not text: {error}") from None
    return elements
