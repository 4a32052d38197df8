"""com.microsoft: normalization fused with the sum before it.

Source: onnxruntime ``docs/ContribOperators.md``.
"""

from __future__ import annotations

from converters.onnx.algorithms.expression import positions
from converters.onnx.context import TranslationContext
from converters.onnx.ops.ai_onnx.normalization import layer_normalization, rms_normalization
from converters.onnx.registry import COM_MICROSOFT, translates
from irexec.dtypes.elements import I32
from irexec.errors import OpError
from irexec.ir.graph import Value


def _summed(ctx: TranslationContext, x: Value, skip: Value, bias: Value | None) -> Value:
    """x + skip + bias; the skip may have no batch axis, or a batch of 1."""
    total = ctx.emit("Add", x, skip)
    return total if bias is None else ctx.emit("Add", total, bias)


@translates("SkipLayerNormalization", domain=COM_MICROSOFT)
def skip_layer_normalization(
    ctx: TranslationContext, x: Value, skip: Value, gamma: Value, beta: Value | None = None, bias: Value | None = None,
    *, epsilon: float = 1e-12,
) -> tuple[Value | None, ...]:  # fmt: skip
    """The layer normalization of x + skip + bias; the sum is the fourth output."""
    total = _summed(ctx, x, skip, bias)
    results = layer_normalization(ctx, total, gamma, beta, epsilon=epsilon)
    return (*results, total) if len(results) == 3 else (results[0], None, None, total)


@translates("SkipSimplifiedLayerNormalization", domain=COM_MICROSOFT)
def skip_simplified_layer_normalization(
    ctx: TranslationContext, x: Value, skip: Value, gamma: Value, bias: Value | None = None, *, epsilon: float = 1e-12
) -> tuple[Value | None, ...]:
    """The RMS normalization of x + skip + bias; the sum is the fourth output, and outputs 1 and 2 are absent."""
    total = _summed(ctx, x, skip, bias)
    return rms_normalization(ctx, total, gamma, epsilon=epsilon), None, None, total


@translates("EmbedLayerNormalization", domain=COM_MICROSOFT)
def embed_layer_normalization(
    ctx: TranslationContext, input_ids: Value, segment_ids: Value | None, word_embedding: Value,
    position_embedding: Value, segment_embedding: Value | None, gamma: Value, beta: Value, mask: Value | None = None,
    position_ids: Value | None = None, *, epsilon: float = 1e-12, mask_index_type: int = 0,
) -> tuple[Value, ...]:  # fmt: skip
    """The normalized sum of word, position and segment embeddings; the number of ones in each mask; and the sum."""
    axis = ctx.constant(0)
    if position_ids is None:
        position_ids = positions(ctx, input_ids, 1).unsqueeze(0).value
    total = ctx.emit(
        "Add",
        ctx.emit("Gather", word_embedding, input_ids, axis),
        ctx.emit("Gather", position_embedding, position_ids, axis),
    )
    if segment_embedding is not None:
        if segment_ids is None:
            raise OpError("segment_ids is missing, which segment_embedding needs")
        total = ctx.emit("Add", total, ctx.emit("Gather", segment_embedding, segment_ids, axis))
    y = layer_normalization(ctx, total, gamma, beta, epsilon=epsilon)[0]
    if mask is None:
        counted = ctx.full(ctx.constant(0, I32), ctx.unsqueeze(ctx.size(input_ids, 0), [0]))
    else:
        is_word = ctx.emit("Equal", mask, ctx.constant(1, mask))
        counted = ctx.emit("ReduceSum", ctx.convert(is_word, I32), [1], keep_dims=False)
    return y, counted, total


@translates("GroupNorm", domain=COM_MICROSOFT)
def group_norm(
    ctx: TranslationContext, x: Value, gamma: Value, beta: Value, *, activation: int, channels_last: int = 1,
    epsilon: float = 1e-5, groups: int,
) -> Value:  # fmt: skip
    """Channels last by default; the activation is Swish."""
    data = ctx.channels_first(x) if channels_last else x
    kind = ctx.element(x)
    scale, bias = (ctx.convert(part, kind) for part in (gamma, beta))
    y = ctx.emit("GroupNormalization", data, scale, bias, num_groups=groups, epsilon=epsilon)
    y = ctx.emit("Swish", y) if activation else y
    return ctx.channels_last(y) if channels_last else y
