"""Arrays in NumPy's .npy format, of which nothing is trusted that the header says.

``numpy.lib.format`` evaluates the header as Python and allocates what it asks for. Here it is matched against the form that it has,
and its sizes are compared with the bytes that follow and with the memory before anything is allocated. Pickled objects are refused.

Source: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from irexec.compile.memory_limit import MemoryLimit
from irexec.dtypes.strings import check_code_points
from irexec.errors import ModelError, OpError

MAGIC = b"\x93NUMPY"

Read = Callable[[int], bytes]
"""Gives the next bytes of a file, at most as many as asked for, and none at its end."""

_HEADER_LIMIT = 10_000
"""The bytes of the longest header that is read; the header of an array of 64 dimensions has some 1,500."""

_MAX_RANK = 64
_CHUNK = 1 << 20
_ITEM = re.compile(
    r"""\s*(['"])(\w+)\1\s*:\s*(True|False|'[^']*'|"[^"]*"|\([^()]*\)|\[.*\])\s*(?:,|(?=\}))""", re.DOTALL
)
_SIZE = re.compile(r"\s*(\d{1,19})L?\s*")
_TYPE = re.compile(r"([<>=|]?)([a-zA-Z?])(\d{0,10})(\[.*\])?")
_REFUSED = {"c": "complex numbers", "O": "Python objects", "V": "raw bytes", "M": "dates", "m": "time differences"}
_EXPECTED = "expected booleans, integers, floats or text"


@dataclass(frozen=True)
class Header:
    """What the header of a .npy says.

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
        read: gives the bytes from the start of the file.
        size: the bytes of the whole file.
        where: what messages call it.
        memory: how much the array may take.

    Raises:
        ModelError: it is not a .npy of booleans, integers, floats or text, is longer or shorter than its header says, or takes
            too much memory.
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
    # Version 3 is UTF-8, in which only names of fields are not ASCII.
    items = _items(_exactly(read, length, where).decode("latin-1"), where)
    dtype, shape = _dtype(items["descr"], where), _shape(items["shape"], where)
    if math.prod(size for size in shape if size) * dtype.itemsize > np.iinfo(np.intp).max:
        raise ModelError(f"{where}: an array of shape {list(shape)} is too large")
    if items["fortran_order"] not in ("True", "False"):
        raise ModelError(f"{where}: its header has a fortran_order of {items['fortran_order']}, expected True or False")
    return Header(dtype, shape, items["fortran_order"] == "True", len(start) + count + length)


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


def _items(text: str, where: str) -> dict[str, str]:
    """The entries of the header, which is a dictionary written in Python; their values as written."""
    text, position, items = text.strip(), 1, dict[str, str]()
    if not text.startswith("{"):
        raise ModelError(f"{where}: its header is not a dictionary: {_short(text)}")
    while text[position:].strip() != "}":
        item = _ITEM.match(text, position)
        if item is None or item[2] in items:
            raise ModelError(f"{where}: its header cannot be read at {_short(text[position:])}")
        items[item[2]], position = item[3], item.end()
    if items.keys() != {"descr", "fortran_order", "shape"}:
        raise ModelError(
            f"{where}: its header has {', '.join(sorted(items)) or 'nothing'}, expected descr, fortran_order and shape"
        )
    return items


def _shape(text: str, where: str) -> tuple[int, ...]:
    sizes = text[1:-1].split(",") if text.startswith("(") else ["?"]
    one, last = len(sizes) == 1, sizes.pop()
    if last.strip():
        # A single size without a comma is not a tuple.
        sizes += ["?"] if one else [last]
    found = [_SIZE.fullmatch(size) for size in sizes]
    shape = tuple(int(match[1]) for match in found if match)
    if len(shape) != len(found):
        raise ModelError(f"{where}: its header has a shape of {_short(text)}, expected a tuple of sizes")
    if len(shape) > _MAX_RANK:
        raise ModelError(f"{where}: has {len(shape)} dimensions, of which NumPy allows {_MAX_RANK}")
    return shape


def _dtype(text: str, where: str) -> np.dtype:
    if text.startswith("["):
        raise ModelError(f"{where}: holds records, {_EXPECTED}")
    name = text.strip("'\"")
    found = _TYPE.fullmatch(name)
    if found and found[2] in _REFUSED:
        raise ModelError(f"{where}: holds {_REFUSED[found[2]]} ({_short(name)}), {_EXPECTED}")
    dtype = _known(found[1], found[2], found[3]) if found and not found[4] else None
    if dtype is None:
        raise ModelError(f"{where}: its header has the type {_short(name)}, {_EXPECTED}")
    return dtype


def _known(order: str, kind: str, number: str) -> np.dtype | None:
    """The type of an order of bytes, a kind of element and the bytes of one, or its characters; None if there is no such type."""
    if kind in "US":
        # The bytes of an element are a C int. Of no characters NumPy has no array, only one of single characters.
        size = int(number or 0) * (4 if kind == "U" else 1)
        return np.dtype(f"{order}{kind}{number}") if 0 < size < 1 << 31 else None
    if kind == "?" or (kind, number) == ("b", "1"):
        return np.dtype(np.bool_)
    try:
        return np.dtype(f"{order}{kind}{number}") if kind in "iuf" and number else None
    except TypeError:
        return None


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:60]}...")


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
