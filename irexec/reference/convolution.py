"""Convolution, plain, transposed and deformable: one product per group and a copy of every window.

Data is (N, G*I, spatial...). Weights come split by group: (G, O, I, kernel...) forward, (G, I, O, kernel...)
transposed; I and O count channels of one group. Any number of spatial axes, any numeric type; integers wrap.

X stands for the spatial axes, I for all input channels, O for the output channels of a group.

Works in any number of spatial axes: between pixels it is the product of one linear weight per axis.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from irexec.reference.limits import check_memory, check_time
from irexec.reference.windows import SlidingWindows, TransposedWindows, pad, tap_slices, windows


def convolve(x: np.ndarray, weights: np.ndarray, placed: SlidingWindows, pad_value: float = 0) -> np.ndarray:
    """(N, G*I, spatial...) and (G, O, I, kernel...) to (N, G*O, counts...)."""
    groups, outputs = weights.shape[:2]
    view = windows(pad(x, placed.pads, pad_value), placed.kernel, placed.strides, placed.dilations, placed.counts)
    matrix = columns(view, len(placed.counts), groups)
    return multiply_columns(matrix, weights).reshape(len(x), groups * outputs, *placed.counts)


def columns(view: np.ndarray, rank: int, groups: int) -> np.ndarray:
    """Windows (N, G*I, counts..., kernel...) as (N, G, I * kernel, counts): what a group's weights are multiplied
    by."""
    n, channels, *sizes = view.shape
    counts, kernel = sizes[:rank], sizes[rank:]
    points_first = (0, 1, *range(2 + rank, 2 + 2 * rank), *range(2, 2 + rank))
    return view.transpose(points_first).reshape(n, groups, channels // groups * math.prod(kernel), math.prod(counts))


def multiply_columns(matrix: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(N, G, I * kernel, counts) and (G, O, I, kernel...) to (N, G, O, counts)."""
    groups, outputs = weights.shape[:2]
    with np.errstate(all="ignore"):
        result: np.ndarray = np.matmul(weights.reshape(groups, outputs, math.prod(weights.shape[2:])), matrix)
    return result


def convolve_transposed(x: np.ndarray, weights: np.ndarray, placed: TransposedWindows) -> np.ndarray:
    """(N, G*I, spatial...) and (G, I, O, kernel...) to (N, G*O, counts...)."""
    n, _, *sizes = x.shape
    groups, inputs, outputs, *kernel = weights.shape
    matrix = weights.reshape(groups, inputs, outputs * math.prod(kernel)).transpose(0, 2, 1)
    with np.errstate(all="ignore"):
        parts = np.matmul(matrix, x.reshape(n, groups, inputs, math.prod(sizes)))
    parts = parts.reshape(n, groups * outputs, *kernel, *sizes)
    # The result may end after the natural one, where it is zero.
    ends = [begin + out for begin, out in zip(placed.begins, placed.counts, strict=True)]
    whole = (n, groups * outputs, *map(max, placed.natural, ends))
    check_memory(whole, parts.dtype, "the uncropped result")
    full = np.zeros(whole, parts.dtype)
    for tap in np.ndindex(*kernel):
        check_time()
        taps = (slice(None), slice(None), *tap_slices(tap, sizes, placed.strides, placed.dilations))
        full[taps] += parts[(slice(None), slice(None), *tap)]
    return np.ascontiguousarray(full[(slice(None), slice(None), *map(slice, placed.begins, ends))])


def convolve_bits(x: np.ndarray, bits: np.ndarray, placed: SlidingWindows, pad_value: float) -> np.ndarray:
    """Points where data and bits agree, minus those where they do not: (N, I, Y, X) and (O, I, kernel...) to (N, O,
    ...).

    Data that is neither 0 nor 1 agrees with nothing; the padding has the value ``pad_value`` in the data's type.
    """
    padded = pad(x, placed.pads, x.dtype.type(pad_value))
    unpadded = dataclasses.replace(placed, pads_begin=(0, 0), pads_end=(0, 0))
    ones, zeros = ((padded == bit).astype(np.float64) for bit in (1, 0))
    weights = bits[None].astype(np.float64)
    agree = convolve(ones, weights, unpadded) + convolve(zeros, 1 - weights, unpadded)
    balance = 2 * agree - math.prod(bits.shape[1:])
    whole: np.ndarray = balance if x.dtype.kind == "f" else balance.astype(np.int64)
    return whole.astype(x.dtype)


def filter_order(rank: int, layout: str) -> tuple[int, ...]:
    """The axes I, O and X of a filter of ``layout`` ("XIO", "OIX", ...) with ``rank`` spatial axes, in this order."""
    axes: dict[str, list[int]] = {}
    first = 0
    for letter in layout:
        axes[letter] = list(range(first, first + (rank if letter == "X" else 1)))
        first += len(axes[letter])
    return (*axes["I"], *axes["O"], *axes["X"])


