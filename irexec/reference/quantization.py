"""The levels of FakeQuantize, in f64: for f32 and f16, what exact arithmetic gives, rounded once."""

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
