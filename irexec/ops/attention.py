"""Scaled dot-product attention."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from irexec.backend.attention import attend
from irexec.dtypes.elements import F32
from irexec.errors import check
from irexec.ir.dims import ANY, PartialShape, Size, may_equal, shape_text
from irexec.ir.facts import Fact
from irexec.schema.broadcasting import broadcast
from irexec.schema.element_checks import check_float, unify_elements
from irexec.schema.registry import op
from irexec.schema.rules import check_scalar
from irexec.schema.sizes import unify_sizes


@op("ScaledDotProductAttention", since=13, widen=True, tolerance=1e-5)
def scaled_dot_product_attention_13(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    attention_mask: np.ndarray | None = None,
    scale: np.ndarray | None = None,
    sink: np.ndarray | None = None,
    *,
    causal: bool,
) -> np.ndarray:
    """softmax(query @ key.T * scale + mask) @ value, leading axes broadcast: (..., L, E), (..., S, E), (..., S, Ev) to (..., L, Ev).

    A boolean mask keeps where it is true; ``causal`` keeps for row i the columns up to i, and ignores the mask.
    The sink is one more score of each row, which takes its part of the sum and meets no value (OpenVINO 2026
    has it, the specification not). A row that keeps nothing is NaN. Without ``scale`` it is 1 / sqrt(E).
    Source: ScaledDotProductAttention-13.
    """
    factor = _factor(query, scale)
    with np.errstate(invalid="ignore", over="ignore"):
        scores = np.matmul(query * factor, np.swapaxes(key, -1, -2))
        if causal:
            scores = np.where(np.tri(*scores.shape[-2:], dtype=np.bool_), scores, -np.inf).astype(scores.dtype, copy=False)
        elif attention_mask is not None:
            scores = _masked(scores, attention_mask)
        weights = _softmax(scores, sink)
        return np.matmul(weights, value)


def _factor(query: np.ndarray, scale: np.ndarray | None) -> np.floating:
    usual = 1 / math.sqrt(max(query.shape[-1], 1))
    return query.dtype.type(usual if scale is None else scale.reshape(()))


def _masked(scores: np.ndarray, mask: np.ndarray) -> np.ndarray:
    if mask.dtype == np.bool_:
        return np.where(mask, scores, scores.dtype.type(-np.inf))
    return scores + mask.astype(scores.dtype, copy=False)


def _softmax(scores: np.ndarray, sink: np.ndarray | None) -> np.ndarray:
    """Over the last axis, in place."""
    if scores.shape[-1] == 0:
        return scores
    top = scores.max(-1, keepdims=True)
    if sink is not None:
        top = np.maximum(top, sink)
        scores = np.broadcast_to(scores, np.broadcast_shapes(scores.shape, (*top.shape[:-1], scores.shape[-1])))
    weights = np.exp(scores - top)
    total = weights.sum(-1, keepdims=True)
    weights /= total if sink is None else total + np.exp(sink - top)
    return weights


@scaled_dot_product_attention_13.bind
def _scaled_dot_product_attention_13_bind(query: Fact, *others: Fact, causal: bool) -> Callable[..., np.ndarray] | None:
    """By blocks that stay in cache, where scores have the rows of the query and the columns of the key."""
    if query.element is not F32:
        return None

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
            return scaled_dot_product_attention_13(query, key, value, attention_mask, scale, sink, causal=causal)
        q, k, v = (np.broadcast_to(x, (*leading, *x.shape[-2:])) for x in (query, key, value))
        hidden = None if mask is None else np.broadcast_to(mask, (*leading, rows, columns))
        extra = None if sink is None else np.broadcast_to(sink, (*leading, rows, 1))
        return attend(q, k, v, _factor(query, scale), hidden, extra, causal)

    return run


@scaled_dot_product_attention_13.shape_rule
def _scaled_dot_product_attention_13_facts(
    query: Fact,
    key: Fact,
    value: Fact,
    attention_mask: Fact | None = None,
    scale: Fact | None = None,
    sink: Fact | None = None,
    *,
    causal: bool,
) -> Fact:
    kind = unify_elements(*(fact for fact in (query, key, value, scale, sink) if fact is not None))
    check_float(query, "query")
    if scale is not None:
        check_scalar(scale, "scale")
    for fact, what in ((query, "query"), (key, "key"), (value, "value")):
        check(fact.rank is None or fact.rank >= 3, f"{what} has rank {fact.rank}, expected 3 or more")
    batch = broadcast([None if fact.shape is None else fact.shape[:-2] for fact in (query, key, value)])
    rows, source = _end(query.shape, -2), _end(key.shape, -2)
    unify_sizes("last axis of query and key", _end(query.shape, -1), _end(key.shape, -1))
    source = unify_sizes("length of key and value", source, _end(value.shape, -2))
    if attention_mask is not None and not causal:
        same = kind is None or attention_mask.element in (None, kind) or attention_mask.element.name == "boolean"
        check(same, f"attention_mask has element type {attention_mask.element}, expected {kind} or boolean")
        batch, rows = _with_mask(batch, attention_mask.shape, rows, source)
    if sink is not None and sink.shape is not None:
        check(query.rank in (None, len(sink.shape)), f"sink {shape_text(sink.shape)} has not the rank of query, {query.rank}")
        check(len(sink.shape) < 1 or may_equal(sink.shape[-1], 1), f"the last axis of sink is {sink.shape[-1]}, expected 1")
    return Fact(kind, None if batch is None else (*batch, rows, _end(value.shape, -1)))


def _end(shape: PartialShape, axis: int) -> Size:
    return ANY if shape is None else shape[axis]


def _with_mask(batch: PartialShape, mask: PartialShape, rows: Size, source: Size) -> tuple[PartialShape, Size]:
    """The leading axes and rows of the scores with the mask added; a scalar changes nothing."""
    if mask == ():
        return batch, rows
    if mask is None:
        return None, ANY
    check(len(mask) >= 2, f"attention_mask has rank {len(mask)}, expected 0, or 2 or more")
    ends = broadcast([(rows, source), mask[-2:]])
    return broadcast([batch, mask[:-2]]), ANY if ends is None else ends[0]
