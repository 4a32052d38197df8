"""Determinants."""

from __future__ import annotations

import numpy as np

from converters.onnx.algorithms.expression import Expression
from converters.onnx.context import TranslationContext
from converters.onnx.limits import check_unrolled
from converters.onnx.ops.ai_onnx.sorting import first_extreme
from converters.onnx.registry import translates
from irexec.errors import OpError
from irexec.ir.graph import Value


@translates("Det", since=11)
def det(ctx: TranslationContext, x: Value) -> Value:
    """Gaussian elimination with partial pivoting, unrolled over a known number of columns."""
    rank = ctx.rank(x)
    sizes = ctx.sizes(x)[-2:]
    if rank < 2 or not isinstance(sizes[-1], int) or not isinstance(sizes[0], int) or sizes[0] != sizes[-1]:
        raise OpError(f"the input {ctx.fact(x)} does not consist of square matrices of a known size")
    check_unrolled(sizes[0], "the steps of the elimination")
    result = ctx.full(ctx.constant(1, x), ctx.emit("Slice", ctx.shape_of(x), [0], [rank - 2], [1], [0]))
    for size in range(sizes[0], 0, -1):
        x, factor = _eliminated(ctx, x, size)
        result = ctx.emit("Multiply", result, factor)
    return result


def _eliminated(ctx: TranslationContext, x: Value, size: int) -> tuple[Value, Value]:
    """The matrices without the row and column of the pivot; and the pivot, negated if rows were exchanged."""
    rank = ctx.rank(x)
    column = ctx.emit("Slice", x, [0], [1], [1], [rank - 1])
    pivot_index = first_extreme(ctx, ctx.emit("Abs", column), "max", rank - 2)
    first = ctx.emit("Slice", x, [0], [1], [1], [rank - 2])
    pivot_row = Expression(
        ctx, ctx.emit("GatherND", x, ctx.emit("Squeeze", pivot_index, [rank - 1]), batch_dims=rank - 2)
    ).unsqueeze(rank - 2)
    rest = ctx.emit("Slice", x, [1], [size], [1], [rank - 2])
    is_pivot = Expression(ctx, pivot_index).equals(Expression(ctx, ctx.constant(np.arange(1, size).reshape(-1, 1))))
    rows = is_pivot.select(Expression(ctx, first), Expression(ctx, rest)).value
    pivot = Expression(ctx, ctx.emit("Slice", pivot_row.value, [0], [1], [1], [rank - 1]))
    factor = Expression(ctx, ctx.emit("Slice", rows, [0], [1], [1], [rank - 1])) / pivot.equals(0).select(1, pivot)
    smaller = Expression(ctx, ctx.emit("Slice", rows, [1], [size], [1], [rank - 1]))
    pivot_tail = Expression(ctx, ctx.emit("Slice", pivot_row.value, [1], [size], [1], [rank - 1]))
    signed = Expression(ctx, pivot_index).equals(0).select(pivot, -pivot)
    return (smaller - factor * pivot_tail).value, ctx.emit("Squeeze", signed.value, [rank - 2, rank - 1])
