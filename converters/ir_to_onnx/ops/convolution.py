"""Convolutions, plain, of groups, transposed and deformable."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.graph import Tensor
from converters.ir_to_onnx.ops.generation import as_i64
from converters.ir_to_onnx.registry import composed, exact
from irexec.dtypes.elements import BOOLEAN, F64, I64
from irexec.errors import check
from irexec.ir.dims import PartialShape
from irexec.schema.convolution import BackpropAttributes, ConvolutionAttributes, ConvTransposeAttributes
from irexec.schema.windows import explicit_pads, per_axis


def in_floats(ctx: ExportContext, product: Callable[..., Tensor], *inputs: Tensor) -> Tensor:
    """A sum of products of integers, computed in f64: ONNX's operator takes floats alone."""
    kind = inputs[0].element
    if kind.is_float:
        return product(*inputs)
    result = product(*(ctx.cast(x, F64) for x in inputs))
    return ctx.cast(ctx.cast(result, I64), kind)


def known_sizes(shape: PartialShape, first: int) -> tuple[int, ...] | None:
    """The sizes from the axis ``first`` on; None if one is not known."""
    sizes = [] if shape is None else [size for size in shape[first:] if isinstance(size, int)]
    return tuple(sizes) if shape is not None and len(sizes) == len(shape) - first else None


def window_attributes(attributes: Any, sizes: PartialShape, kernel: Sequence[int] | None, rank: int) -> dict[str, Any]:
    """The pads of forward windows: explicit ones where the sizes are known, else ONNX's auto_pad."""
    strides, dilations = per_axis(attributes.strides, rank, 1), per_axis(attributes.dilations, rank, 1)
    common: dict[str, Any] = {"strides": strides, "dilations": dilations}
    if attributes.auto_pad in ("explicit", "valid"):
        pads = (attributes.pads_begin, attributes.pads_end) if attributes.auto_pad == "explicit" else ((), ())
        return common | {"pads": [*per_axis(pads[0], rank, 0), *per_axis(pads[1], rank, 0)]}
    spatial = known_sizes(sizes, 2)
    if spatial is not None and kernel is not None:
        placed = attributes.windows(spatial, kernel)
        return common | {"pads": [*placed.pads_begin, *placed.pads_end]}
    return common | {"auto_pad": attributes.auto_pad.upper()}


def same_padded(ctx: ExportContext, data: Tensor, attributes: Any, kernel: tuple[int, ...] | None, rank: int) -> Tensor:
    """The data padded as same_upper or same_lower asks, by sizes that are computed when the model runs.

    ONNX Runtime has no auto_pad for dilated windows.
    """
    check(kernel is not None, "the size of the kernel is not known")
    strides, dilations = per_axis(attributes.strides, rank, 1), per_axis(attributes.dilations, rank, 1)
    spans = [d * (k - 1) + 1 for k, d in zip(kernel or (), dilations, strict=True)]
    sizes, steps = ctx.slice(ctx.emit("Shape", data), 2, None, 0), ctx.ints(*strides)
    # (ceil(size / stride) - 1) * stride is what is before the last window.
    before = ctx.emit("Mul", ctx.emit("Div", ctx.emit("Sub", sizes, ctx.ints(1)), steps), steps)
    missing = ctx.emit("Sub", ctx.emit("Add", before, ctx.ints(*spans)), sizes)
    total = ctx.emit("Max", missing, ctx.ints(0))
    half = ctx.emit("Div", total, ctx.ints(2))
    rest = ctx.emit("Sub", total, half)
    first, last = (half, rest) if attributes.auto_pad == "same_upper" else (rest, half)
    pads = ctx.concat(ctx.ints(0, 0), first, ctx.ints(0, 0), last)
    return ctx.emit("Pad", data, pads, ctx.scalar(0, data))


