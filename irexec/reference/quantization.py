"""The levels of FakeQuantize, in f64: for f32 and f16, what exact arithmetic gives, rounded once."""

from __future__ import annotations

import numpy as np


def nearest_levels(data: np.ndarray, low: np.ndarray, high: np.ndarray, levels: int) -> np.ndarray:
    """Indices of the levels nearest to ``data`` as f64, of ``levels`` levels from ``low`` to ``high``; halves are rounded to even.

    The quotient comes last, so that a value halfway between two levels is seen as such.
    """
    span = np.subtract(high, low, dtype=np.float64)
    return np.asarray(np.rint(np.subtract(data, low, dtype=np.float64) * (levels - 1) / span))


def level_values(level: np.ndarray, low: np.ndarray, high: np.ndarray, levels: int) -> np.ndarray:
    """The values of levels by their indices, of ``levels`` levels from ``low`` to ``high``.

    A level that is meant to be 0 is not quite 0 where the bounds were rounded to their type. It is taken for 0: of all levels
    between the bounds the one nearest to 0, if it is within half an ulp of ``high - low`` in the type of the bounds.

    Args:
        level: whole numbers from 0 to ``levels - 1``, or NaN.
        low, high: the bounds, of the type of the result.

    Returns:
        The values rounded to the type of the bounds.
    """
    last = levels - 1
    # Both products and their sum are exact in f64 for bounds of f32 that do not differ by many powers of two.
    value = (np.multiply(level, high, dtype=np.float64) + np.multiply(last - level, low, dtype=np.float64)) / last
    span = np.abs(np.subtract(high, low, dtype=np.float64))
    is_zero = (np.abs(value) <= np.spacing(span.astype(low.dtype)) / 2) & (np.abs(value) < span / (2 * last))
    return np.asarray(np.where(is_zero & (level > 0) & (level < last), 0.0, value).astype(low.dtype))
