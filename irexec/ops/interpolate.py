"""Interpolate, in its three versions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from irexec.dtypes.elements import BF16, F16, F32, F64, I8, I32, I64, U8, U32, U64
from irexec.errors import check
from irexec.ir.dims import ANY, Dim, PartialShape, Shape, Size, span
from irexec.ir.facts import Fact
from irexec.ir.integers import integers
from irexec.messages import counted
from irexec.reference.interpolate import ResizeParams, interpolate
from irexec.reference.resize import scaled_size
from irexec.reference.windows import pad
from irexec.schema.attributes import Ints, NonNegatives
from irexec.schema.inputs import IntegerTensor, NumericTensor, Rank, element_set, input_spec
from irexec.schema.registry import op
from irexec.schema.shape_rules import normalize_axes

Calculation = Literal["sizes", "scales"]
Transformation = Literal["half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners"]
Nearest = Literal["round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple"]
SizeTensor = Annotated[np.ndarray, element_set("i32, i64, u32 or u64", I32, I64, U32, U64)]
ScaleTensor = Annotated[np.ndarray, element_set("f32, f16 or bf16", F32, F16, BF16)]
Sizes = Annotated[SizeTensor, Rank(1)]
Resized = Annotated[
    np.ndarray, element_set("a floating-point type, i8, i32, i64 or u8", F64, F32, F16, BF16, I8, I32, I64, U8)
]
# The element types are those of OpenVINO since version 4. Source: openvino ``interpolate_base.cpp``.


@dataclass(frozen=True, kw_only=True)
class _PaddedAttributes:
    """Zeros that are put around the data before it is resized; a list shorter or longer than the rank is filled with 0
    or cut."""

    antialias: bool = False
    pads_begin: NonNegatives = ()
    pads_end: NonNegatives = ()

    def pads(self, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """One pad for each axis."""
        begins, ends = ((*pads, *(0,) * (rank - len(pads)))[:rank] for pads in (self.pads_begin, self.pads_end))
        return begins, ends

    def padded(self, data: np.ndarray) -> np.ndarray:
        """The data with its padding."""
        return pad(data, self.pads(data.ndim))

    def padded_shape(self, shape: Shape) -> Shape:
        """The shape with its padding."""
        return tuple(size + (begin + end) for size, begin, end in zip(shape, *self.pads(len(shape)), strict=True))


@dataclass(frozen=True, kw_only=True)
class Attributes1(_PaddedAttributes):
    """Interpolate-1."""

    axes: Ints
    mode: Literal["nearest", "linear", "cubic", "area"]
    align_corners: bool = True

    def params(self, axes: Sequence[int], rank: int) -> ResizeParams:
        """The attributes of Interpolate-4 that OpenVINO makes of these: nearest by "simple", linear as linear_onnx up
        to rank 4.

        Coordinates are align_corners or asymmetric; but half_pixel for linear without padding, unless over the axes 2
        and 3 of rank 4. Source: openvino ``convert_interpolate1_to_interpolate4.cpp``.
        """
        mode = "linear_onnx" if self.mode == "linear" and rank < 5 else self.mode
        asymmetric = any(self.pads_begin) or any(self.pads_end) or (rank == 4 and set(axes) == {2, 3})
        half_pixel = self.mode == "linear" and not asymmetric
        transformation = "align_corners" if self.align_corners else "half_pixel" if half_pixel else "asymmetric"
        return ResizeParams(mode, transformation, "simple", self.antialias)


@dataclass(frozen=True, kw_only=True)
class Attributes11(_PaddedAttributes):
    """Interpolate-11."""

    mode: Literal["nearest", "linear", "linear_onnx", "cubic", "bilinear_pillow", "bicubic_pillow"]
    shape_calculation_mode: Calculation
    coordinate_transformation_mode: Transformation = "half_pixel"
    nearest_mode: Nearest = "round_prefer_floor"
    cube_coeff: float = -0.75

    @property
    def by_scales(self) -> bool:
        return self.shape_calculation_mode == "scales"

    @property
    def params(self) -> ResizeParams:
        return ResizeParams(
            self.mode, self.coordinate_transformation_mode, self.nearest_mode, self.antialias, self.cube_coeff
        )


@dataclass(frozen=True, kw_only=True)
class Attributes4(Attributes11):
    """Interpolate-4."""

    mode: Literal["nearest", "linear", "linear_onnx", "cubic"]


def _resized_shape(
    data: Fact, attributes: _PaddedAttributes, axes: Sequence[int] | None, sizes: Fact | None, scales: Fact | None
) -> PartialShape:
    """The shape with the sizes of the axes replaced; None for axes that are not known."""
    if data.shape is None:
        return None
    shape = list(attributes.padded_shape(data.shape))
    if axes is None:
        return (ANY,) * len(shape)
    positions = normalize_axes(axes, len(shape))
    check(len(set(positions)) == len(positions), f"axes {list(axes)} name an axis twice")
    given = scales if scales is not None else sizes
    length = given.shape[0] if given is not None and given.shape else None
    check(
        not isinstance(length, int) or length >= len(positions),
        f"there are {length} sizes or scales for {counted(len(positions), 'axis')}",
    )
    for i, axis in enumerate(positions):
        shape[axis] = _scaled(shape[axis], scales, i) if scales is not None else _sized(sizes, i)
    return tuple(shape)


def _sized(sizes: Fact | None, i: int) -> Size:
    known = None if sizes is None else sizes.sizes("sizes")
    if known is None:
        return ANY
    size = known[i]
    check(not isinstance(size, int) or size >= 0, f"size {size} is negative")
    return Dim(0, size.hi) if isinstance(size, Dim) and size.lo < 0 else size


def _scaled(size: Size, scales: Fact, i: int) -> Size:
    known = scales.known
    if known is None:
        return ANY
    scale = float(known.ravel()[i])
    check(math.isfinite(scale) and scale > 0, f"scale {scale:g} is not a positive finite number")
    if isinstance(size, int):
        return scaled_size(size, scale)
    return span(scaled_size(size.lo, scale), None if size.hi is None else scaled_size(size.hi, scale))


@op("Interpolate", since=1, tolerance=1e-5)
def interpolate_1(data: NumericTensor, target_spatial_shape: IntegerTensor, *, attributes: Attributes1) -> np.ndarray:
    """``data`` resized along ``axes`` to the shape given. Source: Interpolate-1, computed as OpenVINO converts it to
    Interpolate-4.

    Of mode area only the shape can be inferred: no implementation computes it.
    """
    check(attributes.mode != "area", "mode area is not computed by any implementation")
    axes = normalize_axes(attributes.axes, data.ndim)
    sizes = integers(target_spatial_shape, "target_spatial_shape")
    return interpolate(attributes.padded(data), attributes.params(axes, data.ndim), axes, sizes)


@interpolate_1.shape_rule
def _interpolate_1_shape(data: Fact, target_spatial_shape: Fact, *, attributes: Attributes1) -> Fact:
    if target_spatial_shape.shape is not None and all(isinstance(size, int) for size in target_spatial_shape.shape):
        count = math.prod(size for size in target_spatial_shape.shape if isinstance(size, int))
        check(
            count == len(attributes.axes),
            f"target_spatial_shape has {count} values for {counted(len(attributes.axes), 'axis')}",
        )
    return Fact(data.element, _resized_shape(data, attributes, attributes.axes, target_spatial_shape, None))


def _axes(axes: Fact | None, data: Fact) -> Sequence[int] | None:
    if axes is not None:
        return axes.ints("axes")
    return None if data.shape is None else range(len(data.shape))


def _by_sizes_or_scales(
    data: np.ndarray, attributes: Attributes11, axes: np.ndarray | None, given: np.ndarray
) -> np.ndarray:
    """The data resized along the axes, all of them unless given, to values that are sizes or scales."""
    padded = attributes.padded(data)
    positions = normalize_axes(range(data.ndim) if axes is None else integers(axes, "axes"), data.ndim)
    if not attributes.by_scales:
        return interpolate(padded, attributes.params, positions, integers(given, "sizes")[: len(positions)])
    scales = [float(scale) for scale in given.ravel().tolist()[: len(positions)]]
    sizes = [scaled_size(padded.shape[axis], scale) for axis, scale in zip(positions, scales, strict=True)]
    return interpolate(padded, attributes.params, positions, sizes, scales)


@op("Interpolate", since=4, tolerance=1e-5)
def interpolate_4(
    data: Resized,
    output_shape: Sizes,
    scales: Annotated[ScaleTensor, Rank(1)],
    axes: Sizes | None = None,
    *,
    attributes: Attributes4,
) -> np.ndarray:
    """``data`` resized along ``axes`` (all unless given), to sizes or by scales. Source: Interpolate-4."""
    return _by_sizes_or_scales(data, attributes, axes, scales if attributes.by_scales else output_shape)


@interpolate_4.shape_rule
def _interpolate_4_shape(
    data: Fact, output_shape: Fact, scales: Fact, axes: Fact | None = None, *, attributes: Attributes4
) -> Fact:
    by_scales = scales if attributes.by_scales else None
    return Fact(data.element, _resized_shape(data, attributes, _axes(axes, data), output_shape, by_scales))


_SCALES = input_spec("scales_or_sizes", ScaleTensor)
_SIZES = input_spec("scales_or_sizes", SizeTensor)


@op("Interpolate", since=11, tolerance=1e-5)
def interpolate_11(
    data: Resized,
    scales_or_sizes: Annotated[NumericTensor, Rank(1)],
    axes: Sizes | None = None,
    *,
    attributes: Attributes11,
) -> np.ndarray:
    """``data`` resized along ``axes`` (all unless given), to sizes or by scales; also by the filters of Pillow.

    bicubic_pillow honours cube_coeff, as OpenVINO's reference does. Source: Interpolate-11.
    """
    return _by_sizes_or_scales(data, attributes, axes, scales_or_sizes)


@interpolate_11.shape_rule
def _interpolate_11_shape(
    data: Fact, scales_or_sizes: Fact, axes: Fact | None = None, *, attributes: Attributes11
) -> Fact:
    (_SCALES if attributes.by_scales else _SIZES).check(scales_or_sizes)
    by_scales = scales_or_sizes if attributes.by_scales else None
    return Fact(data.element, _resized_shape(data, attributes, _axes(axes, data), scales_or_sizes, by_scales))
