"""Layouts: codes of a few bits in bytes, small floats, bfloat16, and their layouts in memory.

Rounding follows OpenVINO's Convert (constant folding and CPU plugin, measured at and between all codes): to nearest,
ties to the even code.

Values: OCP 8-bit Floating Point Specification 1.0 (E4M3, E5M2), OCP Microscaling Formats 1.0 (E8M0, E2M1), Dettmers et
al. 2023, QLoRA, appendix E (NF4).

Unlike OpenVINO on purpose, whose "to nearest even" leaves an even code as it is however near the next one is (ties
agree), and makes an infinity of a signalling NaN.

u1 is most significant bit first; u2, u4, i4, nf4 and f4e2m1 are least significant bits first; u3 and u6 are
split into planes, and their groups are always whole.
"""

from __future__ import annotations

import abc
import functools
from dataclasses import dataclass
from typing import Protocol

import numpy as np


class MiniFloat(abc.ABC):
    """A float type of which every value has a code of at most 8 bits.

    Attributes:
        ascending: number of codes from 0 on with finite, non-negative values in ascending order.
    """

    ascending: int = 0

    @functools.cached_property
    def values(self) -> np.ndarray:
        """float32 values by code; read-only."""
        values = self._values().astype(np.float32)
        values.flags.writeable = False
        return values

    def encode(self, array: np.ndarray) -> np.ndarray:
        """uint8 codes of float32 values, each rounded, in the shape of ``array``."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self._codes(np.asarray(array, np.float32))

    @abc.abstractmethod
    def _values(self) -> np.ndarray:
        """The values by code."""

    @abc.abstractmethod
    def _codes(self, values: np.ndarray) -> np.ndarray:
        """The codes of rounded float32 values."""

    def _nearest(self, values: np.ndarray) -> np.ndarray:
        """The code nearest to each value that is not negative; ``ascending`` for what overflows."""
        midpoints = self._midpoints
        below = np.searchsorted(midpoints, values, side="left")
        tie = (below < len(midpoints)) & (midpoints[np.minimum(below, len(midpoints) - 1)] == values) & (below % 2 == 1)
        return below + tie

    @functools.cached_property
    def _midpoints(self) -> np.ndarray:
        """Halfway between the neighbours of the ascending values, and as far above the last one."""
        values = self.values[: self.ascending].astype(np.float64)
        midpoints = (values[1:] + values[:-1]) / 2
        return np.append(midpoints, values[-1] + (values[-1] - values[-2]) / 2)


def _sign_exponent_mantissa(exponent_bits: int, mantissa_bits: int, bias: int) -> np.ndarray:
    """The finite value of every code, with subnormals."""
    half = np.arange(1 << (exponent_bits + mantissa_bits))
    exponent, mantissa = half >> mantissa_bits, (half & ((1 << mantissa_bits) - 1)) / (1 << mantissa_bits)
    normal = np.exp2(exponent - bias) * (1 + mantissa)
    positive = np.where(exponent == 0, np.exp2(1 - bias) * mantissa, normal)
    return np.concatenate([positive, -positive])


class Float8(MiniFloat):
    """f8e4m3 (no infinity, so values above 464 become NaN) or f8e5m2 (values overflow to infinity).

    Rounded twice, by way of f16, as OpenVINO does. Unlike OpenVINO's f8e5m2 on purpose: there a value at most one part
    in 4096 below 2**-17, 2**-16 or 2**-15 doubles.
    """

    def __init__(self, exponent_bits: int, mantissa_bits: int, *, infinity: bool) -> None:
        self._fields = exponent_bits, mantissa_bits, (1 << (exponent_bits - 1)) - 1
        self._infinity = infinity
        self._first_nan = 0x7D if infinity else 0x7F
        self.ascending = 0x7C if infinity else 0x7F

    def _values(self) -> np.ndarray:
        values = _sign_exponent_mantissa(*self._fields)
        first = self._first_nan
        if self._infinity:
            values[[first - 1, 0x80 + first - 1]] = np.inf, -np.inf
        values[first:0x80], values[0x80 + first :] = np.nan, -np.nan
        return values

    def _codes(self, values: np.ndarray) -> np.ndarray:
        return self._codes_of_halves[values.astype(np.float16, order="C").view(np.uint16)]

    @functools.cached_property
    def _codes_of_halves(self) -> np.ndarray:
        """The code of every f16 value."""
        halves = np.arange(1 << 16).astype(np.uint16).view(np.float16).astype(np.float32)
        # Overflow gives the code after the last finite value: infinity, or NaN where there is none.
        nan = 0x7E if self._infinity else 0x7F
        codes = np.where(np.isnan(halves), nan, np.minimum(self._nearest(np.abs(halves)), self.ascending))
        return (codes | np.where(np.signbit(halves), 0x80, 0)).astype(np.uint8)


class Exponent8(MiniFloat):
    """f8e8m0: powers of two. It saturates at its minimum and maximum; zero and negative values become the minimum,
    2**-127.

    Unlike OpenVINO's on purpose: there a NaN whose sign is set is not NaN.
    """

    ascending = 255

    def _values(self) -> np.ndarray:
        powers = np.exp2(np.arange(256, dtype=np.float64) - 127)
        powers[255] = np.nan
        return powers

    def _codes(self, values: np.ndarray) -> np.ndarray:
        codes = np.minimum(self._nearest(np.where(values > 0, values, 0)), 254)
        return np.where(np.isnan(values), 255, codes).astype(np.uint8)


class Float4(MiniFloat):
    """f4e2m1: it saturates at 6, and NaN becomes 6."""

    ascending = 8

    def _values(self) -> np.ndarray:
        return _sign_exponent_mantissa(2, 1, 1)

    def _codes(self, values: np.ndarray) -> np.ndarray:
        codes = np.where(np.isnan(values), 7, np.minimum(self._nearest(np.abs(values)), 7))
        sign = np.where(np.signbit(values) & ~np.isnan(values), 8, 0)
        return (codes | sign).astype(np.uint8)


# The quantiles of a normal distribution, scaled so that they span -1..1 and include 0.
_NF4 = (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
)  # fmt: skip

# The largest float32 that still rounds to each code of nf4 but the last. These are the means of neighbours; where
# float32 lacks the mean, the side on which OpenVINO has it (found by bisection) is not always the even one.
_NF4_LIMITS = np.array(
    [
        -0.84809643, -0.6106329, -0.45999527, -0.33967942, -0.2346074, -0.13791174, -0.045525018, 0.03979015,
        0.120255254, 0.20352125, 0.29201376, 0.38931254, 0.5016634, 0.6427869, 0.8614784,
    ],
    np.float32,
)  # fmt: skip


class NormalFloat4(MiniFloat):
    """nf4: ties go to the smaller value, and NaN becomes -1."""

    def _values(self) -> np.ndarray:
        return np.array(_NF4)

    def _codes(self, values: np.ndarray) -> np.ndarray:
        codes = np.searchsorted(_NF4_LIMITS, values, side="left")
        return np.where(np.isnan(values), 0, codes).astype(np.uint8)


def round_bf16(array: np.ndarray) -> np.ndarray:
    """float32 values with the low 16 bits rounded away, ties to even; NaN stays NaN."""
    return _rounded_bits(array).view(np.float32)


def bf16_bits(array: np.ndarray) -> np.ndarray:
    """uint16 codes of float32 values, in the shape of ``array``."""
    return (_rounded_bits(array) >> np.uint32(16)).astype(np.uint16)


def from_bf16_bits(codes: np.ndarray) -> np.ndarray:
    """The float32 values of uint16 codes."""
    return (codes.astype(np.uint32) << np.uint32(16)).view(np.float32)


def _rounded_bits(array: np.ndarray) -> np.ndarray:
    """The float32 bits of the values after rounding: the low 16 are zero."""
    values = np.asarray(array, np.float32, order="C")
    bits = values.view(np.uint32)
    rounded = np.asarray(bits >> np.uint32(16))
    rounded &= np.uint32(1)
    rounded += np.uint32(0x7FFF)
    rounded += bits
    nan = np.isnan(values)
    if nan.any():
        # A NaN keeps its high bits, unless they alone would make it an infinity.
        rounded[nan] = np.where(bits[nan] & np.uint32(0x7F0000), bits[nan], bits[nan] | np.uint32(0x400000))
    rounded &= np.uint32(0xFFFF0000)
    return rounded


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
        columns = [np.bitwise_or.reduce(fields << _shifts(bits), axis=1) for fields, bits in halves]
        return np.stack(columns, axis=1).reshape(-1)


def _mask(bits: int) -> np.uint8:
    return np.uint8((1 << bits) - 1)


def _shifts(bits: int) -> np.ndarray:
    return np.arange(8 - bits, -1, -bits, dtype=np.uint8)


def _fields(data: np.ndarray, bits: int) -> np.ndarray:
    """The bit fields of each row of bytes, most significant first."""
    fields = (data[:, :, None] >> _shifts(bits)) & _mask(bits)
    return fields.reshape(len(data), data.shape[1] * (8 // bits))
