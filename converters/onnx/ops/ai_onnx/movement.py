"""Shapes; broadcasting and padding; transposition, concatenation, splitting and reversal; columns to images."""

from __future__ import annotations

import math
from functools import reduce
from typing import Literal

import numpy as np

from converters.onnx.algorithms.expression import Expression, arange
from converters.onnx.algorithms.windows import broadcast_to_axes
from converters.onnx.context import TranslationContext
from converters.onnx.graphs import check_unrolled
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


PadMode = Literal["constant", "edge", "reflect", "wrap"]


@translates("Expand", since=8)
def expand(ctx: TranslationContext, x: Value, shape: Value) -> Value:
    """Bidirectional broadcasting: a size 1 of the shape becomes the size of the data."""
    return ctx.emit("Broadcast", x, shape, mode="bidirectional")


@translates("Tile")
def tile_1(ctx: TranslationContext, x: Value, tiles: Value, axis: Value) -> Value:
    """Repetition along one axis."""
    tiled = ctx.axis(ctx.integer(axis, "axis"), x)
    ones, count = ctx.constant([1] * ctx.rank(x)), ctx.reshape(ctx.convert(tiles, I64), [1])
    return ctx.emit(
        "Tile", x, ctx.emit("ScatterElementsUpdate", ones, ctx.constant([tiled]), count, ctx.constant(0), version=3)
    )


@translates("Tile", since=6)
def tile_6(ctx: TranslationContext, x: Value, repeats: Value) -> Value:
    return ctx.emit("Tile", x, repeats)


@translates("Pad")
def pad_1(
    ctx: TranslationContext, x: Value, *, paddings: list[int] | None = None, pads: list[int] | None = None,
    mode: PadMode = "constant", value: float = 0.0,
) -> Value:  # fmt: skip
    """``paddings`` became ``pads`` in opset 2."""
    given = pads if pads is not None else paddings
    if given is None:
        raise OpError("required attribute pads is missing")
    return _pad(ctx, x, ctx.constant(list(given)), mode, ctx.constant(value, x), None)


@translates("Pad", since=11)
def pad_11(
    ctx: TranslationContext, x: Value, pads: Value, value: Value | None = None, axes: Value | None = None, *,
    mode: PadMode = "constant",
) -> Value:  # fmt: skip
    """Negative pads remove elements."""
    return _pad(ctx, x, ctx.convert(pads, I64), mode, value, axes)


def _pad(ctx: TranslationContext, x: Value, pads: Value, mode: str, value: Value | None, axes: Value | None) -> Value:
    rank = ctx.rank(x)
    begins, ends = ctx.emit("Split", pads, ctx.constant(0), num_splits=2)
    if axes is not None:
        begins, ends = (_for_all_axes(ctx, amounts, axes, rank) for amounts in (begins, ends))
    known = [ctx.ints_if_known(amounts) for amounts in (begins, ends)]
    if all(amounts is not None and len(amounts) != rank for amounts in known):
        raise OpError(f"pads are {known[0]} and {known[1]} for {rank} axes")
    if mode == "wrap" or (mode == "reflect" and _is_reflected_twice(ctx, x, known)):
        return _indexed(ctx, x, begins, ends, mode)
    fill = None
    if mode == "constant":
        fill = ctx.constant(0, x) if value is None else ctx.scalar(value)
    lists = [amounts if values is None else list(values) for amounts, values in zip((begins, ends), known, strict=True)]
    return ctx.emit("Pad", x, *lists, fill, pad_mode=mode)


def _for_all_axes(ctx: TranslationContext, amounts: Value, axes: Value, rank: int) -> Value:
    """Pads of all axes from pads of some axes, which need not be known; pads of other axes are 0."""
    wide, one, none = ctx.convert(axes, I64), ctx.constant(1), ctx.constant(0)
    hits = ctx.emit("OneHot", wide, ctx.constant(rank), one, none, axis=-1, negative_indices_mode="normalize")
    return ctx.emit("ReduceSum", ctx.emit("Multiply", hits, ctx.unsqueeze(amounts, [1])), [0], keep_dims=False)


def _is_reflected_twice(ctx: TranslationContext, x: Value, pads: list[tuple[int, ...] | None]) -> bool:
    """Whether the data is reflected more than once, which IR's Pad does not support."""
    shape = ctx.shape_if_known(x)
    if shape is None:
        return False
    return any(
        amounts is not None and any(n >= size for n, size in zip(amounts, shape, strict=True)) for amounts in pads
    )


