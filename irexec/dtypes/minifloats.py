"""Float types of 8 bits and fewer: the value of every code, and the code that a float32 is rounded to.

Rounding follows OpenVINO's Convert (constant folding and CPU plugin, measured at and between all codes): to nearest,
ties to the even code.

Values: OCP 8-bit Floating Point Specification 1.0 (E4M3, E5M2), OCP Microscaling Formats 1.0 (E8M0, E2M1), Dettmers et
al. 2023, QLoRA, appendix E (NF4).
"""

from __future__ import annotations

import abc
import functools

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
