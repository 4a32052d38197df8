"""Codecs: between the carrier of an element type and its packed bytes, and rounding to the type. One class for each
kind.
"""

from __future__ import annotations

import itertools
from typing import Protocol

import numpy as np

from irexec.dtypes.layouts import Layout, MiniFloat, bf16_bits, from_bf16_bits, round_bf16
from irexec.errors import OpError


def check_code_points(texts: np.ndarray) -> None:
    """Raise OpError if an array of U, of any byte order, holds a code point that Unicode does not have, or a surrogate.

    NumPy keeps them, but making a str of one beyond Unicode is a SystemError.
    """
    native = np.ascontiguousarray(texts, texts.dtype.newbyteorder("="))
    codes = native.ravel().view(np.uint32) if texts.itemsize else np.zeros(0, np.uint32)
    wrong = (codes > 0x10FFFF) | (codes >> 11 == 0xD800 >> 11)
    if wrong.any():
        raise OpError(f"it holds the code point 0x{int(codes[wrong][0]):X}, which is not a character of Unicode")


def encoded(values: np.ndarray) -> list[bytes]:
    """The UTF-8 of each string of an array.

    Raises:
        OpError: one has a surrogate, which is not a character and has no UTF-8; a str of Python may have it.
    """
    try:
        return [str(value).encode() for value in values.ravel().tolist()]
    except UnicodeEncodeError as error:
        raise OpError(
            f"it holds the code point 0x{ord(error.object[error.start]):X}, which is not a character of Unicode"
        ) from None


def unpack_strings(raw: np.ndarray, count: int) -> np.ndarray:
    """``count`` texts of packed bytes, as an object array of one dimension.

    Raises:
        OpError: the bytes are not those of ``count`` strings.
    """
    data = np.ascontiguousarray(raw)
    if count == 0 and data.size == 0:
        return np.empty(0, object)
    if data.size < 8 + 4 * count:
        raise OpError(f"{count} strings take at least {8 + 4 * count} bytes, there are {data.size}")
    stored = int(data[:4].view("<i4")[0])
    if stored != count:
        raise OpError(f"holds {stored} strings, its shape has {count}")
    text = data[8 + 4 * count :].tobytes()
    starts, ends = string_offsets(data, count, len(text))
    found = np.empty(count, object)
    try:
        found[:] = [text[start:end].decode() for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
    except UnicodeDecodeError as error:
        raise OpError(f"holds text that is not UTF-8: {error}") from None
    return found


def string_offsets(data: np.ndarray, count: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Where each of ``count`` strings of packed bytes starts and ends in its ``length`` bytes of text.

    Raises:
        OpError: the offsets do not ascend within the text.
    """
    ends = data[8 : 8 + 4 * count].view("<i4").astype(np.int64)
    first = data[4:8].view("<i4").astype(np.int64)
    starts = np.concatenate([first, ends])[:count]
    if count and (first[0] < 0 or (ends < starts).any() or ends[-1] > length):
        raise OpError(f"the end offsets of its strings do not ascend within its {length} bytes of text")
    return starts, ends


class Codec(Protocol):
    """Bytes of an element type: their number, packing, unpacking and rounding.

    Attributes:
        rounds: whether the carrier holds values that the type does not have, so that results must be rounded.
    """

    rounds: bool

    def size(self, count: int) -> int:
        """The number of bytes of ``count`` elements; OpError where the count does not decide it."""

    def pack(self, values: np.ndarray) -> np.ndarray:
        """The packed bytes (uint8, one dimension) of values of the carrier, which are contiguous and of one
        dimension."""

    def unpack(self, data: np.ndarray, count: int) -> np.ndarray:
        """``count`` elements in the carrier; ``data`` has at least ``size(count)`` bytes."""

    def round(self, values: np.ndarray) -> np.ndarray:
        """The values of the carrier rounded to the type, in the same shape."""


class NativeCodec:
    """A type that NumPy has itself, little-endian."""

    rounds = False

    def __init__(self, dtype: np.dtype) -> None:
        self._dtype = dtype

    def size(self, count: int) -> int:
        return count * self._dtype.itemsize

    def pack(self, values: np.ndarray) -> np.ndarray:
        return values.astype(self._dtype, copy=False).view(np.uint8)

    def unpack(self, data: np.ndarray, count: int) -> np.ndarray:
        """A view on ``data`` where it is aligned."""
        aligned = data.ctypes.data % self._dtype.alignment == 0
        return (data if aligned else data.copy()).view(self._dtype)[:count]

    def round(self, values: np.ndarray) -> np.ndarray:
        return values


class BooleanCodec(NativeCodec):
    """A byte of which any value but 0 is true."""

    def pack(self, values: np.ndarray) -> np.ndarray:
        return values.astype(np.uint8)

    def unpack(self, data: np.ndarray, count: int) -> np.ndarray:
        return data[:count] != 0


class StringCodec:
    """UTF-8 after a table of offsets."""

    rounds = False

    def size(self, count: int) -> int:
        raise OpError("the size of a string tensor does not follow from its count")

    def pack(self, values: np.ndarray) -> np.ndarray:
        """Errors are those of ``encoded``."""
        texts = encoded(values)
        ends = itertools.accumulate(map(len, texts))
        header = np.array([len(texts), 0, *ends], "<i4")
        return np.frombuffer(header.tobytes() + b"".join(texts), np.uint8)

    def unpack(self, data: np.ndarray, count: int) -> np.ndarray:
        return unpack_strings(data, count)

    def round(self, values: np.ndarray) -> np.ndarray:
        return values


class SmallIntegerCodec:
    """An integer of fewer than 8 bits; rounding keeps the low bits."""

    rounds = True

    def __init__(self, bits: int, layout: Layout, *, signed: bool = False) -> None:
        self._mask, self._layout = np.uint8((1 << bits) - 1), layout
        self._sign = np.int8(1 << (bits - 1)) if signed else None

    def size(self, count: int) -> int:
        return self._layout.size(count)

    def pack(self, values: np.ndarray) -> np.ndarray:
        return self._layout.join(values.astype(np.uint8))

    def unpack(self, data: np.ndarray, count: int) -> np.ndarray:
        return self._signed(self._layout.split(data, count))

    def round(self, values: np.ndarray) -> np.ndarray:
        return self._signed(values.astype(np.uint8) & self._mask)

    def _signed(self, codes: np.ndarray) -> np.ndarray:
        return codes if self._sign is None else (codes.astype(np.int8) ^ self._sign) - self._sign


class BFloat16Codec:
    """bf16 carried by float32."""

    rounds = True

    def size(self, count: int) -> int:
        return 2 * count

    def pack(self, values: np.ndarray) -> np.ndarray:
        return bf16_bits(values).astype("<u2").view(np.uint8)

    def unpack(self, data: np.ndarray, count: int) -> np.ndarray:
        return from_bf16_bits(np.frombuffer(data[: 2 * count].tobytes(), "<u2"))

    def round(self, values: np.ndarray) -> np.ndarray:
        return round_bf16(values)


class MiniFloatCodec:
    """A float type of at most 8 bits carried by float32."""

    rounds = True

    def __init__(self, format: MiniFloat, layout: Layout) -> None:
        self.format, self._layout = format, layout

    def size(self, count: int) -> int:
        return self._layout.size(count)

    def pack(self, values: np.ndarray) -> np.ndarray:
        return self._layout.join(self.format.encode(values))

    def unpack(self, data: np.ndarray, count: int) -> np.ndarray:
        return self.format.values[self._layout.split(data, count)]

    def round(self, values: np.ndarray) -> np.ndarray:
        return self.format.values[self.format.encode(values)]
