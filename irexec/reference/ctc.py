"""Connectionist temporal classification: the best path decoded, and the loss.

Sources: CTCGreedyDecoder-1, CTCGreedyDecoderSeqLen-6, CTCLoss-4; Graves et al., Connectionist temporal
classification (2006), section 4.1.
"""

from __future__ import annotations

import numpy as np

from irexec.reference.limits import check_time


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
        return 0 - _log_probability(forward, counts)


def _log_probability(forward: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Log probability of all paths.

    A path ends with the last label or the blank after it; before any step it is in the empty state in front.
    """
    rows = np.arange(len(counts))
    total = np.logaddexp(forward[rows, 2 * counts + 2], np.where(counts > 0, forward[rows, 2 * counts + 1], -np.inf))
    return np.logaddexp(total, np.where(counts == 0, forward[rows, 1], -np.inf))
