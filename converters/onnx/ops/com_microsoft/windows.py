"""com.microsoft: windows of images: transposed convolution, pooling with a mask, crops.

Source: onnxruntime ``docs/ContribOperators.md`` and ``contrib_ops/cpu``.
"""

from __future__ import annotations

import functools
import itertools
import operator
from dataclasses import dataclass, field, replace
from typing import Literal

from converters.onnx.algorithms.expression import Expression, arange, positions
from converters.onnx.algorithms.windows import WindowAttributes, Windows, on_channels_last
from converters.onnx.context import Matrix, Tensor4, TranslationContext, Vector
from converters.onnx.graphs import check_convertible, check_unrolled
from converters.onnx.ops.ai_onnx.windows import conv, conv_transpose
from converters.onnx.ops.com_microsoft.fused import fused_conv
from converters.onnx.registry import COM_MICROSOFT, add, translates
from irexec.dtypes.elements import I64
from irexec.errors import ConversionError, OpError, check
from irexec.ir.graph import Value

_LOWEST = -3.4028234663852886e38


@translates("ConvTransposeWithDynamicPads", domain=COM_MICROSOFT)
def conv_transpose_with_dynamic_pads(
    ctx: TranslationContext, x: Value, w: Value, pads: Vector, bias: Value | None = None, *, group: int = 1,
    given: WindowAttributes, output_padding: list[int] | None = None,
) -> Value:  # fmt: skip
    """ConvTranspose whose pads, begins then ends, are an input; unknown ones are cut off the whole result.

    The pads hold with auto_pad VALID too, and have no effect with SAME_UPPER and SAME_LOWER. Source: ONNX Runtime.
    """
    known, is_same = ctx.ints_if_known(pads), given.auto_pad.startswith("SAME")
    given = given if is_same else replace(given, auto_pad="NOTSET")
    if known is not None or is_same:
        padded = replace(given, pads=None if known is None else list(known))
        return conv_transpose(ctx, x, w, bias, group=group, given=padded, output_padding=output_padding)
    rank = ctx.rank(w, "the weights") - 2
    whole = conv_transpose(ctx, x, w, bias, group=group, given=replace(given, pads=None), output_padding=output_padding)
    cut = [Expression(ctx, part) for part in ctx.split(pads, 0, 2)]
    sizes = Expression(ctx, ctx.slice(ctx.shape_of(whole), 2, 2 + rank, 0))
    return ctx.emit("Slice", whole, cut[0].value, (sizes - cut[1]).value, [1] * rank, list(range(2, 2 + rank)))


# The weights are channels last too, as ONNX Runtime's fusion of UNets writes them, other than in the document.
add("NhwcConv", 1, COM_MICROSOFT, on_channels_last(conv, 0, 1), conv)
# Z is channels last, the weights are those of Conv.
add("NhwcFusedConv", 1, COM_MICROSOFT, on_channels_last(fused_conv, 0, 3), fused_conv)


@translates("WordConvEmbedding", domain=COM_MICROSOFT)
def word_conv_embedding(
    ctx: TranslationContext, words: Matrix, w: Tensor4, bias: Vector, table: Matrix, *, embedding_size: int = -1,
    conv_window_size: int = -1, char_embedding_size: int = -1,
) -> Value:  # fmt: skip
    """The maximum of tanh of a convolution over the characters of each word (words, length), which 0 pads.

    At least one window counts, also where the word is shorter; a word whose first character is 0 is not defined.
    """
    filters, _, width, size = ctx.static(w, "the weights")
    sizes = (embedding_size, conv_window_size, char_embedding_size)
    if any(asked not in (-1, actual) for asked, actual in zip(sizes, (filters, width, size), strict=True)):
        raise OpError(f"the sizes {list(sizes)} of the attributes differ from those of the weights {ctx.fact(w)}")
    given = Expression(ctx, words)
    rows = Expression(ctx, ctx.convert(ctx.size(table, 0), ctx.element(words)))
    index = given.checked("characters in range", given >= 0, given < rows).value
    characters = ctx.unsqueeze(ctx.gather(table, index, 0), [1])
    y = ctx.emit("Squeeze", conv(ctx, characters, w, bias, given=WindowAttributes()), [3])
    count = (given > 0).to(I64).sum(1)
    is_inside = positions(ctx, y, 2).unsqueeze(0) <= count - width
    used = is_inside | positions(ctx, y, 2).equals(0).unsqueeze(0)
    values = used.unsqueeze(1).select(Expression(ctx, y).tanh(), Expression(ctx, ctx.constant(-1e12)))
    return ctx.emit("ReduceMax", values.value, [2], keep_dims=False)


