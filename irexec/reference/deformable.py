"""Deformable convolution: every point of every window is moved by an offset and sampled with linear interpolation.

Works in any number of spatial axes: between pixels it is the product of one linear weight per axis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from irexec.reference.convolution import multiply_columns
from irexec.reference.windows import SlidingWindows

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
