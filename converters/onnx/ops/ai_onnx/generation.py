"""Tensors from attributes and scalars: constants, ranges, one-hot and unit matrices."""

from __future__ import annotations

import math

import numpy as np
from onnx import SparseTensorProto, TensorProto

from converters.onnx.context import TranslationContext
from converters.onnx.registry import translates
from converters.onnx.tensors import array_of, constant_of, element_of
from irexec.dtypes.elements import BF16, F16, F32, I64, STRING
from irexec.errors import OpError
from irexec.ir.graph import Value

_LARGEST_CONSTANT = 1 << 16


@translates("Constant")
def constant(
    ctx: TranslationContext, *, value: TensorProto | None = None, sparse_value: SparseTensorProto | None = None,
    value_float: float | None = None, value_floats: list[float] | None = None, value_int: int | None = None,
    value_ints: list[int] | None = None, value_string: str | None = None, value_strings: list[str] | None = None,
) -> Value:  # fmt: skip
    """The value of the only attribute."""
    tensors = [tensor for tensor in (value, sparse_value) if tensor is not None]
    listed = ((F32, value_float, value_floats), (I64, value_int, value_ints), (STRING, value_string, value_strings))
    values = [(one, kind) for kind, *both in listed for one in both if one is not None]
    if len(tensors) + len(values) != 1:
        raise OpError(f"it has {len(tensors) + len(values)} values, expected one")
    if tensors:
        return ctx.builder.raw_constant(constant_of(tensors[0], None), ctx.name)
    one, kind = values[0]
    return ctx.constant(np.asarray(one, kind.carrier), kind)


@translates("ConstantOfShape", since=9)
def constant_of_shape(ctx: TranslationContext, shape: Value, *, value: TensorProto | None = None) -> Value:
    """A constant if the shape is a small constant, else a Broadcast."""
    array, kind = (np.zeros(1, np.float32), F32) if value is None else array_of(value)
    if array.size != 1:
        raise OpError(f"value has {array.size} elements, expected 1")
    sizes = ctx.ints_if_known(shape) if shape.node.constant is not None else None
    if sizes is not None and min(sizes, default=0) >= 0 and math.prod(max(n, 1) for n in sizes) <= _LARGEST_CONSTANT:
        return ctx.constant(np.full(sizes, array.reshape(-1)[0], array.dtype), kind)
    return ctx.full(ctx.constant(array.reshape(()), kind), shape)


@translates("Range", since=11)
def range_11(ctx: TranslationContext, start: Value, limit: Value, delta: Value, *, stash_type: int = 1) -> Value:
    """A range; 16-bit floats are computed in f32."""
    kind = ctx.element(start)
    wide = F32 if kind in (F16, BF16) and stash_type == 1 else kind
    scalars = [ctx.convert(ctx.scalar(value), wide) for value in (start, limit, delta)]
    return ctx.convert(ctx.emit("Range", *scalars, output_type=wide), kind)


@translates("OneHot", since=9)
def one_hot(ctx: TranslationContext, indices: Value, depth: Value, values: Value, *, axis: int = -1) -> Value:
    """One-hot encoding of indices of any numeric type; negative indices count from the end."""
    if not ctx.element(indices).is_integer:
        indices = ctx.convert(indices, I64)
    depth = ctx.scalar(ctx.convert(depth, I64))
    off, on = (ctx.emit("Gather", values, ctx.constant(i), ctx.constant(0)) for i in (0, 1))
    return ctx.emit("OneHot", indices, depth, on, off, axis=axis, negative_indices_mode="normalize")


@translates("EyeLike", since=9)
def eye_like(ctx: TranslationContext, x: Value, *, dtype: int = 0, k: int = 0) -> Value:
    """A matrix of the shape of ``x`` with ones on the k-th diagonal."""
    kind = element_of(dtype) if dtype else ctx.element(x)
    if ctx.rank(x) != 2:
        raise OpError(f"the input {ctx.fact(x)} is not a matrix")
    return ctx.emit("Eye", ctx.size(x, 0), ctx.size(x, 1), ctx.constant(k), output_type=kind)
