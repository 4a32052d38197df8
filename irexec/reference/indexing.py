"""Indices, searches, distinct rows, and connectionist temporal classification.

Sources: CTCGreedyDecoder-1, CTCGreedyDecoderSeqLen-6, CTCLoss-4; Graves et al., Connectionist temporal
classification (2006), section 4.1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from irexec.errors import check
from irexec.reference.limits import check_time


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


def decode(classes: np.ndarray, valid: np.ndarray, blank: int, merge: bool) -> tuple[np.ndarray, np.ndarray]:
    """The classes of each step (batch, steps) without blanks, and with ``merge`` without repetitions, padded with -1.

    Returns the decoded classes (batch, steps) and their number (batch,), both int64. Steps that are not ``valid`` do
    not count.
    """
    keep = valid & (classes != blank)
    if merge:
        keep[:, 1:] &= classes[:, 1:] != classes[:, :-1]
    return move_to_front(classes, keep, -1), keep.sum(1)


def move_to_front(values: np.ndarray, keep: np.ndarray, fill: int) -> np.ndarray:
    """The kept values of each row moved to its front, padded with ``fill``."""
    result = np.full(values.shape, fill, np.int64)
    rows, columns = np.nonzero(keep)
    result[rows, keep.cumsum(1)[rows, columns] - 1] = values[rows, columns]
    return result


def targets(labels: np.ndarray, lengths: np.ndarray, collapse: bool, unique: bool) -> tuple[np.ndarray, np.ndarray]:
    """The labels that count, of (batch, steps), moved to the front, and their number: all, first occurrences or no
    repetitions."""
    keep = np.arange(labels.shape[1]) < lengths[:, None]
    if unique:
        before = np.tri(labels.shape[1], k=-1, dtype=np.bool_)
        keep &= ~((labels[:, :, None] == labels[:, None, :]) & before).any(2)
    elif collapse:
        keep[:, 1:] &= labels[:, 1:] != labels[:, :-1]
    return move_to_front(labels, keep, 0), keep.sum(1)


def loss(
    logits: np.ndarray, steps: np.ndarray, labels: np.ndarray, counts: np.ndarray, blank: int, merge: bool
) -> np.ndarray:
    """Minus the logarithm of the probability of all the paths that read as the labels, for each of a batch.

    ``logits`` are (batch, steps, classes), ``labels`` (batch, maximum), of which ``counts`` count. The states are the
    labels with blanks before, between and after them; a whole batch advances one step at a time. Where paths ``merge``,
    a label may last for several steps, and equal ones must have a blank between; else each lasts for one.
    """
    batch, maximum = labels.shape
    states = np.full((batch, 2 * maximum + 1), blank)
    states[:, 1::2] = labels
    label = np.arange(2 * maximum + 1) % 2 == 1
    stays = np.where(label & (not merge), -np.inf, 0.0)
    skips = np.broadcast_to(np.where(label, 0.0, -np.inf), states.shape).copy()
    skips[:, :2] = -np.inf
    if merge:
        skips[:, 2:][states[:, 2:] == states[:, :-2]] = -np.inf
    forward = np.full((batch, 2 * maximum + 3), -np.inf)
    forward[:, 1] = 0
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        scores = logits.astype(np.float64)
        scores = scores - np.logaddexp.reduce(scores, axis=2, keepdims=True)
        for t in range(int(steps.max(initial=0))):
            check_time()
            moved = np.logaddexp(forward[:, 2:] + stays, forward[:, 1:-1])
            moved = np.logaddexp(moved, forward[:, :-2] + skips) + np.take_along_axis(scores[:, t], states, 1)
            if t == 0:
                # A path begins with the first blank or the first label.
                moved[:, 2:] = -np.inf
                moved[:, :2] = np.take_along_axis(scores[:, 0], states[:, :2], 1)
            running = steps > t
            forward[running, 2:] = moved[running]
            forward[running, 1] = -np.inf
        # Log probability of all paths. A path ends with the last label or the blank after it; before any step it is in
        # the empty state in front.
        rows = np.arange(len(counts))
        last = np.where(counts > 0, forward[rows, 2 * counts + 1], -np.inf)
        total = np.logaddexp(forward[rows, 2 * counts + 2], last)
        return 0 - np.logaddexp(total, np.where(counts == 0, forward[rows, 1], -np.inf))
