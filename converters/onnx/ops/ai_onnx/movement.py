"""Shapes; transposition, concatenation, splitting and reversal."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from converters.onnx.algorithms.expression import Expression
from converters.onnx.context import TranslationContext
from converters.onnx.limits import check_unrolled
from converters.onnx.registry import translates
from irexec.dtypes.elements import I64
from irexec.errors import OpError
from irexec.ir.graph import Value
from irexec.messages import counted


@translates("Transpose")
def transpose(ctx: TranslationContext, x: Value, *, perm: list[int] | None = None) -> Value:
    """Without perm the order of the axes is reversed."""
    return ctx.emit("Transpose", x, list(perm) if perm else list(reversed(range(ctx.rank(x)))))


@translates("Concat")
def concat(ctx: TranslationContext, *inputs: Value, axis: int = 1) -> Value:
    return ctx.emit("Concat", *inputs, axis=axis)


@translates("Concat", since=4)
def concat_4(ctx: TranslationContext, *inputs: Value, axis: int) -> Value:
    return ctx.emit("Concat", *inputs, axis=axis)


@translates("Split")
def split_1(
    ctx: TranslationContext, x: Value, lengths: Value | None = None, *, axis: int = 0, split: list[int] | None = None
) -> tuple[Value, ...]:
    """The lengths as an input have the element type of the data: ``split`` is an attribute from opset 2 on."""
    given = None if lengths is None else ctx.convert(lengths, I64)
    return _split(ctx, x, axis, ctx.constant(list(split)) if split else given, len(ctx.outputs))


@translates("Split", since=13)
def split_13(ctx: TranslationContext, x: Value, lengths: Value | None = None, *, axis: int = 0) -> tuple[Value, ...]:
    return _split(ctx, x, axis, lengths, len(ctx.outputs))


@translates("Split", since=18)
def split_18(
    ctx: TranslationContext, x: Value, lengths: Value | None = None, *, axis: int = 0, num_outputs: int | None = None
) -> tuple[Value, ...]:
    """A split into num_outputs parts; the last part may be smaller."""
    parts = len(ctx.outputs) if num_outputs is None else num_outputs
    if parts < max(len(ctx.outputs), 1):
        raise OpError(f"num_outputs is {parts} for {counted(len(ctx.outputs), 'output')}")
    check_unrolled(parts, "the parts")
    shape = ctx.fact(x).shape
    size = None if shape is None else shape[ctx.axis(axis, x)]
    if lengths is None and (not isinstance(size, int) or size % parts):
        part = Expression(
            ctx, ctx.emit("Divide", ctx.emit("Add", ctx.size(x, axis), ctx.constant(parts - 1)), ctx.constant(parts))
        )
        repeated = ctx.full(part.value, ctx.constant([parts - 1]))
        lengths = ctx.emit("Concat", repeated, ctx.constant([-1]), axis=0)
    return _split(ctx, x, axis, lengths, parts)


def _split(ctx: TranslationContext, x: Value, axis: int, lengths: Value | None, parts: int) -> tuple[Value, ...]:
    if lengths is not None:
        if ctx.shape_if_known(lengths) is None:
            # The node has an output for each.
            lengths = ctx.reshape(lengths, [parts])
        return tuple(ctx.emit("VariadicSplit", x, ctx.constant(axis), lengths))
    return tuple(ctx.emit("Split", x, ctx.constant(axis), num_splits=parts))


DepthMode = Literal["DCR", "CRD"]


@translates("DepthToSpace")
def depth_to_space(ctx: TranslationContext, x: Value, *, blocksize: int, mode: DepthMode = "DCR") -> Value:
    return ctx.emit("DepthToSpace", x, mode="depth_first" if mode == "CRD" else "blocks_first", block_size=blocksize)


@translates("SpaceToDepth")
def space_to_depth(ctx: TranslationContext, x: Value, *, blocksize: int, mode: DepthMode = "DCR") -> Value:
    """Opset 28 added CRD."""
    return ctx.emit("SpaceToDepth", x, mode="depth_first" if mode == "CRD" else "blocks_first", block_size=blocksize)


@translates("ReverseSequence", since=10)
def reverse_sequence(
    ctx: TranslationContext, x: Value, sequence_lens: Value, *, batch_axis: int = 1, time_axis: int = 0
) -> Value:
    """The two axes are 0 and 1, in either order."""
    if {batch_axis, time_axis} != {0, 1}:
        raise OpError(f"batch_axis is {batch_axis} and time_axis {time_axis}, expected 0 and 1 in either order")
    return ctx.emit("ReverseSequence", x, sequence_lens, batch_axis=batch_axis, seq_axis=time_axis)


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
