"""ConvolutionBackpropData and GroupConvolutionBackpropData. For their odd rules see irexec.schema.convolution."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from irexec.ir.dims import ANY
from irexec.ir.facts import Fact
from irexec.ir.integers import integers
from irexec.reference.convolution import convolve_transposed
from irexec.schema.convolution import TOLERANCE, BackpropAttributes, result_fact
from irexec.schema.inputs import IntegerTensor, NumericTensor, Rank
from irexec.schema.registry import op
from irexec.schema.shape_rules import group_count

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
    return result_fact(data, filter, 2, inputs, channels, "", attributes, output_shape)


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
    return result_fact(data, filter, 3, groups * inputs, groups * channels, of_groups, attributes, output_shape)


def _sizes(output_shape: np.ndarray | None) -> list[int] | None:
    return None if output_shape is None else list(integers(output_shape, "output_shape"))
