"""Reductions along axes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from converters.onnx.context import Context
from converters.onnx.registry import add
from irexec.dtypes.elements import BOOLEAN, F64, I64
from irexec.ir.dims import low
from irexec.ir.graph import Value

Reduce = Callable[[Context, Value, Value, bool], Value]


def _plain(type: str) -> Reduce:
    return lambda b, x, axes, keep: b.emit(type, x, axes, keep_dims=keep)


def _extreme(type: str, logical: str) -> Reduce:
    """Booleans came in opset 20."""
    return lambda b, x, axes, keep: b.emit(logical if b.element(x) is BOOLEAN else type, x, axes, keep_dims=keep)


def _sum_square(b: Context, x: Value, axes: Value, keep: bool) -> Value:
    return b.emit("ReduceSum", b.emit("Multiply", x, x), axes, keep_dims=keep)


def _log_sum(b: Context, x: Value, axes: Value, keep: bool) -> Value:
    return b.emit("Log", b.emit("ReduceSum", x, axes, keep_dims=keep))


def _log_sum_exp(b: Context, x: Value, axes: Value, keep: bool) -> Value:
    """Less the greatest first, so that nothing overflows, unless that is no number to subtract."""
    top = b.emit("ReduceMax", x, axes, keep_dims=True)
    top = b.emit("Select", b.emit("IsFinite", top), top, b.constant(0, x))
    total = b.emit("ReduceSum", b.emit("Exp", b.emit("Subtract", x, top)), axes, keep_dims=True)
    result: Value = b.emit("Add", b.emit("Log", total), top)
    return result if keep else b.emit("Squeeze", result, axes, version=1)


def _in_floats(reduce: Reduce) -> Reduce:
    """What has no sense in integers is computed in f64 and cut."""

    def wrapped(b: Context, x: Value, axes: Value, keep: bool) -> Value:
        kind = b.element(x)
        return reduce(b, x, axes, keep) if kind.is_float else b.convert(reduce(b, b.convert(x, F64), axes, keep), kind)

    return wrapped


_KINDS: dict[str, Reduce] = {
    "ReduceSum": _plain("ReduceSum"),
    "ReduceMean": _plain("ReduceMean"),
    "ReduceProd": _plain("ReduceProd"),
    "ReduceMax": _extreme("ReduceMax", "ReduceLogicalOr"),
    "ReduceMin": _extreme("ReduceMin", "ReduceLogicalAnd"),
    "ReduceL1": _plain("ReduceL1"),
    "ReduceL2": _in_floats(_plain("ReduceL2")),
    "ReduceSumSquare": _sum_square,
    "ReduceLogSum": _in_floats(_log_sum),
    "ReduceLogSumExp": _in_floats(_log_sum_exp),
}

# What is done to each number where there is nothing to reduce.
_OF_EACH: dict[str, Callable[[Context, Value], Value]] = {
    "ReduceL1": lambda b, x: b.emit("Abs", x),
    "ReduceL2": lambda b, x: b.emit("Abs", x),
    "ReduceSumSquare": lambda b, x: b.emit("Multiply", x, x),
    "ReduceLogSum": lambda b, x: b.emit("Log", x),
}


def _all_axes(b: Context, x: Value) -> Value:
    rank = b.fact(x).rank
    if rank is not None:
        return b.constant(np.arange(rank))
    count = b.scalar(b.shape_of(b.shape_of(x)))
    return b.emit("Range", b.constant(0), count, b.constant(1), output_type="i64")


def _some_axes(b: Context, x: Value, axes: Value) -> Value:
    """The axes, or all of them where there turn out to be none when the model runs."""
    shape = b.fact(axes).shape
    if shape is not None and len(shape) == 1 and low(shape[0]) > 0:
        return axes
    rank = b.constant(b.rank(x, "the data"))
    hits = b.emit("OneHot", b.convert(axes, I64), rank, b.constant(1), b.constant(0), axis=-1, negative_indices_mode="normalize")
    counts = b.emit("ReduceSum", hits, [0], keep_dims=False)
    none = b.emit("Equal", b.shape_of(axes), b.constant([0]))
    chosen = b.emit("LogicalOr", b.emit("Greater", counts, b.constant(0)), none)
    return b.emit("Squeeze", b.emit("NonZero", chosen, output_type="i64"), [0], version=1)


def _rows(operator: str, reduce: Reduce) -> None:
    def by_attribute(b: Context, x: Value, *, axes: list[int] | None = None, keepdims: int = 1) -> Value:
        return reduce(b, x, b.constant(list(axes)) if axes else _all_axes(b, x), bool(keepdims))

    def by_input(b: Context, x: Value, axes: Value | None = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Value:
        if axes is not None and b.fact(axes).shape != (0,):
            return reduce(b, x, axes if noop_with_empty_axes else _some_axes(b, x, axes), bool(keepdims))
        if noop_with_empty_axes:
            return _OF_EACH[operator](b, x) if operator in _OF_EACH else x
        return reduce(b, x, _all_axes(b, x), bool(keepdims))

    add(operator, 1, "", by_attribute)
    add(operator, 13 if operator == "ReduceSum" else 18, "", by_input)


for _operator, _reduce in _KINDS.items():
    _rows(_operator, _reduce)
