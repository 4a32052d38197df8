"""Shapes, and operators that change only the shape."""

from __future__ import annotations

import math

import numpy as np

from converters.onnx.context import TranslationContext
from converters.onnx.registry import translates
from irexec.ir.graph import Value

_MAX = int(np.iinfo(np.int64).max)


@translates("Shape", without=["start", "end"])
@translates("Shape", since=15)
def shape(ctx: TranslationContext, x: Value, *, start: int = 0, end: int | None = None) -> Value:
    """The sizes of the axes from start to end, both clamped to the rank."""
    if start == 0 and end is None:
        return ctx.shape_of(x)
    return ctx.emit("Slice", ctx.shape_of(x), [start], [_MAX if end is None else end], [1], [0])


@translates("Size")
def size(ctx: TranslationContext, x: Value) -> Value:
    return ctx.emit("ReduceProd", ctx.shape_of(x), [0], keep_dims=False)


@translates("Reshape")
def reshape_1(ctx: TranslationContext, x: Value, *, shape: list[int]) -> Value:
    return ctx.emit("Reshape", x, list(shape), special_zero=True)


@translates("Reshape", since=5)
def reshape_5(ctx: TranslationContext, x: Value, shape: Value, *, allowzero: int = 0) -> Value:
    return ctx.emit("Reshape", x, shape, special_zero=not allowzero)


@translates("Flatten")
def flatten(ctx: TranslationContext, x: Value, *, axis: int = 1) -> Value:
    """The data with two axes, split before ``axis``, which may be the rank."""
    rank = ctx.rank(x)
    return flattened(ctx, x, rank if axis == rank else ctx.axis(axis, max(rank, 1)))


def flattened(ctx: TranslationContext, x: Value, axis: int) -> Value:
    """The data with two axes, split before a non-negative axis."""
    sizes, static = ctx.sizes(x), ctx.shape_if_known(x)
    if axis == 0:
        return ctx.emit("Reshape", x, [1, -1], special_zero=False)
    if static is not None and 0 in static:
        return ctx.emit("Reshape", x, [math.prod(static[:axis]), math.prod(static[axis:])], special_zero=False)
    if axis == 1 and 0 not in sizes:
        return ctx.emit("Reshape", x, [0, -1], special_zero=True)
    shape = ctx.shape_of(x)
    lead = ctx.emit("ReduceProd", ctx.emit("Slice", shape, [0], [axis], [1], [0]), [0], keep_dims=True)
    # -1 is not defined for a tensor without elements.
    rest = ctx.constant([-1])
    if static is None:
        rest = ctx.emit("ReduceProd", ctx.emit("Slice", shape, [axis], [len(sizes)], [1], [0]), [0], keep_dims=True)
    return ctx.emit("Reshape", x, ctx.emit("Concat", lead, rest, axis=0), special_zero=False)


@translates("Squeeze")
def squeeze_1(ctx: TranslationContext, x: Value, *, axes: list[int] | None = None) -> Value:
    return ctx.emit("Squeeze", x, None if axes is None else list(axes), version=1)


@translates("Squeeze", since=13)
def squeeze_13(ctx: TranslationContext, x: Value, axes: Value | None = None) -> Value:
    return ctx.emit("Squeeze", x, axes, version=1)


@translates("Unsqueeze")
def unsqueeze_1(ctx: TranslationContext, x: Value, *, axes: list[int]) -> Value:
    return ctx.emit("Unsqueeze", x, list(axes))


@translates("Unsqueeze", since=13)
def unsqueeze_13(ctx: TranslationContext, x: Value, axes: Value) -> Value:
    return ctx.emit("Unsqueeze", x, axes)


@translates("Identity")
def identity(ctx: TranslationContext, x: Value) -> Value:
    """The same tensor under another name."""
    return x
