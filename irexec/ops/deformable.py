"""DeformableConvolution: of opset 1 and 8 in two spatial axes, and our own in any number ("irexec")."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from irexec.errors import check
from irexec.ir.dims import ANY, PartialShape, Size, is_static, may_equal, meet
from irexec.ir.facts import Fact
from irexec.reference.deformable import convolve_deformable
from irexec.schema.attributes import Positive
from irexec.schema.convolution import TOLERANCE, ConvolutionAttributes
from irexec.schema.inputs import NumericTensor, Rank
from irexec.schema.registry import op
from irexec.schema.shape_rules import unify_elements
from irexec.schema.windows import spatial_rank, spatial_sizes

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
    rank = next((fact.rank - 2 for fact in (data, *others.values()) if fact.rank is not None), None)
    if rank is None:
        rank = spatial_rank(None, None, 2, attributes.strides, attributes.dilations)
    if rank is None:
        return Fact(element, None)
    for name, fact in others.items():
        check(fact.rank in (None, rank + 2), f"{name} has rank {fact.rank}, expected {rank + 2} as the data")
    attributes.check_lengths(rank)
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
