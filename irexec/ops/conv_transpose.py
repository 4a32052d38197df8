"""ConvTranspose of oneDNN Graph: a transposed convolution in any layout, with bias.

It is no operation of OpenVINO; as a layer it has ``version="onednn"``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from irexec.backend.conv_transpose import prepare_transposed
from irexec.dtypes.elements import BF16, F16, F32
from irexec.errors import check
from irexec.ir.dims import ANY, PartialShape, Size, at_least, at_most, may_equal, meet
from irexec.ir.facts import Fact
from irexec.ops.convolution import TOLERANCE, float_weights, narrowed
from irexec.ops.convolution_backprop import cut_size
from irexec.reference.convolution import convolve_transposed, natural_sizes
from irexec.reference.windows import Pads, extent
from irexec.schema.attributes import NonNegatives, Positive, Positives
from irexec.schema.registry import op
from irexec.schema.rules import same_element
from irexec.schema.window_sizes import check_list, dilated, filled, known_rank, spatial_rank, transposed_size

AutoPad = Literal["none", "same_upper", "same_lower", "valid"]
DataFormat = Literal["NXC", "NCX"]
FilterFormat = Literal["XIO", "OIX", "XOI", "IOX"]


@op("ConvTranspose", since="onednn", widen=True, tolerance=TOLERANCE)
def conv_transpose(
    input: np.ndarray,
    filter: np.ndarray,
    bias: np.ndarray | None = None,
    *,
    strides: Positives,
    pads_begin: NonNegatives,
    pads_end: NonNegatives,
    dilations: Positives,
    auto_pad: AutoPad = "none",
    output_padding: str = "",
    groups: Positive = 1,
    data_format: DataFormat = "NXC",
    filter_format: FilterFormat | None = None,
    weights_format: FilterFormat | None = None,
) -> np.ndarray:
    """Transposed convolution; X stands for the spatial axes, I for all input channels, O for the output channels of a group.

    The filter's layout is ``filter_format``, renamed ``weights_format`` later; XIO where neither is given. same_upper and
    same_lower cut T = max(0, dilation * (K - 1) + 1 - stride), the larger half last or first (ONNX's way round, the opposite of
    ConvolutionBackpropData); ``output_padding`` does not enter T and lets more of the natural result be seen.
    ``output_padding`` may be "None", or longer than there are spatial axes if the surplus is zero, as benchdnn writes it.
    f32, f16 and bf16. Source: oneDNN Graph ConvTranspose-1, and ``shape_infer.cpp`` for what O and I count.
    """
    weights = _by_group(filter, groups, filter_format, weights_format)
    rank = input.ndim - 2
    steps, apart = filled(strides, rank, 1), filled(dilations, rank, 1)
    data = _to_channels_first(input, data_format)
    places = _geometry(data.shape[2:], weights.shape[3:], steps, apart, (auto_pad, pads_begin, pads_end), output_padding)
    return _finished(convolve_transposed(data, weights, steps, apart, *places), bias, data_format)


@conv_transpose.bind
def _bind_conv_transpose(input: Fact, filter: Fact, bias: Fact | None = None, **attributes: Any) -> Callable[..., Any] | None:
    known = float_weights(input, filter)
    if known is None:
        return None
    formats = {name: attributes.pop(name, None) for name in ("filter_format", "weights_format")}
    data_format = attributes.get("data_format", "NXC")
    weights = _by_group(known, attributes.get("groups", 1), **formats)
    rank = weights.ndim - 3
    steps, apart = filled(attributes["strides"], rank, 1), filled(attributes["dilations"], rank, 1)
    pads = (attributes.get("auto_pad", "none"), attributes["pads_begin"], attributes["pads_end"])
    convolve = prepare_transposed(weights, steps, apart)

    def run(input: np.ndarray, filter: np.ndarray, bias: np.ndarray | None = None) -> np.ndarray:
        data = _to_channels_first(input.astype(weights.dtype, copy=False), data_format)
        places = _geometry(data.shape[2:], weights.shape[3:], steps, apart, pads, attributes.get("output_padding", ""))
        with np.errstate(all="ignore"):
            return narrowed(_finished(convolve(data, *places), bias, data_format), input.dtype)

    return run


def _by_group(filter: np.ndarray, groups: int, filter_format: str | None, weights_format: str | None) -> np.ndarray:
    """The filter as (G, I of the group, O of the group, kernel...)."""
    order = _filter_order(filter.ndim - 2, filter_format, weights_format)
    channels, *others = (filter.shape[axis] for axis in order)
    return filter.transpose(order).reshape(groups, channels // groups, *others)


def _to_channels_first(input: np.ndarray, data_format: str) -> np.ndarray:
    return input if data_format == "NCX" else np.ascontiguousarray(np.moveaxis(input, -1, 1))


def _finished(result: np.ndarray, bias: np.ndarray | None, data_format: str) -> np.ndarray:
    """The result with bias, in the layout asked for."""
    if bias is not None:
        result += bias.reshape(-1, *[1] * (result.ndim - 2))
    return result if data_format == "NCX" else np.ascontiguousarray(np.moveaxis(result, 1, -1))


def _geometry(
    sizes: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: tuple[str, Sequence[int], Sequence[int]],
    output_padding: str,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """What is cut at the start of each spatial axis, and the sizes that result."""
    begins, ends = resolve(pads[0], kernel, strides, dilations, pads[1], pads[2])
    natural = natural_sizes(sizes, kernel, strides, dilations)
    more = read_padding(output_padding, len(sizes))
    return begins, tuple(n - b - e + m for n, b, e, m in zip(natural, begins, ends, more, strict=True))


def resolve(
    auto_pad: str, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int], begins: Sequence[int], ends: Sequence[int]
) -> Pads:
    """What is cut at the start and at the end of each spatial axis."""
    rank = len(kernel)
    if auto_pad == "none":
        return filled(begins, rank, 0), filled(ends, rank, 0)
    if auto_pad == "valid":
        return (0,) * rank, (0,) * rank
    totals = [max(0, extent(k, d) - s) for k, s, d in zip(kernel, strides, dilations, strict=True)]
    less, more = tuple(t // 2 for t in totals), tuple(t - t // 2 for t in totals)
    return (less, more) if auto_pad == "same_upper" else (more, less)


def read_padding(text: str, rank: int) -> tuple[int, ...]:
    """The numbers of ``output_padding``, one for each spatial axis.

    Raises:
        OpError: a number is no integer or negative, there are too few, or a surplus one is not zero.
    """
    if text.strip().lower() in ("", "none"):
        return (0,) * rank
    parts = [part.strip() for part in text.split(",")]
    check(all(part.isascii() and part.isdigit() for part in parts), f"output_padding {text!r} is not a list of numbers from 0 on")
    check(len(parts) >= rank, f"output_padding has {len(parts)} numbers for {rank} spatial axes")
    numbers = [int(part) for part in parts]
    check(not any(numbers[rank:]), f"output_padding {text!r} has more numbers than {rank} spatial axes, and the surplus is not zero")
    return tuple(numbers[:rank])


def _filter_order(rank: int, filter_format: str | None, weights_format: str | None) -> tuple[int, ...]:
    """Where the filter's axes I, O and X stand, in this order."""
    layout = filter_format or weights_format or "XIO"
    axes: dict[str, list[int]] = {}
    at = 0
    for letter in layout:
        axes[letter] = list(range(at, at + (rank if letter == "X" else 1)))
        at += len(axes[letter])
    return (*axes["I"], *axes["O"], *axes["X"])