@exact("Convolution")
def convolution(ctx: ExportContext, data: Tensor, filter: Tensor, *, attributes: ConvolutionAttributes) -> Tensor:
    """Conv; of integers in f64."""
    return _convolved(ctx, data, filter, attributes, 1, known_sizes(filter.shape, 2))


@exact("GroupConvolution")
def group_convolution(ctx: ExportContext, data: Tensor, filter: Tensor, *, attributes: ConvolutionAttributes) -> Tensor:
    """Conv with groups; the filter is reshaped, a constant one where it is written."""
    groups = filter.require_shape("the filter")[0]
    check(isinstance(groups, int), "the number of groups is not known")
    assert isinstance(groups, int)
    kernel = known_sizes(filter.shape, 3)
    return _convolved(ctx, data, _merged(ctx, filter), attributes, groups, kernel)


def _merged(ctx: ExportContext, filter: Tensor) -> Tensor:
    """The axes of groups and of channels of a filter as one."""
    shape = filter.require_shape("the filter")
    sizes = [size for size in shape if isinstance(size, int)]
    if len(sizes) == len(shape):
        return ctx.reshape(filter, [sizes[0] * sizes[1], *sizes[2:]])
    rest = ctx.slice(ctx.emit("Shape", filter), 2, None, 0)
    return ctx.emit("Reshape", filter, ctx.concat(ctx.ints(-1), rest))


def _convolved(
    ctx: ExportContext, data: Tensor, filter: Tensor, attributes: ConvolutionAttributes, groups: int,
    kernel: tuple[int, ...] | None,
) -> Tensor:  # fmt: skip
    rank = filter.require_rank("the filter") - 2
    options = window_attributes(attributes, data.shape, kernel, rank)
    if "auto_pad" in options and any(dilation > 1 for dilation in options["dilations"]):
        del options["auto_pad"]
        data = same_padded(ctx, data, attributes, kernel, rank)
    return in_floats(ctx, lambda x, w: ctx.emit("Conv", x, w, group=groups, **options), data, filter)


@exact("ConvolutionBackpropData")
def convolution_backprop_data(
    ctx: ExportContext, data: Tensor, filter: Tensor, output_shape: Tensor | None = None, *,
    attributes: BackpropAttributes,
) -> Tensor:  # fmt: skip
    """ConvTranspose with explicit pads, by OpenVINO's rules for auto_pad, output_shape and output_padding."""
    return _transposed(ctx, data, filter, output_shape, attributes, 1, known_sizes(filter.shape, 2))


@exact("GroupConvolutionBackpropData")
def group_convolution_backprop_data(
    ctx: ExportContext, data: Tensor, filter: Tensor, output_shape: Tensor | None = None, *,
    attributes: BackpropAttributes,
) -> Tensor:  # fmt: skip
    """ConvTranspose with groups, as ConvolutionBackpropData."""
    groups = filter.require_shape("the filter")[0]
    check(isinstance(groups, int), "the number of groups is not known")
    assert isinstance(groups, int)
    return _transposed(ctx, data, _merged(ctx, filter), output_shape, attributes, groups, known_sizes(filter.shape, 3))


def _transposed(
    ctx: ExportContext, data: Tensor, filter: Tensor, output_shape: Tensor | None, attributes: BackpropAttributes,
    groups: int, kernel: tuple[int, ...] | None,
) -> Tensor:  # fmt: skip
    rank = filter.require_rank("the filter") - 2
    strides, dilations = attributes.steps(rank)
    windows = {"strides": strides, "dilations": dilations, "group": groups}
    spatial = known_sizes(data.shape, 2)
    outs = None if output_shape is None else output_shape.value
    if output_shape is None:
        begins, ends = explicit_pads(attributes.auto_pad, attributes.pads_begin, attributes.pads_end, rank)
        extra = per_axis(attributes.output_padding, rank, 0)
        return _placed(ctx, data, filter, windows, begins, ends, extra)
    if spatial is not None and kernel is not None and outs is not None:
        placed = attributes.windows(spatial, kernel, output_shape.require_ints("output_shape"))
        rest = [n - out - begin for n, out, begin in zip(placed.natural, placed.counts, placed.begins, strict=True)]
        cut, zeros = [max(0, end) for end in rest], [max(0, -end) for end in rest]
        return _placed(ctx, data, filter, windows, placed.begins, cut, zeros)
    return _cropped(ctx, data, filter, output_shape, attributes, windows, rank)