@translates("UnfoldTensor", domain=COM_MICROSOFT)
def unfold_tensor(ctx: TranslationContext, x: Value, *, size: int, dim: int = -1, step: int = 1) -> Value:
    """All slices of a size along an axis, whose elements become the last axis."""
    axis, length = ctx.axis(dim, x), ctx.sizes(x)[dim]
    if size < 1 or step < 1 or (isinstance(length, int) and length < size):
        raise OpError(f"size is {size} and step {step} for an axis of {length}")
    count = (Expression(ctx, ctx.size(x, axis)) - size) / step + 1
    starts = arange(ctx, 0, count) * step
    index = starts.column() + arange(ctx, 0, size)
    slices = ctx.gather(x, index.value, axis)
    rank = ctx.rank(x) + 1
    return ctx.transpose(slices, [i for i in range(rank) if i != axis + 1] + [axis + 1])


@dataclass(frozen=True, kw_only=True)
class MaskedPoolAttributes(WindowAttributes):
    """The attributes of MaxpoolWithMask."""

    kernel_shape: list[int] = field()
    storage_order: int = 0


@translates("MaxpoolWithMask", domain=COM_MICROSOFT)
def maxpool_with_mask(ctx: TranslationContext, x: Value, mask: Value, *, given: MaskedPoolAttributes) -> Value:
    """The maximum of each window; along the last axis a window ends at the first value whose mask is 0.

    Along several axes the first value of all is used whatever its mask is. A window without values has the lowest
    float. ONNX Runtime reads a mask of several channels at offsets that do not fit its shape; only a mask of one
    channel is converted.
    """
    windows, rank = Windows.of(given.kernel_shape, given), ctx.rank(x)
    check_convertible(not windows.auto_pad.startswith("same"), f"auto_pad {given.auto_pad}")
    if len(windows.kernel) != rank - 2 or ctx.rank(mask, "the mask") != rank:
        raise OpError(f"kernel_shape is {windows.kernel} and the mask {ctx.fact(mask)} for the data {ctx.fact(x)}")
    if ctx.sizes(mask)[0] != 1 or ctx.sizes(mask)[1] != 1:
        raise ConversionError(
            f"the mask {ctx.fact(mask)} cannot be converted: it must be known to have one channel", unsupported=True
        )
    check_unrolled(windows.kernel[-1], "the positions of a window")
    begins, ends = [0, 0, *windows.pads_begin], [0, 0, *windows.pads_end]
    used = ~Expression(ctx, mask).equals(0)
    if rank > 3:
        first = positions(ctx, ctx.reshape(mask, [-1]), 0).equals(0)
        used = used | Expression(ctx, ctx.reshape_as(first.value, mask))
    data = ctx.emit("Pad", x, begins, ends, ctx.constant(_LOWEST, x), pad_mode="constant")
    kept = ctx.emit("Pad", ctx.convert(used.value, I64), begins, ends, ctx.constant(1), pad_mode="constant")
    columns = _maxima_of_rows(ctx, Expression(ctx, data), Expression(ctx, kept) > 0, windows)
    rest = [0] * (rank - 2)
    maxima: tuple[Value, ...] = ctx.emit(
        "MaxPool", columns.value, version=14, kernel=[*windows.kernel[:-1], 1], strides=[*windows.strides[:-1], 1],
        dilations=[1] * (rank - 2), pads_begin=rest, pads_end=rest, auto_pad="explicit", rounding_type="floor",
        index_element_type="i64", axis=0,
    )  # fmt: skip
    return maxima[0]