@conv_transpose.shape_rule
def _conv_transpose_facts(
    input: Fact,
    filter: Fact,
    bias: Fact | None = None,
    *,
    output_padding: str = "",
    groups: int = 1,
    data_format: str = "NXC",
    filter_format: str | None = None,
    weights_format: str | None = None,
    auto_pad: str = "none",
    **lists: tuple[int, ...],
) -> Fact:
    result = same_element(input, filter, *([] if bias is None else [bias]))
    check(result in (None, F32, F16, BF16), f"element type {result} is none of f32, f16 and bf16")
    both = filter_format and weights_format and filter_format != weights_format
    check(not both, f"filter_format {filter_format} and weights_format {weights_format} contradict each other")
    rank = _rank(input, filter, lists)
    if rank is None:
        return Fact(result, None)
    for name, numbers in lists.items():
        check_list(numbers, rank, name)
    data = _channels_first(input.shape, rank, data_format)
    order = _filter_order(rank, filter_format, weights_format)
    weights = (ANY,) * (rank + 2) if filter.shape is None else tuple(filter.shape[axis] for axis in order)
    channels = _channels(data[1], weights[0], weights[1], groups, bias)
    more = read_padding(output_padding, rank)
    sizes = _sizes(data[2:], weights[2:], more, auto_pad, **lists)
    return Fact(result, (data[0], *sizes, channels) if data_format == "NXC" else (data[0], channels, *sizes))


