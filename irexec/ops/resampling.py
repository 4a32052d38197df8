"""Images resampled and recoloured: Interpolate, GridSample, conversions between RGB and the layouts of video.

The coefficients are those of ITU-R BT.601 as OpenVINO rounds them.

Sources: NV12toRGB-8, RGBtoNV12-17, openvino ``reference/convert_color_nv12.hpp`` and ``convert_color_to_nv12.hpp``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np

from irexec.dtypes.elements import BF16, F16, F32, F64, I8, I32, I64, U8, U32, U64
from irexec.errors import OpError, check
from irexec.ir.dims import ANY, Dim, PartialShape, Shape, Size, exact_quotient, may_equal, meet, shape_text, span
from irexec.ir.facts import Fact, integers
from irexec.messages import counted
from irexec.reference.resize import ResizeParams, SampleParams, interpolate, sample_grid, scaled_size
from irexec.reference.windows import pad
from irexec.schema.attributes import Ints, NonNegatives
from irexec.schema.opdef import FLOAT, FloatTensor, IntegerTensor, NumericTensor, Rank, Tensor, element_set, input_spec
from irexec.schema.registry import op
from irexec.schema.shape_rules import normalize_axes, unify_elements

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
    if target_spatial_shape.is_static:
        count = math.prod(target_spatial_shape.static_shape)
        axes = len(attributes.axes)
        check(count == axes, f"target_spatial_shape has {count} values for {counted(axes, 'axis')}")
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


@dataclass(frozen=True)
class GridSampleAttributes:
    """GridSample-9."""

    align_corners: bool = False
    mode: Literal["bilinear", "bicubic", "nearest"] = "bilinear"
    padding_mode: Literal["zeros", "border", "reflection"] = "zeros"


@op("GridSample", since=9, tolerance=1e-5)
def grid_sample_9(
    data: Annotated[Tensor, Rank(4)], grid: Annotated[FloatTensor, Rank(4)], *, attributes: GridSampleAttributes
) -> np.ndarray:
    """Pixels of (N, C, H, W) at the points (N, h, w, 2) of ``grid``, x before y, from -1 to 1 across the image.

    Interpolation is computed in the type of the grid, for f16 in f32; integers are then truncated, as
    OpenVINO's reference does and the CPU plugin for 32 and 64 bits. With ``nearest`` a tie goes to the even
    pixel. A point that is NaN or infinite gives NaN, but with ``nearest`` NaN is the first pixel. A point far
    beyond the border is brought back without loss, where OpenVINO's reference overflows. Source: GridSample-9.
    """
    params = SampleParams(attributes.mode, attributes.padding_mode, attributes.align_corners)
    points = grid.astype(np.float32) if grid.dtype == np.float16 else grid
    sampled = sample_grid(data, points, params)
    return np.ascontiguousarray(sampled) if attributes.mode == "nearest" else _to_type(sampled, data.dtype)


def _to_type(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Computed values in the type of the data: integers are truncated and saturated, NaN is 0."""
    with np.errstate(over="ignore"):
        if dtype.kind not in "iu":
            return values.astype(dtype)
    limits = np.iinfo(dtype)
    whole = np.trunc(np.where(np.isnan(values), 0, values)).astype(np.float64)
    inside = (whole > limits.min) & (whole < limits.max)
    saturated = np.where(whole >= limits.max, limits.max, limits.min).astype(dtype)
    return np.where(inside, np.where(inside, whole, 0).astype(dtype), saturated)


@grid_sample_9.shape_rule
def _grid_sample_9_shape(data: Fact, grid: Fact) -> Fact:
    images, channels, *_ = data.shape or (ANY,) * 4
    batch, height, width, coordinates = grid.shape or (ANY,) * 4
    check(may_equal(coordinates, 2), f"grid has {coordinates} coordinates for each point, expected 2")
    check(may_equal(images, batch), f"data has a batch of {images}, grid one of {batch}")
    return Fact(data.element, (meet(images, batch), channels, height, width))


Plane = Annotated[np.ndarray, element_set("u8 or a floating-point type", U8, *FLOAT.elements), Rank(4)]


