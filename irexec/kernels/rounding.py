"""Rounding to the element types that NumPy lacks; results stay in the carrier.

All of it is as OpenVINO's Convert does (measured on its constant folding): to nearest, ties to the
even code; f8e4m3 has no infinity, so what is above 464 becomes NaN; f8e5m2 overflows to infinity;
f4e2m1 saturates and makes 6 of NaN; f8e8m0 saturates at both ends and takes what is not positive to
its least, 2**-127; integers keep their low bits.
"""

from __future__ import annotations

import functools

import numpy as np

from irexec.errors import OpError
from irexec.kernels.codes import table

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
    if name == "f8e8m0":
        return table(name)[encode(name, array)]
    return table(name)[encode(name, array)].reshape(array.shape)


def round_bf16(array: np.ndarray) -> np.ndarray:
    """float32 numbers with the low 16 bits rounded away, ties to even; NaN stays NaN."""
    values = np.ascontiguousarray(array, np.float32).reshape(array.shape)
    return (bf16_bits(values).astype(np.uint32) << np.uint32(16)).view(np.float32)


def bf16_bits(values: np.ndarray) -> np.ndarray:
    """uint16 codes of float32 numbers."""
    bits = np.ascontiguousarray(values, np.float32).reshape(values.shape).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    quiet = (bits >> np.uint32(16)) | np.uint32(0x40)
    return np.where(np.isnan(values), quiet, rounded).astype(np.uint16)


def encode(name: str, array: np.ndarray) -> np.ndarray:
    """uint8 codes of numbers rounded to a float type below 16 bits, in the shape of ``array``."""
    values = np.asarray(array, np.float32)
    if name == "nf4":
        return np.searchsorted(_midpoints("nf4"), values, side="left").astype(np.uint8)
    if name == "f8e8m0":
        codes = _nearest(np.where(values > 0, values, 0), "f8e8m0", 255)
        return np.where(np.isnan(values), 255, codes).astype(np.uint8)
    if name not in _POSITIVE_CODES:
        raise OpError(f"{name} is no float type below 16 bits")
    count, overflow, nan = _POSITIVE_CODES[name]
    codes = _nearest(np.abs(values), name, count)
    codes = np.where(np.isnan(values), nan, np.where(codes >= count, overflow, codes))
    sign = np.where(np.signbit(values) & ~(np.isnan(values) & (name == "f4e2m1")), _SIGN[name], 0)
    return (codes | sign).astype(np.uint8)


# The number of finite codes that are not negative, the code of what is above them, the code of NaN.
_POSITIVE_CODES = {"f8e4m3": (0x7F, 0x7F, 0x7F), "f8e5m2": (0x7C, 0x7C, 0x7E), "f4e2m1": (8, 7, 7)}
_SIGN = {"f8e4m3": 0x80, "f8e5m2": 0x80, "f4e2m1": 0x08}


def _nearest(values: np.ndarray, name: str, count: int) -> np.ndarray:
    """The code nearest to each value, ties to the even one; ``count`` for what overflows."""
    middles = _midpoints(name)
    below = np.searchsorted(middles, values, side="left")
    tie = (below < len(middles)) & (middles[np.minimum(below, len(middles) - 1)] == values) & (below % 2 == 1)
    codes = below + tie
    return np.where(np.isnan(values), 0, np.minimum(codes, count if name != "f8e8m0" else 254))


@functools.cache
def _midpoints(name: str) -> np.ndarray:
    """Halfway between neighbouring values, and halfway to the first that does not fit."""
    if name == "nf4":
        values = table(name).astype(np.float64)
        return ((values[1:] + values[:-1]) / 2).astype(np.float32)
    count = 255 if name == "f8e8m0" else _POSITIVE_CODES[name][0]
    values = table(name)[:count].astype(np.float64)
    middles = (values[1:] + values[:-1]) / 2
    if name in ("f8e4m3", "f8e5m2"):
        middles = np.append(middles, values[-1] + (values[-1] - values[-2]) / 2)
    return middles.astype(np.float32) if name != "f8e8m0" else middles
