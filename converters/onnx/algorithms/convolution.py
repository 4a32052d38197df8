"""Parts of convolution that several operators share: windows, groups and bias."""

from __future__ import annotations

from converters.onnx.algorithms.windows import WindowAttributes, Windows, broadcast_to_axes
from converters.onnx.context import TranslationContext
from irexec.errors import OpError
from irexec.ir.graph import Value


def conv_windows(ctx: TranslationContext, w: Value, given: WindowAttributes) -> Windows:
    """The windows of a convolution. An unknown size of the weights is 1 in ``kernel``.

    Raises:
        OpError: kernel_shape contradicts the weights, or the weights have no spatial axes.
    """
    sizes = ctx.sizes(w, "the weights")
    if len(sizes) < 3:
        raise OpError(f"the weights {ctx.fact(w)} have no spatial axes")
    kernel_shape = given.kernel_shape
    if kernel_shape and any(
        isinstance(size, int) and size != k for size, k in zip(sizes[2:], kernel_shape, strict=False)
    ):
        raise OpError(f"kernel_shape is {list(kernel_shape)}, the weights are {ctx.fact(w)}")
    kernel = kernel_shape or [size if isinstance(size, int) else 1 for size in sizes[2:]]
    return Windows.of(broadcast_to_axes(kernel, len(sizes) - 2, 1, "kernel_shape"), given)


def grouped_weights(ctx: TranslationContext, w: Value, group: int, *, transposed: bool) -> Value:
    """Weights with a leading axis of groups: (G, M/G, C/G, ...), or (G, C/G, M/G, ...) if transposed."""
    first, *rest = ctx.sizes(w, "the weights")
    if group < 1 or (isinstance(first, int) and first % group):
        raise OpError(f"{first} {'input' if transposed else 'output'} channels cannot be split into {group} groups")
    known = ctx.shape_if_known(w)
    if known is not None:
        return ctx.reshape(w, [group, known[0] // group, *known[1:]])
    inner = ctx.emit("Slice", ctx.emit("ShapeOf", w, output_type="i64"), [1], [1 + len(rest)], [1])
    return ctx.emit("Reshape", w, ctx.emit("Concat", [group, -1], inner, axis=0), special_zero=False)


def add_bias(ctx: TranslationContext, y: Value, bias: Value | None, rank: int) -> Value:
    """Data of this rank plus one value per channel."""
    return y if bias is None else ctx.emit("Add", y, ctx.along_channels(bias, rank))


def convolve(ctx: TranslationContext, x: Value, w: Value, group: int, windows: Windows) -> Value:
    """Convolution, or GroupConvolution if there are several groups."""
    if group == 1:
        return ctx.emit("Convolution", x, w, **windows.attributes())
    return ctx.emit("GroupConvolution", x, grouped_weights(ctx, w, group, transposed=False), **windows.attributes())
