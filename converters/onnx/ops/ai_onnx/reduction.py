"""Reductions along axes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from converters.onnx.context import TranslationContext
from converters.onnx.registry import add
from irexec.dtypes.elements import BOOLEAN, F64, I64, U8
from irexec.ir.dims import low
from irexec.ir.graph import Value

Reduce = Callable[[TranslationContext, Value, Value, bool], Value]


def _emit(type: str) -> Reduce:
    return lambda ctx, x, axes, keep: ctx.emit(type, x, axes, keep_dims=keep)


def _extreme(type: str, logical: str) -> Reduce:
    """Maximum and minimum; opset 20 extended both to booleans.

    OpenVINO's CPU plugin has no ReduceLogicalOr and ReduceLogicalAnd with variable axes. Booleans are then reduced as
    u8, whose extremes of no elements are the extremes of booleans too.
    """

    def reduce(ctx: TranslationContext, x: Value, axes: Value, keep: bool) -> Value:
        if ctx.element(x) is not BOOLEAN:
            return ctx.emit(type, x, axes, keep_dims=keep)
        if axes.node.constant is not None:
            return ctx.emit(logical, x, axes, keep_dims=keep)
        return ctx.convert(ctx.emit(type, ctx.convert(x, U8), axes, keep_dims=keep), BOOLEAN)

    return reduce


def _sum_square(ctx: TranslationContext, x: Value, axes: Value, keep: bool) -> Value:
    return ctx.emit("ReduceSum", ctx.emit("Multiply", x, x), axes, keep_dims=keep)


def _log_sum(ctx: TranslationContext, x: Value, axes: Value, keep: bool) -> Value:
    return ctx.emit("Log", ctx.emit("ReduceSum", x, axes, keep_dims=keep))


def _log_sum_exp(ctx: TranslationContext, x: Value, axes: Value, keep: bool) -> Value:
    """A finite maximum is subtracted first, so that nothing overflows."""
    top = ctx.emit("ReduceMax", x, axes, keep_dims=True)
    top = ctx.emit("Select", ctx.emit("IsFinite", top), top, ctx.constant(0, x))
    total = ctx.emit("ReduceSum", ctx.emit("Exp", ctx.emit("Subtract", x, top)), axes, keep_dims=True)
    result: Value = ctx.emit("Add", ctx.emit("Log", total), top)
    return result if keep else ctx.emit("Squeeze", result, axes, version=1)


def _in_floats(reduce: Reduce) -> Reduce:
    """The reduction in f64 for integers, with a truncated result."""

    def wrapped(ctx: TranslationContext, x: Value, axes: Value, keep: bool) -> Value:
        kind = ctx.element(x)
        return ctx.convert(reduce(ctx, x if kind.is_float else ctx.convert(x, F64), axes, keep), kind)

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

# The result per element without an axis to reduce; the element itself for operators that are not listed.
_OF_ONE_ELEMENT: dict[str, Callable[[TranslationContext, Value], Value]] = {
    "ReduceL1": lambda ctx, x: ctx.emit("Abs", x),
    "ReduceL2": lambda ctx, x: ctx.emit("Abs", x),
    "ReduceSumSquare": lambda ctx, x: ctx.emit("Multiply", x, x),
    "ReduceLogSum": lambda ctx, x: ctx.emit("Log", x),
}


def _all_axes(ctx: TranslationContext, x: Value) -> Value:
    rank = ctx.fact(x).rank
    if rank is not None:
        return ctx.constant(np.arange(rank))
    count = ctx.scalar(ctx.shape_of(ctx.shape_of(x)))
    return ctx.emit("Range", ctx.constant(0), count, ctx.constant(1), output_type="i64")


def _given_or_all_axes(ctx: TranslationContext, x: Value, axes: Value) -> Value:
    """The given axes, or all axes if the list is empty at run time."""
    shape = ctx.fact(axes).shape
    if shape is not None and len(shape) == 1 and low(shape[0]) > 0:
        return axes
    rank = ctx.constant(ctx.rank(x, "the data"))
    inputs = ctx.convert(axes, I64), rank, ctx.constant(1), ctx.constant(0)
    hits = ctx.emit("OneHot", *inputs, axis=-1, negative_indices_mode="normalize")
    counts = ctx.emit("ReduceSum", hits, [0], keep_dims=False)
    none = ctx.emit("Equal", ctx.shape_of(axes), ctx.constant([0]))
    chosen = ctx.emit("LogicalOr", ctx.emit("Greater", counts, ctx.constant(0)), none)
    return ctx.emit("Squeeze", ctx.emit("NonZero", chosen, output_type="i64"), [0], version=1)


def _register(operator: str, reduce: Reduce) -> None:
    def reduce_all(ctx: TranslationContext, x: Value, keep: bool) -> Value:
        return reduce(ctx, x, _all_axes(ctx, x), keep)

    def by_attribute(ctx: TranslationContext, x: Value, *, axes: list[int] | None = None, keepdims: int = 1) -> Value:
        return reduce(ctx, x, ctx.constant(list(axes)), bool(keepdims)) if axes else reduce_all(ctx, x, bool(keepdims))

    def by_input(
        ctx: TranslationContext, x: Value, axes: Value | None = None, *, keepdims: int = 1,
        noop_with_empty_axes: int = 0,
    ) -> Value:  # fmt: skip
        known = ctx.ints_if_known(axes)
        if known:
            # A constant even where layers compute the axes: OpenVINO needs it for booleans, and infers better shapes.
            return reduce(ctx, x, ctx.constant(list(known)), bool(keepdims))
        if axes is not None and known is None and ctx.fact(axes).shape != (0,):
            return reduce(ctx, x, axes if noop_with_empty_axes else _given_or_all_axes(ctx, x, axes), bool(keepdims))
        if noop_with_empty_axes:
            return _OF_ONE_ELEMENT[operator](ctx, x) if operator in _OF_ONE_ELEMENT else x
        return reduce_all(ctx, x, bool(keepdims))

    add(operator, 1, "", by_attribute)
    add(operator, 13 if operator == "ReduceSum" else 18, "", by_input)


for _operator, _reduce in _REDUCTIONS.items():
    _register(_operator, _reduce)
