"""Reductions along axes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from converters.onnx.context import Context
from converters.onnx.registry import add
from irexec.dtypes.elements import BOOLEAN, F64, I64, U8
from irexec.ir.dims import low
from irexec.ir.graph import Value

Reduce = Callable[[Context, Value, Value, bool], Value]


def _emit(type: str) -> Reduce:
    return lambda b, x, axes, keep: b.emit(type, x, axes, keep_dims=keep)


def _extreme(type: str, logical: str) -> Reduce:
    """Maximum and minimum, which opset 20 extended to booleans.

    OpenVINO's CPU plugin has no ReduceLogicalOr and ReduceLogicalAnd with axes that are not constant: booleans are then
    reduced as u8, whose extremes of no elements are also those of booleans.
    """

    def reduce(b: Context, x: Value, axes: Value, keep: bool) -> Value:
        if b.element(x) is not BOOLEAN:
            return b.emit(type, x, axes, keep_dims=keep)
        if axes.node.constant is not None:
            return b.emit(logical, x, axes, keep_dims=keep)
        return b.convert(b.emit(type, b.convert(x, U8), axes, keep_dims=keep), BOOLEAN)

    return reduce


def _sum_square(b: Context, x: Value, axes: Value, keep: bool) -> Value:
    return b.emit("ReduceSum", b.emit("Multiply", x, x), axes, keep_dims=keep)


def _log_sum(b: Context, x: Value, axes: Value, keep: bool) -> Value:
    return b.emit("Log", b.emit("ReduceSum", x, axes, keep_dims=keep))


def _log_sum_exp(b: Context, x: Value, axes: Value, keep: bool) -> Value:
    """The maximum is subtracted first, so that nothing overflows, unless it is not finite."""
    top = b.emit("ReduceMax", x, axes, keep_dims=True)
    top = b.emit("Select", b.emit("IsFinite", top), top, b.constant(0, x))
    total = b.emit("ReduceSum", b.emit("Exp", b.emit("Subtract", x, top)), axes, keep_dims=True)
    result: Value = b.emit("Add", b.emit("Log", total), top)
    return result if keep else b.emit("Squeeze", result, axes, version=1)


def _in_floats(reduce: Reduce) -> Reduce:
    """Integers are reduced in f64, and the result is truncated."""

    def wrapped(b: Context, x: Value, axes: Value, keep: bool) -> Value:
        kind = b.element(x)
        return reduce(b, x, axes, keep) if kind.is_float else b.convert(reduce(b, b.convert(x, F64), axes, keep), kind)

    return wrapped


_REDUCTIONS: dict[str, Reduce] = {
    "ReduceSum": _emit("ReduceSum"),
    "ReduceMean": _emit("ReduceMean"),
    "ReduceProd": _emit("ReduceProd"),
    "ReduceMax": _extreme("ReduceMax", "ReduceLogicalOr"),
    "ReduceMin": _extreme("ReduceMin", "ReduceLogicalAnd"),
    "ReduceL1": _emit("ReduceL1"),
    "ReduceL2": _in_floats(_emit("ReduceL2")),
    "ReduceSumSquare": _sum_square,
    "ReduceLogSum": _in_floats(_log_sum),
    "ReduceLogSumExp": _in_floats(_log_sum_exp),
}

# The result for each element if there is no axis to reduce; the element itself for the other operators.
_OF_ONE_ELEMENT: dict[str, Callable[[Context, Value], Value]] = {
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


def _given_or_all_axes(b: Context, x: Value, axes: Value) -> Value:
    """The axes given, or all axes if that turns out to be an empty list at run time."""
    shape = b.fact(axes).shape
    if shape is not None and len(shape) == 1 and low(shape[0]) > 0:
        return axes
    rank = b.constant(b.rank(x, "the data"))
    hits = b.emit(
        "OneHot", b.convert(axes, I64), rank, b.constant(1), b.constant(0), axis=-1, negative_indices_mode="normalize"
    )
    counts = b.emit("ReduceSum", hits, [0], keep_dims=False)
    none = b.emit("Equal", b.shape_of(axes), b.constant([0]))
    chosen = b.emit("LogicalOr", b.emit("Greater", counts, b.constant(0)), none)
    return b.emit("Squeeze", b.emit("NonZero", chosen, output_type="i64"), [0], version=1)


def _register(operator: str, reduce: Reduce) -> None:
    def reduce_all(b: Context, x: Value, keep: bool) -> Value:
        return reduce(b, x, _all_axes(b, x), keep)

    def by_attribute(b: Context, x: Value, *, axes: list[int] | None = None, keepdims: int = 1) -> Value:
        return reduce(b, x, b.constant(list(axes)), bool(keepdims)) if axes else reduce_all(b, x, bool(keepdims))

    def by_input(
        b: Context, x: Value, axes: Value | None = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0
    ) -> Value:
        known = b.ints_if_known(axes)
        if known:
            # A constant also where other layers compute the axes: OpenVINO needs one for booleans, and infers better shapes.
            return reduce(b, x, b.constant(list(known)), bool(keepdims))
        if axes is not None and known is None and b.fact(axes).shape != (0,):
            return reduce(b, x, axes if noop_with_empty_axes else _given_or_all_axes(b, x, axes), bool(keepdims))
        if noop_with_empty_axes:
            return _OF_ONE_ELEMENT[operator](b, x) if operator in _OF_ONE_ELEMENT else x
        return reduce_all(b, x, bool(keepdims))

    add(operator, 1, "", by_attribute)
    add(operator, 13 if operator == "ReduceSum" else 18, "", by_input)


for _operator, _reduce in _REDUCTIONS.items():
    _register(_operator, _reduce)
