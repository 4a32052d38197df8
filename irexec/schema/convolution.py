"""The attributes of convolutions, forward and transposed: one object for the reference kernel, the shape rule and the
fast kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from irexec.errors import check
from irexec.ir.dims import ANY, Size, at_least, at_most, may_equal
from irexec.ir.facts import Fact
from irexec.reference.windows import SlidingWindows, TransposedWindows, effective_kernel_size
from irexec.schema.attributes import NonNegatives, Positives
from irexec.schema.shape_rules import MAX_AXES, non_negative, unify_elements
from irexec.schema.windows import (
    AutoPad,
    check_length,
    check_lists,
    cropped_size,
    explicit_pads,
    known_sizes,
    natural_size,
    per_axis,
    resolve_pads,
    same_count,
    spatial_rank,
    spatial_sizes,
    window_count,
)

# Winograd's transforms cost a few units in the last place of the largest products.
TOLERANCE = 2e-5


@dataclass(frozen=True)
class _SpatialAttributes:
    """Attributes of every convolution; an empty list means ones (strides, dilations) or zeros (pads), as OpenVINO reads
    it."""

    strides: Positives
    pads_begin: NonNegatives
    pads_end: NonNegatives
    dilations: Positives

    def steps(self, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Strides and dilations, one for each of ``rank`` spatial axes."""
        return per_axis(self.strides, rank, 1), per_axis(self.dilations, rank, 1)


@dataclass(frozen=True)
class ConvolutionAttributes(_SpatialAttributes):
    """Convolution-1, GroupConvolution-1 and all others with forward windows; the pads count only where ``auto_pad`` is
    explicit."""

    auto_pad: AutoPad = "explicit"

    def output_sizes(self, sizes: Sequence[Size], kernel: Sequence[Size]) -> tuple[Size, ...]:
        """The spatial sizes of the result for data and kernel of these spatial sizes.

        Raises:
            OpError: the kernel does not fit.
        """
        rank = len(sizes)
        strides, dilations = self.steps(rank)
        if self.auto_pad in ("same_upper", "same_lower"):
            return tuple(map(same_count, sizes, strides))
        begins, ends = explicit_pads(self.auto_pad, self.pads_begin, self.pads_end, rank)
        return tuple(map(window_count, sizes, kernel, strides, dilations, begins, ends))

    def windows(self, sizes: Sequence[int], kernel: Sequence[int]) -> SlidingWindows:
        """Where the windows lie on data of these spatial sizes."""
        strides, dilations = self.steps(len(sizes))
        pads = resolve_pads(self.auto_pad, sizes, kernel, strides, dilations, self.pads_begin, self.pads_end)
        return SlidingWindows(tuple(kernel), strides, dilations, *pads, known_sizes(self.output_sizes(sizes, kernel)))