def filter_by_group(filter: np.ndarray, groups: int, layout: str) -> np.ndarray:
    """The filter as (G, I of the group, O of the group, kernel...)."""
    order = filter_order(filter.ndim - 2, layout)
    channels, *others = (filter.shape[axis] for axis in order)
    return filter.transpose(order).reshape(groups, channels // groups, *others)


def channels_first(input: np.ndarray, data_format: str) -> np.ndarray:
    """Data of "NXC" or "NCX" as (N, C, spatial...)."""
    return input if data_format == "NCX" else np.ascontiguousarray(np.moveaxis(input, -1, 1))


def add_bias(result: np.ndarray, bias: np.ndarray | None, data_format: str) -> np.ndarray:
    """(N, C, spatial...), which is overwritten, with a bias for each channel, in ``data_format``."""
    if bias is not None:
        result += bias.reshape(-1, *[1] * (result.ndim - 2))
    return result if data_format == "NCX" else np.ascontiguousarray(np.moveaxis(result, 1, -1))


Sizes = Sequence[int]


def convolve_deformable(
    x: np.ndarray,
    offsets: np.ndarray,
    weights: np.ndarray,
    mask: np.ndarray | None,
    placed: SlidingWindows,
    deformable_groups: int,
    zero_pad: bool,
) -> np.ndarray:
    """(N, G*I, spatial...), offsets (N, D*K*axes, counts...), (G, O, I, kernel...), mask (N, D*K, counts...) to (N,
    G*O, counts...).

    D is ``deformable_groups``, K the points of the kernel, axes the number of spatial axes. The offset channel of
    group d, point k, axis a is (d*K + k)*axes + a.
    """
    groups, outputs, inputs, *kernel = weights.shape
    n, channels, *sizes = x.shape
    counts = offsets.shape[2:]
    points, positions = math.prod(kernel), math.prod(counts)
    moves = np.moveaxis(offsets.reshape(n, deformable_groups, points, len(sizes), *counts), 3, 0)
    coordinates = [base + move for base, move in zip(grid_of(placed, counts, offsets.dtype), moves, strict=True)]
    flat = [axis.reshape(n, deformable_groups, points * positions) for axis in coordinates]
    per_group = channels // deformable_groups
    sampled = sample(x.reshape(n, deformable_groups, per_group, *sizes), flat, zero_pad)
    if mask is not None:
        sampled = sampled * mask.reshape(n, deformable_groups, 1, points * positions)
    matrix = sampled.reshape(n, groups, inputs * points, positions)
    return multiply_columns(matrix, weights).reshape(n, groups * outputs, *counts)


def grid_of(placed: SlidingWindows, counts: Sizes, dtype: np.dtype) -> list[np.ndarray]:
    """Coordinates of the unmoved points along each axis, shaped to broadcast as (K, counts...)."""
    rank = len(placed.kernel)
    taps = np.indices(placed.kernel).reshape(rank, -1)
    grids = []
    for axis, count in enumerate(counts):
        starts = np.arange(count) * placed.strides[axis] - placed.pads_begin[axis]
        along = starts.reshape([count if i == axis else 1 for i in range(rank)])
        grids.append((taps[axis].reshape(-1, *[1] * rank) * placed.dilations[axis] + along).astype(dtype))
    return grids


def sample(x: np.ndarray, where: Sequence[np.ndarray], zero_pad: bool) -> np.ndarray:
    """Values of (N, D, C, spatial...) at positions (N, D, P), one array for each axis, as (N, D, C, P).

    With ``zero_pad`` pixels beyond the border are zero and a position less than one pixel beyond still counts;
    without it every position beyond the first or last pixel gives zero, but up to one pixel past the last gives the
    last. NaN gives zero.
    """
    n, groups, channels, *sizes = x.shape
    if 0 in sizes:
        return np.zeros((n, groups, channels, where[0].shape[-1]), x.dtype)
    inside = np.ones(where[0].shape, bool)
    for position, size in zip(where, sizes, strict=True):
        with np.errstate(invalid="ignore"):
            inside &= ((position > -1) if zero_pad else (position >= 0)) & (position < size)
    still = [np.where(inside, position, 0) for position in where]
    floors = [np.floor(position).astype(np.int64) for position in still]
    flat = x.reshape(n, groups, channels, math.prod(sizes))
    if x.dtype.kind != "f":
        return _gather(flat, floors, sizes, inside)
    total = np.zeros((n, groups, channels, where[0].shape[-1]), x.dtype)
    for corner in np.ndindex(*(2,) * len(sizes)):
        total += _corner(flat, still, floors, sizes, inside, corner, zero_pad)
    return total


def _corner(
    flat: np.ndarray,
    where: Sequence[np.ndarray],
    floors: Sequence[np.ndarray],
    sizes: Sizes,
    inside: np.ndarray,
    corner: Sequence[int],
    zero_pad: bool,
) -> np.ndarray:
    """One of the pixels around each position, times its weight."""
    weight = np.ones(inside.shape, flat.dtype)
    counts = inside
    pixels = []
    for position, floor, size, up in zip(where, floors, sizes, corner, strict=True):
        part = position - floor
        weight *= part if up else 1 - part
        pixel = floor + up
        if zero_pad:
            counts = counts & (pixel >= 0) & (pixel < size)
        pixels.append(np.clip(pixel, 0, size - 1))
    return _gather(flat, pixels, sizes, counts) * weight[:, :, None]


def _gather(flat: np.ndarray, pixels: Sequence[np.ndarray], sizes: Sizes, counts: np.ndarray) -> np.ndarray:
    """Pixels of (N, D, C, all pixels), zero where they do not count."""
    index = np.zeros(counts.shape, np.int64)
    for pixel, size in zip(pixels, sizes, strict=True):
        index = index * size + pixel
    taken = np.take_along_axis(flat, np.where(counts, index, 0)[:, :, None], axis=3)
    return np.where(counts[:, :, None], taken, flat.dtype.type(0))
