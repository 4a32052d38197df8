"""Windows reduced to their greatest or to their mean, over any number of spatial axes.

Loops run over the points of the window; every step is one operation on the whole map.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from irexec.reference.windows import Pads, extent, pad, tap_slices

Sizes = Sequence[int]


def lowest(dtype: np.dtype) -> float | int:
    """The least finite number of a type: what a greatest starts from, and ends with where a window lies beside the data."""
    return float(np.finfo(dtype).min) if dtype.kind == "f" else int(np.iinfo(dtype).min)


def _stretched(x: np.ndarray, kernel: Sizes, strides: Sizes, dilations: Sizes, pads: Pads, counts: Sizes, value: float) -> np.ndarray:
    """``x`` padded, at the end also by what windows reach beyond the padding when counts are rounded up."""
    begins, ends = pads
    sizes = x.shape[2:]
    reach = [(n - 1) * s + extent(k, d) for n, s, k, d in zip(counts, strides, kernel, dilations, strict=True)]
    more = tuple(max(e, r - size - b) for e, r, size, b in zip(ends, reach, sizes, begins, strict=True))
    return pad(x, (begins, more), value)


def max_pool(x: np.ndarray, kernel: Sizes, strides: Sizes, dilations: Sizes, pads: Pads, counts: Sizes) -> np.ndarray:
    """The greatest of each window; padding never wins, NaN only where there is nothing else. One axis after the other."""
    shape = (*x.shape[:2], *counts)
    if 0 in shape:
        return np.zeros(shape, x.dtype)
    stretched = _stretched(x, kernel, strides, dilations, pads, counts, lowest(x.dtype))
    return _reduced(np.fmax if x.dtype.kind == "f" else np.maximum, stretched, kernel, strides, dilations, counts)


def _reduced(function: np.ufunc, padded: np.ndarray, kernel: Sizes, strides: Sizes, dilations: Sizes, counts: Sizes) -> np.ndarray:
    """The points of each window brought to one number by a function of two; one axis after the other."""
    result = padded
    for axis, (taps, count, stride, dilation) in enumerate(zip(kernel, counts, strides, dilations, strict=True), 2):
        slices = [(slice(None),) * axis + tap_slices((tap,), (count,), (stride,), (dilation,)) for tap in range(taps)]
        reduced = result[slices[0]].copy() if taps == 1 else function(result[slices[0]], result[slices[1]])
        for index in slices[2:]:
            function(reduced, result[index], out=reduced)
        result = reduced
    return result


def max_pool_indices(
    x: np.ndarray, kernel: Sizes, strides: Sizes, dilations: Sizes, pads: Pads, counts: Sizes, axis: int
) -> tuple[np.ndarray, np.ndarray]:
    """The greatest of each window and where it stands in ``x``, flattened from ``axis`` on; the first of equals.

    NaN counts only where there is nothing else; of a window beside the data it is where its channel begins.
    """
    shape = (*x.shape[:2], *counts)
    flat = np.arange(math.prod(x.shape[axis:]), dtype=np.int64).reshape(x.shape[axis:])
    places = np.broadcast_to(flat, x.shape)
    values = _stretched(x, kernel, strides, dilations, pads, counts, lowest(x.dtype))
    numbers = _stretched(places, kernel, strides, dilations, pads, counts, -1)
    best = np.full(shape, lowest(x.dtype), x.dtype)
    where = np.full(shape, -1, np.int64)
    for tap in itertools.product(*map(range, kernel)):
        index = (slice(None), slice(None), *tap_slices(tap, counts, strides, dilations))
        value, number = values[index], numbers[index]
        better = (number >= 0) & ((value > best) | (where < 0) | (np.isnan(best) & ~np.isnan(value)))
        best = np.where(better, value, best)
        where = np.where(better, number, where)
    first = places[(slice(None), slice(None), *(slice(0, 1),) * len(kernel))]
    return best, np.where(where < 0, first, where) if first.size else where


def window_sums(x: np.ndarray, kernel: Sizes, strides: Sizes, dilations: Sizes, pads: Pads, counts: Sizes) -> np.ndarray:
    """The sum of each window, padding counted as 0; one axis after the other."""
    shape = (*x.shape[:2], *counts)
    if 0 in shape:
        return np.zeros(shape, x.dtype)
    return _reduced(np.add, _stretched(x, kernel, strides, dilations, pads, counts, 0), kernel, strides, dilations, counts)


def window_populations(sizes: Sizes, kernel: Sizes, strides: Sizes, dilations: Sizes, pads: Pads, counts: Sizes) -> np.ndarray:
    """How many points of each window (counts...) lie on the data."""
    total = np.ones((), np.int64)
    for size, k, s, d, b, n in zip(sizes, kernel, strides, dilations, pads[0], counts, strict=True):
        points = np.arange(n)[:, None] * s - b + np.arange(k)[None, :] * d
        total = total[..., None] * ((points >= 0) & (points < size)).sum(1)
    return total


def adaptive_windows(size: int, out: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices (out, longest) of the windows that cut an axis into ``out`` parts, and which of them count."""
    starts = np.arange(out) * size // out
    ends = -(-(np.arange(1, out + 1) * size) // out)
    longest = int((ends - starts).max(initial=1))
    index = starts[:, None] + np.arange(longest)
    return np.minimum(index, max(size - 1, 0)), index < ends[:, None]


def adaptive_mean(x: np.ndarray, counts: Sizes) -> np.ndarray:
    """The mean of each adaptive window; one axis after the other."""
    for axis, out in enumerate(counts, 2):
        index, inside = adaptive_windows(x.shape[axis], out)
        weights = (inside / inside.sum(1, keepdims=True)).astype(x.dtype)
        taken = np.take(x, index, axis)
        shape = (1,) * axis + weights.shape + (1,) * (x.ndim - axis - 1)
        x = (taken * weights.reshape(shape)).sum(axis + 1, dtype=x.dtype)
    return x


def adaptive_max(x: np.ndarray, counts: Sizes) -> tuple[np.ndarray, np.ndarray]:
    """The greatest of each adaptive window, and its place in the flattened spatial axes; the first of equals."""
    rank = len(counts)
    flat = np.arange(math.prod(x.shape[2:]), dtype=np.int64).reshape(x.shape[2:])
    values, numbers, valid = x, flat, np.ones((), np.bool_)
    for i, out in enumerate(counts):
        index, inside = adaptive_windows(x.shape[2 + i], out)
        values = np.take(values, index, 2 + 2 * i)
        numbers = np.take(numbers, index, 2 * i)
        valid = valid[..., None, None] & inside
    order = [2 * i for i in range(rank)] + [2 * i + 1 for i in range(rank)]
    window = math.prod(numbers.shape[1::2])
    values = values.transpose(0, 1, *(2 + o for o in order)).reshape(*x.shape[:2], *counts, window)
    numbers = numbers.transpose(order).reshape(*counts, window)
    valid = valid.transpose(order).reshape(*counts, window)
    masked = np.where(valid, values, -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min)
    best = masked.argmax(-1)[..., None]
    places = np.take_along_axis(np.broadcast_to(numbers, masked.shape), best, -1)[..., 0]
    return np.take_along_axis(masked, best, -1)[..., 0].astype(x.dtype), places
