"""Reductions, products and Softmax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from converters.onnx.context import Context
from converters.onnx.ops.shape import flattened
from converters.onnx.registry import add, translates
from irexec.errors import OpError
from irexec.ir.elements import BOOLEAN, F32, I32
from irexec.ir.graph import Value

Reduce = Callable[[Context, Value, Value, bool], Value]


def _plain(type: str) -> Reduce:
    def reduce(b: Context, x: Value, axes: Value, keep: bool) -> Value:
        if b.element(x) is BOOLEAN:
            logical = {"ReduceMax": "ReduceLogicalOr", "ReduceMin": "ReduceLogicalAnd"}.get(type, type)
            return b.emit(logical, x, axes, keep_dims=keep)
        return b.emit(type, x, axes, keep_dims=keep)

    return reduce


def _sum_square(b: Context, x: Value, axes: Value, keep: bool) -> Value:
    return b.emit("ReduceSum", b.emit("Multiply", x, x), axes, keep_dims=keep)


def _log_sum(b: Context, x: Value, axes: Value, keep: bool) -> Value:
    return b.emit("Log", b.emit("ReduceSum", x, axes, keep_dims=keep))


def _log_sum_exp(b: Context, x: Value, axes: Value, keep: bool) -> Value:
    """Less the greatest first, so that nothing overflows; of nothing it is the logarithm of 0."""
    known = b.known(axes)
    sizes = b.sizes(x)
    empty = known is None or any(not isinstance(sizes[int(a)], int) or sizes[int(a)] == 0 for a in known.ravel().tolist())
    if empty:
        return b.emit("Log", b.emit("ReduceSum", b.emit("Exp", x), axes, keep_dims=keep))
    top = b.emit("ReduceMax", x, axes, keep_dims=True)
    total = b.emit("ReduceSum", b.emit("Exp", b.emit("Subtract", x, top)), axes, keep_dims=True)
    result: Value = b.emit("Add", b.emit("Log", total), top)
    return result if keep else b.emit("Squeeze", result, axes, version=1)


_KINDS: dict[str, Reduce] = {
    "ReduceSum": _plain("ReduceSum"), "ReduceMean": _plain("ReduceMean"), "ReduceProd": _plain("ReduceProd"), "ReduceMax": _plain("ReduceMax"),
    "ReduceMin": _plain("ReduceMin"), "ReduceL1": _plain("ReduceL1"), "ReduceL2": _plain("ReduceL2"), "ReduceSumSquare": _sum_square,
    "ReduceLogSum": _log_sum, "ReduceLogSumExp": _log_sum_exp,
}  # fmt: skip


def _all_axes(b: Context, x: Value) -> Value:
    rank = b.fact(x).rank
    if rank is not None:
        return b.constant(np.arange(rank))
    length = b.emit("ShapeOf", b.emit("ShapeOf", x, output_type="i64"), output_type="i64")
    return b.emit("Range", b.constant(0), b.emit("Squeeze", length, [0], version=1), b.constant(1), output_type="i64")


def _table(operator: str, reduce: Reduce) -> None:
    def by_attribute(b: Context, x: Value, *, axes: list[int] | None = None, keepdims: int = 1) -> Value:
        return reduce(b, x, b.constant(list(axes)) if axes else _all_axes(b, x), bool(keepdims))

    def by_input(b: Context, x: Value, axes: Value | None = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Value:
        none = axes is None or (b.sizes(axes) and b.sizes(axes)[0] == 0)
        if none and noop_with_empty_axes:
            return _of_each(b, operator, x)
        return reduce(b, x, _all_axes(b, x) if none or axes is None else axes, bool(keepdims))

    add(operator, 1, "", by_attribute)
    add(operator, 13 if operator == "ReduceSum" else 18, "", by_input)


def _of_each(b: Context, operator: str, x: Value) -> Value:
    """Without axes what is done to each number before and after the sum is still done."""
    if operator in ("ReduceL1", "ReduceL2"):
        return b.emit("Abs", x)
    if operator == "ReduceSumSquare":
        return b.emit("Multiply", x, x)
    return b.emit("Log", x) if operator == "ReduceLogSum" else x


for _operator, _reduce in _KINDS.items():
    _table(_operator, _reduce)


@translates("MatMul")
def matmul(b: Context, x: Value, y: Value) -> Value:
    return b.emit("MatMul", x, y)


@translates("Gemm")
def gemm_1(
    b: Context, x: Value, y: Value, z: Value | None = None, *, alpha: float = 1.0, beta: float = 1.0, transA: int = 0, transB: int = 0, broadcast: int = 0
) -> Value:  # fmt: skip
    """alpha * A @ B + beta * C."""
    result = b.emit("MatMul", x, y, transpose_a=bool(transA), transpose_b=bool(transB))
    result = _scaled(b, result, alpha)
    return result if z is None else b.emit("Add", result, _scaled(b, z, beta))


def _scaled(b: Context, x: Value, factor: float) -> Value:
    return x if factor == 1.0 else b.emit("Multiply", x, b.constant(factor, x))


@translates("MatMulInteger", since=10)
def matmul_integer(b: Context, x: Value, y: Value, x_zero: Value | None = None, y_zero: Value | None = None) -> Value:
    """Products of what remains after the zero points, in i32."""
    left, right = _less_zero(b, x, x_zero, row=True), _less_zero(b, y, y_zero, row=False)
    return b.emit("Convert", b.emit("MatMul", left, right), destination_type=I32)


def _less_zero(b: Context, x: Value, zero: Value | None, *, row: bool) -> Value:
    wide = b.emit("Convert", x, destination_type=F32)
    if zero is None:
        return wide
    if row and b.rank(zero) == 1 and b.sizes(zero)[0] != 1:
        zero = b.emit("Unsqueeze", zero, [1])
    return b.emit("Subtract", wide, b.emit("Convert", zero, destination_type=F32))


def _coerced(b: Context, x: Value, axis: int, emit: Callable[[Value, int], Value]) -> Value:
    """As opsets before 13 have it: over everything from ``axis`` on at once."""
    rank = b.rank(x)
    place = axis + rank if axis < 0 else axis
    if place == rank - 1:
        return emit(x, place)
    flat = flattened(b, x, place)
    return b.emit("Reshape", emit(flat, 1), b.emit("ShapeOf", x, output_type="i64"), special_zero=False)


def _hardmax(b: Context, x: Value, axis: int) -> Value:
    """1 at the first greatest of the axis."""
    index = b.emit("TopK", x, 1, axis=axis, mode="max", sort="value", stable=True, index_element_type="i64")[1]
    size = b.emit("Gather", b.emit("ShapeOf", x, output_type="i64"), axis, 0)
    flat = b.emit("Squeeze", index, [axis], version=1)
    return b.emit("OneHot", flat, size, b.constant(1, x), b.constant(0, x), axis=axis, version=1)


def _softmax_like(operator: str, emit: Callable[[Context, Value, int], Any]) -> None:
    def old(b: Context, x: Value, *, axis: int = 1) -> Any:
        return _coerced(b, x, axis, lambda value, place: emit(b, value, place))

    def new(b: Context, x: Value, *, axis: int = -1) -> Any:
        rank = b.rank(x)
        if not -max(rank, 1) <= axis < max(rank, 1):
            raise OpError(f"axis {axis} is out of range for data of rank {rank}")
        return emit(b, x, axis + rank if axis < 0 else axis)

    add(operator, 1, "", old)
    add(operator, 13, "", new)


_softmax_like("Softmax", lambda b, x, axis: b.emit("Softmax", x, axis=axis))
_softmax_like("LogSoftmax", lambda b, x, axis: b.emit("LogSoftmax", x, axis=axis))
_softmax_like("Hardmax", _hardmax)
