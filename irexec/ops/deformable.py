"""DeformableConvolution: of opset 1 and 8 in two spatial axes, and our own in any number ("irexec")."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from irexec.errors import check
from irexec.ir.dims import ANY, PartialShape, Size, is_static, may_equal, meet
from irexec.ir.facts import Fact
from irexec.ops.convolution import TOLERANCE, check_lists, numeric_element
from irexec.reference.deformable import convolve_deformable
from irexec.reference.windows import resolve_pads
from irexec.schema.attributes import NonNegatives, Positive, Positives
from irexec.schema.registry import op
from irexec.schema.window_sizes import AutoPad, filled, known_rank, spatial_rank, spatial_sizes, window_sizes


@op("DeformableConvolution", since=1, widen=True, tolerance=TOLERANCE)
def deformable_convolution_1(
    data: np.ndarray,
    offsets: np.ndarray,
    filter: np.ndarray,
    *,
    strides: Positives,
    pads_begin: NonNegatives,
    pads_end: NonNegatives,
    dilations: Positives,
    auto_pad: AutoPad = "explicit",
    group: Positive = 1,
    deformable_group: Positive = 1,
) -> np.ndarray:
    """Convolution of data [N, C, Y, X] with filter [O, C / group, Y, X] whose points ``offsets`` move.

    As DeformableConvolution-8 without mask and with ``bilinear_interpolation_pad`` false. Source: DeformableConvolution-1.
    """
    places = (strides, pads_begin, pads_end, dilations, auto_pad)
    return _run(data, offsets, filter, None, places, group, deformable_group, False)


def _modulated(
    data: np.ndarray,
    offsets: np.ndarray,
    filter: np.ndarray,
    mask: np.ndarray | None = None,
    *,
    strides: Positives,
    pads_begin: NonNegatives,
    pads_end: NonNegatives,
    dilations: Positives,
    auto_pad: AutoPad = "explicit",
    group: Positive = 1,
    deformable_group: Positive = 1,
    bilinear_interpolation_pad: bool = False,
) -> np.ndarray:
    """Convolution of data [N, C, Y, X] with filter [O, C / group, Y, X] whose points ``offsets`` move and ``mask`` weighs.

    offsets are [N, deformable_group * Y * X * 2, ...], first y then x of each point; mask [N, deformable_group * Y * X, ...].
    Channel c goes by deformable group c // (C / deformable_group), whatever ``group`` is. With ``bilinear_interpolation_pad``
    pixels beyond the border are zero, and positions less than one pixel beyond it count; else a position must lie in [0, size),
    and past the last pixel it gives the last. Source: DeformableConvolution-8 and OpenVINO's reference.
    """
    places = (strides, pads_begin, pads_end, dilations, auto_pad)
    return _run(data, offsets, filter, mask, places, group, deformable_group, bilinear_interpolation_pad)


deformable_convolution_8 = op("DeformableConvolution", since=8, widen=True, tolerance=TOLERANCE)(_modulated)
deformable_convolution = op("DeformableConvolution", since="irexec", widen=True, tolerance=TOLERANCE)(_modulated)


def _run(
    data: np.ndarray,
    offsets: np.ndarray,
    filter: np.ndarray,
    mask: np.ndarray | None,
    places: tuple[Any, ...],
    group: int,
    deformable_group: int,
    zero_pad: bool,
) -> np.ndarray:
    strides, pads_begin, pads_end, dilations, auto_pad = places
    rank = data.ndim - 2
    steps, apart = filled(strides, rank, 1), filled(dilations, rank, 1)
    pads = resolve_pads(auto_pad, data.shape[2:], filter.shape[2:], steps, apart, pads_begin, pads_end)
    weights = filter.reshape(group, filter.shape[0] // group, *filter.shape[1:])
    return convolve_deformable(data, offsets, weights, mask, steps, apart, pads, deformable_group, zero_pad)


@deformable_convolution_1.shape_rule
def _deformable_1_facts(data: Fact, offsets: Fact, filter: Fact, **attributes: Any) -> Fact:
    return _planar_facts(data, offsets, filter, None, **attributes)


@deformable_convolution_8.shape_rule
def _deformable_8_facts(
    data: Fact, offsets: Fact, filter: Fact, mask: Fact | None = None, *, bilinear_interpolation_pad: bool = False, **attributes: Any
) -> Fact:
    return _planar_facts(data, offsets, filter, mask, **attributes)


@deformable_convolution.shape_rule
def _deformable_facts(
    data: Fact, offsets: Fact, filter: Fact, mask: Fact | None = None, *, bilinear_interpolation_pad: bool = False, **attributes: Any
) -> Fact:
    check(data.rank is None or data.rank >= 3, f"data has rank {data.rank}, expected 3 or more")
    return _facts(data, offsets, filter, mask, **attributes)


def _planar_facts(data: Fact, offsets: Fact, filter: Fact, mask: Fact | None, **attributes: Any) -> Fact:
    for fact, what in ((data, "data"), (offsets, "offsets"), (filter, "filter"), (mask, "mask")):
        if fact is not None:
            known_rank(fact, [4], what)
    if data.shape is None:
        data = Fact(data.element, (ANY,) * 4)
    return _facts(data, offsets, filter, mask, **attributes)


def _facts(
    data: Fact,
    offsets: Fact,
    filter: Fact,
    mask: Fact | None,
    *,
    group: int = 1,
    deformable_group: int = 1,
    auto_pad: str = "explicit",
    **lists: Any,
) -> Fact:
    others = {"offsets": offsets, "filter": filter} | ({} if mask is None else {"mask": mask})
    result = numeric_element(data, *others.values())
    rank = next((fact.rank - 2 for fact in (data, *others.values()) if fact.rank is not None), None)
    if rank is None:
        rank = spatial_rank(None, lists=(lists["strides"], lists["dilations"]))
    if rank is None:
        return Fact(result, None)
    for name, fact in others.items():
        check(fact.rank in (None, rank + 2), f"{name} has rank {fact.rank}, expected {rank + 2} as the data")
    check_lists(rank, lists)
    _check_channels(data.shape, filter.shape, group, deformable_group)
    kernel = spatial_sizes(filter.shape, rank)
    sizes = window_sizes(spatial_sizes(data.shape, rank), kernel, auto_pad=auto_pad, **lists)
    shape: tuple[Size, ...] = (ANY if data.shape is None else data.shape[0], *sizes)
    shape = _agree(shape, offsets, "offsets", kernel, deformable_group, rank)
    if mask is not None:
        shape = _agree(shape, mask, "mask", kernel, deformable_group, 1)
    return Fact(result, (shape[0], ANY if filter.shape is None else filter.shape[0], *shape[1:]))


def _agree(shape: tuple[Size, ...], fact: Fact, name: str, kernel: tuple[Size, ...], groups: int, each: int) -> tuple[Size, ...]:
    """Batch and spatial sizes as offsets or mask have them too; OpError if they or their channels cannot be right."""
    if fact.shape is None:
        return shape
    if is_static(kernel):
        wanted = groups * math.prod(size for size in kernel if isinstance(size, int)) * each
        says = f"{name} has {fact.shape[1]} channels, expected {wanted}: {each} for each point of the kernel in {groups} groups"
        check(may_equal(fact.shape[1], wanted), says)
    theirs = (fact.shape[0], *fact.shape[2:])
    for axis, (size, other) in enumerate(zip(shape, theirs, strict=True)):
        place = f"on spatial axis {axis - 1}" if axis else "as batch"
        check(may_equal(size, other), f"{name} has size {other} {place}, the result has {size}")
    return tuple(map(meet, shape, theirs))


def _check_channels(data: PartialShape, filter: PartialShape, group: int, deformable_group: int) -> None:
    if data is not None and isinstance(data[1], int):
        check(data[1] % deformable_group == 0, f"{data[1]} channels of data do not divide into {deformable_group} deformable groups")
        check(data[1] % group == 0, f"{data[1]} channels of data do not divide into {group} groups")
    if filter is None:
        return
    if isinstance(filter[0], int):
        check(filter[0] % group == 0, f"{filter[0]} filters do not divide into {group} groups")
    if data is not None:
        wanted = filter[1] * group
        check(may_equal(data[1], wanted), f"data has {data[1]} channels, the filter takes {wanted} in {group} groups")