def _placed(
    ctx: ExportContext, data: Tensor, filter: Tensor, windows: dict[str, Any], begins: Sequence[int],
    ends: Sequence[int], extra: Sequence[int],
) -> Tensor:  # fmt: skip
    """ConvTranspose with pads; ``extra`` zeros at the end that ONNX does not allow as output_padding by a Pad.

    What extends beyond the natural size is zero; where pads crop the end, the extra elements are taken from there.
    """
    shown = [min(end, more) for end, more in zip(ends, extra, strict=True)]
    ends = [end - taken for end, taken in zip(ends, shown, strict=True)]
    extra = [more - taken for more, taken in zip(extra, shown, strict=True)]
    limits = [max(pair) for pair in zip(windows["strides"], windows["dilations"], strict=True)]
    allowed = all(more < limit for more, limit in zip(extra, limits, strict=True))
    pads = [*begins, *ends]
    padding = tuple(extra) if allowed and any(extra) else None
    result = in_floats(
        ctx, lambda x, w: ctx.emit("ConvTranspose", x, w, pads=pads, output_padding=padding, **windows), data, filter
    )
    if allowed:
        return result
    rank = len(extra)
    return ctx.emit("Pad", result, ctx.ints(*[0] * (rank + 4), *extra))


def _cropped(
    ctx: ExportContext, data: Tensor, filter: Tensor, output_shape: Tensor, attributes: BackpropAttributes,
    windows: dict[str, Any], rank: int,
) -> Tensor:  # fmt: skip
    """The natural result, cropped to sizes that are computed when the model runs."""
    natural = in_floats(ctx, lambda x, w: ctx.emit("ConvTranspose", x, w, **windows), data, filter)
    outs = as_i64(ctx, output_shape)
    sizes = ctx.slice(ctx.emit("Shape", natural), 2, None, 0)
    begins = _begins(ctx, sizes, outs, attributes, rank)
    ends = ctx.emit("Add", begins, outs)
    beyond = ctx.emit("Max", ctx.emit("Sub", ends, sizes), ctx.ints(0))
    padded = ctx.emit("Pad", natural, ctx.concat(ctx.ints(*[0] * (rank + 4)), beyond))
    return ctx.emit("Slice", padded, begins, ends, ctx.ints(*range(2, rank + 2)))


def _begins(ctx: ExportContext, sizes: Tensor, outs: Tensor, attributes: BackpropAttributes, rank: int) -> Tensor:
    """Elements cropped at the start of each axis."""
    if attributes.auto_pad in ("explicit", "valid"):
        return ctx.ints(*explicit_pads(attributes.auto_pad, attributes.pads_begin, attributes.pads_end, rank)[0])
    padding = ctx.ints(*per_axis(attributes.output_padding, rank, 0))
    total = ctx.emit("Max", ctx.emit("Add", ctx.emit("Sub", sizes, outs), padding), ctx.ints(0))
    half = ctx.emit("Div", total, ctx.ints(2))
    return ctx.emit("Sub", total, half) if attributes.auto_pad == "same_upper" else half


