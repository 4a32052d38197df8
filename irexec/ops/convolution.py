"""Convolutions: plain, of groups, binary, transposed and deformable.

It is not an operation of OpenVINO; as a layer it has ``version="onednn"``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from irexec.dtypes.elements import BF16, F16, F32, U1
from irexec.errors import check
from irexec.ir.dims import ANY, PartialShape, Size, is_static, may_equal, meet
from irexec.ir.facts import Fact, integers
from irexec.reference.convolution import (
    add_bias,
    channels_first,
    convolve,
    convolve_bits,
    convolve_deformable,
    convolve_transposed,
    filter_by_group,
    filter_order,
)
from irexec.schema.attributes import Positive
from irexec.schema.convolution import (
    TOLERANCE,
    BackpropAttributes,
    ConvolutionAttributes,
    ConvTransposeAttributes,
    result_fact,
)
from irexec.schema.opdef import IntegerTensor, NumericTensor, Rank, element_set
from irexec.schema.registry import op
from irexec.schema.shape_rules import group_count, unify_elements
from irexec.schema.windows import check_lists, spatial_rank, spatial_sizes


# Model Optimizer of 2020 wrote output_padding for these two.
@op("Convolution", since=1, widen=True, tolerance=TOLERANCE, ignores=("output_padding",))
def convolution_1(
    data: Annotated[NumericTensor, Rank(3, 5)],
    filter: Annotated[NumericTensor, Rank(3, 5)],
    *,
    attributes: ConvolutionAttributes,
) -> np.ndarray:
    """Cross-correlation of data [N, C_IN, Z, Y, X] with filter [C_OUT, C_IN, Z, Y, X], in 1 to 3 spatial axes.

    Integers wrap. Source: Convolution-1.
    """
    return convolve(data, filter[None], attributes.windows(data.shape[2:], filter.shape[2:]))


@op("GroupConvolution", since=1, widen=True, tolerance=TOLERANCE, ignores=("output_padding",))
def group_convolution_1(
    data: Annotated[NumericTensor, Rank(3, 5)],
    filter: Annotated[NumericTensor, Rank(4, 6)],
    *,
    attributes: ConvolutionAttributes,
) -> np.ndarray:
    """Convolution of each group: data [N, GROUPS * C_IN, ...], filter [GROUPS, C_OUT, C_IN, Z, Y, X]. Source:
    GroupConvolution-1."""
    return convolve(data, filter, attributes.windows(data.shape[2:], filter.shape[3:]))


def _convolution_rule(*, leading: int) -> Callable[..., Fact]:
    def rule(
        data: Fact, filter: Fact, output_shape: Fact | None = None, *,
        attributes: ConvolutionAttributes | BackpropAttributes,
    ) -> Fact:  # fmt: skip
        """The result for a filter of which ``leading`` axes are not spatial: groups if it has three, output and input
        channels, of a transposed convolution in the other order."""
        *grouped, channels, inputs = (ANY,) * leading if filter.shape is None else filter.shape[:leading]
        if isinstance(attributes, BackpropAttributes):
            channels, inputs = inputs, channels
        of_groups = "".join(f" of {groups} groups of {inputs}" for groups in grouped)
        for groups in grouped:
            count = group_count(data, groups, inputs)
            channels, inputs = count * channels, count * inputs
        return result_fact(data, filter, leading, inputs, channels, of_groups, attributes, output_shape)

    return rule


_convolution_facts = convolution_1.shape_rule(_convolution_rule(leading=2))
group_convolution_1.shape_rule(_convolution_rule(leading=3))


@op("BinaryConvolution", since=1)
def binary_convolution_1(
    data: Annotated[NumericTensor, Rank(4)],
    filter: Annotated[np.ndarray, element_set("u1", U1), Rank(4)],
    *,
    attributes: ConvolutionAttributes,
    mode: Literal["xnor-popcount"],
    pad_value: float,
) -> np.ndarray:
    """Twice the bits in which window and filter agree, minus the bits of the filter; data [N, C_IN, Y, X].

    Data other than 0 and 1 agrees with neither; padding takes part with ``pad_value``. Source: BinaryConvolution-1 and
    OpenVINO's reference (its CPU plugin leaves out padding of 0, and the reference misreads a second output channel).
    """
    return convolve_bits(data, filter, attributes.windows(data.shape[2:], filter.shape[2:]), pad_value)


@binary_convolution_1.shape_rule
def _binary_convolution_shape(data: Fact, filter: Fact, *, attributes: ConvolutionAttributes) -> Fact:
    found = _convolution_facts(data, Fact(data.element, filter.shape), attributes=attributes)
    return Fact(found.element, found.shape if found.shape is not None else (ANY,) * 4)


OutputShape = Annotated[IntegerTensor, Rank(1)]


@op("ConvolutionBackpropData", since=1, widen=True, tolerance=TOLERANCE)
def convolution_backprop_data_1(
    data: Annotated[NumericTensor, Rank(3, 5)],
    filter: Annotated[NumericTensor, Rank(3, 5)],
    output_shape: OutputShape | None = None,
    *,
    attributes: BackpropAttributes,
) -> np.ndarray:
    """Transposed convolution of data [N, C_IN, Z, Y, X] with filter [C_IN, C_OUT, Z, Y, X], in 1 to 3 spatial axes.

    Source: ConvolutionBackpropData-1, OpenVINO's shape inference and CPU plugin.
    """
    placed = attributes.windows(data.shape[2:], filter.shape[2:], _sizes(output_shape))
    return convolve_transposed(data, filter[None], placed)


convolution_backprop_data_1.shape_rule(_convolution_facts)


@op("GroupConvolutionBackpropData", since=1, widen=True, tolerance=TOLERANCE)
def group_convolution_backprop_data_1(
    data: Annotated[NumericTensor, Rank(3, None)],
    filter: Annotated[NumericTensor, Rank(4, None)],
    output_shape: OutputShape | None = None,
    *,
    attributes: BackpropAttributes,
) -> np.ndarray:
    """ConvolutionBackpropData of each group: data [N, GROUPS * C_IN, ...], filter [GROUPS, C_IN, C_OUT, Z, Y, X].

    The specification prints the kernel's axes reversed; they are in the order of the data's. Any number of
    spatial axes. Source: GroupConvolutionBackpropData-1, OpenVINO's shape inference and CPU plugin.
    """
    return convolve_transposed(data, filter, attributes.windows(data.shape[2:], filter.shape[3:], _sizes(output_shape)))


group_convolution_backprop_data_1.shape_rule(_convolution_rule(leading=3))


def _sizes(output_shape: np.ndarray | None) -> list[int] | None:
    return None if output_shape is None else list(integers(output_shape, "output_shape"))


Tensor = Annotated[np.ndarray, element_set("f32, f16 or bf16", F32, F16, BF16)]
DataFormat = Literal["NXC", "NCX"]
FilterFormat = Literal["XIO", "OIX", "XOI", "IOX"]


@op("ConvTranspose", since="onednn", widen=True, tolerance=TOLERANCE)
def conv_transpose(
    input: Annotated[Tensor, Rank(3, None)],
    filter: Annotated[Tensor, Rank(3, None)],
    bias: Annotated[Tensor, Rank(1)] | None = None,
    *,
    attributes: ConvTransposeAttributes,
    groups: Positive = 1,
    data_format: DataFormat = "NXC",
    filter_format: FilterFormat | None = None,
    weights_format: FilterFormat | None = None,
) -> np.ndarray:
    """Transposed convolution; X stands for the spatial axes, I for all input channels, O for the output channels of a
    group.

    The filter's layout is ``filter_format``, which was later renamed ``weights_format``; XIO where neither is given.
    Source: oneDNN Graph ConvTranspose-1, and ``shape_infer.cpp`` for what O and I count.
    """
    weights = filter_by_group(filter, groups, filter_format or weights_format or "XIO")
    data = channels_first(input, data_format)
    result = convolve_transposed(data, weights, attributes.windows(data.shape[2:], weights.shape[3:]))
    return add_bias(result, bias, data_format)


@conv_transpose.shape_rule
def _conv_transpose_shape(
    input: Fact,
    filter: Fact,
    bias: Fact | None = None,
    *,
    attributes: ConvTransposeAttributes,
    groups: int,
    data_format: str,
    filter_format: str | None,
    weights_format: str | None,
) -> Fact:
    element = unify_elements(input, filter, bias)
    both = filter_format and weights_format and filter_format != weights_format
    check(not both, f"filter_format {filter_format} and weights_format {weights_format} contradict each other")
    check(input.rank is None or filter.rank in (None, input.rank), f"input has rank {input.rank}, filter {filter.rank}")
    rank = spatial_rank(input.shape, filter.shape, 2, attributes.strides, attributes.dilations)
    if rank is None:
        return Fact(element, None)
    check_lists(attributes, rank)
    data = _channels_first_shape(input.shape, rank, data_format)
    order = filter_order(rank, filter_format or weights_format or "XIO")
    weights = (ANY,) * (rank + 2) if filter.shape is None else tuple(filter.shape[axis] for axis in order)
    channels = _channels(data[1], weights[0], weights[1], groups, bias)
    sizes = attributes.output_sizes(data[2:], weights[2:])
    return Fact(element, (data[0], *sizes, channels) if data_format == "NXC" else (data[0], channels, *sizes))


def _channels_first_shape(shape: PartialShape, rank: int, data_format: str) -> tuple[Size, ...]:
    if shape is None:
        return (ANY,) * (rank + 2)
    return (shape[0], shape[-1], *shape[1:-1]) if data_format == "NXC" else tuple(shape)


def _channels(data: Size, inputs: Size, outputs: Size, groups: int, bias: Fact | None) -> Size:
    """The number of output channels; raises OpError if channels, groups and bias contradict each other."""
    for size, name in ((data, "input"), (inputs, "filter")):
        check(
            not isinstance(size, int) or size % groups == 0,
            f"{size} channels of the {name} do not divide into {groups} groups",
        )
    check(may_equal(data, inputs), f"input has {data} channels, the filter takes {inputs}")
    channels = outputs * groups
    if bias is None or bias.shape is None:
        return channels
    check(
        may_equal(bias.shape[0], channels),
        f"bias has length {bias.shape[0]}, expected {channels}: one value for each output channel",
    )
    return meet(channels, bias.shape[0])


Planar = Annotated[NumericTensor, Rank(4)]
Spatial = Annotated[NumericTensor, Rank(3, None)]


@dataclass(frozen=True)
class DeformableAttributes(ConvolutionAttributes):
    """DeformableConvolution-1: ``group`` divides the channels for the weights, ``deformable_group`` for the offsets."""

    group: Positive = 1
    deformable_group: Positive = 1


@dataclass(frozen=True)
class ModulatedAttributes(DeformableAttributes):
    """DeformableConvolution-8."""

    bilinear_interpolation_pad: bool = False


@op("DeformableConvolution", since=1, widen=True, tolerance=TOLERANCE)
def deformable_convolution_1(
    data: Planar, offsets: Planar, filter: Planar, *, attributes: DeformableAttributes
) -> np.ndarray:
    """Convolution of data [N, C, Y, X] with filter [O, C / group, Y, X] whose points are moved by ``offsets``.

    It is DeformableConvolution-8 without mask and with ``bilinear_interpolation_pad`` false. Source:
    DeformableConvolution-1.
    """
    return _convolve(data, offsets, filter, None, attributes, zero_pad=False)


@op("DeformableConvolution", since=8, widen=True, tolerance=TOLERANCE)
def deformable_convolution_8(
    data: Planar, offsets: Planar, filter: Planar, mask: Planar | None = None, *, attributes: ModulatedAttributes
) -> np.ndarray:
    """Convolution of data [N, C, Y, X] with filter [O, C / group, Y, X] whose points ``offsets`` move and ``mask``
    weighs.

    offsets are [N, deformable_group * Y * X * 2, ...], first y then x of each point; mask [N, deformable_group * Y * X,
    ...]. Channel c goes by deformable group c // (C / deformable_group), whatever ``group`` is. With
    ``bilinear_interpolation_pad`` pixels beyond the border are zero, and positions less than one pixel beyond it count;
    else a position must lie in [0, size), and past the last pixel it gives the last. Source: DeformableConvolution-8
    and OpenVINO's reference.
    """
    return _convolve(data, offsets, filter, mask, attributes, zero_pad=attributes.bilinear_interpolation_pad)


@op("DeformableConvolution", since="irexec", widen=True, tolerance=TOLERANCE)
def deformable_convolution(
    data: Spatial, offsets: Spatial, filter: Spatial, mask: Spatial | None = None, *, attributes: ModulatedAttributes
) -> np.ndarray:
    """DeformableConvolution-8 in any number of spatial axes. Source: ONNX DeformConv-22, of which IR has only the
    planar case."""
    return _convolve(data, offsets, filter, mask, attributes, zero_pad=attributes.bilinear_interpolation_pad)


def _convolve(
    data: np.ndarray,
    offsets: np.ndarray,
    filter: np.ndarray,
    mask: np.ndarray | None,
    attributes: DeformableAttributes,
    *,
    zero_pad: bool,
) -> np.ndarray:
    weights = filter.reshape(attributes.group, filter.shape[0] // attributes.group, *filter.shape[1:])
    placed = attributes.windows(data.shape[2:], filter.shape[2:])
    return convolve_deformable(data, offsets, weights, mask, placed, attributes.deformable_group, zero_pad)


@deformable_convolution_1.shape_rule
def _deformable_1_shape(data: Fact, offsets: Fact, filter: Fact, *, attributes: DeformableAttributes) -> Fact:
    return _planar_shape(data, offsets, filter, None, attributes=attributes)


@deformable_convolution_8.shape_rule
def _planar_shape(
    data: Fact, offsets: Fact, filter: Fact, mask: Fact | None = None, *, attributes: DeformableAttributes
) -> Fact:
    if data.shape is None:
        data = Fact(data.element, (ANY,) * 4)
    return _shape(data, offsets, filter, mask, attributes=attributes)


@deformable_convolution.shape_rule
def _shape(
    data: Fact, offsets: Fact, filter: Fact, mask: Fact | None = None, *, attributes: DeformableAttributes
) -> Fact:
    others = {"offsets": offsets, "filter": filter} | ({} if mask is None else {"mask": mask})
    element = unify_elements(data, *others.values())
    shapes = [fact.shape for fact in (data, *others.values()) if fact.shape is not None]
    rank = spatial_rank(shapes[0] if shapes else None, None, 2, attributes.strides, attributes.dilations)
    if rank is None:
        return Fact(element, None)
    for name, fact in others.items():
        check(fact.rank in (None, rank + 2), f"{name} has rank {fact.rank}, expected {rank + 2} as the data")
    check_lists(attributes, rank)
    _check_channels(data.shape, filter.shape, attributes.group, attributes.deformable_group)
    kernel = spatial_sizes(filter.shape, rank)
    sizes = attributes.output_sizes(spatial_sizes(data.shape, rank), kernel)
    shape: tuple[Size, ...] = (ANY if data.shape is None else data.shape[0], *sizes)
    shape = _unify(shape, offsets, "offsets", kernel, attributes.deformable_group, rank)
    if mask is not None:
        shape = _unify(shape, mask, "mask", kernel, attributes.deformable_group, 1)
    return Fact(element, (shape[0], ANY if filter.shape is None else filter.shape[0], *shape[1:]))


def _unify(
    shape: tuple[Size, ...], fact: Fact, name: str, kernel: tuple[Size, ...], groups: int, per_point: int
) -> tuple[Size, ...]:
    """Batch and spatial sizes as offsets or mask have them too; OpError if they or their channels cannot be right."""
    if fact.shape is None:
        return shape
    if is_static(kernel):
        expected = groups * math.prod(size for size in kernel if isinstance(size, int)) * per_point
        reason = f"{per_point} for each point of the kernel in {groups} groups"
        message = f"{name} has {fact.shape[1]} channels, expected {expected}: {reason}"
        check(may_equal(fact.shape[1], expected), message)
    theirs = (fact.shape[0], *fact.shape[2:])
    for axis, (size, other) in enumerate(zip(shape, theirs, strict=True)):
        where = f"on spatial axis {axis - 1}" if axis else "as batch"
        check(may_equal(size, other), f"{name} has size {other} {where}, the result has {size}")
    return tuple(map(meet, shape, theirs))


def _check_channels(data: PartialShape, filter: PartialShape, group: int, deformable_group: int) -> None:
    if data is not None and isinstance(data[1], int):
        check(
            data[1] % deformable_group == 0,
            f"{data[1]} channels of data do not divide into {deformable_group} deformable groups",
        )
        check(data[1] % group == 0, f"{data[1]} channels of data do not divide into {group} groups")
    if filter is None:
        return
    if isinstance(filter[0], int):
        check(filter[0] % group == 0, f"{filter[0]} filters do not divide into {group} groups")
    if data is not None:
        expected = filter[1] * group
        check(
            may_equal(data[1], expected), f"data has {data[1]} channels, the filter takes {expected} in {group} groups"
        )
