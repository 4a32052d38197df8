"""Rotary position embedding."""

from __future__ import annotations

from converters.onnx.algorithms.attention import join_heads, rotate, split_heads
from converters.onnx.context import TranslationContext
from converters.onnx.registry import translates
from irexec.errors import OpError
from irexec.ir.graph import Value


@translates("RotaryEmbedding", since=23)
def rotary_embedding(
    ctx: TranslationContext, x: Value, cos_cache: Value, sin_cache: Value, position_ids: Value | None = None, *,
    interleaved: int = 0, num_heads: int = 0, rotary_embedding_dim: int = 0,
) -> Value:  # fmt: skip
    """Source: ONNX RotaryEmbedding-23."""
    if position_ids is not None:
        cos_cache, sin_cache = (
            ctx.emit("Gather", cache, position_ids, ctx.constant(0)) for cache in (cos_cache, sin_cache)
        )
    if ctx.rank(x) == 4:
        return rotate(ctx, x, cos_cache, sin_cache, bool(interleaved), rotary_embedding_dim)
    if not num_heads:
        raise OpError("num_heads is needed for data without an axis of heads")
    return join_heads(
        ctx, rotate(ctx, split_heads(ctx, x, num_heads), cos_cache, sin_cache, bool(interleaved), rotary_embedding_dim)
    )
