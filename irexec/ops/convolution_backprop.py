"""ConvolutionBackpropData, GroupConvolutionBackpropData and oneDNN's ConvTranspose.

The odd rules are those that OpenVINO's CPU plugin and shape inference keep, where the prose of the
specification says otherwise; ``out`` is a spatial size of the result, ``natural`` what it is before anything is
cut, ``begin`` what is cut at its start:

- with an ``output_shape`` input T = max(0, natural - out + output_padding) is to be cut. same_upper cuts the larger
  half first, same_lower last; explicit cuts ``pads_begin`` as given (it is not ignored), valid nothing;
- without one same_upper, same_lower and valid cut nothing and ignore the given pads;
- an ``output_shape`` or ``output_padding`` that reaches beyond the natural end gives zeros there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irexec.backend.conv_transpose import prepare_transposed
from irexec.errors import check
from irexec.ir.dims import ANY, Size, at_least, high, low, may_equal
from irexec.ir.facts import Fact
from irexec.ops.convolution import TOLERANCE, check_lists, float_weights, group_count, narrowed, numeric_element
from irexec.reference.convolution import convolve_transposed, natural_sizes
from irexec.schema.attributes import NonNegatives, Positives
from irexec.schema.registry import op
from irexec.schema.rules import not_negative
from irexec.schema.window_sizes import AutoPad, check_list, filled, known_rank, spatial_rank, spatial_sizes, transposed_size


@op("ConvolutionBackpropData", since=1, widen=True, tolerance=TOLERANCE)
def convolution_backprop_data_1(
    data: np.ndarray,
    filter: np.ndarray,
    output_shape: np.ndarray | None = None,
    *,
    strides: Positives,
    pads_begin: NonNegatives,
    pads_end: NonNegatives,
    dilations: Positives,
    auto_pad: AutoPad = "explicit",
    output_padding: NonNegatives = (),
) -> np.ndarray:
    """Transposed convolution of data [N, C_IN, Z, Y, X] with filter [C_IN, C_OUT, Z, Y, X], in 1 to 3 spatial axes.

    Source: ConvolutionBackpropData-1, OpenVINO's shape inference and CPU plugin (see the module).
    """
    pads = {"pads_begin": pads_begin, "pads_end": pads_end, "auto_pad": auto_pad, "output_padding": output_padding}
    return _run(data, filter[None], output_shape, strides=strides, dilations=dilations, **pads)


@op("GroupConvolutionBackpropData", since=1, widen=True, tolerance=TOLERANCE)
def group_convolution_backprop_data_1(
    data: np.ndarray,
    filter: np.ndarray,
    output_shape: np.ndarray | None = None,
    *,
    strides: Positives,
    pads_begin: NonNegatives,
    pads_end: NonNegatives,
    dilations: Positives,
    auto_pad: AutoPad = "explicit",
    output_padding: NonNegatives = (),
) -> np.ndarray:
    """As ConvolutionBackpropData for each group: data [N, GROUPS * C_IN, ...], filter [GROUPS, C_IN, C_OUT, Z, Y, X].

    The specification prints the kernel's axes reversed; they are in the order of the data's. Any number of
    spatial axes. Source: GroupConvolutionBackpropData-1, OpenVINO's shape inference and CPU plugin (see the module).
    """
    pads = {"pads_begin": pads_begin, "pads_end": pads_end, "auto_pad": auto_pad, "output_padding": output_padding}
    return _run(data, filter, output_shape, strides=strides, dilations=dilations, **pads)


def _run(data: np.ndarray, weights: np.ndarray, output_shape: np.ndarray | None, **attributes: Any) -> np.ndarray:
    rank = data.ndim - 2
    given = None if output_shape is None else [int(size) for size in output_shape]
    begins, outs = geometry(data.shape[2:], weights.shape[3:], given, **attributes)
    steps, apart = filled(attributes["strides"], rank, 1), filled(attributes["dilations"], rank, 1)
    return convolve_transposed(data, weights, steps, apart, begins, outs)


def geometry(
    sizes: Sequence[int],
    kernel: Sequence[int],
    output_shape: Sequence[int] | None,
    *,
    strides: tuple[int, ...],
    pads_begin: tuple[int, ...],
    pads_end: tuple[int, ...],
    dilations: tuple[int, ...],
    auto_pad: str = "explicit",
    output_padding: tuple[int, ...] = (),
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """What is cut at the start of each spatial axis, and the sizes that result."""
    rank = len(sizes)
    more = filled(output_padding, rank, 0)
    natural = natural_sizes(sizes, kernel, filled(strides, rank, 1), filled(dilations, rank, 1))
    explicit = auto_pad == "explicit"
    begins = filled(pads_begin if explicit else (), rank, 0)
    if output_shape is None:
        ends = filled(pads_end if explicit else (), rank, 0)
        return begins, tuple(n - b - e + m for n, b, e, m in zip(natural, begins, ends, more, strict=True))
    outs = tuple(output_shape)
    if auto_pad in ("same_upper", "same_lower"):
        totals = [max(0, n - out + m) for n, out, m in zip(natural, outs, more, strict=True)]
        begins = tuple(total - total // 2 if auto_pad == "same_upper" else total // 2 for total in totals)
    return begins, outs


@convolution_backprop_data_1.shape_rule
def _convolution_backprop_facts(data: Fact, filter: Fact, output_shape: Fact | None = None, **attributes: Any) -> Fact:
    known_rank(data, [3, 4, 5], "data")
    inputs, channels = (ANY, ANY) if filter.shape is None or len(filter.shape) < 2 else filter.shape[:2]
    return _facts(data, filter, output_shape, 2, inputs, channels, "", attributes)


@group_convolution_backprop_data_1.shape_rule
def _group_convolution_backprop_facts(data: Fact, filter: Fact, output_shape: Fact | None = None, **attributes: Any) -> Fact:
    check(data.rank is None or data.rank >= 3, f"data has rank {data.rank}, expected 3 or more")
    groups, inputs, channels = (ANY, ANY, ANY) if filter.shape is None or len(filter.shape) < 3 else filter.shape[:3]
    says = f" of {groups} groups of {inputs}"
    groups = group_count(data, groups, inputs)
    return _facts(data, filter, output_shape, 3, groups * inputs, groups * channels, says, attributes)


def _facts(
    data: Fact, filter: Fact, output_shape: Fact | None, lead: int, inputs: Size, channels: Size, says: str, attributes: dict[str, Any]
) -> Fact:
    result = numeric_element(data, filter)
    check(filter.rank is None or filter.rank > lead, f"filter has rank {filter.rank}, expected more than {lead}")
    given = None if output_shape is None else _given_sizes(output_shape)
    lists: tuple[Sequence[Any], ...] = (given or (), attributes["strides"], attributes["dilations"])
    rank = spatial_rank(data.shape, filter.shape, lead, lists)
    if rank is None:
        return Fact(result, None)
    check(filter.rank in (None, rank + lead), f"data of rank {rank + 2} does not go with a filter of rank {filter.rank}")
    check_lists(rank, attributes)
    check_list(attributes.get("output_padding", ()), rank, "output_padding")
    if data.shape is not None:
        check(may_equal(data.shape[1], inputs), f"data has {data.shape[1]} channels, the filter takes {inputs}{says}")
    batch = ANY if data.shape is None else data.shape[0]
    if output_shape is not None:
        check(given is None or len(given) == rank, f"output_shape has {len(given or ())} numbers for {rank} spatial axes")
        return Fact(result, (batch, channels, *(given or (ANY,) * rank)))
    sizes, kernel = spatial_sizes(data.shape, rank), spatial_sizes(filter.shape, rank, lead)
    return Fact(result, (batch, channels, *_sizes(sizes, kernel, **attributes)))


def _given_sizes(output_shape: Fact) -> tuple[Size, ...] | None:
    """The sizes that the input tells, as far as it is known; None if not even their number is."""
    known_rank(output_shape, [1], "output_shape")
    element = output_shape.element
    check(element is None or element.is_integer, f"output_shape has element type {element}, expected an integer")
    sizes = output_shape.sizes()
    if sizes is not None:
        return tuple(not_negative(size, "a size of output_shape") for size in sizes)
    if output_shape.shape is None or not isinstance(output_shape.shape[0], int):
        return None
    check(output_shape.shape[0] <= MOST_AXES, f"output_shape has {output_shape.shape[0]} numbers, more than a shape can have")
    return (ANY,) * output_shape.shape[0]


# More axes than any array can have: a longer output_shape is not worth listing.
MOST_AXES = 64


def _sizes(
    sizes: Sequence[Size],
    kernel: Sequence[Size],
    *,
    strides: tuple[int, ...],
    pads_begin: tuple[int, ...],
    pads_end: tuple[int, ...],
    dilations: tuple[int, ...],
    auto_pad: str = "explicit",
    output_padding: tuple[int, ...] = (),
) -> tuple[Size, ...]:
    rank = len(sizes)
    explicit = auto_pad == "explicit"
    axes = zip(
        sizes,
        kernel,
        filled(strides, rank, 1),
        filled(dilations, rank, 1),
        filled(pads_begin if explicit else (), rank, 0),
        filled(pads_end if explicit else (), rank, 0),
        filled(output_padding, rank, 0),
        strict=True,
    )
    return tuple(cut_size(transposed_size(n, k, s, d), b, e, more) for n, k, s, d, b, e, more in axes)


def cut_size(natural: Size, begin: int, end: int, more: int) -> Size:
    """What is left of the natural size; OpError if more is cut than there is."""
    out = natural + (more - begin - end)
    top = high(out)
    check(top is None or top >= 0, f"pads {begin} and {end} cut more than the {natural} there is with output_padding {more}")
    return at_least(out, 0) if low(out) < 0 else out


@convolution_backprop_data_1.bind
def _bind_backprop(data: Fact, filter: Fact, output_shape: Fact | None = None, **attributes: Any) -> Callable[..., Any] | None:
    weights = float_weights(data, filter)
    return None if weights is None else _fast(weights[None], attributes)


@group_convolution_backprop_data_1.bind
def _bind_group_backprop(data: Fact, filter: Fact, output_shape: Fact | None = None, **attributes: Any) -> Callable[..., Any] | None:
    weights = float_weights(data, filter)
    return None if weights is None else _fast(weights, attributes)


def _fast(weights: np.ndarray, attributes: dict[str, Any]) -> Callable[..., Any]:
    rank = weights.ndim - 3
    steps, apart = filled(attributes["strides"], rank, 1), filled(attributes["dilations"], rank, 1)
    convolve = prepare_transposed(weights, steps, apart)

    def run(data: np.ndarray, filter: np.ndarray, output_shape: np.ndarray | None = None) -> np.ndarray:
        given = None if output_shape is None else [int(size) for size in output_shape]
        begins, outs = geometry(data.shape[2:], weights.shape[3:], given, **attributes)
        with np.errstate(all="ignore"):
            return narrowed(convolve(data.astype(weights.dtype, copy=False), begins, outs), data.dtype)

    return run