def _indexed(ctx: TranslationContext, x: Value, begins: Value, ends: Value, mode: str) -> Value:
    """Padding as a Gather along each axis, with the indices of periodic data.

    Elements removed by a negative pad do not come back on the other side. Source: ONNX Runtime; ONNX does not define
    it.
    """
    for axis in range(ctx.rank(x)):
        begin, end = (
            Expression(ctx, ctx.emit("Gather", amounts, ctx.constant(axis), ctx.constant(0)))
            for amounts in (begins, ends)
        )
        if ctx.ints_if_known(begin.value) == ctx.ints_if_known(end.value) == (0,):
            continue
        removed = begin.minimum(0)
        size = Expression(ctx, ctx.size(x, axis)) + removed + end.minimum(0)
        period = size if mode == "wrap" else ((size - 1) * 2).maximum(1)
        position = arange(ctx, -begin.maximum(0), size + end.maximum(0), I64).modulo(period)
        if mode == "reflect":
            position = position.minimum(period - position)
        position = position - removed
        x = ctx.emit("Gather", x, position.value, ctx.constant(axis))
    return x


@translates("Col2Im", since=18)
def col2im(
    ctx: TranslationContext, x: Value, image_shape: Value, block_shape: Value, *, dilations: list[int] | None = None,
    pads: list[int] | None = None, strides: list[int] | None = None,
) -> Value:  # fmt: skip
    axes = ctx.sizes(image_shape, "image_shape")[0]
    if not isinstance(axes, int) or axes < 1:
        raise OpError("the number of axes in image_shape is not known")
    check_unrolled(axes, "the number of axes in image_shape")
    strides, dilations = (
        broadcast_to_axes(strides, axes, 1, "strides"),
        broadcast_to_axes(dilations, axes, 1, "dilations"),
    )
    pads = broadcast_to_axes(pads, 2 * axes, 0, "pads")
    if axes != 2:
        return _summed(ctx, x, image_shape, block_shape, strides, dilations, pads)
    attributes = {"strides": strides, "dilations": dilations, "pads_begin": pads[:2], "pads_end": pads[2:]}
    return ctx.emit("Col2Im", x, ctx.convert(image_shape, I64), ctx.convert(block_shape, I64), **attributes)


def _summed(
    ctx: TranslationContext, x: Value, image_shape: Value, block_shape: Value, strides: list[int], dilations: list[int],
    pads: list[int],
) -> Value:  # fmt: skip
    """Col2Im of any number of axes: values of (N, C * block, windows) added at their positions in the padded image."""
    axes = len(strides)
    images, blocks = (_axis_sizes(ctx, shape, axes) for shape in (image_shape, block_shape))
    padded = [image + (pads[i] + pads[axes + i]) for i, image in enumerate(images)]
    position: Expression | None = None
    for i, (size, block, stride, dilation) in enumerate(zip(padded, blocks, strides, dilations, strict=True)):
        kernel = (block - 1) * dilation + 1
        count = Expression(ctx, ctx.emit("Divide", (size - kernel).value, ctx.constant(stride))) + 1
        inner = (arange(ctx, 0, block, I64) * dilation).unsqueeze(*(j for j in range(2 * axes) if j != i))
        outer = (arange(ctx, 0, count, I64) * stride).unsqueeze(*(j for j in range(2 * axes) if j != axes + i))
        axis_position = inner + outer
        position = axis_position if position is None else position * size + axis_position
    if position is None:
        raise OpError("image_shape has no axes")
    total = reduce(Expression.__mul__, blocks)
    rows = ctx.emit(
        "Reshape",
        x,
        ctx.emit("Concat", ctx.constant([-1]), total.unsqueeze(0).value, ctx.unsqueeze(ctx.size(x, 2), [0]), axis=0),
        special_zero=False,
    )
    rows = ctx.emit("Reshape", rows, [0, -1], special_zero=True)
    flat = ctx.full(ctx.emit("Reshape", position.value, [1, -1], special_zero=False), ctx.shape_of(rows))
    area = reduce(Expression.__mul__, padded).unsqueeze(0).value
    many = ctx.unsqueeze(ctx.size(rows, 0), [0])
    empty = ctx.full(ctx.constant(0, x), ctx.emit("Concat", many, area, axis=0))
    summed = ctx.emit("ScatterElementsUpdate", empty, flat, rows, ctx.constant(1), reduction="sum", use_init_val=True)
    batch = ctx.unsqueeze(ctx.size(x, 0), [0])
    sizes = [size.unsqueeze(0).value for size in padded]
    whole = ctx.emit(
        "Reshape", summed, ctx.emit("Concat", batch, ctx.constant([-1]), *sizes, axis=0), special_zero=False
    )
    stops = ctx.emit("Add", ctx.constant(pads[:axes]), ctx.convert(image_shape, I64))
    return ctx.emit("Slice", whole, pads[:axes], stops, [1] * axes, list(range(2, 2 + axes)))


def _axis_sizes(ctx: TranslationContext, shape: Value, axes: int) -> list[Expression]:
    sizes = ctx.convert(shape, I64)
    return [Expression(ctx, ctx.emit("Gather", sizes, ctx.constant(i), ctx.constant(0))) for i in range(axes)]