@exact("ConvTranspose", since="onednn")
def conv_transpose(
    ctx: ExportContext, input: Tensor, filter: Tensor, bias: Tensor | None = None, *,
    attributes: ConvTransposeAttributes, groups: int, data_format: str, filter_format: str | None,
    weights_format: str | None,
) -> Tensor:  # fmt: skip
    """ConvTranspose with explicit pads; Transposes for channels last and for the axes of the filter."""
    rank = filter.require_rank("the filter") - 2
    order = (filter_format or weights_format or "XIO").upper()
    # A filter as ONNX has it: inputs, outputs of a group, spatial axes. O of each spelling is the number of outputs of
    # a group, I of all inputs.
    places = {"XIO": (rank, rank + 1, 0), "XOI": (rank + 1, rank, 0), "OIX": (1, 0, 2), "IOX": (0, 1, 2)}[order]
    axes = [places[0], places[1], *range(places[2], places[2] + rank)]
    filter = filter if axes == list(range(rank + 2)) else ctx.transpose(filter, axes)
    kernel = known_sizes(filter.shape, 2)
    check(kernel is not None, "the size of the kernel is not known")
    assert kernel is not None
    x = ctx.transpose(input, [0, rank + 1, *range(1, rank + 1)]) if data_format == "NXC" else input
    strides, dilations = attributes.steps(rank)
    begins = attributes.begins(kernel)
    extra = attributes.paddings(rank)
    if attributes.auto_pad in ("same_upper", "same_lower"):
        totals = [max(0, d * (k - 1) + 1 - s) for k, d, s in zip(kernel, dilations, strides, strict=True)]
        ends: Sequence[int] = [total - begin for total, begin in zip(totals, begins, strict=True)]
    else:
        ends = per_axis(attributes.pads_end if attributes.auto_pad == "none" else (), rank, 0)
    windows = {"strides": strides, "dilations": dilations, "group": groups}
    result = _placed(ctx, x, filter, windows, begins, ends, extra)
    if bias is not None:
        result = ctx.emit("Add", result, ctx.unsqueeze(bias, *range(1, rank + 1)))
    return ctx.transpose(result, [0, *range(2, rank + 2), 1]) if data_format == "NXC" else result


@composed("BinaryConvolution")
def binary_convolution(
    ctx: ExportContext, data: Tensor, filter: Tensor, *, attributes: ConvolutionAttributes, mode: str, pad_value: float
) -> Tensor:
    """Twice the agreeing bits, which a Conv of ones and of zeros counts, less all bits. Padding is a Pad."""
    kernel = known_sizes(filter.shape, 2)
    rank = filter.require_rank("the filter") - 2
    options = window_attributes(attributes, data.shape, kernel, rank)
    check("pads" in options, "the pads depend on sizes that are not known")
    x = data if data.element.is_float else ctx.cast(data, F64)
    pads = options.pop("pads")
    if any(pads):
        x = ctx.emit("Pad", x, ctx.ints(0, 0, *pads[:rank], 0, 0, *pads[rank:]), ctx.scalar(pad_value, x))
    sizes = known_sizes(filter.shape, 1)
    check(sizes is not None, "the size of the filter is not known")
    ones, zeros = (ctx.cast(ctx.emit("Equal", x, ctx.scalar(value, x)), x.element) for value in (1, 0))
    weights = ctx.cast(filter, x.element)
    opposite = ctx.emit("Sub", ctx.scalar(1, x), weights)
    agreeing = ctx.emit("Conv", ctx.concat(ones, zeros, axis=1), ctx.concat(weights, opposite, axis=1), **options)
    twice = ctx.emit("Mul", agreeing, ctx.scalar(2, x))
    result = ctx.emit("Sub", twice, ctx.scalar(math.prod(sizes or ()), x))
    return ctx.cast(result, data.element)


@exact("DeformableConvolution", since=1)
def deformable_convolution(
    ctx: ExportContext, data: Tensor, offsets: Tensor, filter: Tensor, mask: Tensor | None = None, *, attributes: Any
) -> Tensor:
    """DeformConv, from opset 19 on; without bilinear_interpolation_pad, with positions beyond the last pixel moved."""
    check(ctx.has("DeformConv"), f"ONNX's DeformConv is not in opset {ctx.opset}")
    if not getattr(attributes, "bilinear_interpolation_pad", False):
        offsets, mask = _inside(ctx, data, offsets, filter, mask, attributes)
    return _deform_conv(ctx, data, offsets, filter, mask, attributes)


