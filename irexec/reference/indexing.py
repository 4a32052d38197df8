"""Indices that may be negative or out of range, binary search in sorted sequences, and distinct rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from irexec.errors import check


def as_indices(indices: np.ndarray) -> np.ndarray:
    """Indices as np.intp, the type that NumPy indexes with: i64, but i32 on a 32-bit system.

    There np.take, repeat, bincount, reduceat, choose, put and unravel_index refuse wider types, since these cannot be
    cast safely. The indices are within range, so no value changes.
    """
    return indices.astype(np.intp, copy=False)


def from_front(indices: np.ndarray, sizes: int | Sequence[int], *, negative: bool = True) -> np.ndarray:
    """Indices (i64) counted from the front; negative ones, where allowed, are counted from the end.

    Args:
        indices: integers, or an object array of int.
        sizes: the size they index, or one size for each position along their last axis.

    Raises:
        OpError: an index is out of range.
    """
    wide = indices.astype(np.int64)
    if isinstance(sizes, int) and wide.size and wide.min() >= 0 and wide.max() < sizes:
        return wide
    limits = np.asarray(sizes, np.int64)
    inside = (wide >= (-limits if negative else 0)) & (wide < limits)
    if not inside.all():
        size = np.broadcast_to(limits, wide.shape)[~inside][0]
        check(False, f"index {wide[~inside][0]} is out of range for a size of {size}")
    return np.where(wide < 0, wide + limits, wide)


IsBefore = Callable[[np.ndarray, np.ndarray], np.ndarray]


def bisect(sequence: np.ndarray, values: np.ndarray, is_before: IsBefore) -> np.ndarray:
    """The number of elements before each value at the start of its sequence, as i64.

    Args:
        sequence: (..., n), sorted along the last axis.
        values: (..., m) with the same leading sizes.
        is_before: of elements of the sequence and values, whether the element is before the value:
            ``np.less`` finds the first index at inverse the value can be inserted, ``np.less_equal`` the last.
    """
    index = np.zeros(values.shape, np.int64)
    left = np.full(values.shape, sequence.shape[-1], np.int64)
    for _ in range(sequence.shape[-1].bit_length()):
        half = left // 2
        middle = np.minimum(index + half, sequence.shape[-1] - 1)
        before = is_before(np.take_along_axis(sequence, middle, -1), values) & (left > 0)
        index = np.where(before, index + half + 1, index)
        left = np.where(before, left - half - 1, half)
    return index


def distinct(rows: np.ndarray, *, ordered: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The distinct rows of a matrix: the index of each one's first occurrence, the distinct row that each row is, and
    counts.

    In ascending order, column by column, or in the order of first occurrence. NaN differs from NaN.
    """
    order = np.lexsort(rows.T[::-1]) if rows.shape[1] else np.arange(len(rows))
    in_order = rows[order]
    starts = np.ones(len(rows), np.bool_)
    starts[1:] = (in_order[1:] != in_order[:-1]).any(1)
    groups = np.cumsum(starts) - 1
    first = order[starts]
    inverse = np.empty(len(rows), np.int64)
    inverse[order] = groups
    counts = np.bincount(groups, minlength=len(first))
    if ordered:
        return first, inverse, counts
    by_occurrence = np.argsort(first)
    rank = np.empty(len(first), np.int64)
    rank[by_occurrence] = np.arange(len(first))
    return first[by_occurrence], rank[inverse], counts[by_occurrence]
