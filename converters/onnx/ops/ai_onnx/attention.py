"""Attention, rotary position embedding, and LinearAttention."""

from __future__ import annotations

from typing import Annotated

from converters.onnx.algorithms.attention import (
    Heads,
    Mask,
    Scores,
    angles,
    attend,
    join_heads,
    repeat_heads,
    rotate_either,
    split_heads,
    visible,
    with_past,
)
from converters.onnx.algorithms.expression import Expression, positions
from converters.onnx.algorithms.linear_attention import UpdateRule, packed_linear_attention
from converters.onnx.context import Tensor4, TranslationContext, Vector
from converters.onnx.registry import translates
from converters.onnx.tensors import element_of
from irexec.dtypes.elements import BF16, BOOLEAN, F16, F32, I64
from irexec.errors import OpError, check
from irexec.ir.graph import Value
from irexec.schema.opdef import Rank


@translates("Attention", since=23)
def attention(
    ctx: TranslationContext, query: Annotated[Value, Rank(3, 4)], key: Annotated[Value, Rank(3, 4)],
    value: Annotated[Value, Rank(3, 4)], attn_mask: Annotated[Value, Rank(1, 4)] | None = None,
    past_key: Tensor4 | None = None, past_value: Tensor4 | None = None, nonpad_kv_seqlen: Vector | None = None, *,
    is_causal: int = 0, scale: float | None = None, q_num_heads: int | None = None, kv_num_heads: int | None = None,
    softcap: float = 0.0, softmax_precision: int | None = None, qk_matmul_output_mode: int = 0,
    left_window_size: int = -1, right_window_size: int = -1,
) -> tuple[Value | None, ...]:  # fmt: skip
    """Past keys and values precede the new ones. Source: ONNX Attention-25."""
    ranks = [ctx.rank(query, "the queries"), ctx.rank(key, "the keys"), ctx.rank(value, "the values")]
    check(len(set(ranks)) <= 1, f"queries, keys and values have the ranks {ranks}, expected equal ones")
    flat = ranks[0] == 3
    if flat:
        if not q_num_heads or not kv_num_heads:
            raise OpError("q_num_heads and kv_num_heads are needed for queries without an axis of heads")
        query, key, value = (
            split_heads(ctx, x, heads)
            for x, heads in ((query, q_num_heads), (key, kv_num_heads), (value, kv_num_heads))
        )
    present = with_past(ctx, past_key, key), with_past(ctx, past_value, value)
    heads = Heads(query, *(repeat_heads(ctx, x, ctx.sizes(query)[1], like=query) for x in present))
    mask = Mask()
    if attn_mask is not None:
        attn_mask = ctx.convert(attn_mask, ctx.element(query)) if ctx.element(attn_mask).is_integer else attn_mask
        mask.apply(ctx, _padded_mask(ctx, attn_mask, heads.key))
    offset = _offset(ctx, query, past_key, nonpad_kv_seqlen)
    windowed = left_window_size >= 0 or right_window_size >= 0
    precision = None if softmax_precision is None else element_of(softmax_precision)
    kind = ctx.element(query)
    # The softmax has the precision in which IR's attention computes it.
    is_default = precision in (None, kind) or (precision is F32 and kind in (F16, BF16))
    fused = not softcap and not ctx.needs_output(3) and is_default
    causal = fused and bool(is_causal) and offset is None and not windowed and attn_mask is None
    if not causal and (is_causal or windowed):
        seen = visible(ctx, query, heads.key, offset, left_window_size, 0 if is_causal else right_window_size)
        mask.restrict(seen, sees=left_window_size < 0 and (offset is None or past_key is not None))
    if nonpad_kv_seqlen is not None:
        columns = positions(ctx, heads.key, 2)
        mask.restrict(columns < Expression(ctx, ctx.convert(nonpad_kv_seqlen, I64)).unsqueeze(1, 2, 3))
    if fused:
        y, scores = attend(ctx, heads, mask, scale, causal), None
    else:
        if qk_matmul_output_mode not in (0, 1, 2, 3):
            raise OpError(f"qk_matmul_output_mode is {qk_matmul_output_mode}, expected 0 to 3")
        y, stages = Scores(ctx, heads, mask, scale, softcap, precision).stages()
        scores = stages[qk_matmul_output_mode]
    return join_heads(ctx, y) if flat else y, *present, scores


def _offset(ctx: TranslationContext, query: Value, past: Value | None, valid: Value | None) -> Expression | None:
    """Number of keys before the first query: a scalar or one value per sample; None is 0."""
    if past is not None:
        return Expression(ctx, ctx.size(past, 2))
    if valid is not None:
        return Expression(ctx, ctx.convert(valid, I64)) - Expression(ctx, ctx.size(query, 2))
    return None


def _padded_mask(ctx: TranslationContext, mask: Value, key: Value) -> Value:
    """The mask padded to the number of keys; padding hides keys."""
    have, want = ctx.sizes(mask, "the mask")[-1], ctx.sizes(key, "the keys")[2]
    rank = ctx.rank(mask)
    if have == want if isinstance(have, int) or isinstance(want, int) else bool(have.name) and have.name == want.name:
        return mask
    lacking = Expression(ctx, ctx.size(key, 2)) - Expression(ctx, ctx.size(mask, rank - 1))
    more = ctx.emit("Concat", ctx.constant([0] * (rank - 1)), lacking.maximum(0).unsqueeze(0).value, axis=0)
    boolean = ctx.element(mask) is BOOLEAN
    fill = ctx.constant(False, BOOLEAN) if boolean else ctx.constant(float("-inf"), mask)
    return ctx.emit("Pad", mask, [0] * rank, more, fill, pad_mode="constant")


@translates("RotaryEmbedding", since=23)
def rotary_embedding(
    ctx: TranslationContext, x: Value, cos_cache: Value, sin_cache: Value, position_ids: Value | None = None, *,
    interleaved: int = 0, num_heads: int = 0, rotary_embedding_dim: int = 0,
) -> Value:  # fmt: skip
    """Source: ONNX RotaryEmbedding-23."""
    if position_ids is not None:
        cos_cache, sin_cache = angles(ctx, Expression(ctx, position_ids), cos_cache, sin_cache)
    check(ctx.rank(x) == 4 or num_heads > 0, "num_heads is needed for data without an axis of heads")
    return rotate_either(ctx, x, [cos_cache, sin_cache], num_heads, interleaved, rotary_embedding_dim)


@translates("LinearAttention", since=27)
def linear_attention(
    ctx: TranslationContext, query: Value, key: Value, value: Value, past_state: Value | None = None,
    decay: Value | None = None, beta: Value | None = None, *, q_num_heads: int, kv_num_heads: int, scale: float = 0.0,
    update_rule: UpdateRule = "gated_delta", chunk_size: int = 64,
) -> tuple[Value, ...]:  # fmt: skip
    """A loop over time in f32; query heads share the state of their key head. ``chunk_size`` has no effect."""
    if kv_num_heads < 1 or q_num_heads < 1 or q_num_heads % kv_num_heads:
        raise OpError(f"q_num_heads {q_num_heads} is not a multiple of kv_num_heads {kv_num_heads}")
    heads = (q_num_heads, kv_num_heads)
    y, last, _ = packed_linear_attention(ctx, query, key, value, past_state, decay, beta, heads, scale, update_rule)
    return y, ctx.convert(last, ctx.element(query if past_state is None else past_state))
