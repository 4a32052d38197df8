"""com.microsoft: the attention operators of ONNX Runtime.

Source: onnxruntime ``docs/ContribOperators.md`` and ``contrib_ops/cpu/bert``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from converters.onnx.algorithms.attention import (
    Heads,
    Mask,
    Scores,
    attend,
    join_heads,
    repeat_heads,
    rotate,
    split_heads,
    visible,
    with_past,
)
from converters.onnx.algorithms.expression import Expression, positions
from converters.onnx.context import TranslationContext
from converters.onnx.ops.com_microsoft.quantization import matmul_integer_to_float
from converters.onnx.registry import COM_MICROSOFT, translates
from irexec.dtypes.elements import I64
from irexec.errors import ConversionError, OpError
from irexec.ir.dims import Size, are_equal
from irexec.ir.graph import Value
from irexec.schema.opdef import Rank


def _hide(ctx: TranslationContext, mask: Mask, kept: Expression, like: Value, filter_value: float) -> None:
    """Hide keys by a finite bias: a query without keys weights all keys equally."""
    zero = Expression(ctx, ctx.constant(0, like))
    mask.add(ctx, kept.select(zero, Expression(ctx, ctx.constant(max(filter_value, -3.4e38), like))).value, finite=True)


def _raw_mask(ctx: TranslationContext, given: Value, key: Value, *, has_starts: bool) -> Expression:
    """True for used keys, (batch, 1, 1 or length, keys), from a mask per key or from bounds per sample.

    With ``has_starts`` bounds may be ends followed by starts, and a matrix of one column hides no key. Source: ONNX
    Runtime's Attention; its MultiHeadAttention refuses both.
    """
    rank = ctx.rank(given, "the mask")
    mask = Expression(ctx, ctx.convert(given, I64))
    if rank == 1:
        return _by_length(ctx, mask, key, has_starts=has_starts)
    if rank == 4:
        raise ConversionError(f"a mask of shape {ctx.fact(given)} cannot be converted", unsupported=True)
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
        if count not in accepted:
            raise ConversionError(f"a mask of {count} values for {batch} samples cannot be converted", unsupported=True)
    samples = Expression(ctx, ctx.unsqueeze(ctx.size(key, 0), [0]))
    ends = Expression(ctx, ctx.emit("Slice", bounds.value, [0], samples.value, [1], [0]))
    used = along < ends.unsqueeze(1, 2, 3)
    if not has_starts or (isinstance(batch, int) and isinstance(count, int) and count != 2 * batch):
        return used
    # Without starts the second part consists of the zeros that are appended, as no key precedes position 0.
    padded = ctx.emit("Concat", bounds.value, ctx.full(ctx.constant(0), samples.value), axis=0)
    starts = Expression(ctx, ctx.emit("Slice", padded, samples.value, (samples + samples).value, [1], [0]))
    if not isinstance(batch, int) or not isinstance(count, int):
        total = Expression(ctx, ctx.unsqueeze(ctx.size(bounds.value, 0), [0]))
        starts = total.equals(samples + samples).select(starts, Expression(ctx, ctx.constant([0])))
    return used & (along >= starts.unsqueeze(1, 2, 3))


def _scale(scale: float) -> float | None:
    return scale or None


@dataclass(frozen=True, kw_only=True)
class _Attributes:
    """The attributes that Attention and QAttention share."""

    num_heads: int
    unidirectional: int = 0
    mask_filter_value: float = -10000.0
    scale: float = 0.0
    do_rotary: int = 0
    past_present_share_buffer: int = 0


@translates("Attention", domain=COM_MICROSOFT)
def attention(
    ctx: TranslationContext, x: Annotated[Value, Rank(3)], weights: Annotated[Value, Rank(2)],
    bias: Value | None = None, mask_index: Value | None = None, past: Annotated[Value, Rank(5)] | None = None,
    attention_bias: Value | None = None, past_sequence_length: Value | None = None, *, given: _Attributes,
    qkv_hidden_sizes: list[int] | None = None, rotary_embedding_dim: int = 0,
) -> tuple[Value, ...]:  # fmt: skip
    """One product computes queries, keys and values; past and present are keys and values, (2, batch, heads, ...)."""
    projected = ctx.emit("MatMul", x, weights)
    projected = projected if bias is None else ctx.emit("Add", projected, bias)
    return _from_projected(ctx, projected, qkv_hidden_sizes, mask_index, past, attention_bias, given)


def _from_projected(
    ctx: TranslationContext, projected: Value, sizes: list[int] | None, mask_index: Value | None, past: Value | None,
    attention_bias: Value | None, given: _Attributes,
) -> tuple[Value, ...]:  # fmt: skip
    """The attention of queries, keys and values concatenated along the last axis."""
    if given.do_rotary or given.past_present_share_buffer:
        raise ConversionError("do_rotary and past_present_share_buffer cannot be converted", unsupported=True)
    if sizes and len(sizes) != 3:
        raise OpError(f"qkv_hidden_sizes is {list(sizes)}, expected 3 sizes")
    width = ctx.sizes(projected)[2]
    if not isinstance(width, int):
        raise OpError(f"the width of the queries, keys and values {ctx.fact(projected)} is not known")
    parts = ctx.emit("VariadicSplit", projected, ctx.constant(2), list(sizes or [width // 3] * 3))
    query, key, value = (split_heads(ctx, part, given.num_heads) for part in parts)
    if past is not None:
        old = [ctx.emit("Squeeze", part, [0]) for part in ctx.emit("Split", past, ctx.constant(0), num_splits=2)]
        key, value = with_past(ctx, old[0], key), with_past(ctx, old[1], value)
    mask = Mask()
    if mask_index is not None:
        _hide(ctx, mask, _raw_mask(ctx, mask_index, key, has_starts=True), query, given.mask_filter_value)
    if attention_bias is not None:
        mask.add(ctx, attention_bias)
    if given.unidirectional:
        mask.restrict(visible(ctx, query, key, None if past is None else _before(ctx, key, query)), sees=True)
    y = join_heads(ctx, attend(ctx, Heads(query, key, value), mask, _scale(given.scale)))
    if not ctx.needs_output(1):
        return (y,)
    return y, ctx.emit("Concat", ctx.unsqueeze(key, [0]), ctx.unsqueeze(value, [0]), axis=0)


def _before(ctx: TranslationContext, key: Value, query: Value) -> Expression:
    """The number of keys before the first query."""
    return Expression(ctx, ctx.size(key, 2)) - Expression(ctx, ctx.size(query, 2))


@translates("MultiHeadAttention", domain=COM_MICROSOFT)
def multi_head_attention(
    ctx: TranslationContext, query: Annotated[Value, Rank(3, 5)], key: Annotated[Value, Rank(3, 5)] | None = None,
    value: Annotated[Value, Rank(3, 4)] | None = None, bias: Annotated[Value, Rank(1)] | None = None,
    key_padding_mask: Value | None = None, attention_bias: Value | None = None,
    past_key: Annotated[Value, Rank(4)] | None = None, past_value: Annotated[Value, Rank(4)] | None = None,
    past_sequence_length: Value | None = None, cache_indirection: Value | None = None, *, num_heads: int,
    mask_filter_value: float = -10000.0, scale: float = 0.0, unidirectional: int = 0,
) -> tuple[Value | None, ...]:  # fmt: skip
    """Queries, keys and values: separate; packed as (batch, length, heads, 3, size); or keys packed with values."""
    if cache_indirection is not None or past_sequence_length is not None:
        raise ConversionError("a cache of fixed size cannot be converted", unsupported=True)
    heads = _heads(ctx, query, key, value, bias, num_heads)
    keys, values = with_past(ctx, past_key, heads.key), with_past(ctx, past_value, heads.value)
    heads = Heads(heads.query, keys, values)
    mask = Mask()
    if key_padding_mask is not None:
        _hide(ctx, mask, _raw_mask(ctx, key_padding_mask, keys, has_starts=False), heads.query, mask_filter_value)
    if attention_bias is not None:
        mask.add(ctx, attention_bias)
    if unidirectional:
        mask.restrict(visible(ctx, heads.query, keys, _before(ctx, keys, heads.query)), sees=past_key is not None)
    if ctx.needs_output(3):
        y, stages = Scores(ctx, heads, mask, _scale(scale)).stages()
        return join_heads(ctx, y), keys, values, stages[2]
    return join_heads(ctx, attend(ctx, heads, mask, _scale(scale))), keys, values


def _heads(
    ctx: TranslationContext, query: Value, key: Value | None, value: Value | None, bias: Value | None, num_heads: int
) -> Heads:
    if ctx.rank(query) == 5:
        if bias is not None:
            raise ConversionError("a bias of packed queries, keys and values cannot be converted", unsupported=True)
        return Heads(*_unpacked(ctx, query, 3))
    if key is None:
        raise OpError("the keys are missing, and the queries are not packed with them")
    parts: list[Value | None] = [None] * 3
    if bias is not None:
        widths = [ctx.sizes(x)[2] if x is not None and ctx.rank(x) == 3 else None for x in (query, key, value)]
        parts = _split_bias(ctx, bias, widths)
    first = split_heads(ctx, _plus(ctx, query, parts[0]), num_heads)
    if ctx.rank(key) == 5:
        return Heads(first, *_unpacked(ctx, key, 2))
    if value is None:
        raise OpError("the values are missing")
    if ctx.rank(key) == 4:
        # Keys and values of another layer's cache are already split into heads, with the bias added.
        return Heads(first, key, value)
    return Heads(
        first,
        split_heads(ctx, _plus(ctx, key, parts[1]), num_heads),
        split_heads(ctx, _plus(ctx, value, parts[2]), num_heads),
    )


def _split_bias(ctx: TranslationContext, bias: Value, widths: list[Size | None]) -> list[Value | None]:
    query, _, value = widths
    if not isinstance(query, int):
        raise OpError("the width of the queries is not known")
    lengths = [query, query, value if isinstance(value, int) else -1]
    return list(ctx.emit("VariadicSplit", bias, ctx.constant(0), lengths))


def _plus(ctx: TranslationContext, x: Value, bias: Value | None) -> Value:
    return x if bias is None else ctx.emit("Add", x, bias)


def _unpacked(ctx: TranslationContext, packed: Value, count: int) -> list[Value]:
    """(batch, length, heads, count, size) as ``count`` tensors of (batch, heads, length, size)."""
    parts = ctx.emit("Split", packed, ctx.constant(3), num_splits=count)
    return [ctx.transpose(ctx.emit("Squeeze", part, [3]), [0, 2, 1, 3]) for part in parts]


@translates("RotaryEmbedding", domain=COM_MICROSOFT)
def rotary_embedding(
    ctx: TranslationContext, x: Annotated[Value, Rank(3, 4)], position_ids: Annotated[Value, Rank(0, 2)],
    cos_cache: Annotated[Value, Rank(2)], sin_cache: Annotated[Value, Rank(2)], *, interleaved: int = 0,
    is_packed_batching: int = 0, num_heads: int = 0, rotary_embedding_dim: int = 0, scale: float = 1.0,
) -> Value:  # fmt: skip
    """A single position belongs to the first element; otherwise each element has its own."""
    flat = ctx.rank(x) == 3
    if flat:
        half = ctx.sizes(cos_cache)[1]
        if not num_heads and not isinstance(half, int):
            raise OpError("neither num_heads nor the width of cos_cache is known")
        width = ctx.sizes(x)[2]
        if not num_heads and not rotary_embedding_dim and isinstance(width, int) and isinstance(half, int) and half:
            num_heads = width // (2 * half)
        x = split_heads(ctx, x, num_heads)
    position = Expression(ctx, ctx.convert(position_ids, I64))
    if ctx.rank(position_ids) == 1:
        position = (positions(ctx, x, 2) + position).unsqueeze(0)
    cos, sin = (ctx.emit("Gather", cache, position.value, ctx.constant(0)) for cache in (cos_cache, sin_cache))
    y = rotate(ctx, x, cos, sin, bool(interleaved), rotary_embedding_dim)
    y = y if scale == 1.0 else ctx.emit("Multiply", y, ctx.constant(scale, y))
    return join_heads(ctx, y) if flat else y


@translates("GroupQueryAttention", domain=COM_MICROSOFT)
def group_query_attention(
    ctx: TranslationContext, query: Annotated[Value, Rank(3)], key: Annotated[Value, Rank(3)] | None,
    value: Annotated[Value, Rank(3)] | None, past_key: Annotated[Value, Rank(4)] | None,
    past_value: Annotated[Value, Rank(4)] | None, seqlens_k: Value, total_sequence_length: Value,
    cos_cache: Annotated[Value, Rank(2)] | None = None, sin_cache: Annotated[Value, Rank(2)] | None = None,
    position_ids: Value | None = None, attention_bias: Value | None = None, head_sink: Value | None = None, *,
    num_heads: int, kv_num_heads: int, scale: float = 0.0, do_rotary: int = 0, rotary_interleaved: int = 0,
    local_window_size: int = -1, softcap: float = 0.0, smooth_softmax: int = 0, kv_cache_bit_width: int = 0,
    qk_output: int = 0, causal: int = 1, k_quant_type: str = "NONE", v_quant_type: str = "NONE",
    sliding_window_cache: int = 0, qk_norm_epsilon: float = 1e-6,
) -> tuple[Value, ...]:  # fmt: skip
    """Causal attention; keys and values follow the past ones, seqlens_k + 1 - length per sample.

    A first prompt, whose total length is the length of the queries, has no past; seqlens_k then has no effect.
    """
    has_sinks = smooth_softmax or head_sink is not None
    has_other_cache = sliding_window_cache or k_quant_type != "NONE" or v_quant_type != "NONE"
    if has_sinks or has_other_cache or not causal or ctx.needs_output(3):
        raise ConversionError(
            "only causal attention without sinks and without a quantized cache can be converted", unsupported=True
        )
    if num_heads < 1 or kv_num_heads < 1:
        raise OpError(f"num_heads is {num_heads} and kv_num_heads {kv_num_heads}, expected 1 or more")
    parts = _queries(ctx, query, key, value, num_heads, kv_num_heads)
    total = Expression(ctx, ctx.scalar(ctx.convert(total_sequence_length, I64)))
    length = Expression(ctx, ctx.size(parts.query, 2))
    past_length = Expression(ctx, ctx.convert(ctx.reshape(seqlens_k, [-1]), I64)) + 1 - length
    before = length.equals(total).select(0, past_length)
    if do_rotary:
        if cos_cache is None or sin_cache is None:
            raise OpError("do_rotary needs cos_cache and sin_cache")
        if position_ids is None:
            position_ids = (before.column() + positions(ctx, parts.query, 2)).value
        cos, sin = (ctx.emit("Gather", cache, position_ids, ctx.constant(0)) for cache in (cos_cache, sin_cache))
        width = 2 * _half(ctx, cos_cache)
        first, second = (rotate(ctx, x, cos, sin, bool(rotary_interleaved), width) for x in (parts.query, parts.key))
        parts = Heads(first, second, parts.value)
    caches = [_cached(ctx, old, new, total, before) for old, new in ((past_key, parts.key), (past_value, parts.value))]
    return _grouped(ctx, parts.query, caches, kv_num_heads, before, attention_bias, scale, local_window_size, softcap)


def _half(ctx: TranslationContext, cache: Value) -> int:
    found = ctx.sizes(cache)[-1]
    if not isinstance(found, int):
        raise OpError(f"the width of {ctx.fact(cache)} is not known")
    return found


def _queries(
    ctx: TranslationContext, query: Value, key: Value | None, value: Value | None, num_heads: int, kv_num_heads: int
) -> Heads:
    """Queries, keys and values; all may be packed along the last axis of the queries."""
    if key is None or value is None:
        width = ctx.sizes(query)[2]
        if not isinstance(width, int):
            raise OpError(f"the width of {ctx.fact(query)} is not known")
        heads = num_heads + 2 * kv_num_heads
        if width % heads:
            raise OpError(f"the width of {ctx.fact(query)} cannot be split into {num_heads} + 2 * {kv_num_heads} heads")
        size = width // heads
        lengths = [num_heads * size, kv_num_heads * size, kv_num_heads * size]
        query, key, value = ctx.emit("VariadicSplit", query, ctx.constant(2), lengths)
    counts = (num_heads, kv_num_heads, kv_num_heads)
    return Heads(*(split_heads(ctx, x, count) for x, count in zip((query, key, value), counts, strict=True)))


def _cached(ctx: TranslationContext, past: Value | None, new: Value, total: Expression, before: Expression) -> Value:
    """The cache with the new entries inserted; its length is the maximum of past and total length."""
    if past is None:
        return new
    size = Expression(ctx, ctx.size(past, 2))
    missing = (total - size).maximum(0).unsqueeze(0).value
    end = ctx.emit("Concat", ctx.constant([0, 0]), missing, ctx.constant([0]), axis=0)
    padded = ctx.emit("Pad", past, [0] * 4, end, ctx.constant(0, past), pad_mode="constant")
    position = before.unsqueeze(1, 2, 3) + positions(ctx, new, 2).unsqueeze(0, 1, 3)
    index = ctx.full(position.value, ctx.shape_of(new))
    return ctx.emit("ScatterElementsUpdate", padded, index, new, ctx.constant(2), version=3)


def _grouped(
    ctx: TranslationContext, query: Value, caches: list[Value], kv_num_heads: int, before: Expression,
    bias: Value | None, scale: float, window: int, softcap: float,
) -> tuple[Value, ...]:  # fmt: skip
    count = ctx.sizes(query)[1]
    if not isinstance(count, int):
        raise OpError(f"the number of heads of {ctx.fact(query)} is not known")
    heads = Heads(query, *(repeat_heads(ctx, cache, count, kv_num_heads) for cache in caches))
    mask = Mask()
    # A query always sees its own key.
    mask.restrict(visible(ctx, query, heads.key, before, window - 1 if window > 0 else -1), sees=True)
    if bias is not None:
        mask.add(ctx, _for_whole_cache(ctx, bias, heads.key))
    if softcap:
        y, _ = Scores(ctx, heads, mask, _scale(scale), softcap).stages()
    else:
        y = attend(ctx, heads, mask, _scale(scale))
    return (join_heads(ctx, y), *caches)


def _for_whole_cache(ctx: TranslationContext, bias: Value, key: Value) -> Value:
    """A bias of the keys in use with zeros for the entries of the cache after them, which no query sees."""
    if are_equal(ctx.sizes(bias, "attention_bias")[-1], ctx.sizes(key)[2]):
        return bias
    missing = Expression(ctx, ctx.size(key, 2)) - Expression(ctx, ctx.size(bias, ctx.rank(bias) - 1))
    ends = ctx.emit("Concat", [0] * (ctx.rank(bias) - 1), missing.unsqueeze(0).value, axis=0)
    padded: Value = ctx.emit("Pad", bias, [0] * ctx.rank(bias), ends, ctx.constant(0, bias), pad_mode="constant")
    return padded


@translates("QAttention", domain=COM_MICROSOFT)
def qattention(
    ctx: TranslationContext, x: Value, weight: Value, bias: Value, x_scale: Value, weight_scale: Value,
    mask_index: Value | None = None, x_zero: Value | None = None, weight_zero: Value | None = None,
    past: Value | None = None, *, given: _Attributes,
) -> tuple[Value, ...]:  # fmt: skip
    """Attention with quantized data and weights; queries, keys and values are floats."""
    projected = matmul_integer_to_float(ctx, x, weight, x_scale, weight_scale, x_zero, weight_zero, bias)
    return _from_projected(ctx, projected, None, mask_index, past, None, given)
