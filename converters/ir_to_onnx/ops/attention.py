"""Attention: scaled dot products, the layers around them in ONNX's operators, rotary embeddings.

Attention, recognised from ScaledDotProductAttention and the layers around it: shared heads, heads in the last axis,
0 for queries without keys.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.graph import Tensor
from converters.ir_to_onnx.ops.linear_algebra import transposed
from converters.ir_to_onnx.registry import composed, constant_of, has_flag, producer_of, recognises
from irexec.dtypes.elements import BOOLEAN, F16, F32, I64
from irexec.errors import check
from irexec.ir.dims import Shape, Size
from irexec.ir.graph import Node, Value


@composed("ScaledDotProductAttention")
def scaled_dot_product_attention(
    ctx: ExportContext, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None = None,
    scale: Tensor | None = None, sink: Tensor | None = None, *, causal: bool,
) -> Tensor:  # fmt: skip
    """MatMul, mask, Softmax, MatMul."""
    scores = ctx.emit("MatMul", ctx.emit("Mul", query, _scale(ctx, query, scale)), transposed(ctx, key))
    lowest = ctx.scalar(-math.inf, scores)
    if causal:
        scores = ctx.where(_lower_triangle(ctx, scores), scores, lowest)
    elif attention_mask is not None:
        is_boolean = attention_mask.element is BOOLEAN
        scores = ctx.where(attention_mask, scores, lowest) if is_boolean else ctx.emit("Add", scores, attention_mask)
    if sink is None:
        weights = ctx.emit("Softmax", scores, axis=-1)
    else:
        weights = _with_sink(ctx, scores, sink)
    return ctx.emit("MatMul", weights, value)


def _scale(ctx: ExportContext, query: Tensor, scale: Tensor | None) -> Tensor:
    if scale is not None:
        return ctx.reshape(scale, [])
    size = query.require_shape("the query")[-1]
    if isinstance(size, int):
        return ctx.scalar(1 / math.sqrt(size) if size else math.inf, query)
    count = ctx.emit("Gather", ctx.emit("Shape", query), ctx.constant(-1))
    return ctx.emit("Reciprocal", ctx.emit("Sqrt", ctx.cast(count, query.element)))


def _lower_triangle(ctx: ExportContext, scores: Tensor) -> Tensor:
    """True for columns up to the row."""
    sizes = ctx.emit("Shape", scores)
    zero, one = ctx.constant(0), ctx.constant(1)
    rows, columns = (ctx.emit("Range", zero, ctx.emit("Gather", sizes, ctx.constant(axis)), one) for axis in (-2, -1))
    return ctx.emit("LessOrEqual", ctx.unsqueeze(columns, 0), ctx.unsqueeze(rows, 1))


def _with_sink(ctx: ExportContext, scores: Tensor, sink: Tensor) -> Tensor:
    """Softmax with one more score of each row, which has no value."""
    check(sink.rank is not None, "the rank of the sink is not known")
    rows = ctx.emit("Shape", ctx.slice(scores, 0, 1, -1))
    wide = ctx.emit("Concat", scores, ctx.emit("Expand", sink, rows), axis=-1)
    return ctx.slice(ctx.emit("Softmax", wide, axis=-1), 0, -1, -1)


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


@dataclass(frozen=True)
class _Rotation:
    """The inputs of the operator, and its attributes.

    Attributes:
        data: (batch, heads, length, size).
        cos, sin: of the angles, (batch, length, width / 2), or (positions, width / 2) with ``positions``.
        positions: of the elements, (batch, length); None if there are none.
        interleaved: whether a pair is two neighbours, not an element of each half.
        width: elements of a head that are rotated; None for all.
    """

    data: Value
    cos: Value
    sin: Value
    positions: Value | None
    interleaved: bool
    width: int | None = None


@recognises("Concat", "Reshape")
def rotary_embedding(ctx: ExportContext) -> Tensor | None:
    """RotaryEmbedding of data with an axis of heads, or of data whose heads are split and joined."""
    if not ctx.has("RotaryEmbedding"):
        return None
    found = _rotation(ctx.node)
    if found is not None:
        return _rotary_embedding(ctx, found, ctx.writer.tensor(found.data)) if _is_rotary(ctx, found) else None
    source = moved(ctx.node.inputs[0]) if ctx.node.type == "Reshape" else None
    found = None if source is None else _rotation(source.node)
    if found is None or not _is_rotary(ctx, found):
        return None
    data, heads = flat(ctx, found.data), shape_of_value(ctx, found.data)
    if data is None or not is_joined(ctx.facts[0].shape or (), heads, heads) or not isinstance(heads[1], int):
        return None
    return _rotary_embedding(ctx, found, data, heads[1])


def _rotary_embedding(ctx: ExportContext, found: _Rotation, data: Tensor, heads: int | None = None) -> Tensor:
    caches = [None if x is None else ctx.writer.tensor(x) for x in (found.cos, found.sin, found.positions)]
    return ctx.emit(
        "RotaryEmbedding", data, *caches, interleaved=1 if found.interleaved else None, num_heads=heads,
        rotary_embedding_dim=found.width,
    )  # fmt: skip


def _is_rotary(ctx: ExportContext, found: _Rotation) -> bool:
    """Whether the types and shapes are those of the operator: only heads are broadcast."""
    kind, shape = ctx.element_of(found.data), shape_of_value(ctx, found.data)
    if kind not in (F32, F16) or len(shape) != 4 or any(ctx.element_of(x) is not kind for x in (found.cos, found.sin)):
        return False
    angles = [shape_of_value(ctx, x) for x in (found.cos, found.sin)]
    width = shape[3] if found.width is None else found.width
    if not isinstance(width, int) or angles[0] != angles[1] or not angles[0] or angles[0][-1] != width // 2:
        return False
    rows = angles[0][:-1]
    if found.positions is not None:
        rows = shape_of_value(ctx, found.positions) if ctx.element_of(found.positions) is I64 and len(rows) == 1 else ()
    return len(rows) == 2 and are_equal(rows[0], shape[0]) and are_equal(rows[1], shape[2])


def _rotation(node: Node) -> _Rotation | None:
    """The rotation whose result is the output of a layer; None if it is none."""
    if node.type == "Reshape":
        together = producer_of(node.inputs[0], "Concat")
        is_flat = _constant(node.inputs[1]) == [0, 0, 0, -1]
        return _of_parts(together, "4", True) if is_flat else None
    if node.type != "Concat" or node.attributes.get("axis") != "3" or len(node.inputs) != 2:
        return None
    rotated, rest = node.inputs
    split = producer_of(rest, "VariadicSplit")
    if split is None or rotated is None:
        return _of_parts(node, "3", False)
    found, sizes = _rotation(rotated.node), _constant(split.inputs[2])
    is_first = found is not None and found.data is split.outputs[0] and len(split.outputs) == 2
    if found is None or not is_first or rest is not split.outputs[1] or found.width is not None:
        return None
    data = split.inputs[0]
    is_last = _constant(split.inputs[1]) == [3] and sizes is not None and sizes[1] == -1
    return None if data is None or not is_last or sizes is None else replace(found, data=data, width=sizes[0])


def _of_parts(concat: Node | None, axis: str, interleaved: bool) -> _Rotation | None:
    """The rotation of Concat(first * cos - second * sin, first * sin + second * cos)."""
    if concat is None or concat.attributes.get("axis") != axis or len(concat.inputs) != 2:
        return None
    parts = [_without(x, "Unsqueeze", 4) for x in concat.inputs] if interleaved else list(concat.inputs)
    minus, plus = producer_of(parts[0], "Subtract"), producer_of(parts[1], "Add")
    if minus is None or plus is None:
        return None
    products = [producer_of(x, "Multiply") for x in (*minus.inputs, *plus.inputs)]
    factors = [tuple(product.inputs) for product in products if product is not None]
    first, cos = factors[0] if factors else (None, None)
    second, sin = factors[1] if len(factors) == 4 else (None, None)
    if factors != [(first, cos), (second, sin), (first, sin), (second, cos)] or None in (first, second, cos, sin):
        return None
    data, caches = _halved(first, second, interleaved), [_without(x, "Unsqueeze", 1) for x in (cos, sin)]
    if data is None or caches[0] is None or caches[1] is None:
        return None
    return _with_positions(_Rotation(data, caches[0], caches[1], None, interleaved))


def _halved(first: Value | None, second: Value | None, interleaved: bool) -> Value | None:
    """The data whose halves, or whose elements of pairs, are two values."""
    halves = [_without(x, "Squeeze", 4) for x in (first, second)] if interleaved else [first, second]
    split = producer_of(halves[0], "Split")
    if split is None or halves != split.outputs or _constant(split.inputs[1]) != [4 if interleaved else 3]:
        return None
    if not interleaved:
        return split.inputs[0]
    pairs = producer_of(split.inputs[0], "Reshape")
    return pairs.inputs[0] if pairs is not None and _constant(pairs.inputs[1]) == [0, 0, 0, -1, 2] else None


def _with_positions(found: _Rotation) -> _Rotation:
    """The rotation with the caches from which the angles of positions are gathered."""
    gathers = [producer_of(x, "Gather") for x in (found.cos, found.sin)]
    sources = [gather.inputs for gather in gathers if gather is not None and _constant(gather.inputs[2]) == [0]]
    if len(sources) != 2 or sources[0][1] is not sources[1][1]:
        return found
    cos, sin = sources[0][0], sources[1][0]
    places = _unchecked(sources[0][1])
    return found if cos is None or sin is None else replace(found, cos=cos, sin=sin, positions=places)


def _unchecked(value: Value | None) -> Value | None:
    """Integers before the check of their range, which writes each to its own index or ends the run."""
    node = producer_of(value, "ScatterElementsUpdate")
    choice = None if node is None else producer_of(node.inputs[1], "Broadcast")
    choice = None if choice is None else producer_of(choice.inputs[0], "Select")
    is_check = choice is not None and producer_of(choice.inputs[1], "Range") is not None
    return node.inputs[0] if node is not None and is_check and node.inputs[0] is node.inputs[2] else value


def _without(value: Value | None, type: str, axis: int) -> Value | None:
    """The source of an Unsqueeze or Squeeze of an axis."""
    node = producer_of(value, type)
    return node.inputs[0] if node is not None and _constant(node.inputs[1]) == [axis] else None


def _constant(value: Value | None) -> list[int] | None:
    part = constant_of(value)
    return None if part is None else [int(x) for x in np.ravel(part)]


_HEADS_FIRST = [0, 2, 1, 3]


def are_equal(a: Size, b: Size) -> bool:
    """Whether two sizes certainly are equal."""
    return a == b and (isinstance(a, int) or bool(a.name))


def shape_of_value(ctx: ExportContext, value: Value) -> Shape:
    """The shape of a value; () if its rank is not known."""
    return ctx.writer.tensor(value).shape or ()


def moved(value: Value | None) -> Value | None:
    """The source of a Transpose that exchanges the axes of heads and of the length."""
    transpose = producer_of(value, "Transpose")
    order = None if transpose is None else constant_of(transpose.inputs[1])
    return (
        transpose.inputs[0] if transpose is not None and order is not None and order.tolist() == _HEADS_FIRST else None
    )


def flat(ctx: ExportContext, value: Value) -> Tensor | None:
    """(batch, length, heads * size), from which heads were split."""
    reshape = producer_of(moved(value), "Reshape")
    source = None if reshape is None else reshape.inputs[0]
    if source is None:
        return None
    tensor, heads = ctx.writer.tensor(source), shape_of_value(ctx, value)
    return tensor if tensor.shape is not None and is_joined(tensor.shape, heads, heads) else None


def is_joined(flat: Shape, heads: Shape, sizes: Shape) -> bool:
    """Whether a shape is (batch, length, heads * size)."""
    number, size = heads[1], sizes[3]
    if len(flat) != 3 or not isinstance(number, int) or not isinstance(size, int):
        return False
    return are_equal(flat[0], heads[0]) and are_equal(flat[1], heads[2]) and flat[2] == number * size
