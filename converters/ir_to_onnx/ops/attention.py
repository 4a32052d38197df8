"""Scaled dot-product attention."""

from __future__ import annotations

import math

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.ops.linear_algebra import transposed
from converters.ir_to_onnx.registry import composed
from converters.ir_to_onnx.tensors import Tensor
from irexec.dtypes.elements import BOOLEAN
from irexec.errors import check


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
