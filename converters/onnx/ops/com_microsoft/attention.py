"""com.microsoft: the attention operators of ONNX Runtime, rotary embeddings, and biases by relative position.

Source: onnxruntime ``docs/ContribOperators.md`` and ``contrib_ops/cpu/bert``, T5 and WavLM of transformers for the
biases.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from converters.onnx.algorithms.attention import (
    Heads,
    Mask,
    Scores,
    angles,
    attend,
    inserted,
    join_heads,
    rotate_either,
    split_heads,
    visible,
    with_past,
)
from converters.onnx.algorithms.expression import Expression, arange, positions
from converters.onnx.context import Matrix, Tensor3, Tensor4, TranslationContext, Vector, required
from converters.onnx.graphs import check_convertible
from converters.onnx.ops.com_microsoft.quantization import matmul_integer_to_float
from converters.onnx.registry import COM_MICROSOFT, translates
from irexec.dtypes.elements import F32, I64
from irexec.errors import ConversionError, OpError, check
from irexec.ir.dims import are_equal
from irexec.ir.graph import Value
from irexec.schema.opdef import Rank


def _masks(
    ctx: TranslationContext, heads: Heads, padding: Value | None, bias: Value | None, filter_value: float, *,
    has_starts: bool = False,
) -> Mask:  # fmt: skip
    """The padding, hidden by a finite bias so that a query without keys weights all keys equally, and the bias."""
    mask = Mask()
    if padding is not None:
        zero = Expression(ctx, ctx.constant(0, heads.query))
        kept = _raw_mask(ctx, padding, heads.key, has_starts=has_starts)
        mask.add(ctx, kept.select(zero, max(filter_value, -3.4e38)).value, finite=True)
    mask.add(ctx, bias)
    return mask


def _raw_mask(ctx: TranslationContext, given: Value, key: Value, *, has_starts: bool) -> Expression:
    """True for used keys, (batch, 1, 1 or length, keys), from a mask per key or from bounds per sample.

    With ``has_starts`` bounds may be ends followed by starts, and a matrix of one column hides no key. Source: ONNX
    Runtime's Attention; its MultiHeadAttention refuses both.
    """
    rank = ctx.rank(given, "the mask")
    mask = Expression(ctx, ctx.convert(given, I64))
    if rank == 1:
        return _by_length(ctx, mask, key, has_starts=has_starts)
    check_convertible(rank != 4, f"a mask of shape {ctx.fact(given)}")
    kept = mask > 0
    columns = ctx.sizes(given)[-1]
    if rank == 2 and has_starts and (not isinstance(columns, int) or columns == 1):
        kept = kept | Expression(ctx, ctx.size(given, 1)).equals(1)
    return kept.unsqueeze(*([1, 2] if rank == 2 else [1]))


def _by_length(ctx: TranslationContext, bounds: Expression, key: Value, *, has_starts: bool) -> Expression:
    """True for used keys. The first value per sample is the end of its keys, the second, if there is one, the start.

    Of 3 * batch + 2 values, which have the positions of packed sequences too, the ends alone have an effect.
    """
    batch, count = ctx.sizes(key)[0], ctx.sizes(bounds.value)[0]
    along = positions(ctx, key, 2)
    if are_equal(batch, count):
        return along < bounds.unsqueeze(1, 2, 3)
    if isinstance(batch, int) and isinstance(count, int):
        accepted = (batch, 2 * batch, 3 * batch + 2) if has_starts else (batch, 3 * batch + 2)
        check_convertible(count in accepted, f"a mask of {count} values for {batch} samples")
    samples = Expression(ctx, ctx.unsqueeze(ctx.size(key, 0), [0]))
    ends = Expression(ctx, ctx.slice(bounds.value, 0, samples.value, 0))
    used = along < ends.unsqueeze(1, 2, 3)
    if not has_starts or (isinstance(batch, int) and isinstance(count, int) and count != 2 * batch):
        return used
    # Without starts the second part consists of the zeros that are appended, as no key precedes position 0.
    padded = ctx.emit("Concat", bounds.value, ctx.full(ctx.constant(0), samples.value), axis=0)
    starts = Expression(ctx, ctx.slice(padded, samples.value, (samples + samples).value, 0))
    if not isinstance(batch, int) or not isinstance(count, int):
        total = Expression(ctx, ctx.unsqueeze(ctx.size(bounds.value, 0), [0]))
        starts = total.equals(samples + samples).select(starts, Expression(ctx, ctx.constant([0])))
    return used & (along >= starts.unsqueeze(1, 2, 3))


@dataclass(frozen=True, kw_only=True)
class _Attributes:
    """The attributes of Attention, DecoderMaskedSelfAttention and QAttention."""

    num_heads: int
    unidirectional: int = 0
    mask_filter_value: float = -10000.0
    scale: float = 0.0
    do_rotary: int = 0
    past_present_share_buffer: int = 0


@translates("Attention", domain=COM_MICROSOFT)
def attention(
    ctx: TranslationContext, x: Tensor3, weights: Matrix, bias: Value | None = None, mask_index: Value | None = None,
    past: Annotated[Value, Rank(5)] | None = None, attention_bias: Value | None = None,
    past_sequence_length: Value | None = None, *, given: _Attributes, qkv_hidden_sizes: list[int] | None = None,
    rotary_embedding_dim: int = 0,
) -> tuple[Value, ...]:  # fmt: skip
    """One product computes queries, keys and values; past and present are keys and values, (2, batch, heads, ...)."""
    projected = ctx.added(ctx.emit("MatMul", x, weights), bias)
    return _from_projected(
        ctx, projected, qkv_hidden_sizes, mask_index, past, attention_bias, given, past_sequence_length
    )


@translates("DecoderMaskedSelfAttention", domain=COM_MICROSOFT, without=["unidirectional"])
def decoder_masked_self_attention(
    ctx: TranslationContext, x: Tensor3, weights: Matrix, bias: Value, mask_index: Value | None,
    past: Annotated[Value, Rank(5)], attention_bias: Value | None, past_sequence_length: Value,
    beam_width: Value | None = None, cache_indirection: Value | None = None, *, given: _Attributes,
) -> tuple[Value, ...]:  # fmt: skip
    """Attention of one new token. ONNX Runtime has it on CUDA only, where the keys of a shared buffer are reordered."""
    is_plain = cache_indirection is None and not given.past_present_share_buffer
    check_convertible(is_plain, "cache_indirection and past_present_share_buffer, of CUDA's layout of keys,")
    return attention(ctx, x, weights, bias, mask_index, past, attention_bias, given=given)


def _from_projected(
    ctx: TranslationContext, projected: Value, sizes: list[int] | None, mask_index: Value | None, past: Value | None,
    attention_bias: Value | None, given: _Attributes, past_sequence_length: Value | None = None,
) -> tuple[Value, ...]:  # fmt: skip
    """The attention of queries, keys and values concatenated along the last axis."""
    if given.do_rotary:
        raise ConversionError("do_rotary 1 cannot be converted: the angles are not defined", unsupported=True)
    if given.past_present_share_buffer and (past_sequence_length is None or past is None):
        raise OpError("past_present_share_buffer needs past and past_sequence_length")
    check(not sizes or len(sizes) == 3, f"qkv_hidden_sizes is {sizes}, expected 3 sizes")
    width = ctx.static_size(projected, 2, "the queries, keys and values")
    parts = ctx.emit("VariadicSplit", projected, ctx.constant(2), list(sizes or [width // 3] * 3))
    query, key, value = (split_heads(ctx, part, given.num_heads) for part in parts)
    stored = [key, value]
    if past is not None:
        start = _scalar_length(ctx, past_sequence_length) if given.past_present_share_buffer else None
        (key, stored[0]), (value, stored[1]) = (
            _appended(ctx, part, new, start) for part, new in zip(ctx.unstacked(past, 0, 2), stored, strict=True)
        )
    heads = Heads(query, key, value)
    mask = _masks(ctx, heads, mask_index, attention_bias, given.mask_filter_value, has_starts=True)
    if given.unidirectional:
        before = None if past is None else Expression(ctx, ctx.size(key, 2)) - Expression(ctx, ctx.size(query, 2))
        mask.restrict(visible(ctx, query, key, before), sees=True)
    y = join_heads(ctx, attend(ctx, heads, mask, given.scale or None))
    return (y, ctx.stacked(stored, 0)) if ctx.needs_output(1) else (y,)


@translates("MultiHeadAttention", domain=COM_MICROSOFT)
def multi_head_attention(
    ctx: TranslationContext, query: Annotated[Value, Rank(3, 5)], key: Annotated[Value, Rank(3, 5)] | None = None,
    value: Annotated[Value, Rank(3, 4)] | None = None, bias: Vector | None = None,
    key_padding_mask: Value | None = None, attention_bias: Value | None = None, past_key: Tensor4 | None = None,
    past_value: Tensor4 | None = None, past_sequence_length: Value | None = None,
    cache_indirection: Value | None = None, *, num_heads: int, mask_filter_value: float = -10000.0, scale: float = 0.0,
    unidirectional: int = 0,
) -> tuple[Value | None, ...]:  # fmt: skip
    """Queries, keys and values: separate; packed as (batch, length, heads, 3, size); or keys packed with values.

    With past_sequence_length the caches have a fixed size: new entries are written at this position. The causal mask
    of ``unidirectional`` begins after the past, and the last query sees all keys, whatever their number. ONNX Runtime
    does not read the past if no output has the new one.
    """
    check_convertible(cache_indirection is None, "cache_indirection, of beam search,")
    heads = _heads(ctx, query, key, value, bias, num_heads)
    start = _scalar_length(ctx, past_sequence_length)
    keys, stored_key = _appended(ctx, past_key, heads.key, start)
    values, stored_value = _appended(ctx, past_value, heads.value, start)
    # The number of keys before the new ones; None is 0.
    before = start if past_key is None or start is not None else Expression(ctx, ctx.size(past_key, 2))
    heads = Heads(heads.query, keys, values)
    mask = _masks(ctx, heads, key_padding_mask, attention_bias, mask_filter_value)
    if unidirectional:
        seen = visible(ctx, heads.query, keys, before)
        if past_key is None and not are_equal(ctx.sizes(keys)[2], ctx.sizes(heads.query)[2]):
            rows = positions(ctx, heads.query, 2)
            seen = seen | rows.equals(Expression(ctx, ctx.size(heads.query, 2)) - 1).column()
        mask.restrict(seen, sees=True)
    if ctx.needs_output(3):
        y, stages = Scores(ctx, heads, mask, scale or None).stages()
        lowest = Expression(ctx, stages[2]).maximum(float(np.finfo(np.float32).min))
        return join_heads(ctx, y), stored_key, stored_value, lowest.value
    return join_heads(ctx, attend(ctx, heads, mask, scale or None)), stored_key, stored_value


def _scalar_length(ctx: TranslationContext, length: Value | None) -> Expression | None:
    if length is None:
        return None
    found = Expression(ctx, ctx.scalar(ctx.convert(length, I64)))
    return found.checked("past_sequence_length in range", found >= 0)


def _appended(ctx: TranslationContext, past: Value | None, new: Value, start: Expression | None) -> tuple[Value, Value]:
    """The entries in use, and the new cache; both are the past entries with the new ones, unless its size is fixed."""
    if start is None or past is None:
        joined = with_past(ctx, past, new)
        return joined, joined
    cache = inserted(ctx, past, new, start)
    end = (start + Expression(ctx, ctx.size(new, 2))).unsqueeze(0)
    return ctx.slice(cache, 0, end.value, 2), cache


@translates("DecoderMaskedMultiHeadAttention", domain=COM_MICROSOFT)
def decoder_masked_multi_head_attention(
    ctx: TranslationContext, query: Tensor3, key: Annotated[Value, Rank(3, 4)] | None = None,
    value: Annotated[Value, Rank(3, 4)] | None = None, mask_index: Value | None = None,
    attention_bias: Value | None = None, past_key: Tensor4 | None = None, past_value: Tensor4 | None = None,
    past_sequence_length: Value | None = None, beam_width: Value | None = None, cache_indirection: Value | None = None,
    bias: Vector | None = None, *, num_heads: int, mask_filter_value: float = -10000.0, scale: float = 0.0,
    output_qk: int = 0, past_present_share_buffer: int = 0,
) -> tuple[Value | None, ...]:  # fmt: skip
    """MultiHeadAttention of one new token; queries, keys and values may be packed along the last axis.

    Keys split into heads, of rank 4, are those of another layer: they are not appended.
    """
    if past_present_share_buffer and past_sequence_length is None:
        raise OpError("past_present_share_buffer needs past_sequence_length")
    if key is None:
        third = ctx.sizes(query)[2]
        if not isinstance(third, int) or third % 3:
            raise OpError(f"the packed queries, keys and values are {ctx.fact(query)}, expected a multiple of 3")
        query, key, value = ctx.split(query, 2, 3)
    start = past_sequence_length if past_present_share_buffer else None
    if ctx.rank(key) == 4:
        start = past_key = past_value = None
    return multi_head_attention(
        ctx, query, key, value, bias, mask_index, attention_bias, past_key, past_value, start, cache_indirection,
        num_heads=num_heads, mask_filter_value=mask_filter_value, scale=scale,
    )  # fmt: skip


def _heads(
    ctx: TranslationContext, query: Value, key: Value | None, value: Value | None, bias: Value | None, num_heads: int
) -> Heads:
    if ctx.rank(query) == 5:
        return Heads(*_unpacked(ctx, query, 3, bias))
    key = required(key, "the keys are missing, and the queries are not packed with them")
    is_packed, parts = ctx.rank(key) == 5, [None] * 3
    if bias is not None:
        width = ctx.static_size(query, 2, "the queries")
        last = ctx.sizes(value)[2] if value is not None and ctx.rank(value) == 3 else None
        lengths = [width, width, last if isinstance(last, int) else -1]
        parts = ctx.emit("VariadicSplit", bias, ctx.constant(0), lengths)
        bias = ctx.slice(bias, width, 3 * width, 0) if is_packed else None
    first = split_heads(ctx, ctx.added(query, parts[0]), num_heads)
    if is_packed:
        return Heads(first, *_unpacked(ctx, key, 2, bias))
    value = required(value, "the values are missing")
    if ctx.rank(key) == 4:
        # Keys and values of another layer's cache are already split into heads, with the bias added.
        return Heads(first, key, value)
    pairs = zip((key, value), parts[1:], strict=True)
    return Heads(first, *(split_heads(ctx, ctx.added(x, part), num_heads) for x, part in pairs))


def _unpacked(ctx: TranslationContext, packed: Value, count: int, bias: Value | None) -> list[Value]:
    """(batch, length, heads, count, size) as ``count`` tensors of (batch, heads, length, size), with the bias."""
    if bias is not None:
        heads, _, size = ctx.static(packed, "the packed data")[2:]
        packed = ctx.emit("Add", packed, ctx.transpose(ctx.reshape(bias, [count, heads, size]), [1, 0, 2]))
    return [ctx.transpose(part, [0, 2, 1, 3]) for part in ctx.unstacked(packed, 3, count)]


@translates("RotaryEmbedding", domain=COM_MICROSOFT)
def rotary_embedding(
    ctx: TranslationContext, x: Annotated[Value, Rank(3, 4)], position_ids: Annotated[Value, Rank(0, 2)],
    cos_cache: Matrix, sin_cache: Matrix, *, interleaved: int = 0, is_packed_batching: int = 0, num_heads: int = 0,
    rotary_embedding_dim: int = 0, scale: float = 1.0,
) -> Value:  # fmt: skip
    """A single position belongs to the first element; otherwise each element has its own."""
    flat = ctx.rank(x) == 3
    check(not flat or num_heads > 0 or not rotary_embedding_dim, "rotary_embedding_dim needs num_heads")
    position = Expression(ctx, ctx.convert(position_ids, I64))
    if ctx.rank(position_ids) == 1:
        position = (positions(ctx, x, 1 if flat else 2) + position).unsqueeze(0)
    tables = angles(ctx, position, cos_cache, sin_cache)
    return rotate_either(ctx, x, tables, num_heads, interleaved, rotary_embedding_dim, scale)


@translates("QAttention", domain=COM_MICROSOFT)
def qattention(
    ctx: TranslationContext, x: Value, weight: Value, bias: Value, x_scale: Value, weight_scale: Value,
    mask_index: Value | None = None, x_zero: Value | None = None, weight_zero: Value | None = None,
    past: Value | None = None, *, given: _Attributes,
) -> tuple[Value, ...]:  # fmt: skip
    """Attention with quantized data and weights; queries, keys and values are floats."""
    projected = matmul_integer_to_float(ctx, x, weight, x_scale, weight_scale, x_zero, weight_zero, bias)
    return _from_projected(ctx, projected, None, mask_index, past, None, given)


@translates("MRotaryEmbedding", domain=COM_MICROSOFT)
def m_rotary_embedding(
    ctx: TranslationContext, x: Annotated[Value, Rank(3, 4)], position_ids: Tensor3, cos_cache: Matrix,
    sin_cache: Matrix, *, mrope_section: list[int], mrope_layout: int = 0, interleaved: int = 0,
    is_packed_batching: int = 0, num_heads: int = 0, rotary_embedding_dim: int = 0, scale: float = 1.0,
) -> Value:  # fmt: skip
    """RotaryEmbedding whose angles are those of a position in time, height or width, (3, batch, length)."""
    half = ctx.static(cos_cache, "cos_cache")[1]
    if len(mrope_section) != 3 or min(mrope_section) < 0 or sum(mrope_section) != half or mrope_layout not in (0, 1):
        raise OpError(f"mrope_section is {mrope_section} and mrope_layout {mrope_layout} for {half} angles")
    if mrope_layout:
        axes = [0] * half
        for axis in (1, 2):
            axes[axis : 3 * mrope_section[axis] : 3] = [axis] * len(range(axis, min(3 * mrope_section[axis], half), 3))
    else:
        axes = [axis for axis, count in enumerate(mrope_section) for _ in range(count)]
    # (batch, length, half): the position of each angle; then the angle of that row and column of the cache.
    places, rows = Expression(ctx, ctx.convert(position_ids, I64)), Expression(ctx, ctx.size(cos_cache, 0))
    places = places.checked("positions in range", places >= 0, places < rows)
    by_angle = ctx.transpose(ctx.gather(places.value, axes, 0), [1, 2, 0])
    index = Expression(ctx, by_angle) * half + arange(ctx, 0, half)
    tables = [ctx.gather(ctx.reshape(cache, [-1]), index.value, 0) for cache in (cos_cache, sin_cache)]
    return rotate_either(ctx, x, tables, num_heads, interleaved, rotary_embedding_dim, scale)


@translates("GemmaRotaryEmbedding", domain=COM_MICROSOFT)
def gemma_rotary_embedding(
    ctx: TranslationContext, emb: Tensor3, q: Value, q_rot: Value, k: Value, k_rot: Value
) -> tuple[Value, ...]:
    """x * cos(emb) + rotated x * sin(emb), of queries and of keys, with the angles rounded to their type."""
    kind = ctx.element(q)
    cos, sin = (Expression(ctx, ctx.convert(ctx.emit(each, emb), kind)).unsqueeze(1) for each in ("Cos", "Sin"))
    pairs = ((q, q_rot), (k, k_rot))
    return tuple((Expression(ctx, x) * cos + Expression(ctx, rotated) * sin).value for x, rotated in pairs)


@translates("RelativePositionBias", domain=COM_MICROSOFT)
def relative_position_bias(
    ctx: TranslationContext, bias_table: Matrix, query_length: Value, key_length: Value, *, max_distance: int,
    is_bidirectional: int = 0,
) -> Value:  # fmt: skip
    """The bias of T5: a value per bucket of distances; small distances have their own, large ones logarithmic buckets.

    ``bias_table`` is declared as (buckets, heads) and stored column by column: its bytes are (heads, buckets). Source:
    ONNX Runtime's CUDA kernel and its fusion of T5.
    """
    whole, heads = ctx.static(bias_table, "bias_table")
    buckets = whole // (2 if is_bidirectional else 1)
    exact = buckets // 2
    check(exact >= 1 and max_distance > exact, f"max_distance is {max_distance} for {buckets} buckets in a direction")
    queries, keys = (Expression(ctx, ctx.scalar(length)) for length in (query_length, key_length))
    distance = arange(ctx, 0, keys).unsqueeze(0) - arange(ctx, 0, queries).column()
    start = Expression(ctx, ctx.constant(0))
    if is_bidirectional:
        start = (distance > 0).select(buckets, start)
        distance = abs(distance)
    else:
        distance = (-distance).maximum(0)
    ratio = (distance.maximum(1).to(F32) / float(exact)).log() / math.log(max_distance / exact)
    far = ((ratio * float(buckets - exact)).to(I64) + exact).minimum(buckets - 1)
    bucket = (distance < exact).select(distance, far) + start
    values = ctx.gather(ctx.reshape(bias_table, [heads, whole]), bucket.value, 1)
    return ctx.unsqueeze(values, [0])


@translates("GatedRelativePositionBias", domain=COM_MICROSOFT)
def gated_relative_position_bias(
    ctx: TranslationContext, query_layer: Value, query_bias: Value, rel_pos: Value, weight: Value, bias: Value,
    eco_a: Value, token_offset: Value | None = None, *, num_heads: int,
) -> Value:  # fmt: skip
    """The position bias of WavLM, times a gate of the queries: (u * (r * a - 1) + 2) with u and r sigmoids."""
    is_padded = token_offset is None and ctx.rank(query_layer) == 3
    check_convertible(is_padded, "token_offset, of tokens without padding,")
    heads = split_heads(ctx, ctx.added(query_layer, query_bias), num_heads)
    projected = ctx.added(ctx.emit("MatMul", heads, weight), bias)
    pairs = ctx.emit("Reshape", projected, [0, 0, 0, 2, -1], special_zero=True)
    gates = ctx.emit("Sigmoid", ctx.emit("ReduceSum", pairs, [4], keep_dims=False))
    u, r = (Expression(ctx, part) for part in ctx.split(gates, 3, 2))
    gate = u * (r * Expression(ctx, eco_a) - 1.0) + 2.0
    return (gate * Expression(ctx, rel_pos)).value
