"""Convolution and transposed convolution, plainly: one product per group and a copy of every window.

Data is (N, G*I, spatial...). Weights come split by group: (G, O, I, kernel...) forward, (G, I, O, kernel...)
transposed; I and O count channels of one group. Any number of spatial axes, any numeric type; integers wrap.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from irexec.reference.windows import Pads, extent, pad, tap_slices, window_counts, windows

Sizes = Sequence[int]


def convolve(x: np.ndarray, weights: np.ndarray, strides: Sizes, dilations: Sizes, pads: Pads, pad_value: float = 0) -> np.ndarray:
    """(N, G*I, spatial...) and (G, O, I, kernel...) to (N, G*O, counts...)."""
    groups, outputs, _, *kernel = weights.shape
    counts = window_counts(x.shape[2:], kernel, strides, dilations, pads)
    view = windows(pad(x, pads, pad_value), kernel, strides, dilations, counts)
    return multiply_columns(columns(view, len(counts), groups), weights).reshape(len(x), groups * outputs, *counts)


def columns(view: np.ndarray, rank: int, groups: int) -> np.ndarray:
    """Windows (N, G*I, counts..., kernel...) as (N, G, I * kernel, counts): what a group's weights are multiplied by."""
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


def natural_sizes(sizes: Sizes, kernel: Sizes, strides: Sizes, dilations: Sizes) -> tuple[int, ...]:
    """The spatial sizes of a transposed convolution before anything is cut: ``stride * (in - 1) + dilation * (K - 1) + 1``.

    An axis of size 0 counts as 1 here, as in OpenVINO's shape inference.
    """
    return tuple(s * max(0, n - 1) + extent(k, d) for n, k, s, d in zip(sizes, kernel, strides, dilations, strict=True))


def convolve_transposed(
    x: np.ndarray, weights: np.ndarray, strides: Sizes, dilations: Sizes, begins: Sizes, out_sizes: Sizes
) -> np.ndarray:
    """(N, G*I, spatial...) and (G, I, O, kernel...) to (N, G*O, out_sizes...).

    ``begins`` is what is cut at the start of the natural result; ``out_sizes`` may reach beyond its end,
    where the result is zero.
    """
    n, _, *sizes = x.shape
    groups, inputs, outputs, *kernel = weights.shape
    matrix = weights.reshape(groups, inputs, outputs * math.prod(kernel)).transpose(0, 2, 1)
    with np.errstate(all="ignore"):
        parts = np.matmul(matrix, x.reshape(n, groups, inputs, math.prod(sizes)))
    parts = parts.reshape(n, groups * outputs, *kernel, *sizes)
    natural = natural_sizes(sizes, kernel, strides, dilations)
    reach = [max(size, b + out) for size, b, out in zip(natural, begins, out_sizes, strict=True)]
    full = np.zeros((n, groups * outputs, *reach), parts.dtype)
    for tap in np.ndindex(*kernel):
        full[(slice(None), slice(None), *tap_slices(tap, sizes, strides, dilations))] += parts[(slice(None), slice(None), *tap)]
    inner = tuple(slice(b, b + out) for b, out in zip(begins, out_sizes, strict=True))
    return np.ascontiguousarray(full[(slice(None), slice(None), *inner)])


def convolve_bits(x: np.ndarray, bits: np.ndarray, strides: Sizes, dilations: Sizes, pads: Pads, pad_value: float) -> np.ndarray:
    """Points where data and bits agree, less those where they do not: (N, I, Y, X) and (O, I, kernel...) to (N, O, ...).

    Data that is neither 0 nor 1 agrees with nothing; the padding has the value ``pad_value`` in the data's type.
    """
    padded = pad(x, pads, x.dtype.type(pad_value))
    nothing: Pads = ((0,) * len(strides), (0,) * len(strides))
    ones, zeros = ((padded == bit).astype(np.float64) for bit in (1, 0))
    weights = bits[None].astype(np.float64)
    agree = convolve(ones, weights, strides, dilations, nothing) + convolve(zeros, 1 - weights, strides, dilations, nothing)
    balance = 2 * agree - math.prod(bits.shape[1:])
    whole: np.ndarray = balance if x.dtype.kind == "f" else balance.astype(np.int64)
    return whole.astype(x.dtype)
