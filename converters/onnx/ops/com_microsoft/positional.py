"""com.microsoft: rotary embeddings of several positions, and biases by relative position.

Source: onnxruntime ``docs/ContribOperators.md``, and T5 and WavLM of transformers for the biases.
"""

from __future__ import annotations

import math
from typing import Annotated

from converters.onnx.algorithms.attention import rotate_either, split_heads
from converters.onnx.algorithms.expression import Expression, arange
from converters.onnx.context import Matrix, Tensor3, TranslationContext
from converters.onnx.graphs import check_convertible
from converters.onnx.registry import COM_MICROSOFT, translates
from irexec.dtypes.elements import F32, I64
from irexec.errors import OpError, check
from irexec.ir.graph import Value
from irexec.schema.opdef import Rank


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
