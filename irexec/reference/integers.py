"""From floating-point results to integers: truncated as Convert does, rounded as functions of integers do."""

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
        return _truncated_u64(values)
    through = np.dtype(np.int64) if dtype.itemsize == 8 or dtype == np.uint32 else np.dtype(np.int32)
    limit = 2.0 ** (8 * through.itemsize - 1)
    fits = (values >= -limit) & (values < limit)
    return (
        np.where(fits, np.where(fits, values, 0).astype(through), np.iinfo(through).min).astype(through).astype(dtype)
    )


def _truncated_u64(values: np.ndarray) -> np.ndarray:
    big = values >= 2.0**63
    with np.errstate(invalid="ignore"):
        low = np.where(big, 0, values).astype(np.int64).astype(np.uint64)
        high = np.where(big & (values < 2.0**64), values, 0).astype(np.uint64)
    return np.where(big, high, low)


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
