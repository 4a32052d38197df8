"""Images between RGB and the layouts of video: NV12 (Y, and U interleaved with V) and I420 (Y, U, V).

The coefficients are those of ITU-R BT.601 as OpenVINO rounds them.

Sources: NV12toRGB-8, RGBtoNV12-17, openvino ``reference/convert_color_nv12.hpp`` and ``convert_color_to_nv12.hpp``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import numpy as np

from irexec.dtypes.elements import U8
from irexec.errors import OpError, check
from irexec.ir.dims import ANY, Shape, Size, exact_quotient, may_equal, meet, shape_text
from irexec.ir.facts import Fact
from irexec.schema.inputs import FLOAT, Rank, element_set
from irexec.schema.registry import op
from irexec.schema.shape_rules import unify_elements

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
        height = exact_quotient(height * 2, 3) if _divisible(height, 3) else _uneven("height", height, 3)
    for rows in halves:
        try:
            batch, height, width = meet(batch, rows[0]), meet(height, rows[1] * 2), meet(width, rows[2] * 2)
        except OpError as error:
            raise OpError(f"the planes do not match: {error}") from None
    return Fact(kind, (batch, _even(height, "height"), _even(width, "width"), 3))


def _divisible(size: Size, by: int) -> bool:
    return not isinstance(size, int) or size % by == 0


def _uneven(what: str, size: Size, by: int) -> Size:
    raise OpError(f"the {what} {size} is not a multiple of {by}")


def _even(size: Size, what: str) -> Size:
    return size if _divisible(size, 2) else _uneven(what, size, 2)


@rgb_to_nv12_17.shape_rule
@bgr_to_nv12_17.shape_rule
def _to_nv12_shape(data: Fact, *, single_plane: bool) -> Any:
    kind = data.element
    batch, height, width = (_even(size, "size") if axis else size for axis, size in enumerate(_plane(data, 3, "data")))
    if single_plane:
        return Fact(kind, (batch, exact_quotient(height * 3, 2), width, 1))
    halves = (exact_quotient(height, 2), exact_quotient(width, 2))
    return Fact(kind, (batch, height, width, 1)), Fact(kind, (batch, *halves, 2))


F = np.float32


def to_rgb(y: np.ndarray, u: np.ndarray, v: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """(N, H, W) and twice (N, H/2, W/2) to (N, H, W, 3): each U and V serves the four pixels of a square."""
    luma = F(1.164) * (y.astype(F) - F(16))
    blue, red = (_doubled(plane.astype(F) - F(128)) for plane in (u, v))
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


def _doubled(plane: np.ndarray) -> np.ndarray:
    return plane.repeat(2, 1).repeat(2, 2)


def _half_up(values: np.ndarray) -> np.ndarray:
    return np.floor(values + F(0.5))


def _clipped(values: np.ndarray, dtype: np.dtype, nearest: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Clipped to 0 to 255; integers are rounded by ``nearest``."""
    return np.clip(nearest(values) if dtype.kind in "iu" else values, F(0), F(255)).astype(dtype)
