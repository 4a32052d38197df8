"""Fast forward convolution: weights packed once, an algorithm picked by shape, blocks that stay in cache.

``prepare`` returns a function on float arrays (N, G*I, spatial...). It keeps nothing between calls but
thread-local buffers, so threads may share it. ``irexec.reference.convolution`` is the reference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from irexec.backend.depthwise import prepare_depthwise
from irexec.backend.registry import fast_kernel
from irexec.backend.winograd import convolve_tiles, tile_count, transform_weights
from irexec.backend.workspace import BLOCK, padded, thread_buffer
from irexec.ir.facts import Fact
from irexec.reference.windows import SlidingWindows, tap_slices, windows
from irexec.schema.convolution import ConvolutionAttributes

Sizes = Sequence[int]
Convolve = Callable[[np.ndarray, SlidingWindows], np.ndarray]

# Below this many tiles the 36 products of Winograd are bound by loading their weights; below this many channels the tile
# transforms cost more than the products save.
MINIMUM_TILES = 9
MINIMUM_CHANNELS = 24


def prepare(weights: np.ndarray, strides: Sizes, dilations: Sizes, out_sizes: Sizes | None) -> Convolve:
    """A convolution with weights (G, O, I, kernel...) of float type.

    ``out_sizes`` are the spatial sizes of the result if they are known: without them Winograd is not considered.
    """
    groups, outputs, inputs, *kernel = weights.shape
    if groups == 1:
        representatives = _equal_outputs(weights[0])
        if representatives is not None:
            distinct = np.unique(representatives)
            convolve = prepare(weights[:, distinct], strides, dilations, out_sizes)
            spread = np.searchsorted(distinct, representatives)
            return lambda x, placed: convolve(x, placed)[:, spread]
    if inputs == outputs == 1 and groups > 1:
        return prepare_depthwise(weights, strides, dilations)
    if math.prod(kernel) == 1:
        return _pointwise(weights, strides)
    if out_sizes is not None and _suits_winograd(weights, strides, dilations, out_sizes):
        transformed = transform_weights(weights[0])
        return lambda x, placed: convolve_tiles(x, transformed, placed.pads)
    return _by_columns(weights, strides, dilations)


def _equal_outputs(weights: np.ndarray) -> np.ndarray | None:
    """For each output channel the first that has the same weights; None where most have weights of their own.

    Equal channels are computed once, not only to save work: a product may round the rows of its blocks
    differently, and a later operation (a Softmax of very large values) may amplify the difference.
    """
    seen: dict[bytes, int] = {}
    first = [seen.setdefault(row.tobytes(), i) for i, row in enumerate(weights)]
    return np.array(first) if 2 * len(seen) <= len(first) else None


def _suits_winograd(weights: np.ndarray, strides: Sizes, dilations: Sizes, out_sizes: Sizes) -> bool:
    groups, outputs, inputs, *kernel = weights.shape
    fits = groups == 1 and kernel == [3, 3] and set(strides) == set(dilations) == {1} and weights.dtype == np.float32
    worth = min(outputs, inputs) >= MINIMUM_CHANNELS and tile_count(*out_sizes) >= MINIMUM_TILES if fits else False
    return fits and worth


def _pointwise(weights: np.ndarray, strides: Sizes) -> Convolve:
    """Kernels of one point: a product on the pixels themselves."""
    groups, outputs, inputs, *kernel = weights.shape
    matrix = np.ascontiguousarray(weights.reshape(groups, outputs, inputs))
    ones = (1,) * len(kernel)
    every = tuple(strides) == ones

    def run(x: np.ndarray, placed: SlidingWindows) -> np.ndarray:
        if every and not any(placed.pads_begin) and not any(placed.pads_end):
            images = x.reshape(len(x), groups, inputs, math.prod(x.shape[2:]))
            return np.matmul(matrix, images).reshape(len(x), groups * outputs, *x.shape[2:])
        counts = placed.counts
        out = np.empty((len(x), groups, outputs, math.prod(counts)), x.dtype)
        for image, result in zip(x, out, strict=True):
            picked = padded(image, *placed.pads)[(slice(None), *tap_slices([0] * len(counts), counts, strides, ones))]
            pixels = _compact(picked).reshape(groups, inputs, math.prod(counts))
            np.matmul(matrix, pixels, out=result)
        return out.reshape(len(x), groups * outputs, *counts)

    return run


def _compact(x: np.ndarray) -> np.ndarray:
    """``x`` itself if it is contiguous, else a copy in a thread-local buffer."""
    if x.flags.c_contiguous:
        return x
    copy = thread_buffer("columns", x.shape, x.dtype)
    np.copyto(copy, x)
    return copy


def _by_columns(weights: np.ndarray, strides: Sizes, dilations: Sizes) -> Convolve:
    """Windows copied side by side, a block of rows at a time, and one product per group and block."""
    groups, outputs, inputs, *kernel = weights.shape
    depth = inputs * math.prod(kernel)
    matrix = np.ascontiguousarray(weights.reshape(groups, outputs, depth))
    rank = len(kernel)
    points_first = (0, *range(1 + rank, 1 + 2 * rank), *range(1, 1 + rank))

    def run(x: np.ndarray, placed: SlidingWindows) -> np.ndarray:
        counts = placed.counts
        out = np.empty((len(x), groups, outputs, math.prod(counts)), x.dtype)
        per_row = math.prod(counts[1:])
        rows = max(1, BLOCK // max(1, groups * depth * per_row * x.itemsize))
        for image, result in zip(x, out, strict=True):
            view = windows(padded(image, *placed.pads), kernel, strides, dilations, counts).transpose(points_first)
            for first in range(0, counts[0], rows):
                part = view[(slice(None),) * (1 + rank) + (slice(first, first + rows),)]
                columns = thread_buffer("columns", part.shape, x.dtype)
                np.copyto(columns, part)
                span = part.shape[1 + rank] * per_row
                block = result[:, :, first * per_row : first * per_row + span]
                np.matmul(matrix, columns.reshape(groups, depth, span), out=block)
        return out.reshape(len(x), groups * outputs, *counts)

    return run


@fast_kernel("Convolution", since=1)
def convolution(data: Fact, filter: Fact, *, attributes: ConvolutionAttributes) -> Callable[..., np.ndarray] | None:
    """Known weights of one group."""
    weights = float_weights(data, filter)
    return None if weights is None else _prepared(data, weights[None], attributes)


@fast_kernel("GroupConvolution", since=1)
def group_convolution(data: Fact, filter: Fact, *, attributes: ConvolutionAttributes) -> Callable[..., np.ndarray] | None:
    """Known weights of several groups."""
    weights = float_weights(data, filter)
    return None if weights is None else _prepared(data, weights, attributes)


def _prepared(data: Fact, weights: np.ndarray, attributes: ConvolutionAttributes) -> Callable[..., np.ndarray]:
    kernel = weights.shape[3:]
    fixed = None
    if data.shape is not None:
        sizes = [size for size in data.shape[2:] if isinstance(size, int)]
        fixed = attributes.windows(sizes, kernel) if len(sizes) == len(kernel) else None
    convolve = prepare(weights, *attributes.steps(len(kernel)), None if fixed is None else fixed.counts)

    def run(data: np.ndarray, filter: np.ndarray) -> np.ndarray:
        placed = fixed or attributes.windows(data.shape[2:], kernel)
        with np.errstate(all="ignore"):
            return narrowed(convolve(data.astype(weights.dtype, copy=False), placed), data.dtype)

    return run


def float_weights(data: Fact, filter: Fact) -> np.ndarray | None:
    """Weights in the type to compute in, if they are known, of a float type, and there is something to compute."""
    known = filter.known
    if known is None or known.dtype.kind != "f" or known.size == 0 or data.element is not filter.element:
        return None
    return known.astype(np.float32) if known.dtype == np.float16 else known


def narrowed(result: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The result in the type of the data."""
    return result if result.dtype == dtype else result.astype(dtype)
