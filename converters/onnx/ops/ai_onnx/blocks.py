"""Columns to images."""

from __future__ import annotations

from functools import reduce

from converters.onnx.algorithms.expression import Expression, arange
from converters.onnx.algorithms.windows import broadcast_to_axes
from converters.onnx.context import TranslationContext
from converters.onnx.limits import check_unrolled
from converters.onnx.registry import translates
from irexec.dtypes.elements import I64
from irexec.errors import OpError
from irexec.ir.graph import Value


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
        ctx.emit("Concat", ctx.constant([-1]), total.unsqueeze(0).value, _last(ctx, x), axis=0),
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


def _last(ctx: TranslationContext, x: Value) -> Value:
    return ctx.unsqueeze(ctx.size(x, 2), [0])


def _axis_sizes(ctx: TranslationContext, shape: Value, axes: int) -> list[Expression]:
    sizes = ctx.convert(shape, I64)
    return [Expression(ctx, ctx.emit("Gather", sizes, ctx.constant(i), ctx.constant(0))) for i in range(axes)]
