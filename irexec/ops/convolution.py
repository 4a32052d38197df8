"""Convolution, GroupConvolution and BinaryConvolution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from irexec.backend.convolution import prepare
from irexec.dtypes.elements import U1, Element
from irexec.errors import check
from irexec.ir.dims import ANY, Size, high, low, may_equal, meet, span
from irexec.ir.facts import Fact
from irexec.reference.convolution import convolve, convolve_bits
from irexec.reference.windows import resolve_pads
from irexec.schema.attributes import NonNegatives, Positives
from irexec.schema.registry import op
from irexec.schema.rules import same_element
from irexec.schema.window_sizes import AutoPad, check_list, filled, known_rank, spatial_rank, spatial_sizes, window_sizes

# Winograd's transforms cost a few units in the last place of the largest products.
TOLERANCE = 2e-5


@op("Convolution", since=1, widen=True, tolerance=TOLERANCE)
def convolution_1(
    data: np.ndarray,
    filter: np.ndarray,
    *,
    strides: Positives,
    pads_begin: NonNegatives,
    pads_end: NonNegatives,
    dilations: Positives,
    auto_pad: AutoPad = "explicit",
) -> np.ndarray:
    """Cross-correlation of data [N, C_IN, Z, Y, X] with filter [C_OUT, C_IN, Z, Y, X], in 1 to 3 spatial axes.

    The given pads count only where ``auto_pad`` is explicit. An empty list means ones (strides, dilations) or
    zeros (pads), as OpenVINO reads it. Integers wrap. Source: Convolution-1.
    """
    return _run(data, filter[None], strides, pads_begin, pads_end, dilations, auto_pad)


@op("GroupConvolution", since=1, widen=True, tolerance=TOLERANCE)
def group_convolution_1(
    data: np.ndarray,
    filter: np.ndarray,
    *,
    strides: Positives,
    pads_begin: NonNegatives,
    pads_end: NonNegatives,
    dilations: Positives,
    auto_pad: AutoPad = "explicit",
) -> np.ndarray:
    """As Convolution for each group: data [N, GROUPS * C_IN, ...], filter [GROUPS, C_OUT, C_IN, Z, Y, X].

    Source: GroupConvolution-1.
    """
    return _run(data, filter, strides, pads_begin, pads_end, dilations, auto_pad)


@op("BinaryConvolution", since=1)
def binary_convolution_1(
    data: np.ndarray,
    filter: np.ndarray,
    *,
    strides: Positives,
    pads_begin: NonNegatives,
    pads_end: NonNegatives,
    dilations: Positives,
    mode: Literal["xnor-popcount"],
    pad_value: float,
    auto_pad: AutoPad = "explicit",
) -> np.ndarray:
    """Twice the bits in which window and filter agree, less the bits of the filter; data [N, C_IN, Y, X], filter u1.

    Data other than 0 and 1 agrees with neither; padding takes part with ``pad_value``. Source: BinaryConvolution-1 and
    OpenVINO's reference (its CPU plugin leaves out padding of 0, and the reference misreads a second output channel).
    """
    steps, apart, pads = _geometry(data.shape[2:], filter.shape[2:], strides, pads_begin, pads_end, dilations, auto_pad)
    return convolve_bits(data, filter, steps, apart, pads, pad_value)


def _run(data: np.ndarray, weights: np.ndarray, *attributes: Any) -> np.ndarray:
    steps, apart, pads = _geometry(data.shape[2:], weights.shape[3:], *attributes)
    return convolve(data, weights, steps, apart, pads)


def _geometry(
    sizes: tuple[int, ...],
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    pads_begin: tuple[int, ...],
    pads_end: tuple[int, ...],
    dilations: tuple[int, ...],
    auto_pad: str,
) -> Any:
    steps, apart = filled(strides, len(sizes), 1), filled(dilations, len(sizes), 1)
    return steps, apart, resolve_pads(auto_pad, sizes, kernel, steps, apart, pads_begin, pads_end)


@convolution_1.shape_rule
def _convolution_facts(data: Fact, filter: Fact, **attributes: Any) -> Fact:
    channels, inputs = (ANY, ANY) if filter.shape is None or len(filter.shape) < 2 else filter.shape[:2]
    return _facts(data, filter, 2, channels, inputs, "", attributes)


@group_convolution_1.shape_rule
def _group_convolution_facts(data: Fact, filter: Fact, **attributes: Any) -> Fact:
    groups, channels, inputs = (ANY, ANY, ANY) if filter.shape is None or len(filter.shape) < 3 else filter.shape[:3]
    says = f" of {groups} groups of {inputs}"
    groups = group_count(data, groups, inputs)
    return _facts(data, filter, 3, groups * channels, groups * inputs, says, attributes)


@binary_convolution_1.shape_rule
def _binary_convolution_facts(data: Fact, filter: Fact, *, mode: str, pad_value: float, **attributes: Any) -> Fact:
    check(filter.element in (None, U1), f"filter has element type {filter.element}, expected u1")
    known_rank(data, [4], "data")
    found = _convolution_facts(Fact(data.element, data.shape), Fact(data.element, filter.shape), **attributes)
    return Fact(found.element, found.shape if found.shape is not None else (ANY,) * 4)


def _facts(data: Fact, filter: Fact, lead: int, channels: Size, inputs: Size, says: str, attributes: dict[str, Any]) -> Fact:
    result = numeric_element(data, filter)
    known_rank(data, [3, 4, 5], "data")
    known_rank(filter, [lead + 1, lead + 2, lead + 3], "filter")
    rank = spatial_rank(data.shape, filter.shape, lead, (attributes["strides"], attributes["dilations"]))
    if rank is None:
        return Fact(result, None)
    check(filter.rank in (None, rank + lead), f"data of rank {rank + 2} does not go with a filter of rank {filter.rank}")
    check_lists(rank, attributes)
    if data.shape is not None:
        check(may_equal(data.shape[1], inputs), f"data has {data.shape[1]} channels, the filter takes {inputs}{says}")
    batch = ANY if data.shape is None else data.shape[0]
    sizes, kernel = spatial_sizes(data.shape, rank), spatial_sizes(filter.shape, rank, lead)
    return Fact(result, (batch, channels, *window_sizes(sizes, kernel, **attributes)))


def numeric_element(*facts: Fact) -> Element | None:
    """The element type that all share; OpError if two differ or it is boolean or string."""
    result = same_element(*facts)
    check(result is None or result.is_float or result.is_integer, f"element type {result} is not numeric")
    return result


def group_count(data: Fact, groups: Size, inputs: Size) -> Size:
    """The number of groups as far as the channels of the data tell, each group taking ``inputs`` of them.

    Raises:
        OpError: the channels do not divide into groups of ``inputs``.
    """
    if data.shape is None or len(data.shape) < 2 or not may_equal(data.shape[1], groups * inputs):
        return groups
    channels = data.shape[1]
    if low(channels) == 0 and low(inputs) == 0:
        return groups
    least, most = max(1, low(inputs)), high(inputs)
    fewest = min(1, low(channels)) if most is None else -(-low(channels) // max(1, most))
    top = high(channels)
    check(top is None or fewest <= top // least, f"{channels} channels of data do not divide into groups of {inputs}")
    return meet(groups, span(fewest, None if top is None else top // least))


def check_lists(rank: int, attributes: dict[str, Any]) -> None:
    """Raise OpError unless every spatial list has one number for each spatial axis, or none.

    That holds for pads that ``auto_pad`` has ignored too, as in OpenVINO.
    """
    for name in ("strides", "dilations", "pads_begin", "pads_end"):
        check_list(attributes[name], rank, name)


@convolution_1.bind
def _bind_convolution(data: Fact, filter: Fact, **attributes: Any) -> Callable[..., Any] | None:
    weights = float_weights(data, filter)
    return None if weights is None else _fast(data, weights[None], attributes)


@group_convolution_1.bind
def _bind_group_convolution(data: Fact, filter: Fact, **attributes: Any) -> Callable[..., Any] | None:
    weights = float_weights(data, filter)
    return None if weights is None else _fast(data, weights, attributes)


def float_weights(data: Fact, filter: Fact) -> np.ndarray | None:
    """Weights in the type to compute in, if they are known, of a float type, and there is something to compute."""
    known = filter.known
    if known is None or known.dtype.kind != "f" or known.size == 0 or data.element is not filter.element:
        return None
    return known.astype(np.float32) if known.dtype == np.float16 else known


def _fast(data: Fact, weights: np.ndarray, attributes: dict[str, Any]) -> Callable[..., Any]:
    rank = weights.ndim - 3
    steps, apart = filled(attributes["strides"], rank, 1), filled(attributes["dilations"], rank, 1)
    sizes = None if data.shape is None else window_sizes(data.shape[2:], weights.shape[3:], **attributes)
    known = tuple(size for size in sizes or () if isinstance(size, int))
    convolve = prepare(weights, steps, apart, known if len(known) == rank else None)
    auto_pad, begins, ends = attributes.get("auto_pad", "explicit"), attributes["pads_begin"], attributes["pads_end"]

    def run(data: np.ndarray, filter: np.ndarray) -> np.ndarray:
        pads = resolve_pads(auto_pad, data.shape[2:], weights.shape[3:], steps, apart, begins, ends)
        with np.errstate(all="ignore"):
            return narrowed(convolve(data.astype(weights.dtype, copy=False), pads), data.dtype)

    return run


def narrowed(result: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The result in the type of the data."""
    return result if result.dtype == dtype else result.astype(dtype)
