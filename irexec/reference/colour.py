"""Pixels between RGB and YUV, with the coefficients of ITU-R BT.601 as OpenVINO rounds them.

Sources: NV12toRGB-8, RGBtoNV12-17, openvino ``reference/convert_color_nv12.hpp`` and ``convert_color_to_nv12.hpp``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

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
