"""Fast kernel of attention: by blocks of rows whose scores stay in cache."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np

from irexec.backend.registry import fast_kernel
from irexec.backend.workspace import thread_buffer
from irexec.dtypes.elements import F32
from irexec.ir.facts import Fact
from irexec.reference.softmax import score_scale
from irexec.schema.registry import resolve

# Bytes of scores that are computed at once.
_CACHED = 1 << 20


@fast_kernel("ScaledDotProductAttention", since=13)
def _scaled_dot_product_attention_13(query: Fact, *others: Fact, causal: bool) -> Callable[..., np.ndarray] | None:
    """For f32 where scores have the rows of the query and the columns of the key; the reference kernel otherwise."""
    if query.element is not F32:
        return None
    reference = resolve("ScaledDotProductAttention", "opset13")

    def run(
        query: np.ndarray,
        key: np.ndarray,
        value: np.ndarray,
        attention_mask: np.ndarray | None = None,
        scale: np.ndarray | None = None,
        sink: np.ndarray | None = None,
    ) -> np.ndarray:
        mask = None if causal else attention_mask
        (rows, _), (columns, _) = query.shape[-2:], key.shape[-2:]
        scores = [np.broadcast_shapes((rows, columns), x.shape[-2:]) for x in (mask, sink) if x is not None]
        leading = np.broadcast_shapes(*(x.shape[:-2] for x in (query, key, value, mask, sink) if x is not None))
        if not leading or 0 in (*leading, rows, columns) or any(shape != (rows, columns) for shape in scores):
            return reference(query, key, value, attention_mask, scale, sink, causal=causal)
        q, k, v = (np.broadcast_to(x, (*leading, *x.shape[-2:])) for x in (query, key, value))
        scores_mask = None if mask is None else np.broadcast_to(mask, (*leading, rows, columns))
        scores_sink = None if sink is None else np.broadcast_to(sink, (*leading, rows, 1))
        return attend(q, k, v, score_scale(query, scale), scores_mask, scores_sink, causal)

    return run


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
    rows_at_once = max(1, min(rows, _CACHED // (columns * query.itemsize)))
    heads_at_once = max(1, _CACHED // (rows * columns * query.itemsize)) if rows_at_once == rows else 1
    # Where the scores of all heads stay in cache, those of several images are computed at once.
    images = leading.pop() if leading else 0
    images_at_once = max(1, heads_at_once // heads)
    outer: list[tuple[slice, ...]] = [(slice(image, image + images_at_once),) for image in range(0, images, images_at_once)] or [()]
    for index, image in product(np.ndindex(*leading), outer):
        for head, row in product(range(0, heads, heads_at_once), range(0, rows, rows_at_once)):
            matrices = (*index, *image, slice(head, head + heads_at_once))
            part = (*matrices, slice(row, row + rows_at_once))
            # A causal block keeps no column after its last row.
            kept = slice(0, min(columns, row + rows_at_once) if causal else columns)
            weights = np.multiply(query[part], factor)
            shape = (*weights.shape[:-1], kept.stop)
            scores = np.matmul(weights, key[matrices][..., kept, :].swapaxes(-1, -2), out=thread_buffer("scores", shape, query.dtype))
            if causal:
                _hide_later(scores[..., row:])
            elif mask is not None:
                _hide(scores, mask[part])
            total = _exponentiate(scores, None if sink is None else sink[part])
            result = np.matmul(scores, value[matrices][..., kept, :], out=out[part])
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


def _exponentiate(scores: np.ndarray, sink: np.ndarray | None) -> np.ndarray:
    """exp(scores - maximum of the row), in place; the sums of the rows."""
    maximum = scores.max(-1, keepdims=True)
    if sink is not None:
        maximum = np.maximum(maximum, sink)
    scores -= maximum
    np.exp(scores, out=scores)
    total = np.matmul(scores, np.ones((scores.shape[-1], 1), scores.dtype))
    if sink is not None:
        total += np.exp(sink - maximum)
    return total
