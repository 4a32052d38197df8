"""Where numbers stand in sorted sequences, and which of them are distinct."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

GoesOn = Callable[[np.ndarray, np.ndarray], np.ndarray]


def bisect(sequence: np.ndarray, values: np.ndarray, goes_on: GoesOn) -> np.ndarray:
    """For each value how many numbers at the start of its sequence it goes beyond, as i64.

    Args:
        sequence: (..., n), sorted along the last axis.
        values: (..., m) with the same leading sizes.
        goes_on: of numbers of the sequence and values, whether the place is behind the number:
            ``np.less`` finds the first place, ``np.less_equal`` the last.
    """
    place = np.zeros(values.shape, np.int64)
    left = np.full(values.shape, sequence.shape[-1], np.int64)
    for _ in range(sequence.shape[-1].bit_length()):
        half = left // 2
        middle = np.minimum(place + half, sequence.shape[-1] - 1)
        on = goes_on(np.take_along_axis(sequence, middle, -1), values) & (left > 0)
        place = np.where(on, place + half + 1, place)
        left = np.where(on, left - half - 1, half)
    return place


def distinct(rows: np.ndarray, *, ordered: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The distinct rows of a matrix: where each is first met, which of them each row is, and how many there are.

    In ascending order, column by column, or in the order in which they are met. NaN differs from NaN.
    """
    order = np.lexsort(rows.T[::-1]) if rows.shape[1] else np.arange(len(rows))
    arranged = rows[order]
    starts = np.ones(len(rows), np.bool_)
    starts[1:] = (arranged[1:] != arranged[:-1]).any(1)
    groups = np.cumsum(starts) - 1
    first = order[starts]
    which = np.empty(len(rows), np.int64)
    which[order] = groups
    counts = np.bincount(groups, minlength=len(first))
    if ordered:
        return first, which, counts
    met = np.argsort(first)
    rank = np.empty(len(first), np.int64)
    rank[met] = np.arange(len(first))
    return first[met], rank[which], counts[met]
