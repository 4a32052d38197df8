"""How codes of fewer than 8 bits lie in the bytes of a .bin, measured on files that OpenVINO wrote.

u1 is most significant bit first; u2, u4, i4, nf4 and f4e2m1 are least significant bits first; u3 and u6 are
split into planes, and their groups are always whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np


class Layout(Protocol):
    """Where in packed bytes each code is."""

    def size(self, count: int) -> int:
        """The number of bytes that ``count`` codes take."""

    def split(self, data: np.ndarray, count: int) -> np.ndarray:
        """The first ``count`` codes of packed bytes, as uint8; both have one dimension."""

    def join(self, codes: np.ndarray) -> np.ndarray:
        """The packed bytes of uint8 codes; both have one dimension."""


@dataclass(frozen=True)
class WholeBytes:
    """A code is a byte."""

    def size(self, count: int) -> int:
        return count

    def split(self, data: np.ndarray, count: int) -> np.ndarray:
        return data[:count]

    def join(self, codes: np.ndarray) -> np.ndarray:
        return codes


@dataclass(frozen=True)
class HighBitFirst:
    """Eight codes of one bit in a byte, the first in the most significant bit."""

    def size(self, count: int) -> int:
        return -(-count // 8)

    def split(self, data: np.ndarray, count: int) -> np.ndarray:
        return np.unpackbits(data, count=count)

    def join(self, codes: np.ndarray) -> np.ndarray:
        return np.packbits(codes & 1)


@dataclass(frozen=True)
class LowBitsFirst:
    """Several codes in a byte, the first in the least significant bits; ``bits`` is 2 or 4."""

    bits: int

    def size(self, count: int) -> int:
        return -(-count * self.bits // 8)

    def split(self, data: np.ndarray, count: int) -> np.ndarray:
        shifts = np.arange(0, 8, self.bits, dtype=np.uint8)
        return ((data[:, None] >> shifts) & _mask(self.bits)).reshape(-1)[:count]

    def join(self, codes: np.ndarray) -> np.ndarray:
        per_byte = 8 // self.bits
        padded = np.zeros(-(-codes.size // per_byte) * per_byte, np.uint8)
        padded[: codes.size] = codes & _mask(self.bits)
        shifts = np.arange(0, 8, self.bits, dtype=np.uint8)
        return np.bitwise_or.reduce(padded.reshape(-1, per_byte) << shifts, axis=1)


@dataclass(frozen=True)
class SplitPlanes:
    """Groups of three bytes: two with the low bits of a group's codes, then one with their high bits, each most
    significant first.

    u3 has 2 low bits and 1 high bit, so 8 codes in a group; u6 has 4 and 2, so 4 codes.
    """

    low_bits: int
    high_bits: int

    @property
    def _per_group(self) -> int:
        return 8 // self.high_bits

    def size(self, count: int) -> int:
        return -(-count // self._per_group) * 3

    def split(self, data: np.ndarray, count: int) -> np.ndarray:
        groups = data.reshape(-1, 3)
        low = _fields(groups[:, :2], self.low_bits)
        high = _fields(groups[:, 2:], self.high_bits)
        return (low | (high << np.uint8(self.low_bits))).reshape(-1)[:count]

    def join(self, codes: np.ndarray) -> np.ndarray:
        per = self._per_group
        groups = np.zeros((-(-codes.size // per), per), np.uint8)
        groups.reshape(-1)[: codes.size] = codes
        low, high = groups & _mask(self.low_bits), groups >> np.uint8(self.low_bits) & _mask(self.high_bits)
        halves = (low[:, : per // 2], self.low_bits), (low[:, per // 2 :], self.low_bits), (high, self.high_bits)
        return np.stack([_joined_fields(fields, bits) for fields, bits in halves], axis=1).reshape(-1)


def _mask(bits: int) -> np.uint8:
    return np.uint8((1 << bits) - 1)


def _shifts(bits: int) -> np.ndarray:
    return np.arange(8 - bits, -1, -bits, dtype=np.uint8)


def _fields(data: np.ndarray, bits: int) -> np.ndarray:
    """The bit fields of each row of bytes, most significant first."""
    fields = (data[:, :, None] >> _shifts(bits)) & _mask(bits)
    return fields.reshape(len(data), data.shape[1] * (8 // bits))


def _joined_fields(fields: np.ndarray, bits: int) -> np.ndarray:
    return np.bitwise_or.reduce(fields << _shifts(bits), axis=1)
