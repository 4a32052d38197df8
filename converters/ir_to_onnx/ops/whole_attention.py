"""Attention, recognised from ScaledDotProductAttention and the layers around it: shared heads, heads in the last axis,
0 for queries without keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.heads import are_equal, flat, is_joined, moved, shape_of_value
from converters.ir_to_onnx.recognition import constant_of, has_flag, producer_of, recognises
from converters.ir_to_onnx.tensors import Tensor
from irexec.dtypes.elements import BOOLEAN, F16, F32
from irexec.ir.dims import Shape
from irexec.ir.graph import Node, Value


@dataclass(frozen=True)
class _Attention:
    """The inputs of the operator, (batch, heads, length, size), and its attributes."""

    query: Value
    key: Value
    value: Value
    mask: Value | None
    scale: float | None
    causal: bool


@recognises("ScaledDotProductAttention", "Select")
def attention(ctx: ExportContext) -> Tensor | None:
    """Attention with an axis of heads."""
    found = _attention(ctx, ctx.node)
    if found is None:
        return None
    query, key, value = (ctx.writer.tensor(x) for x in (found.query, found.key, found.value))
    return _emitted(ctx, found, query, key, value)


@recognises("Reshape")
def attention_without_head_axis(ctx: ExportContext) -> Tensor | None:
    """Attention on (batch, length, heads * size): heads are split by Reshape and Transpose, and joined after it."""
    transpose = moved(ctx.node.inputs[0])
    found = None if transpose is None else _attention(ctx, transpose.node)
    output = ctx.facts[0].shape
    if found is None or output is None or len(output) != 3:
        return None
    tensors = [x for part in (found.query, found.key, found.value) if (x := flat(ctx, part)) is not None]
    heads = [shape_of_value(ctx, x)[1] for x in (found.query, found.key)]
    if len(tensors) != 3 or not is_joined(output, shape_of_value(ctx, found.query), shape_of_value(ctx, found.value)):
        return None
    return _emitted(ctx, found, *tensors, q_num_heads=heads[0], kv_num_heads=heads[1])


def _emitted(ctx: ExportContext, found: _Attention, *inputs: Tensor, **heads: Any) -> Tensor:
    mask = None if found.mask is None else ctx.writer.tensor(found.mask)
    causal = 1 if found.causal else None
    return ctx.emit("Attention", *inputs, mask, is_causal=causal, scale=found.scale, **heads)


def _attention(ctx: ExportContext, node: Node) -> _Attention | None:
    """The operator whose output is that of a layer; None if there is none."""
    if not ctx.has("Attention"):
        return None
    zeroed = node.type == "Select"
    found = _without_keys_is_zero(node) if zeroed else node if node.type == "ScaledDotProductAttention" else None
    if found is None or len(found.inputs) > 5:
        return None
    query, key, value, mask, scale = (*found.inputs, None, None)[:5]
    factor, causal = constant_of(scale), has_flag(found, "causal")
    if query is None or key is None or value is None or (scale is not None and (factor is None or factor.size != 1)):
        return None
    mask = None if causal or _is_zero(mask) else mask
    if mask is not None and not zeroed and not _shows_keys(constant_of(mask)):
        return None
    multiplier = None if factor is None else float(factor.ravel()[0])
    key, value = (_before_sharing(ctx, x, query) for x in (key, value))
    made = _Attention(query, key, value, mask, multiplier, causal)
    return made if (multiplier is None or multiplier > 0) and _fits(ctx, made) else None


def _without_keys_is_zero(select: Node) -> Node | None:
    """The attention of Select(no key is seen, 0, attention)."""
    hidden, zero, result = select.inputs[:3]
    node = producer_of(result, "ScaledDotProductAttention")
    mask = None if node is None or len(node.inputs) < 4 else node.inputs[3]
    if node is None or mask is None or hidden is None or not _is_zero(zero):
        return None
    negated, equal = producer_of(hidden, "LogicalNot"), producer_of(hidden, "Equal")
    reduced = None
    if negated is not None and negated.inputs[0] is not None:
        reduced = producer_of(negated.inputs[0], "ReduceLogicalOr")
    elif equal is not None:
        lowest = constant_of(equal.inputs[1])
        is_lowest = lowest is not None and bool((lowest == -np.inf).all())
        reduced = producer_of(equal.inputs[0], "ReduceMax") if is_lowest else None
    if reduced is None or reduced.inputs[0] is not mask or not has_flag(reduced, "keep_dims"):
        return None
    axes = constant_of(reduced.inputs[1])
    return node if axes is not None and axes.ravel().tolist() == [-1] else None


def _is_zero(value: Value | None) -> bool:
    """Whether a value is a constant of zeros that changes no shape."""
    part = constant_of(value)
    return part is not None and part.size == 1 and part.dtype != np.bool_ and not part.any()


def _shows_keys(mask: np.ndarray | None) -> bool:
    """Whether every query certainly sees a key."""
    if mask is None or mask.ndim == 0:
        return False
    return bool((mask if mask.dtype == np.bool_ else mask > -np.inf).any(-1).all())


def _before_sharing(ctx: ExportContext, x: Value, query: Value) -> Value:
    """Keys or values before each head is repeated for the query heads that share it."""
    gather, count = producer_of(x, "Gather"), _heads(ctx, query)
    source = None if gather is None else gather.inputs[0]
    if gather is None or source is None or count is None:
        return x
    index, axis, have = constant_of(gather.inputs[1]), constant_of(gather.inputs[2]), _heads(ctx, source)
    if index is None or axis is None or axis.ravel().tolist() != [1] or not have or count % have:
        return x
    return source if index.tolist() == (np.arange(count) // (count // have)).tolist() else x


def _heads(ctx: ExportContext, value: Value) -> int | None:
    shape = shape_of_value(ctx, value)
    return shape[1] if len(shape) == 4 and isinstance(shape[1], int) else None


def _fits(ctx: ExportContext, found: _Attention) -> bool:
    """Whether the types and shapes are those of the operator: nothing but heads and the mask is broadcast."""
    query, key, value = (shape_of_value(ctx, x) for x in (found.query, found.key, found.value))
    if ctx.element_of(found.query) not in (F32, F16) or any(len(x) != 4 or 0 in x for x in (query, key, value)):
        return False
    heads = query[1], key[1]
    if not isinstance(heads[0], int) or not isinstance(heads[1], int) or heads[0] % heads[1]:
        return False
    is_one_batch = are_equal(query[0], key[0]) and are_equal(query[0], value[0])
    if not is_one_batch or not are_equal(key[1], value[1]):
        return False
    return found.mask is None or _fits_mask(ctx, found, (*query[:3], key[2]))


def _fits_mask(ctx: ExportContext, found: _Attention, scores: Shape) -> bool:
    assert found.mask is not None
    mask, kind = shape_of_value(ctx, found.mask), ctx.element_of(found.mask)
    if not 2 <= len(mask) <= 4 or kind not in (BOOLEAN, ctx.element_of(found.query)):
        return False
    last = all(are_equal(*pair) for pair in zip(mask[-2:], scores[-2:], strict=True))
    return last and all(a == 1 or are_equal(a, b) for a, b in zip(mask[:-2], scores[4 - len(mask) : 2], strict=True))
