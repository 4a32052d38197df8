"""Shapes, and operators that change only the shape."""

from __future__ import annotations

import math

import numpy as np

from converters.onnx.context import Context
from converters.onnx.registry import translates
from irexec.ir.graph import Value

_MAX = int(np.iinfo(np.int64).max)


@translates("Shape")
def shape_1(b: Context, x: Value) -> Value:
    return b.shape_of(x)


@translates("Shape", since=15)
def shape_15(b: Context, x: Value, *, start: int = 0, end: int | None = None) -> Value:
    """The sizes of the axes from start to end, both clamped to the rank."""
    if start == 0 and end is None:
        return b.shape_of(x)
    return b.emit("Slice", b.shape_of(x), [start], [_MAX if end is None else end], [1], [0])


@translates("Size")
def size(b: Context, x: Value) -> Value:
    return b.emit("ReduceProd", b.shape_of(x), [0], keep_dims=False)


@translates("Reshape")
def reshape_1(b: Context, x: Value, *, shape: list[int]) -> Value:
    return b.emit("Reshape", x, list(shape), special_zero=True)


@translates("Reshape", since=5)
def reshape_5(b: Context, x: Value, shape: Value, *, allowzero: int = 0) -> Value:
    return b.emit("Reshape", x, shape, special_zero=not allowzero)


@translates("Flatten")
def flatten(b: Context, x: Value, *, axis: int = 1) -> Value:
    """To two axes, split before ``axis``, which may be the rank."""
    rank = b.rank(x)
    return flattened(b, x, rank if axis == rank else b.axis(axis, max(rank, 1)))


def flattened(b: Context, x: Value, axis: int) -> Value:
    """To two axes, split before a non-negative axis."""
    sizes, static = b.sizes(x), b.shape_if_known(x)
    if axis == 0:
        return b.emit("Reshape", x, [1, -1], special_zero=False)
    if static is not None and 0 in static:
        return b.emit("Reshape", x, [math.prod(static[:axis]), math.prod(static[axis:])], special_zero=False)
    if axis == 1 and 0 not in sizes:
        return b.emit("Reshape", x, [0, -1], special_zero=True)
    shape = b.shape_of(x)
    lead = b.emit("ReduceProd", b.emit("Slice", shape, [0], [axis], [1], [0]), [0], keep_dims=True)
    # Of a tensor without elements -1 could be any size.
    rest = b.constant([-1])
    if static is None:
        rest = b.emit("ReduceProd", b.emit("Slice", shape, [axis], [len(sizes)], [1], [0]), [0], keep_dims=True)
    return b.emit("Reshape", x, b.emit("Concat", lead, rest, axis=0), special_zero=False)


@translates("Squeeze")
def squeeze_1(b: Context, x: Value, *, axes: list[int] | None = None) -> Value:
    return b.emit("Squeeze", x, None if axes is None else list(axes), version=1)


@translates("Squeeze", since=13)
def squeeze_13(b: Context, x: Value, axes: Value | None = None) -> Value:
    return b.emit("Squeeze", x, axes, version=1)


@translates("Unsqueeze")
def unsqueeze_1(b: Context, x: Value, *, axes: list[int]) -> Value:
    return b.emit("Unsqueeze", x, list(axes))


@translates("Unsqueeze", since=13)
def unsqueeze_13(b: Context, x: Value, axes: Value) -> Value:
    return b.emit("Unsqueeze", x, axes)


@translates("Identity")
def identity(b: Context, x: Value) -> Value:
    """The same tensor under another name."""
    return x
