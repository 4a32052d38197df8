"""Integers: results truncated and rounded, levels of FakeQuantize and their indices."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def truncated(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Floats as integers of ``dtype``, towards zero, as x86 converts them.

    Conversion is to i32 (i64 for u32 and types of 64 bits), of which what does not fit, NaN included, gives the
    minimum; then the low bits are kept.
    """
    if values.dtype == np.float16:
        # The bounds below do not fit f16.
        values = values.astype(np.float32)
    if dtype == np.uint64:
        big = values >= 2.0**63
        with np.errstate(invalid="ignore"):
            low = np.where(big, 0, values).astype(np.int64).astype(np.uint64)
            high = np.where(big & (values < 2.0**64), values, 0).astype(np.uint64)
        return np.where(big, high, low)
    through = np.dtype(np.int64) if dtype.itemsize == 8 or dtype == np.uint32 else np.dtype(np.int32)
    limit = 2.0 ** (8 * through.itemsize - 1)
    fits = (values >= -limit) & (values < limit)
    whole = np.where(fits, np.where(fits, values, 0).astype(through), np.iinfo(through).min)
    return whole.astype(through).astype(dtype)


def rounded(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Floats as integers of ``dtype``: to nearest, halves to even.

    What does not fit is what OpenVINO's implementations give, where they agree: bytes saturate, so that a negative
    result is 0 in u8; wider types are converted as by ``truncated``.
    """
    whole = np.rint(values)
    if dtype.itemsize > 1:
        return truncated(whole, dtype)
    limits = np.iinfo(dtype)
    return truncated(whole, np.dtype(np.int32)).clip(limits.min, limits.max).astype(dtype)


def truncated_quotient(dividend: np.ndarray, divisor: np.ndarray | int) -> np.ndarray:
    """The quotient by a positive divisor in the type of the dividend; of integers truncated towards zero."""
    if dividend.dtype.kind == "f":
        quotient = dividend / divisor
    elif dividend.dtype.kind == "i":
        quotient = np.abs(dividend) // divisor * np.sign(dividend)
    else:
        quotient = dividend // divisor
    return np.asarray(quotient, dividend.dtype)


def through_float(function: Callable[[np.ndarray], np.ndarray], data: np.ndarray) -> np.ndarray:
    """A function of floats; one of integers is computed in double precision, and its results are rounded to the type of
    ``data``."""
    if data.dtype.kind not in "iu":
        return np.asarray(function(data))
    with np.errstate(all="ignore"):
        return rounded(np.asarray(function(data.astype(np.float64))), data.dtype)


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
    values = np.asarray(exact_values(index, low, high, levels).astype(low.dtype))
    values[index == zero_level(low, high, levels)] = 0
    return values


def zero_level(low: np.ndarray, high: np.ndarray, levels: int) -> np.ndarray:
    """The index of the level of each range that is meant to be 0, -1 where there is none.

    A level is not quite 0 where the bounds were rounded to their type. It is taken for 0 if it is within half an ulp of
    ``high - low`` in the type of the bounds, and of all levels between the bounds the nearest to 0.
    """
    span = np.subtract(high, low, dtype=np.float64)
    index = np.rint(np.multiply(low, -(levels - 1), dtype=np.float64) / span)
    beside = np.abs(exact_values(index, low, high, levels))
    is_meant = (beside <= np.spacing(np.abs(span).astype(low.dtype)) / 2) & (beside < np.abs(span) / (2 * (levels - 1)))
    return np.where(is_meant & (index > 0) & (index < levels - 1), index, -1.0)


def is_zero_inexact_in_f32(low: np.ndarray, high: np.ndarray, levels: int) -> bool:
    """Whether the level that is meant to be 0 is another value when the step between two levels is rounded to f32."""
    low, high = low.astype(np.float32), high.astype(np.float32)
    with np.errstate(all="ignore"):
        index, step = zero_level(low, high, levels), (high - low) / np.float32(levels - 1)
        # Multiplied and added with one rounding.
        return bool(((index > 0) & ((index * step + low).astype(np.float32) != 0)).any())


def exact_values(index: np.ndarray, low: np.ndarray, high: np.ndarray, levels: int) -> np.ndarray:
    """Values of levels in f64; the one of ``zero_level`` need not be 0.

    Both products and their sum are exact for bounds of f32 that do not differ by many powers of two.
    """
    values = np.asarray(np.multiply(index, high, dtype=np.float64))
    values += np.multiply(np.subtract(levels - 1, index), low, dtype=np.float64)
    values /= levels - 1
    return values


def quantised_rows(rows: np.ndarray, group: int) -> tuple[np.ndarray, np.ndarray]:
    """The integers of groups along the last axis, and the scale of each group: its largest magnitude over 127.

    Source: the dynamic quantisation of OpenVINO's CPU plugin. A group with a NaN or an infinity has the scale NaN; one
    whose scale is below the normal range of f32 is 0.

    Args:
        rows: f32 (..., values). The last group may be shorter.
        group: values of a group.

    Returns:
        Integers as f32 (..., groups, group), with zeros behind the last value, and scales f32 (..., groups, 1).
    """
    padding = -rows.shape[-1] % group
    padded = np.pad(rows, [(0, 0)] * (rows.ndim - 1) + [(0, padding)])
    values = padded.reshape(*rows.shape[:-1], -1, group)
    largest = np.abs(values).max(-1, keepdims=True)
    with np.errstate(all="ignore"):
        scale = largest / np.float32(127)
        is_usual = np.isfinite(largest) & (scale >= np.finfo(np.float32).tiny)
        levels = np.where(is_usual, np.rint(values * (np.float32(1) / scale)), np.float32(0))
    scale = np.where(is_usual, scale, np.where(np.isfinite(largest), np.float32(0), np.float32(np.nan)))
    return levels, scale


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
