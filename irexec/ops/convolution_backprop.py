"""ConvolutionBackpropData and GroupConvolutionBackpropData. For their odd rules see irexec.schema.convolution."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from irexec.errors import check
from irexec.ir.dims import ANY, Size
from irexec.ir.facts import Fact
from irexec.ir.integers import integers
from irexec.reference.convolution import convolve_transposed
from irexec.schema.convolution import TOLERANCE, BackpropAttributes, check_filter
from irexec.schema.inputs import IntegerTensor, NumericTensor, Rank
from irexec.schema.registry import op
from irexec.schema.shape_rules import MAX_AXES, group_count, non_negative, unify_elements
from irexec.schema.windows import check_length, spatial_rank, spatial_sizes

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
    return convolve_transposed(
        data, filter[None], attributes.windows(data.shape[2:], filter.shape[2:], _sizes(output_shape))
    )


@convolution_backprop_data_1.shape_rule
def _backprop_shape(
    data: Fact, filter: Fact, output_shape: Fact | None = None, *, attributes: BackpropAttributes
) -> Fact:
    inputs, channels = (ANY, ANY) if filter.shape is None else filter.shape[:2]
    return _shape(data, filter, output_shape, 2, inputs, channels, "", attributes)


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


@group_convolution_backprop_data_1.shape_rule
def _group_backprop_shape(
    data: Fact, filter: Fact, output_shape: Fact | None = None, *, attributes: BackpropAttributes
) -> Fact:
    groups, inputs, channels = (ANY, ANY, ANY) if filter.shape is None else filter.shape[:3]
    of_groups = f" of {groups} groups of {inputs}"
    groups = group_count(data, groups, inputs)
    return _shape(data, filter, output_shape, 3, groups * inputs, groups * channels, of_groups, attributes)


def _sizes(output_shape: np.ndarray | None) -> list[int] | None:
    return None if output_shape is None else list(integers(output_shape, "output_shape"))


def _shape(
    data: Fact,
    filter: Fact,
    output_shape: Fact | None,
    leading: int,
    inputs: Size,
    channels: Size,
    of_groups: str,
    attributes: BackpropAttributes,
) -> Fact:
    """The result of a transposed convolution whose filter has ``leading`` axes that are not spatial."""
    element = unify_elements(data, filter)
    given = None if output_shape is None else _given_sizes(output_shape)
    rank = spatial_rank(data.shape, filter.shape, leading, given or (), attributes.strides, attributes.dilations)
    if rank is None:
        return Fact(element, None)
    check_filter(data, filter, rank, leading, inputs, of_groups)
    attributes.check_lengths(rank)
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
    if output_shape.shape is None or not isinstance(output_shape.shape[0], int):
        return None
    check(
        output_shape.shape[0] <= MAX_AXES,
        f"output_shape has {output_shape.shape[0]} values, more than a shape can have",
    )
    return (ANY,) * output_shape.shape[0]
