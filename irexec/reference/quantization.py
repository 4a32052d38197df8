"""The levels of FakeQuantize, in f64, and the 8-bit values of FakeConvert."""

from __future__ import annotations

import numpy as np


def nearest_levels(data: np.ndarray, low: np.ndarray, high: np.ndarray, levels: int) -> np.ndarray:
    """Indices of the levels nearest to ``data`` as f64, of ``levels`` levels from ``low`` to ``high``; halves are
    rounded to even.

    The quotient comes last, so that a value halfway between two levels is seen as such.
    """
    index = np.asarray(np.subtract(data, low, dtype=np.float64))
    index *= levels - 1
    index /= np.subtract(high, low, dtype=np.float64)
    return np.rint(index, out=index)


def level_values(index: np.ndarray, low: np.ndarray, high: np.ndarray, levels: int) -> np.ndarray:
    """Values of levels by index; there are ``levels`` levels from ``low`` to ``high``.

    Args:
        index: whole numbers from 0 to ``levels - 1``, or NaN.
        low, high: the bounds, of the type of the result.

    Returns:
        The values rounded to the type of the bounds, and 0 for ``zero_level``.
    """
    values = np.asarray(_exact_values(index, low, high, levels).astype(low.dtype))
    values[index == zero_level(low, high, levels)] = 0
    return values


def zero_level(low: np.ndarray, high: np.ndarray, levels: int) -> np.ndarray:
    """The index of the level of each range that is meant to be 0, -1 where there is none.

    A level is not quite 0 where the bounds were rounded to their type. It is taken for 0 if it is within half an ulp of
    ``high - low`` in the type of the bounds, and of all levels between the bounds the nearest to 0.
    """
    span = np.subtract(high, low, dtype=np.float64)
    index = np.rint(np.multiply(low, -(levels - 1), dtype=np.float64) / span)
    beside = np.abs(_exact_values(index, low, high, levels))
    is_meant = (beside <= np.spacing(np.abs(span).astype(low.dtype)) / 2) & (beside < np.abs(span) / (2 * (levels - 1)))
    return np.where(is_meant & (index > 0) & (index < levels - 1), index, -1.0)


def is_zero_inexact_in_f32(low: np.ndarray, high: np.ndarray, levels: int) -> bool:
    """Whether the level that is meant to be 0 is another value when the step between two levels is rounded to f32."""
    low, high = low.astype(np.float32), high.astype(np.float32)
    with np.errstate(all="ignore"):
        index, step = zero_level(low, high, levels), (high - low) / np.float32(levels - 1)
        # Multiplied and added with one rounding.
        return bool(((index > 0) & ((index * step + low).astype(np.float32) != 0)).any())


def _exact_values(index: np.ndarray, low: np.ndarray, high: np.ndarray, levels: int) -> np.ndarray:
    """In f64. Both products and their sum are exact for bounds of f32 that do not differ by many powers of two."""
    values = np.asarray(np.multiply(index, high, dtype=np.float64))
    values += np.multiply(np.subtract(levels - 1, index), low, dtype=np.float64)
    values /= levels - 1
    return values


_EXPONENT = np.uint16(0x7C00)


def round_e5m2(x: np.ndarray) -> np.ndarray:
    """f16 rounded to two bits of mantissa, halves to even; values from 57344 on, and infinities, become 57344."""
    bits = np.ascontiguousarray(x).view(np.uint16).reshape(x.shape)
    bits = np.where(np.isinf(x), (bits & np.uint16(0x8000)) | np.uint16(0x7B00), bits)
    low, tie = bits & np.uint16(0x00FF), bits & np.uint16(0x0180)
    up = ((low > 0x80) | (tie == 0x180)) & ((bits & np.uint16(0x7F00)) < 0x7B00)
    truncated = (bits + (up.astype(np.uint16) << np.uint16(8))) & np.uint16(0xFF00)
    return np.where(np.isnan(x), x, truncated.view(np.float16))


def round_e4m3(x: np.ndarray) -> np.ndarray:
    """f16 rounded to three bits of mantissa; at most 448, which NaN and infinities become too; below 2**-9 it is 0.

    Values below 2**-6 are rounded to three bits, and then truncated to the fewer that the type has there.
    """
    bits = np.ascontiguousarray(x).view(np.uint16).reshape(x.shape)
    bits = np.where(np.abs(x.astype(np.float32)) < 2.0**-9, np.uint16(0), bits)
    exponent = ((bits & _EXPONENT) >> np.uint16(10)).astype(np.int32) - 15
    mantissa = (bits & np.uint16(0x03FF)).astype(np.int32)
    beyond = exponent > 8
    exponent = np.where(beyond, 8, np.where(exponent < -9, -15, exponent))
    mantissa = np.where(beyond, 0x300, np.where(exponent < -9, 0, mantissa))
    mantissa = np.where((exponent == 8) & (mantissa >= 0x300), 0x300, mantissa)
    up = ((mantissa & 0x7F) > 0x40) | ((mantissa & 0xC0) == 0xC0)
    up &= ((bits & np.uint16(0x7FFF)) < 0x5F80) & ~beyond
    mantissa += up.astype(np.int32) << 7
    lost = np.where((exponent < -6) & (exponent > -15), -6 - exponent, 0)
    mantissa = ((mantissa >> lost) & ~0x7F) << lost
    result = mantissa + ((exponent + 15) << 10)
    return (result.astype(np.uint16) | (bits & np.uint16(0x8000))).view(np.float16)