def _rank(input: Fact, filter: Fact, lists: dict[str, tuple[int, ...]]) -> int | None:
    for fact, name in ((input, "input"), (filter, "filter")):
        check(fact.rank is None or fact.rank >= 3, f"{name} has rank {fact.rank}, expected 3 or more")
    check(input.rank is None or filter.rank in (None, input.rank), f"input has rank {input.rank}, filter {filter.rank}")
    return spatial_rank(input.shape, filter.shape, 2, (lists["strides"], lists["dilations"]))


def _channels_first(shape: PartialShape, rank: int, data_format: str) -> tuple[Size, ...]:
    if shape is None:
        return (ANY,) * (rank + 2)
    return (shape[0], shape[-1], *shape[1:-1]) if data_format == "NXC" else tuple(shape)


def _channels(data: Size, inputs: Size, outputs: Size, groups: int, bias: Fact | None) -> Size:
    """The output channels; OpError if channels, groups and bias do not go together."""
    for size, name in ((data, "input"), (inputs, "filter")):
        check(not isinstance(size, int) or size % groups == 0, f"{size} channels of the {name} do not divide into {groups} groups")
    check(may_equal(data, inputs), f"input has {data} channels, the filter takes {inputs}")
    channels = outputs * groups
    if bias is None or bias.shape is None:
        return channels
    known_rank(bias, [1], "bias")
    check(may_equal(bias.shape[0], channels), f"bias has {bias.shape[0]} numbers for {channels} output channels")
    return meet(channels, bias.shape[0])


def _sizes(
    sizes: Sequence[Size],
    kernel: Sequence[Size],
    more: Sequence[int],
    auto_pad: str,
    *,
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
    pads_begin: tuple[int, ...],
    pads_end: tuple[int, ...],
) -> list[Size]:
    rank = len(sizes)
    explicit = auto_pad == "none"
    begins, ends = (filled(pads if explicit else (), rank, 0) for pads in (pads_begin, pads_end))
    same = auto_pad in ("same_upper", "same_lower")
    found = []
    for n, k, s, d, b, e, m in zip(sizes, kernel, filled(strides, rank, 1), filled(dilations, rank, 1), begins, ends, more, strict=True):
        natural = transposed_size(n, k, s, d)
        found.append(_same_size(n, k, s, d) + m if same else cut_size(natural, b, e, m))
    return found


def _same_size(size: Size, kernel: Size, stride: int, dilation: int) -> Size:
    """The natural size less max(0, reach - stride), the reach being that of the kernel."""
    return (at_least(size, 1) - 1) * stride + at_most(dilated(at_least(kernel, 1), dilation), stride)
