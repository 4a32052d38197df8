"""Blocks put back together: columns to images, pooled numbers to where they came from."""

from __future__ import annotations

from functools import reduce

from converters.onnx.context import Context
from converters.onnx.expression import Expression, counting
from converters.onnx.ops.windows import one_each
from converters.onnx.registry import translates
from irexec.dtypes.elements import I64
from irexec.errors import OpError
from irexec.ir.graph import Value


@translates("Col2Im", since=18)
def col2im(
    b: Context, x: Value, image_shape: Value, block_shape: Value, *, dilations: list[int] | None = None, pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Value:  # fmt: skip
    axes = b.sizes(image_shape, "image_shape")[0]
    if not isinstance(axes, int) or axes < 1:
        raise OpError("how many axes image_shape has is not known")
    steps, spread = one_each(strides, axes, 1, "strides"), one_each(dilations, axes, 1, "dilations")
    around = one_each(pads, 2 * axes, 0, "pads")
    if axes != 2:
        return _summed(b, x, image_shape, block_shape, steps, spread, around)
    kept = {"strides": steps, "dilations": spread, "pads_begin": around[:2], "pads_end": around[2:]}
    return b.emit("Col2Im", x, b.convert(image_shape, I64), b.convert(block_shape, I64), **kept)


def _summed(
    b: Context, x: Value, image_shape: Value, block_shape: Value, strides: list[int], dilations: list[int], pads: list[int]
) -> Value:
    """Any number of axes: the numbers of (N, C * block, windows) are added at their places in the padded image."""
    axes = len(strides)
    images, blocks = (_numbers(b, shape, axes) for shape in (image_shape, block_shape))
    padded = [image + (pads[i] + pads[axes + i]) for i, image in enumerate(images)]
    place: Expression | None = None
    for i, (size, block, stride, dilation) in enumerate(zip(padded, blocks, strides, dilations, strict=True)):
        reach = (block - 1) * dilation + 1
        count = Expression(b, b.emit("Divide", (size - reach).value, b.constant(stride))) + 1
        inner = (counting(b, 0, block, I64) * dilation).unsqueezed(*(j for j in range(2 * axes) if j != i))
        outer = (counting(b, 0, count, I64) * stride).unsqueezed(*(j for j in range(2 * axes) if j != axes + i))
        along = inner + outer
        place = along if place is None else place * size + along
    if place is None:
        raise OpError("image_shape has no axes")
    total = reduce(Expression.__mul__, blocks)
    rows = b.emit("Reshape", x, b.emit("Concat", b.constant([-1]), total.unsqueezed(0).value, _last(b, x), axis=0), special_zero=False)
    rows = b.emit("Reshape", rows, [0, -1], special_zero=True)
    flat = b.full(b.emit("Reshape", place.value, [1, -1], special_zero=False), b.shape_of(rows))
    area = reduce(Expression.__mul__, padded).unsqueezed(0).value
    many = b.unsqueeze(b.size(rows, 0), [0])
    empty = b.full(b.constant(0, x), b.emit("Concat", many, area, axis=0))
    summed = b.emit("ScatterElementsUpdate", empty, flat, rows, b.constant(1), reduction="sum", use_init_val=True)
    batch = b.unsqueeze(b.size(x, 0), [0])
    sizes = [size.unsqueezed(0).value for size in padded]
    whole = b.emit("Reshape", summed, b.emit("Concat", batch, b.constant([-1]), *sizes, axis=0), special_zero=False)
    ends = b.emit("Add", b.constant(pads[:axes]), b.convert(image_shape, I64))
    return b.emit("Slice", whole, pads[:axes], ends, [1] * axes, list(range(2, 2 + axes)))


def _last(b: Context, x: Value) -> Value:
    return b.unsqueeze(b.size(x, 2), [0])


def _numbers(b: Context, shape: Value, axes: int) -> list[Expression]:
    wide = b.convert(shape, I64)
    return [Expression(b, b.emit("Gather", wide, b.constant(i), b.constant(0))) for i in range(axes)]


@translates("MaxUnpool", since=9)
def max_unpool(
    b: Context, x: Value, indices: Value, output_shape: Value | None = None, *, kernel_shape: list[int], pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Value:  # fmt: skip
    """Each number at its place in the flat tensor that was pooled; a larger output_shape gets zeros behind it.

    Source: ONNX MaxUnpool-22 and its reference.
    """
    axes = len(kernel_shape)
    steps, around = one_each(strides, axes, 1, "strides"), one_each(pads, 2 * axes, 0, "pads")
    pooled = b.shape_of(x)
    spatial = Expression(b, b.emit("Slice", pooled, [2], [2 + axes], [1], [0]))
    less = [around[i] + around[axes + i] + steps[i] - kernel_shape[i] for i in range(axes)]
    sizes = spatial * Expression(b, b.constant(steps)) - Expression(b, b.constant(less))
    shape = b.emit("Concat", b.emit("Slice", pooled, [0], [2], [1], [0]), sizes.value, axis=0)
    total = b.emit("ReduceProd", shape, [0], keep_dims=True)
    flat = [b.emit("Reshape", part, [-1], special_zero=False) for part in (indices, x)]
    spread = b.emit("ScatterElementsUpdate", b.full(b.constant(0, x), total), *flat, b.constant(0), version=3)
    whole = b.emit("Reshape", spread, shape, special_zero=False)
    if output_shape is None:
        return whole
    more = b.emit("Subtract", b.convert(output_shape, I64), shape)
    return b.emit("Pad", whole, [0] * (axes + 2), more, b.constant(0, x), pad_mode="constant")