def _maxima_of_rows(ctx: TranslationContext, data: Expression, used: Expression, windows: Windows) -> Expression:
    """The maximum of each window along the last axis, of the values before the first that is not used."""
    axis, kernel, stride = 1 + len(windows.kernel), windows.kernel[-1], windows.strides[-1]
    size = Expression(ctx, ctx.size(data.value, axis)).unsqueeze(0)
    check(kernel > 0, "the window is empty")

    def at(part: Expression, position: int) -> Expression:
        stop = (size - (kernel - 1 - position)).value
        return Expression(ctx, ctx.emit("Slice", part.value, [position], stop, [stride], [axis]))

    within = itertools.accumulate((at(used, position) for position in range(kernel)), operator.and_)
    kept = (is_used.select(at(data, position), _LOWEST) for position, is_used in enumerate(within))
    return functools.reduce(Expression.maximum, kept)


@translates("CropAndResize", domain=COM_MICROSOFT)
def crop_and_resize(
    ctx: TranslationContext, x: Tensor4, rois: Matrix, batch_indices: Vector, crop_size: Value, *,
    mode: Literal["bilinear", "nearest"] = "bilinear", extrapolation_value: float = 0.0,
) -> Value:  # fmt: skip
    """Boxes (y1, x1, y2, x2), relative to the image, resized so that their corners are the outer pixels.

    Samples outside of the image have the extrapolation value. Source: ONNX Runtime's ``crop_and_resize.cc``, whose
    order of operations decides which samples are outside.
    """
    sizes = ctx.ints(crop_size, "crop_size")
    check(len(sizes) == 2 and min(sizes) >= 1, f"crop_size is {list(sizes)}, expected a height and a width")
    images: Value = ctx.gather(x, ctx.convert(batch_indices, I64), 0)
    rows, columns = (_samples(ctx, x, rois, axis, sizes[axis]) for axis in (0, 1))
    outside = rows.outside.unsqueeze(1, 3) | columns.outside.unsqueeze(1, 2)
    if mode == "nearest":
        y = rows.picked(images, (rows.position + 0.5).floor(), 2)
        sampled = columns.picked(y, (columns.position + 0.5).floor(), 3)
    else:
        low, high = rows.position.floor(), rows.position.ceil()
        lines = [columns.between(rows.picked(images, each, 2), 3) for each in (low, high)]
        sampled = (lines[0] + (lines[1] - lines[0]) * (rows.position - low).unsqueeze(1, 3)).value
    return outside.select(extrapolation_value, Expression(ctx, sampled)).value


@dataclass(frozen=True)
class _Samples:
    """Positions of the samples of each box along an axis, (boxes, samples), those outside of the image set to 0."""

    ctx: TranslationContext
    position: Expression
    outside: Expression

    def picked(self, images: Value, index: Expression, axis: int) -> Value:
        """The pixels at these indices, one image per box."""
        pixels: Value = self.ctx.emit("Gather", images, index.to(I64).value, self.ctx.constant(axis), batch_dims=1)
        return pixels

    def between(self, images: Value, axis: int) -> Expression:
        """The pixels interpolated linearly along the last axis."""
        low = self.position.floor()
        first, last = (Expression(self.ctx, self.picked(images, each, axis)) for each in (low, self.position.ceil()))
        return first + (last - first) * (self.position - low).unsqueeze(1, 2)


def _samples(ctx: TranslationContext, x: Value, rois: Value, axis: int, count: int) -> _Samples:
    kind = ctx.element(rois)
    start, end = (Expression(ctx, ctx.gather(rois, ctx.constant([axis + 2 * side]), 1)) for side in (0, 1))
    last = (Expression(ctx, ctx.size(x, axis + 2)) - 1).to(kind)
    if count == 1:
        position = (start + end) * 0.5 * last
    else:
        step = (end - start) * last / float(count - 1)
        inner = Expression(ctx, ctx.constant([list(range(count - 1))], rois))
        position = Expression(ctx, ctx.emit("Concat", (start * last + inner * step).value, (end * last).value, axis=1))
    outside = (position < 0) | (position > last)
    return _Samples(ctx, outside.select(0, position), outside)
