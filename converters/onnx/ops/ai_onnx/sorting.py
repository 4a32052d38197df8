"""Order: the greatest, where they are, sums on the way."""

from __future__ import annotations

import numpy as np

from converters.onnx.algorithms.expression import Expression, positions
from converters.onnx.context import Context
from converters.onnx.registry import translates
from irexec.dtypes.elements import I64
from irexec.ir.graph import Value

_END = int(np.iinfo(np.int64).max)


@translates("NonZero", since=9)
def non_zero(b: Context, x: Value) -> Value:
    return b.emit("NonZero", x, output_type="i64")


@translates("TopK")
def topk_1(b: Context, x: Value, *, k: int, axis: int = -1) -> tuple[Value, ...]:
    return _topk(b, x, b.constant(k), axis, "max")


@translates("TopK", since=10)
def topk_10(b: Context, x: Value, k: Value, *, axis: int = -1) -> tuple[Value, ...]:
    return _topk(b, x, b.scalar(k), axis, "max")


@translates("TopK", since=11)
def topk_11(b: Context, x: Value, k: Value, *, axis: int = -1, largest: int = 1, sorted: int = 1) -> tuple[Value, ...]:
    """Not sorted, the order is free: it is sorted all the same."""
    return _topk(b, x, b.scalar(k), axis, "max" if largest else "min")


def _topk(b: Context, x: Value, k: Value, axis: int, mode: str) -> tuple[Value, ...]:
    """Of equal numbers the one with the lower index comes first."""
    return tuple(b.emit("TopK", x, k, axis=b.axis(axis, x), mode=mode, sort="value", stable=True, index_element_type="i64"))


@translates("ArgMax")
def arg_max(b: Context, x: Value, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Value:
    return _arg(b, x, "max", axis, keepdims, select_last_index)


@translates("ArgMin")
def arg_min(b: Context, x: Value, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Value:
    return _arg(b, x, "min", axis, keepdims, select_last_index)


def first_extreme(b: Context, x: Value, mode: str, place: int) -> Value:
    """The index of the first greatest or least of an axis, which stays with size 1."""
    return _topk(b, x, b.constant(1), place, mode)[1]


def _arg(b: Context, x: Value, mode: str, axis: int, keepdims: int, last: int) -> Value:
    """The last extreme is the first one of the axis read backwards."""
    place = b.axis(axis, x)
    if last:
        x = b.emit("Slice", x, [-1], [-_END], [-1], [place])
    index = first_extreme(b, x, mode, place)
    if last:
        index = b.emit("Subtract", b.emit("Subtract", b.size(x, place), b.constant(1)), index)
    return index if keepdims else b.emit("Squeeze", index, [place], version=1)


@translates("CumSum", since=11)
def cum_sum(b: Context, x: Value, axis: Value, *, exclusive: int = 0, reverse: int = 0) -> Value:
    return b.emit("CumSum", x, b.scalar(axis), exclusive=bool(exclusive), reverse=bool(reverse))


@translates("CumProd", since=26)
def cum_prod(b: Context, x: Value, axis: Value, *, exclusive: int = 0, reverse: int = 0) -> Value:
    """IR has no running product: each number gets a row of those that count for it. The axis is brought to the end for that."""
    rank = b.rank(x)
    last = Expression(b, b.constant(rank - 1))
    place = Expression(b, b.scalar(b.convert(axis, I64))).modulo(rank)
    here = Expression(b, b.constant(np.arange(rank)))
    swapped = here.equals(place).select(last, here.equals(last).select(place, here)).value
    moved = b.emit("Transpose", x, swapped)
    numbers = positions(b, moved, rank - 1)
    row = numbers.column()
    if reverse:
        counts = numbers > row if exclusive else numbers >= row
    else:
        counts = numbers < row if exclusive else numbers <= row
    parts = counts.select(Expression(b, moved).unsqueeze(rank - 1), Expression(b, b.constant(1, x)))
    return b.emit("Transpose", b.emit("ReduceProd", parts.value, [rank], keep_dims=False), swapped)