def _split(whole: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One plane (N, H * 3/2, W, 1): the Y (N, H, W), and the values after it (N, H/2 * W)."""
    batch, rows, width = whole.shape[:3]
    height = rows * 2 // 3
    return whole[:, :height, :, 0], whole[:, height:].reshape(batch, (rows - height) * width)


def _from_nv12(arg_y: np.ndarray, arg_uv: np.ndarray | None) -> np.ndarray:
    if arg_uv is None:
        y, rest = _split(arg_y)
        uv = rest.reshape(y.shape[0], y.shape[1] // 2, y.shape[2] // 2, 2)
    else:
        y, uv = arg_y[..., 0], arg_uv
    return to_rgb(y, uv[..., 0], uv[..., 1], arg_y.dtype)


def _from_i420(arg_y: np.ndarray, arg_u: np.ndarray | None, arg_v: np.ndarray | None) -> np.ndarray:
    if arg_u is None or arg_v is None:
        y, rest = _split(arg_y)
        planes = rest.reshape(y.shape[0], 2, y.shape[1] // 2, y.shape[2] // 2)
        return to_rgb(y, planes[:, 0], planes[:, 1], arg_y.dtype)
    return to_rgb(arg_y[..., 0], arg_u[..., 0], arg_v[..., 0], arg_y.dtype)


def _to_nv12(r: np.ndarray, g: np.ndarray, b: np.ndarray, single_plane: bool) -> Any:
    y, uv = to_yuv(r, g, b, r.dtype)
    if not single_plane:
        return y[..., None], uv
    batch, height, width = y.shape
    return np.concatenate([y, uv.reshape(batch, height // 2, width)], 1)[..., None]


@op("NV12toRGB", since=8, widen=True, tolerance=1e-5)
def nv12_to_rgb_8(arg_y: Plane, arg_uv: Plane | None = None) -> np.ndarray:
    """NV12 in one plane (N, H * 3/2, W, 1), or Y (N, H, W, 1) and UV (N, H/2, W/2, 2), to RGB (N, H, W, 3). Source:
    NV12toRGB-8."""
    return _from_nv12(arg_y, arg_uv)


@op("NV12toBGR", since=8, widen=True, tolerance=1e-5)
def nv12_to_bgr_8(arg_y: Plane, arg_uv: Plane | None = None) -> np.ndarray:
    """Same as NV12toRGB, blue first. Source: NV12toBGR-8."""
    return np.ascontiguousarray(_from_nv12(arg_y, arg_uv)[..., ::-1])


@op("I420toRGB", since=8, widen=True, tolerance=1e-5)
def i420_to_rgb_8(arg_y: Plane, arg_u: Plane | None = None, arg_v: Plane | None = None) -> np.ndarray:
    """I420 in one plane (N, H * 3/2, W, 1), or Y (N, H, W, 1), U and V (N, H/2, W/2, 1), to RGB (N, H, W, 3). Source:
    I420toRGB-8."""
    return _from_i420(arg_y, arg_u, arg_v)


@op("I420toBGR", since=8, widen=True, tolerance=1e-5)
def i420_to_bgr_8(arg_y: Plane, arg_u: Plane | None = None, arg_v: Plane | None = None) -> np.ndarray:
    """Same as I420toRGB, blue first. Source: I420toBGR-8."""
    return np.ascontiguousarray(_from_i420(arg_y, arg_u, arg_v)[..., ::-1])


@op("RGBtoNV12", since=17, widen=True, tolerance=1e-5)
def rgb_to_nv12_17(data: Plane, *, single_plane: bool = True) -> Any:
    """RGB (N, H, W, 3) to NV12: one plane (N, H * 3/2, W, 1), or Y (N, H, W, 1) and UV (N, H/2, W/2, 2).

    U and V are the mean of four pixels. Source: RGBtoNV12-17.
    """
    return _to_nv12(data[..., 0], data[..., 1], data[..., 2], single_plane)


@op("BGRtoNV12", since=17, widen=True, tolerance=1e-5)
def bgr_to_nv12_17(data: Plane, *, single_plane: bool = True) -> Any:
    """Same as RGBtoNV12, blue first. Source: BGRtoNV12-17."""
    return _to_nv12(data[..., 2], data[..., 1], data[..., 0], single_plane)


@nv12_to_rgb_8.shape_rule
@nv12_to_bgr_8.shape_rule
def _from_nv12_shape(arg_y: Fact, arg_uv: Fact | None = None) -> Fact:
    planes = [] if arg_uv is None else [_plane(arg_uv, 2, "UV")]
    return _image([arg_y] if arg_uv is None else [arg_y, arg_uv], planes)


@i420_to_rgb_8.shape_rule
@i420_to_bgr_8.shape_rule
def _from_i420_shape(arg_y: Fact, arg_u: Fact | None = None, arg_v: Fact | None = None) -> Fact:
    if arg_u is None:
        return _image([arg_y], [])
    if arg_v is None:
        raise OpError("U is given without V")
    return _image([arg_y, arg_u, arg_v], [_plane(arg_u, 1, "U"), _plane(arg_v, 1, "V")])


def _plane(fact: Fact, channels: int, what: str) -> Shape:
    """Batch, height, width."""
    shape = fact.shape
    if shape is None:
        return (ANY, ANY, ANY)
    check(may_equal(shape[3], channels), f"{what} {shape_text(shape)} has {shape[3]} channels, expected {channels}")
    return shape[:3]


def _image(inputs: list[Fact], halves: list[Shape]) -> Fact:
    kind = unify_elements(*inputs)
    batch, height, width = _plane(inputs[0], 1, "Y")
    if not halves:
        height = exact_quotient(_multiple(height, 3, "height") * 2, 3)
    for rows in halves:
        try:
            batch, height, width = meet(batch, rows[0]), meet(height, rows[1] * 2), meet(width, rows[2] * 2)
        except OpError as error:
            raise OpError(f"the planes do not match: {error}") from None
    return Fact(kind, (batch, _multiple(height, 2, "height"), _multiple(width, 2, "width"), 3))


def _multiple(size: Size, of: int, what: str) -> Size:
    """The size itself; OpError if it cannot be a multiple."""
    check(not isinstance(size, int) or size % of == 0, f"the {what} {size} is not a multiple of {of}")
    return size


@rgb_to_nv12_17.shape_rule
@bgr_to_nv12_17.shape_rule
def _to_nv12_shape(data: Fact, *, single_plane: bool) -> Any:
    kind = data.element
    batch, *sides = _plane(data, 3, "data")
    height, width = (_multiple(size, 2, "size") for size in sides)
    if single_plane:
        return Fact(kind, (batch, exact_quotient(height * 3, 2), width, 1))
    halves = (exact_quotient(height, 2), exact_quotient(width, 2))
    return Fact(kind, (batch, height, width, 1)), Fact(kind, (batch, *halves, 2))


F = np.float32


def to_rgb(y: np.ndarray, u: np.ndarray, v: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """(N, H, W) and twice (N, H/2, W/2) to (N, H, W, 3): each U and V serves the four pixels of a square."""
    luma = F(1.164) * (y.astype(F) - F(16))
    blue, red = ((plane.astype(F) - F(128)).repeat(2, 1).repeat(2, 2) for plane in (u, v))
    channels = (luma + F(1.596) * red, luma - F(0.391) * blue - F(0.813) * red, luma + F(2.018) * blue)
    # Only OpenVINO's CPU plugin has this kernel; it rounds halves to even.
    return _clipped(np.stack(channels, -1), dtype, np.rint)


def to_yuv(r: np.ndarray, g: np.ndarray, b: np.ndarray, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Three times (N, H, W) to Y (N, H, W) and UV (N, H/2, W/2, 2), the mean of each square; integers are rounded
    before it too."""
    red, green, blue = (channel.astype(F) for channel in (r, g, b))
    y = F(0.257) * red + F(0.504) * green + F(0.098) * blue + F(16)
    u = F(-0.148) * red - F(0.291) * green + F(0.439) * blue + F(128)
    v = F(0.439) * red - F(0.368) * green - F(0.071) * blue + F(128)
    pairs = _clipped(np.stack([u, v], -1), dtype, _half_up).astype(F)
    batch, height, width = y.shape
    squares = pairs.reshape(batch, height // 2, 2, width // 2, 2, 2)
    means = (squares[:, :, 0, :, 0] + squares[:, :, 0, :, 1] + squares[:, :, 1, :, 0] + squares[:, :, 1, :, 1]) / F(4)
    return _clipped(y, dtype, _half_up), _clipped(means, dtype, _half_up)


def _half_up(values: np.ndarray) -> np.ndarray:
    return np.floor(values + F(0.5))


def _clipped(values: np.ndarray, dtype: np.dtype, nearest: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Clipped to 0 to 255; integers are rounded by ``nearest``."""
    return np.clip(nearest(values) if dtype.kind in "iu" else values, F(0), F(255)).astype(dtype)
