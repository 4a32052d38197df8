"""Shapes, and constants."""

from __future__ import annotations

from typing import Any

import numpy as np

from converters.onnx.context import Context
from converters.onnx.registry import translates
from converters.onnx.tensors import array_of, constant_of
from irexec.errors import OpError
from irexec.ir.elements import F32, I64, STRING
from irexec.ir.graph import Value


@translates("Constant")
def constant(
    b: Context, *, value: Any = None, sparse_value: Any = None, value_float: float | None = None, value_floats: list[float] | None = None,
    value_int: int | None = None, value_ints: list[int] | None = None, value_string: str | None = None, value_strings: list[str] | None = None,
) -> Value:  # fmt: skip
    """The one value that is given."""
    tensors = [tensor for tensor in (value, sparse_value) if tensor is not None]
    listed = [(value_float, F32), (value_floats, F32), (value_int, I64), (value_ints, I64), (value_string, STRING), (value_strings, STRING)]
    numbers = [(number, kind) for number, kind in listed if number is not None]
    if len(tensors) + len(numbers) != 1:
        raise OpError(f"it has {len(tensors) + len(numbers)} values, expected one")
    if tensors:
        return b.builder.raw_constant(constant_of(tensors[0], None), b.name)
    number, kind = numbers[0]
    return b.constant(np.asarray(number, kind.carrier), kind)


@translates("ConstantOfShape", since=9)
def constant_of_shape(b: Context, shape: Value, *, value: Any = None) -> Value:
    array, kind = (np.zeros(1, np.float32), None) if value is None else array_of(value)
    known = b.fact(shape).known
    if known is not None and int(np.prod(known, dtype=np.int64)) <= 1 << 16:
        return b.constant(np.broadcast_to(array.reshape(-1)[0], known.tolist()).copy(), kind)
    return b.emit("Broadcast", b.constant(array.reshape(-1)[0], kind), shape)


@translates("Shape")
def shape(b: Context, x: Value, *, start: int = 0, end: int | None = None) -> Value:
    whole: Value = b.emit("ShapeOf", x, output_type="i64")
    if start == 0 and end is None:
        return whole
    return b.emit("Slice", whole, [start], [np.iinfo(np.int64).max if end is None else end], [1], [0])


@translates("Size")
def size(b: Context, x: Value) -> Value:
    return b.emit("ReduceProd", b.emit("ShapeOf", x, output_type="i64"), [0], keep_dims=False)


@translates("Reshape")
def reshape_1(b: Context, x: Value, *, shape: list[int]) -> Value:
    return b.emit("Reshape", x, list(shape), special_zero=True)


@translates("Reshape", since=5)
def reshape_5(b: Context, x: Value, shape: Value, *, allowzero: int = 0) -> Value:
    return b.emit("Reshape", x, shape, special_zero=not allowzero)


@translates("Flatten")
def flatten(b: Context, x: Value, *, axis: int = 1) -> Value:
    """To two axes, cut before ``axis``."""
    return flattened(b, x, axis + b.rank(x) if axis < 0 else axis)


def flattened(b: Context, x: Value, axis: int) -> Value:
    """To two axes, cut before an axis counted from the front."""
    sizes = b.sizes(x)
    if axis == 0:
        return b.emit("Reshape", x, [1, -1], special_zero=False)
    if axis == 1 and 0 not in sizes:
        return b.emit("Reshape", x, [0, -1], special_zero=True)
    if all(isinstance(s, int) for s in sizes):
        lead, rest = int(np.prod(sizes[:axis])), int(np.prod(sizes[axis:]))
        return b.emit("Reshape", x, [lead, rest], special_zero=False)
    lead_sizes = b.emit("Slice", b.emit("ShapeOf", x, output_type="i64"), [0], [axis], [1], [0])
    pattern = b.emit("Concat", b.emit("ReduceProd", lead_sizes, [0], keep_dims=True), b.constant([-1]), axis=0)
    return b.emit("Reshape", x, pattern, special_zero=False)


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


@translates("Expand", since=8)
def expand(b: Context, x: Value, shape: Value) -> Value:
    return b.emit("Broadcast", x, shape, mode="bidirectional")
