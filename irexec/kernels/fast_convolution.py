"""Convolution, fast: weights packed once, an algorithm picked by shape, blocks that stay in cache.

``prepare`` returns a function on float arrays (N, G*I, spatial...). It keeps nothing between calls but scratch
memory of the calling thread, so threads may share it. ``irexec.kernels.convolution`` is the referee.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from irexec.kernels.scratch import BLOCK, padded, scratch
from irexec.kernels.windows import Pads, tap_slices, window_counts, windows
from irexec.kernels.winograd import convolve_tiles, tile_count, transform_weights

Sizes = Sequence[int]
Convolve = Callable[[np.ndarray, Pads], np.ndarray]

# Below this many tiles the 36 products of Winograd wait for their weights; below this many channels the tile transforms cost more
# than the products save.
LEAST_TILES = 9
LEAST_CHANNELS = 24


def prepare(weights: np.ndarray, strides: Sizes, dilations: Sizes, out_sizes: Sizes | None) -> Convolve:
    """The fast way for weights (G, O, I, kernel...) of float type.

    ``out_sizes`` are the spatial sizes of the result if they are known: without them Winograd is not considered.
    """
    groups, outputs, inputs, *kernel = weights.shape
    if inputs == outputs == 1 and groups > 1:
        return _depthwise(weights, strides, dilations)
    if math.prod(kernel) == 1:
        return _pointwise(weights, strides)
    if out_sizes is not None and _suits_winograd(weights, strides, dilations, out_sizes):
        transformed = transform_weights(weights[0])
        return lambda x, pads: convolve_tiles(x, transformed, pads)
    return _by_columns(weights, strides, dilations)


def _suits_winograd(weights: np.ndarray, strides: Sizes, dilations: Sizes, out_sizes: Sizes) -> bool:
    groups, outputs, inputs, *kernel = weights.shape
    fits = groups == 1 and kernel == [3, 3] and set(strides) == set(dilations) == {1} and weights.dtype == np.float32
    worth = min(outputs, inputs) >= LEAST_CHANNELS and tile_count(*out_sizes) >= LEAST_TILES if fits else False
    return fits and worth


def _pointwise(weights: np.ndarray, strides: Sizes) -> Convolve:
    """Kernels of one point: a product on the pixels themselves."""
    groups, outputs, inputs, *kernel = weights.shape
    matrix = np.ascontiguousarray(weights.reshape(groups, outputs, inputs))
    ones = (1,) * len(kernel)

    def run(x: np.ndarray, pads: Pads) -> np.ndarray:
        counts = window_counts(x.shape[2:], kernel, strides, ones, pads)
        out = np.empty((len(x), groups, outputs, math.prod(counts)), x.dtype)
        for image, result in zip(x, out, strict=True):
            picked = padded(image, *pads)[(slice(None), *tap_slices([0] * len(counts), counts, strides, ones))]
            pixels = _compact(picked).reshape(groups, inputs, math.prod(counts))
            np.matmul(matrix, pixels, out=result)
        return out.reshape(len(x), groups * outputs, *counts)

    return run


def _compact(x: np.ndarray) -> np.ndarray:
    """``x`` itself if it is contiguous, else a copy in scratch memory."""
    if x.flags.c_contiguous:
        return x
    copy = scratch("columns", x.shape, x.dtype)
    np.copyto(copy, x)
    return copy


def _by_columns(weights: np.ndarray, strides: Sizes, dilations: Sizes) -> Convolve:
    """Windows copied side by side, a block of rows at a time, and one product per group and block."""
    groups, outputs, inputs, *kernel = weights.shape
    depth = inputs * math.prod(kernel)
    matrix = np.ascontiguousarray(weights.reshape(groups, outputs, depth))
    rank = len(kernel)
    points_first = (0, *range(1 + rank, 1 + 2 * rank), *range(1, 1 + rank))

    def run(x: np.ndarray, pads: Pads) -> np.ndarray:
        counts = window_counts(x.shape[2:], kernel, strides, dilations, pads)
        out = np.empty((len(x), groups, outputs, math.prod(counts)), x.dtype)
        per_row = math.prod(counts[1:])
        rows = max(1, BLOCK // max(1, groups * depth * per_row * x.itemsize))
        for image, result in zip(x, out, strict=True):
            view = windows(padded(image, *pads), kernel, strides, dilations, counts).transpose(points_first)
            for first in range(0, counts[0], rows):
                part = view[(slice(None),) * (1 + rank) + (slice(first, first + rows),)]
                columns = scratch("columns", part.shape, x.dtype)
                np.copyto(columns, part)
                span = part.shape[1 + rank] * per_row
                block = result[:, :, first * per_row : first * per_row + span]
                np.matmul(matrix, columns.reshape(groups, depth, span), out=block)
        return out.reshape(len(x), groups * outputs, *counts)

    return run


def _depthwise(weights: np.ndarray, strides: Sizes, dilations: Sizes) -> Convolve:
    """One channel per group: for each point of the kernel a multiply and an add of the shifted image."""
    channels, _, _, *kernel = weights.shape
    taps = list(np.ndindex(*kernel))
    factors = [np.ascontiguousarray(weights[(slice(None), 0, 0, *tap)]).reshape(-1, *[1] * len(kernel)) for tap in taps]

    def run(x: np.ndarray, pads: Pads) -> np.ndarray:
        counts = window_counts(x.shape[2:], kernel, strides, dilations, pads)
        out = np.empty((len(x), channels, *counts), x.dtype)
        block = max(1, _CACHED // max(1, math.prod(x.shape[2:]) * x.itemsize))
        for image, result in zip(x, out, strict=True):
            for first in range(0, channels, block):
                some = slice(first, first + block)
                _shifted_sums(padded(image[some], *pads), result[some], some)
        return out

    def _shifted_sums(image: np.ndarray, result: np.ndarray, some: slice) -> None:
        product = scratch("columns", result.shape, result.dtype)
        for tap, factor in zip(taps, factors, strict=True):
            shifted = image[(slice(None), *tap_slices(tap, result.shape[1:], strides, dilations))]
            if tap == taps[0]:
                np.multiply(shifted, factor[some], out=result)
            else:
                result += np.multiply(shifted, factor[some], out=product)

    return run


# Channels of a depthwise convolution that are worked on at once: what stays in a first- or second-level cache.
_CACHED = 128 << 10