@exact("DeformableConvolution", since="irexec")
def deformable_convolution_of_any_rank(
    ctx: ExportContext, data: Tensor, offsets: Tensor, filter: Tensor, mask: Tensor | None = None, *, attributes: Any
) -> Tensor:
    """DeformConv, from opset 19 on."""
    check(attributes.bilinear_interpolation_pad, "ONNX pads with zeros")
    return _deform_conv(ctx, data, offsets, filter, mask, attributes)


def _deform_conv(
    ctx: ExportContext, data: Tensor, offsets: Tensor, filter: Tensor, mask: Tensor | None, attributes: Any
) -> Tensor:
    rank = data.require_rank("the data") - 2
    options = window_attributes(attributes, data.shape, known_sizes(filter.shape, 2), rank)
    check("pads" in options, "the pads depend on sizes that are not known")
    return ctx.emit(
        "DeformConv", data, filter, offsets, None, mask, group=attributes.group,
        offset_group=attributes.deformable_group, **options,
    )  # fmt: skip


def _inside(
    ctx: ExportContext, data: Tensor, offsets: Tensor, filter: Tensor, mask: Tensor | None, attributes: Any
) -> tuple[Tensor, Tensor]:
    """Offsets whose positions are at most the last pixel, and a mask that is 0 where they were beyond the image."""
    spatial, kernel = known_sizes(data.shape, 2), known_sizes(filter.shape, 2)
    check(spatial is not None and kernel is not None, "the sizes of the data and of the filter are not known")
    assert spatial is not None and kernel is not None
    base = _positions(attributes, spatial, kernel)
    groups = attributes.deformable_group
    points = ctx.emit("Reshape", offsets, ctx.ints(0, groups * base.shape[0], 2, *base.shape[2:]))
    tiled = ctx.constant(np.tile(base, (groups, 1, 1, 1)), offsets.element)
    places = ctx.emit("Add", points, tiled)
    last = ctx.constant(np.array(spatial).reshape(2, 1, 1) - 1, offsets.element)
    zero, one = ctx.scalar(0, offsets), ctx.scalar(1, offsets)
    beyond = ctx.emit(
        "Or", ctx.emit("Less", places, zero), ctx.emit("GreaterOrEqual", places, ctx.emit("Add", last, one))
    )
    outside = ctx.reduce("ReduceMax", ctx.where(beyond, one, zero), [2])
    kept = ctx.emit("Not", ctx.cast(outside, BOOLEAN))
    weights = ctx.cast(kept, data.element)
    moved = ctx.emit("Sub", ctx.emit("Min", places, last), tiled)
    flat = ctx.emit("Reshape", moved, ctx.ints(0, 2 * groups * base.shape[0], *base.shape[2:]))
    return flat, weights if mask is None else ctx.emit("Mul", weights, mask)


def _positions(attributes: Any, spatial: tuple[int, ...], kernel: tuple[int, ...]) -> np.ndarray:
    """Row and column of each point of the kernel in each window: (points, 2, rows, columns)."""
    placed = attributes.windows(spatial, kernel)
    lines = [
        np.arange(count)[None] * stride + np.arange(size)[:, None] * dilation - begin
        for count, stride, size, dilation, begin in zip(
            placed.counts, placed.strides, kernel, placed.dilations, placed.pads_begin, strict=True
        )
    ]
    shape = (kernel[0], kernel[1], placed.counts[0], placed.counts[1])
    rows = np.broadcast_to(lines[0][:, None, :, None], shape)
    columns = np.broadcast_to(lines[1][None, :, None, :], shape)
    stacked = np.stack([rows, columns], 2).reshape(kernel[0] * kernel[1], 2, *placed.counts)
    return stacked.astype(np.float64)
