"""Determinants."""

from __future__ import annotations

import numpy as np

from converters.onnx.algorithms.expression import Expression
from converters.onnx.context import Context
from converters.onnx.limits import check_unrolled
from converters.onnx.ops.ai_onnx.sorting import first_extreme
from converters.onnx.registry import translates
from irexec.errors import OpError
from irexec.ir.graph import Value


@translates("Det", since=11)
def det(b: Context, x: Value) -> Value:
    """Gaussian elimination with partial pivoting, unrolled over the columns, whose number must be known."""
    rank = b.rank(x)
    sizes = b.sizes(x)[-2:]
    if rank < 2 or not isinstance(sizes[-1], int) or not isinstance(sizes[0], int) or sizes[0] != sizes[-1]:
        raise OpError(f"the input {b.fact(x)} does not consist of square matrices of a known size")
    check_unrolled(sizes[0], "the steps of the elimination")
    result = b.full(b.constant(1, x), b.emit("Slice", b.shape_of(x), [0], [rank - 2], [1], [0]))
    for size in range(sizes[0], 0, -1):
        x, factor = _eliminated(b, x, size)
        result = b.emit("Multiply", result, factor)
    return result


def _eliminated(b: Context, x: Value, size: int) -> tuple[Value, Value]:
    """The matrices without the row and column of the pivot, and the pivot, negated if rows were exchanged."""
    rank = b.rank(x)
    column = b.emit("Slice", x, [0], [1], [1], [rank - 1])
    pivot_index = first_extreme(b, b.emit("Abs", column), "max", rank - 2)
    first = b.emit("Slice", x, [0], [1], [1], [rank - 2])
    pivot_row = Expression(
        b, b.emit("GatherND", x, b.emit("Squeeze", pivot_index, [rank - 1]), batch_dims=rank - 2)
    ).unsqueeze(rank - 2)
    rest = b.emit("Slice", x, [1], [size], [1], [rank - 2])
    is_pivot = Expression(b, pivot_index).equals(Expression(b, b.constant(np.arange(1, size).reshape(-1, 1))))
    rows = is_pivot.select(Expression(b, first), Expression(b, rest)).value
    pivot = Expression(b, b.emit("Slice", pivot_row.value, [0], [1], [1], [rank - 1]))
    factor = Expression(b, b.emit("Slice", rows, [0], [1], [1], [rank - 1])) / pivot.equals(0).select(1, pivot)
    smaller = Expression(b, b.emit("Slice", rows, [1], [size], [1], [rank - 1]))
    pivot_tail = Expression(b, b.emit("Slice", pivot_row.value, [1], [size], [1], [rank - 1]))
    signed = Expression(b, pivot_index).equals(0).select(pivot, -pivot)
    return (smaller - factor * pivot_tail).value, b.emit("Squeeze", signed.value, [rank - 2, rank - 1])
