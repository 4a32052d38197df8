"""Rounding to the element types that NumPy lacks; results stay in the carrier.

As OpenVINO's Convert does it (its constant folding and CPU plugin, asked for every code and what lies
between): to nearest, ties to the even code, in nf4 to the lesser number; f8e4m3 and f8e5m2 by way of f16, so rounded
twice; f8e4m3 has no infinity, so what is above 464 becomes NaN; f8e5m2 overflows to infinity; f4e2m1 saturates
and makes 6 of NaN; nf4 makes -1 of NaN; f8e8m0 saturates at both ends and takes what is not positive to
its least, 2**-127; integers keep their low bits.

Apart from OpenVINO on purpose, where it is not what it says it is: its bf16 "to nearest even" leaves even codes as they are
however near the next one is (ties come out the same); in f8e5m2 what lies at most one part in 4096 below 2**-17,
2**-16 and 2**-15 becomes twice as large; a signalling NaN becomes infinity, a negative one no NaN in f8e8m0.
"""

from __future__ import annotations

import functools

import numpy as np

from irexec.dtypes.minifloats import NF4_STEPS, table
from irexec.errors import OpError

_UNSIGNED_BITS = {"u1": 1, "u2": 2, "u3": 3, "u4": 4, "u6": 6}


def round_to(name: str, array: np.ndarray) -> np.ndarray:
    """The numbers of ``array`` rounded to the element type ``name``, in its carrier.

    Args:
        name: bf16, f8e4m3, f8e5m2, f8e8m0, f4e2m1, nf4 (carried by float32), i4 (int8) or u1..u6 (uint8).
        array: numbers of the carrier, any shape.
    """
    # Arithmetic on an array without axes gives a scalar.
    return np.asarray(_rounded(name, array))


def _rounded(name: str, array: np.ndarray) -> np.ndarray:
    if name == "bf16":
        return round_bf16(array)
    if name in _UNSIGNED_BITS:
        return (array & np.uint8((1 << _UNSIGNED_BITS[name]) - 1)).astype(np.uint8)
    if name == "i4":
        return ((array.astype(np.int8) & np.int8(15)) ^ np.int8(8)) - np.int8(8)
    return table(name)[encode(name, array)]


def round_bf16(array: np.ndarray) -> np.ndarray:
    """float32 numbers with the low 16 bits rounded away, ties to even; NaN stays NaN."""
    return _bf16_in_float32(array).view(np.float32)


def bf16_bits(array: np.ndarray) -> np.ndarray:
    """uint16 codes of float32 numbers, in the shape of ``array``."""
    return (_bf16_in_float32(array) >> np.uint32(16)).astype(np.uint16)


def _bf16_in_float32(array: np.ndarray) -> np.ndarray:
    """The bits of float32 numbers that are bf16 ones."""
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


def encode(name: str, array: np.ndarray) -> np.ndarray:
    """uint8 codes of numbers rounded to a float type below 16 bits, in the shape of ``array``."""
    with np.errstate(over="ignore", invalid="ignore"):
        return _encoded(name, np.asarray(array, np.float32))


def _encoded(name: str, values: np.ndarray) -> np.ndarray:
    if name in ("f8e4m3", "f8e5m2"):
        return _codes_of_halves(name)[values.astype(np.float16, order="C").view(np.uint16)]
    if name == "nf4":
        codes = np.searchsorted(NF4_STEPS, values, side="left")
        return np.where(np.isnan(values), 0, codes).astype(np.uint8)
    if name == "f8e8m0":
        codes = np.minimum(_nearest(np.where(values > 0, values, 0), name, 255), 254)
        return np.where(np.isnan(values), 255, codes).astype(np.uint8)
    if name == "f4e2m1":
        codes = np.where(np.isnan(values), 7, np.minimum(_nearest(np.abs(values), name, 8), 7))
        sign = np.where(np.signbit(values) & ~np.isnan(values), 8, 0)
        return (codes | sign).astype(np.uint8)
    raise OpError(f"{name} is no float type below 16 bits")


@functools.cache
def _codes_of_halves(name: str) -> np.ndarray:
    """The f8 code of every f16 there is."""
    halves = np.arange(1 << 16).astype(np.uint16).view(np.float16).astype(np.float32)
    finite, nan = (0x7F, 0x7F) if name == "f8e4m3" else (0x7C, 0x7E)
    codes = np.where(np.isnan(halves), nan, np.minimum(_nearest(np.abs(halves), name, finite), finite))
    return (codes | np.where(np.signbit(halves), 0x80, 0)).astype(np.uint8)


def _nearest(values: np.ndarray, name: str, count: int) -> np.ndarray:
    """The code nearest to each value that is not negative, ties to the even one; ``count`` or more for what overflows."""
    middles = _middles(name, count)
    below = np.searchsorted(middles, values, side="left")
    tie = (below < len(middles)) & (middles[np.minimum(below, len(middles) - 1)] == values) & (below % 2 == 1)
    return below + tie


@functools.cache
def _middles(name: str, count: int) -> np.ndarray:
    """Halfway between the neighbours of the first ``count`` values, and as far above the last one."""
    values = table(name)[:count].astype(np.float64)
    middles = (values[1:] + values[:-1]) / 2
    return np.append(middles, values[-1] + (values[-1] - values[-2]) / 2)
