"""Convolution, GroupConvolution and BinaryConvolution."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np

from irexec.dtypes.elements import U1
from irexec.ir.dims import ANY
from irexec.ir.facts import Fact
from irexec.reference.convolution import convolve, convolve_bits
from irexec.schema.convolution import TOLERANCE, ConvolutionAttributes, result_fact
from irexec.schema.inputs import NumericTensor, Rank, element_set
from irexec.schema.registry import op
from irexec.schema.shape_rules import group_count


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


@convolution_1.shape_rule
def _convolution_shape(data: Fact, filter: Fact, *, attributes: ConvolutionAttributes) -> Fact:
    channels, inputs = (ANY, ANY) if filter.shape is None else filter.shape[:2]
    return result_fact(data, filter, 2, inputs, channels, "", attributes)


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


@group_convolution_1.shape_rule
def _group_convolution_shape(data: Fact, filter: Fact, *, attributes: ConvolutionAttributes) -> Fact:
    groups, channels, inputs = (ANY, ANY, ANY) if filter.shape is None else filter.shape[:3]
    of_groups = f" of {groups} groups of {inputs}"
    groups = group_count(data, groups, inputs)
    return result_fact(data, filter, 3, groups * inputs, groups * channels, of_groups, attributes)


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
    found = _convolution_shape(Fact(data.element, data.shape), Fact(data.element, filter.shape), attributes=attributes)
    return Fact(found.element, found.shape if found.shape is not None else (ANY,) * 4)