@dataclass(frozen=True)
class BackpropAttributes(_SpatialAttributes):
    """ConvolutionBackpropData-1 and GroupConvolutionBackpropData-1.

    The odd rules are those that OpenVINO's CPU plugin and shape inference keep, where the prose of the specification
    says otherwise. ``out`` is a spatial size of the result, ``natural`` its size before it is cropped, ``begin`` what
    is cropped at its start:

    - with an ``output_shape`` input, T = max(0, natural - out + output_padding) is cropped. same_upper crops the larger
      half first, same_lower last; explicit crops ``pads_begin`` as given (it is not ignored), valid nothing;
    - without one, same_upper, same_lower and valid crop nothing and ignore the given pads;
    - an ``output_shape`` or ``output_padding`` that reaches beyond the natural end gives zeros there.
    """

    auto_pad: AutoPad = "explicit"
    output_padding: NonNegatives = ()

    def natural_sizes(self, sizes: Sequence[Size], kernel: Sequence[Size]) -> tuple[Size, ...]:
        """The spatial sizes before cropping."""
        return tuple(map(natural_size, sizes, kernel, *self.steps(len(sizes))))

    def output_sizes(self, sizes: Sequence[Size], kernel: Sequence[Size]) -> tuple[Size, ...]:
        """The spatial sizes of the result without an ``output_shape``; OpError if the pads crop more than it has."""
        rank = len(sizes)
        paddings = per_axis(self.output_padding, rank, 0)
        pads = explicit_pads(self.auto_pad, self.pads_begin, self.pads_end, rank)
        return tuple(map(cropped_size, self.natural_sizes(sizes, kernel), *pads, paddings))

    def windows(
        self, sizes: Sequence[int], kernel: Sequence[int], output_shape: Sequence[int] | None
    ) -> TransposedWindows:
        """Elements cropped at the start of each spatial axis, and the resulting sizes."""
        rank = len(sizes)
        natural = known_sizes(self.natural_sizes(sizes, kernel))
        begins, _ = explicit_pads(self.auto_pad, self.pads_begin, self.pads_end, rank)
        outs = known_sizes(self.output_sizes(sizes, kernel)) if output_shape is None else tuple(output_shape)
        if output_shape is not None and self.auto_pad in ("same_upper", "same_lower"):
            paddings = per_axis(self.output_padding, rank, 0)
            totals = [max(0, n - out + padding) for n, out, padding in zip(natural, outs, paddings, strict=True)]
            begins = tuple(total - total // 2 if self.auto_pad == "same_upper" else total // 2 for total in totals)
        return TransposedWindows(*self.steps(rank), begins, natural, outs)


@dataclass(frozen=True)
class ConvTransposeAttributes(_SpatialAttributes):
    """The spatial attributes of oneDNN Graph's ConvTranspose-1.

    same_upper and same_lower crop T = max(0, dilation * (K - 1) + 1 - stride), the larger half last or first: as ONNX,
    the opposite of ConvolutionBackpropData. ``output_padding`` does not enter T and shows more of the natural result.
    It may be "None", or longer than there are spatial axes if the surplus is zero, as benchdnn writes it.
    """

    auto_pad: Literal["none", "same_upper", "same_lower", "valid"] = "none"
    output_padding: str = ""

    def paddings(self, rank: int) -> tuple[int, ...]:
        """The values of ``output_padding``, one for each spatial axis.

        Raises:
            OpError: a value is not an integer or negative, there are too few, or a surplus one is not zero.
        """
        text = self.output_padding
        if text.strip().lower() in ("", "none"):
            return (0,) * rank
        parts = [part.strip() for part in text.split(",")]
        are_numbers = all(part.isascii() and part.isdigit() for part in parts)
        check(are_numbers, f"output_padding {text!r} is not a list of non-negative integers")
        if len(parts) < rank:
            check_length(parts, rank, "output_padding")
        values = tuple(map(int, parts))
        surplus = f"has more values than {rank} spatial axes, and the surplus is not zero"
        check(not any(values[rank:]), f"output_padding {text!r} {surplus}")
        return values[:rank]

    def output_sizes(self, sizes: Sequence[Size], kernel: Sequence[Size]) -> tuple[Size, ...]:
        """The spatial sizes of the result; OpError if the pads crop more than there is."""
        rank = len(sizes)
        strides, dilations = self.steps(rank)
        paddings = self.paddings(rank)
        if self.auto_pad in ("same_upper", "same_lower"):
            kept = map(_same_size, sizes, kernel, strides, dilations)
            return tuple(size + padding for size, padding in zip(kept, paddings, strict=True))
        begins, ends = explicit_pads(self.auto_pad, self.pads_begin, self.pads_end, rank)
        return tuple(map(cropped_size, map(natural_size, sizes, kernel, strides, dilations), begins, ends, paddings))

    def windows(self, sizes: Sequence[int], kernel: Sequence[int]) -> TransposedWindows:
        """Elements cropped at the start of each spatial axis, and the resulting sizes."""
        strides, dilations = self.steps(len(sizes))
        natural = known_sizes([natural_size(*axis) for axis in zip(sizes, kernel, strides, dilations, strict=True)])
        outs = known_sizes(self.output_sizes(sizes, kernel))
        return TransposedWindows(strides, dilations, self.begins(kernel), natural, outs)

    def begins(self, kernel: Sequence[int]) -> tuple[int, ...]:
        """Elements cropped at the start of each spatial axis."""
        rank = len(kernel)
        if self.auto_pad in ("none", "valid"):
            return explicit_pads(self.auto_pad, self.pads_begin, self.pads_end, rank)[0]
        totals = [max(0, effective_kernel_size(k, d) - s) for k, s, d in zip(kernel, *self.steps(rank), strict=True)]
        return tuple(total // 2 if self.auto_pad == "same_upper" else total - total // 2 for total in totals)


def _same_size(size: Size, kernel: Size, stride: int, dilation: int) -> Size:
    """The natural size less max(0, effective kernel size - stride)."""
    return (at_least(size, 1) - 1) * stride + at_most(effective_kernel_size(at_least(kernel, 1), dilation), stride)


def result_fact(
    data: Fact,
    filter: Fact,
    leading: int,
    inputs: Size,
    channels: Size,
    of_groups: str,
    attributes: ConvolutionAttributes | BackpropAttributes,
    output_shape: Fact | None = None,
) -> Fact:
    """The result of a convolution.

    Args:
        data, filter, leading, inputs, of_groups: as for ``check_filter``.
        channels: number of channels of the result.
        output_shape: the input with the spatial sizes of a transposed one.
    """
    element = unify_elements(data, filter)
    given = None if output_shape is None else _given_sizes(output_shape)
    rank = spatial_rank(data.shape, filter.shape, leading, given or (), attributes.strides, attributes.dilations)
    if rank is None:
        return Fact(element, None)
    check_filter(data, filter, rank, leading, inputs, of_groups)
    # That includes pads that ``auto_pad`` makes irrelevant, as in OpenVINO.
    check_lists(attributes, rank)
    batch = ANY if data.shape is None else data.shape[0]
    if output_shape is not None:
        if given is not None:
            check_length(given, rank, "output_shape")
        return Fact(element, (batch, channels, *(given or (ANY,) * rank)))
    sizes, kernel = spatial_sizes(data.shape, rank), spatial_sizes(filter.shape, rank, leading)
    return Fact(element, (batch, channels, *attributes.output_sizes(sizes, kernel)))


def _given_sizes(output_shape: Fact) -> tuple[Size, ...] | None:
    """The sizes of the input, as far as it is known; None if not even their number is."""
    sizes = output_shape.sizes("output_shape")
    if sizes is not None:
        return tuple(non_negative(size, "a size of output_shape") for size in sizes)
    count = None if output_shape.shape is None else output_shape.shape[0]
    if not isinstance(count, int):
        return None
    check(count <= MAX_AXES, f"output_shape has {count} values, more than a shape can have")
    return (ANY,) * count


def check_filter(data: Fact, filter: Fact, rank: int, leading: int, inputs: Size, of_groups: str) -> None:
    """Raise OpError unless a filter fits the data.

    Args:
        data: [N, C, ...].
        filter: ``leading`` axes of it are not spatial.
        rank: the number of spatial axes.
        inputs: number of channels that the filter reads; ``of_groups`` states the number of groups.
    """
    fits = filter.rank in (None, rank + leading)
    check(fits, f"data of rank {rank + 2} does not go with a filter of rank {filter.rank}")
    channels = ANY if data.shape is None else data.shape[1]
    check(may_equal(channels, inputs), f"data has {channels} channels, the filter takes {inputs}{of_groups}")
