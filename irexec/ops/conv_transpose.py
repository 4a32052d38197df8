"""ConvTranspose of oneDNN Graph: a transposed convolution in any layout, with bias.

It is not an operation of OpenVINO; as a layer it has ``version="onednn"``.
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np

from irexec.dtypes.elements import BF16, F16, F32
from irexec.errors import check
from irexec.ir.dims import ANY, PartialShape, Size, may_equal, meet
from irexec.ir.facts import Fact
from irexec.reference.conv_transpose import add_bias, channels_first, filter_by_group, filter_order
from irexec.reference.convolution import convolve_transposed
from irexec.schema.attributes import Positive
from irexec.schema.convolution import TOLERANCE, ConvTransposeAttributes
from irexec.schema.inputs import Rank, element_set
from irexec.schema.registry import op
from irexec.schema.shape_rules import unify_elements
from irexec.schema.windows import spatial_rank

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
    return add_bias(
        convolve_transposed(data, weights, attributes.windows(data.shape[2:], weights.shape[3:])), bias, data_format
    )


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
    element = unify_elements(input, filter, *([] if bias is None else [bias]))
    both = filter_format and weights_format and filter_format != weights_format
    check(not both, f"filter_format {filter_format} and weights_format {weights_format} contradict each other")
    check(input.rank is None or filter.rank in (None, input.rank), f"input has rank {input.rank}, filter {filter.rank}")
    rank = spatial_rank(input.shape, filter.shape, 2, attributes.strides, attributes.dilations)
    if rank is None:
        return Fact(element, None)
    attributes.check_lengths(rank)
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
