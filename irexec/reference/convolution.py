"""Convolution and transposed convolution: one product per group and a copy of every window.

Data is (N, G*I, spatial...). Weights come split by group: (G, O, I, kernel...) forward, (G, I, O, kernel...)
transposed; I and O count channels of one group. Any number of spatial axes, any numeric type; integers wrap.
"""

from __future__ import annotations

import dataclasses
import math

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
    whole = [
        max(size, begin + out) for size, begin, out in zip(placed.natural, placed.begins, placed.counts, strict=True)
    ]
    check_memory((n, groups * outputs, *whole), parts.dtype, "the uncropped result")
    full = np.zeros((n, groups * outputs, *whole), parts.dtype)
    for tap in np.ndindex(*kernel):
        check_time()
        taps = (slice(None), slice(None), *tap_slices(tap, sizes, placed.strides, placed.dilations))
        full[taps] += parts[(slice(None), slice(None), *tap)]
    kept = tuple(slice(begin, begin + out) for begin, out in zip(placed.begins, placed.counts, strict=True))
    return np.ascontiguousarray(full[(slice(None), slice(None), *kept)])


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
