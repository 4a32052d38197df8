"""com.microsoft: operators of ai.onnx or IR with other inputs or attributes."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from converters.onnx.algorithms.expression import Expression
from converters.onnx.context import TranslationContext
from converters.onnx.limits import check_unrolled
from converters.onnx.ops.ai_onnx.broadcasting import PadMode, pad_11
from converters.onnx.ops.ai_onnx.generation import range_11
from converters.onnx.ops.ai_onnx.grid_sample import grid_sample
from converters.onnx.ops.ai_onnx.indexing import gather_nd, trilu, unique
from converters.onnx.registry import COM_MICROSOFT, translates
from irexec.errors import OpError
from irexec.ir.graph import Value
from irexec.schema.inputs import Rank

translates("GatherND", domain=COM_MICROSOFT, without=["batch_dims"])(gather_nd)
translates("Trilu", domain=COM_MICROSOFT)(trilu)
translates("GridSample", domain=COM_MICROSOFT)(grid_sample)


@translates("ExpandDims", domain=COM_MICROSOFT)
def expand_dims(ctx: TranslationContext, x: Value, axis: Value) -> Value:
    return ctx.unsqueeze(x, list(ctx.ints(axis, "axis")))


@translates("Unique", domain=COM_MICROSOFT)
def contrib_unique(ctx: TranslationContext, x: Value) -> tuple[Value, ...]:
    """Distinct values in the order of first occurrence, the index of each element in them, and the counts."""
    values, _, which, counts = unique(ctx, x, sorted=0)
    return values, which, counts


@translates("Range", domain=COM_MICROSOFT)
def contrib_range(ctx: TranslationContext, start: Value, limit: Value, delta: Value | None = None) -> Value:
    return range_11(ctx, start, limit, ctx.constant(1, start) if delta is None else delta)


@translates("Pad", domain=COM_MICROSOFT)
def contrib_pad(
    ctx: TranslationContext, x: Value, pads: Value, value: Value | None = None, *, mode: PadMode = "constant"
) -> Value:
    """The pads may have a leading axis of size 1."""
    return pad_11(ctx, x, ctx.emit("Reshape", pads, [-1], special_zero=False), value, mode=mode)


@translates("Inverse", domain=COM_MICROSOFT)
def inverse(ctx: TranslationContext, x: Value) -> Value:
    return ctx.emit("Inverse", x, adjoint=False)


@translates("NGramRepeatBlock", domain=COM_MICROSOFT)
def n_gram_repeat_block(
    ctx: TranslationContext, input_ids: Annotated[Value, Rank(2)], scores: Annotated[Value, Rank(2)], *,
    ngram_size: int,
) -> Value:  # fmt: skip
    """-inf as the score of each token that would repeat ``ngram_size`` tokens of the text, (batch, length)."""
    if ngram_size < 1:
        raise OpError(f"ngram_size is {ngram_size}, expected 1 or more")
    check_unrolled(ngram_size, "the tokens to compare")
    length = Expression(ctx, ctx.size(input_ids, 1)).unsqueeze(0)
    count = (length - (ngram_size - 1)).maximum(0)

    def tokens(first: Expression, number: Expression) -> Expression:
        stop = (first + number).value
        return Expression(ctx, ctx.emit("Slice", input_ids, first.value, stop, [1], [1]))

    repeats: Expression | None = None
    for i in range(ngram_size - 1):
        last = (length - (ngram_size - 1 - i)).maximum(0)
        same = tokens(Expression(ctx, ctx.constant([i])), count).equals(tokens(last, count.minimum(1)))
        repeats = same if repeats is None else repeats & same
    banned = tokens(Expression(ctx, ctx.constant([ngram_size - 1])), count)
    low, high = (Expression(ctx, ctx.constant(value, scores)) for value in (-np.inf, np.inf))
    new = low if repeats is None else repeats.select(low, high)
    updates = ctx.full(new.value, ctx.shape_of(banned.value)) if repeats is None else new.value
    return ctx.emit(
        "ScatterElementsUpdate", scores, banned.value, updates, ctx.constant(1), reduction="min", use_init_val=True
    )
