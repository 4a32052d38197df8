"""Sorting, extremes, and cumulative sums and products."""

from __future__ import annotations

import numpy as np

from converters.onnx.algorithms.expression import Expression, positions
from converters.onnx.context import TranslationContext
from converters.onnx.registry import add, translates
from irexec.dtypes.elements import I64
from irexec.ir.graph import Value

_MAX = int(np.iinfo(np.int64).max)


@translates("NonZero", since=9)
def non_zero(ctx: TranslationContext, x: Value) -> Value:
    return ctx.emit("NonZero", x, output_type="i64")


@translates("TopK")
def topk_1(ctx: TranslationContext, x: Value, *, k: int, axis: int = -1) -> tuple[Value, ...]:
    return _topk(ctx, x, ctx.constant(k), axis, "max")


@translates("TopK", since=10, without=["largest", "sorted"])
@translates("TopK", since=11)
def topk_10(
    ctx: TranslationContext, x: Value, k: Value, *, axis: int = -1, largest: int = 1, sorted: int = 1
) -> tuple[Value, ...]:
    """``sorted`` has no effect: the result is always sorted, and sorted=0 allows any order."""
    return _topk(ctx, x, ctx.scalar(k), axis, "max" if largest else "min")


def _topk(ctx: TranslationContext, x: Value, k: Value, axis: int, mode: str) -> tuple[Value, ...]:
    """TopK; equal values are in the order of their indices."""
    axis = ctx.axis_if_known(axis, x)
    return tuple(ctx.emit("TopK", x, k, axis=axis, mode=mode, sort="value", stable=True, index_element_type="i64"))


def _register_arg(operator: str, mode: str) -> None:
    """ArgMax or ArgMin; the last extreme is the first along the reversed axis."""

    def translate(
        ctx: TranslationContext, x: Value, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0
    ) -> Value:
        normal_axis = ctx.axis_if_known(axis, x)
        if select_last_index:
            x = ctx.emit("Slice", x, [-1], [-_MAX], [-1], [normal_axis])
        index = first_extreme(ctx, x, mode, normal_axis)
        if select_last_index:
            index = ctx.emit("Subtract", ctx.emit("Subtract", ctx.size(x, normal_axis), ctx.constant(1)), index)
        return index if keepdims else ctx.emit("Squeeze", index, [normal_axis], version=1)

    add(operator, 1, "", translate)


_register_arg("ArgMax", "max")
_register_arg("ArgMin", "min")


def first_extreme(ctx: TranslationContext, x: Value, mode: str, normal_axis: int) -> Value:
    """The index of the first maximum or minimum along an axis, which is kept with size 1."""
    return _topk(ctx, x, ctx.constant(1), normal_axis, mode)[1]


@translates("CumSum", since=11)
def cum_sum(ctx: TranslationContext, x: Value, axis: Value, *, exclusive: int = 0, reverse: int = 0) -> Value:
    return ctx.emit("CumSum", x, ctx.scalar(axis), exclusive=bool(exclusive), reverse=bool(reverse))


@translates("CumProd", since=26)
def cum_prod(ctx: TranslationContext, x: Value, axis: Value, *, exclusive: int = 0, reverse: int = 0) -> Value:
    """A product over a masked row for each element, along the axis moved last: IR has no cumulative product."""
    rank = ctx.rank(x)
    last = Expression(ctx, ctx.constant(rank - 1))
    normal_axis = Expression(ctx, ctx.scalar(ctx.convert(axis, I64))).modulo(rank)
    here = Expression(ctx, ctx.constant(np.arange(rank)))
    swapped = here.equals(normal_axis).select(last, here.equals(last).select(normal_axis, here)).value
    moved = ctx.emit("Transpose", x, swapped)
    columns = positions(ctx, moved, rank - 1)
    row = columns.column()
    if reverse:
        included = columns > row if exclusive else columns >= row
    else:
        included = columns < row if exclusive else columns <= row
    parts = included.select(Expression(ctx, moved).unsqueeze(rank - 1), Expression(ctx, ctx.constant(1, x)))
    return ctx.emit("Transpose", ctx.emit("ReduceProd", parts.value, [rank], keep_dims=False), swapped)
