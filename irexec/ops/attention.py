"""Scaled dot-product attention."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from irexec.dtypes.elements import BOOLEAN
from irexec.errors import check
from irexec.ir.dims import ANY, PartialShape, Size, broadcastable_to, may_equal, shape_text
from irexec.ir.facts import Fact
from irexec.reference.products import matmul
from irexec.reference.softmax import score_scale, softmax_with_sink
from irexec.schema.broadcasting import broadcast
from irexec.schema.inputs import ONE_ELEMENT, FloatTensor, Rank, Tensor
from irexec.schema.registry import op
from irexec.schema.shape_rules import unify_elements, unify_sizes

Matrices = Annotated[FloatTensor, Rank(3, None)]
Scale = Annotated[FloatTensor, ONE_ELEMENT]


@op("ScaledDotProductAttention", since=13, widen=True, tolerance=1e-5)
def scaled_dot_product_attention_13(
    query: Matrices,
    key: Matrices,
    value: Matrices,
    attention_mask: Tensor | None = None,
    scale: Scale | None = None,
    sink: FloatTensor | None = None,
    *,
    causal: bool,
) -> np.ndarray:
    """softmax(query @ key.T * scale + mask) @ value, leading axes broadcast: (..., L, E), (..., S, E), (..., S, Ev) to
    (..., L, Ev).

    A boolean mask keeps the scores where it is true; ``causal`` keeps for row i the columns up to i, and ignores the
    mask. The sink is one more score of each row, broadcast to all of them, that adds to the sum of softmax and has no
    value (in OpenVINO 2026, not in the specification). A row without any score kept is NaN. ``scale`` is 1 / sqrt(E) by
    default. Source: ScaledDotProductAttention-13.
    """
    factor = score_scale(query, scale)
    with np.errstate(invalid="ignore", over="ignore"):
        scores = matmul(query * factor, np.swapaxes(key, -1, -2))
        if causal:
            scores = np.where(np.tri(*scores.shape[-2:], dtype=np.bool_), scores, -np.inf).astype(
                scores.dtype, copy=False
            )
        elif attention_mask is not None:
            scores = _masked(scores, attention_mask)
        weights = softmax_with_sink(scores, sink)
        return matmul(weights, value)


def _masked(scores: np.ndarray, mask: np.ndarray) -> np.ndarray:
    if mask.dtype == np.bool_:
        return np.where(mask, scores, scores.dtype.type(-np.inf))
    return scores + mask.astype(scores.dtype, copy=False)


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
    batch = broadcast([None if fact.shape is None else fact.shape[:-2] for fact in (query, key, value)])
    rows, source = _size(query.shape, -2), _size(key.shape, -2)
    unify_sizes("last axis of query and key", _size(query.shape, -1), _size(key.shape, -1))
    source = unify_sizes("length of key and value", source, _size(value.shape, -2))
    if attention_mask is not None and not causal:
        allowed = kind is None or attention_mask.element in (None, kind, BOOLEAN)
        check(allowed, f"attention_mask has element type {attention_mask.element}, expected {kind} or boolean")
        batch, rows = _with_mask(batch, attention_mask.shape, rows, source)
    if sink is not None and sink.shape is not None:
        check(
            query.rank in (None, len(sink.shape)),
            f"sink {shape_text(sink.shape)} does not have the rank of query, {query.rank}",
        )
        check(
            len(sink.shape) < 1 or may_equal(sink.shape[-1], 1),
            f"the last axis of sink is {sink.shape[-1]}, expected 1",
        )
        if batch is not None:
            target = (*batch, rows, 1)
            check(
                broadcastable_to(sink.shape, target),
                f"sink {shape_text(sink.shape)} cannot be broadcast to {shape_text(target)}",
            )
    return Fact(kind, None if batch is None else (*batch, rows, _size(value.shape, -1)))


def _size(shape: PartialShape, axis: int) -> Size:
    return ANY if shape is None else shape[axis]


def _with_mask(batch: PartialShape, mask: PartialShape, rows: Size, source: Size) -> tuple[PartialShape, Size]:
    """The leading axes and rows of the scores broadcast with the mask; those of the scores if it is a scalar.

    OpenVINO infers a shape, too, where the mask is longer than the only key, and refuses it when it compiles the model.
    """
    if mask == ():
        return batch, rows
    if mask is None:
        return None, ANY
    check(len(mask) >= 2, f"attention_mask has rank {len(mask)}, expected 0, or 2 or more")
    fits = may_equal(mask[-1], 1) or may_equal(mask[-1], source)
    check(fits, f"the last axis of attention_mask is {mask[-1]}, expected 1 or the length of key, {source}")
    scores = broadcast([(rows, source), mask[-2:]])
    return broadcast([batch, mask[:-2]]), ANY if scores is None else scores[0]
