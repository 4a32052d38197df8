"""Winograd's F(4x4, 3x3): sixteen results of a 3x3 convolution from 36 products instead of 144.

Both tile transforms are one product with a Kronecker matrix, the products in between are 36 matrix products.
The error against direct convolution is about 1e-5 of the largest result in float32. Source: Lavin and Gray, "Fast
Algorithms for Convolutional Neural Networks", with the points 0, 1, -1, 2, -2.
"""

from __future__ import annotations

import numpy as np

from irexec.backend.workspace import BLOCK, padded, thread_buffer
from irexec.reference.windows import Pads

_INPUT = np.array(
    [
        [4, 0, -5, 0, 1, 0],
        [0, -4, -4, 1, 1, 0],
        [0, 4, -4, -1, 1, 0],
        [0, -2, -1, 2, 1, 0],
        [0, 2, -1, -2, 1, 0],
        [0, 4, 0, -5, 0, 1],
    ]
)
_FILTER = np.array([[6, 0, 0], [-4, -4, -4], [-4, 4, -4], [1, 2, 4], [1, -2, 4], [0, 0, 24]]) / 24
_OUTPUT = np.array([[1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0], [0, 1, -1, 8, -8, 1]])

_TILES_IN = np.kron(_INPUT, _INPUT).astype(np.float32)
_TILES_OUT = np.kron(_OUTPUT, _OUTPUT).astype(np.float32)


def transform_weights(weights: np.ndarray) -> np.ndarray:
    """(O, I, 3, 3) to the (36, O, I) that ``convolve_tiles`` takes; computed in float64, float32."""
    outputs, inputs = weights.shape[:2]
    wide = np.kron(_FILTER, _FILTER) @ weights.reshape(outputs * inputs, 9).T.astype(np.float64)
    return np.ascontiguousarray(wide.reshape(36, outputs, inputs), np.float32)


def tile_count(height: int, width: int) -> int:
    """The number of 4x4 tiles that cover a result of this size."""
    return -(-height // 4) * -(-width // 4)


def convolve_tiles(x: np.ndarray, transformed: np.ndarray, pads: Pads) -> np.ndarray:
    """Convolution with stride and dilation 1 of float32 (N, I, H, W) with the weights of ``transform_weights``."""
    n, inputs, h, w = x.shape
    outputs = transformed.shape[1]
    (top, left), (bottom, right) = pads
    height, width = h + top + bottom - 2, w + left + right - 2
    down, across = -(-height // 4), -(-width // 4)
    out = np.empty((n, outputs, height, width), np.float32)
    extra = (bottom + 4 * down - height, right + 4 * across - width)
    rows = max(1, BLOCK // (36 * 4 * max(inputs, outputs) * across))
    for image, result in zip(x, out, strict=True):
        whole = padded(image, (top, left), extra)
        for first in range(0, down, rows):
            last = min(first + rows, down)
            tiles = _tiles(whole[:, 4 * first :], last - first, across)
            _untile(_multiply(tiles, transformed), result[:, 4 * first : 4 * last], last - first, across)
    return out


def _tiles(image: np.ndarray, down: int, across: int) -> np.ndarray:
    """The 6x6 tiles of (I, H, W), with stride 4, as (36, I * tiles)."""
    channels = len(image)
    c, y, x = image.strides
    view = np.lib.stride_tricks.as_strided(image, (6, 6, channels, down, across), (y, x, c, 4 * y, 4 * x), writeable=False)
    tiles = thread_buffer("tiles", view.shape, image.dtype)
    np.copyto(tiles, view)
    return tiles.reshape(36, channels * down * across)


def _multiply(tiles: np.ndarray, transformed: np.ndarray) -> np.ndarray:
    """(36, I * tiles) to (16, O * tiles)."""
    _, outputs, inputs = transformed.shape
    count = tiles.shape[1] // inputs
    spread = np.matmul(_TILES_IN, tiles, out=thread_buffer("spread", tiles.shape, tiles.dtype))
    products = thread_buffer("products", (36, outputs, count), tiles.dtype)
    np.matmul(transformed, spread.reshape(36, inputs, count), out=products)
    gathered = thread_buffer("tiles", (16, outputs * count), tiles.dtype)
    return np.matmul(_TILES_OUT, products.reshape(36, outputs * count), out=gathered)


def _untile(gathered: np.ndarray, out: np.ndarray, down: int, across: int) -> None:
    """Write the 4x4 results of (16, O * tiles) to their positions in (O, rows, width); what is beyond the border is dropped."""
    outputs, height, width = out.shape
    results = gathered.reshape(4, 4, outputs, down, across)
    for y in range(min(4, height)):
        for x in range(min(4, width)):
            region = out[:, y::4, x::4]
            region[...] = results[y, x, :, : region.shape[1], : region.shape[2]]
