"""Codecs: between the carrier of an element type and its packed bytes, and rounding to the type. One class for each
kind.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from irexec.dtypes.layouts import Layout, MiniFloat, bf16_bits, from_bf16_bits, round_bf16
from irexec.dtypes.strings import pack_strings, unpack_strings
from irexec.errors import OpError


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
        return pack_strings(values)

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
