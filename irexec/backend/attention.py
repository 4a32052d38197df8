"""Attention by blocks of rows whose scores stay in cache."""

from __future__ import annotations

from itertools import product

import numpy as np

from irexec.backend.workspace import thread_buffer

# Bytes of scores that are worked on at once.
_CACHED = 1 << 20


def attend(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    factor: np.floating,
    mask: np.ndarray | None,
    sink: np.ndarray | None,
    causal: bool,
) -> np.ndarray:
    """softmax(query * factor @ key.T + mask) @ value: (N..., L, E), (N..., S, E), (N..., S, Ev) to (N..., L, Ev).

    The leading axes, at least one, are the same for all; none of the sizes is 0. A mask is (N..., L, S), a sink (N..., L, 1).
    """
    *leading, heads, rows, _ = query.shape
    columns = key.shape[-2]
    out = np.empty((*query.shape[:-1], value.shape[-1]), query.dtype)
    some_rows = max(1, min(rows, _CACHED // (columns * query.itemsize)))
    some_heads = max(1, _CACHED // (rows * columns * query.itemsize)) if some_rows == rows else 1
    # Where all heads stay in cache, so do those of several images.
    images = leading.pop() if leading else 0
    some_images = max(1, some_heads // heads)
    outer: list[tuple[slice, ...]] = [(slice(image, image + some_images),) for image in range(0, images, some_images)] or [()]
    for place, image in product(np.ndindex(*leading), outer):
        for head, row in product(range(0, heads, some_heads), range(0, rows, some_rows)):
            matrices = (*place, *image, slice(head, head + some_heads))
            part = (*matrices, slice(row, row + some_rows))
            # Behind its last row a causal block keeps no column.
            seen = slice(0, min(columns, row + some_rows) if causal else columns)
            weights = np.multiply(query[part], factor)
            shape = (*weights.shape[:-1], seen.stop)
            scores = np.matmul(weights, key[matrices][..., seen, :].swapaxes(-1, -2), out=thread_buffer("scores", shape, query.dtype))
            if causal:
                _hide_later(scores[..., row:])
            elif mask is not None:
                _hide(scores, mask[part])
            total = _exponentials(scores, None if sink is None else sink[part])
            result = np.matmul(scores, value[matrices][..., seen, :], out=out[part])
            result /= total
    return out


def _hide(scores: np.ndarray, mask: np.ndarray) -> None:
    if mask.dtype == np.bool_:
        np.copyto(scores, -np.inf, where=~mask)
    else:
        scores += mask


def _hide_later(scores: np.ndarray) -> None:
    """Row i keeps the columns up to i."""
    size = scores.shape[-1]
    later = ~np.tri(scores.shape[-2], size, dtype=np.bool_)
    np.copyto(scores, -np.inf, where=later)


def _exponentials(scores: np.ndarray, sink: np.ndarray | None) -> np.ndarray:
    """Of what lies below the greatest of a row, in place; their sums."""
    top = scores.max(-1, keepdims=True)
    if sink is not None:
        top = np.maximum(top, sink)
    scores -= top
    np.exp(scores, out=scores)
    total = np.matmul(scores, np.ones((scores.shape[-1], 1), scores.dtype))
    if sink is not None:
        total += np.exp(sink - top)
    return total
