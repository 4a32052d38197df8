"""Windows reduced to their maximum or to their mean, over any number of spatial axes.

Loops run over the points of the window; every step is one operation on the whole map.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from irexec.errors import check
from irexec.reference.limits import ADDRESSABLE, check_time
from irexec.reference.windows import SlidingWindows, effective_kernel_size, pad, tap_slices

Sizes = Sequence[int]

# Number of values of adaptive windows held at once.
_WINDOW_VALUES = 1 << 20


def lowest(dtype: np.dtype) -> float | int:
    """The lowest finite value of a NumPy type; irexec.dtypes.limits has those of element types."""
    return float(np.finfo(dtype).min) if dtype.kind == "f" else int(np.iinfo(dtype).min)


def _padded(x: np.ndarray, w: SlidingWindows, value: float) -> np.ndarray:
    """``x`` padded, at the end also by as much as the last windows reach beyond the padding when counts are rounded
    up."""
    axes = zip(w.counts, w.strides, w.kernel, w.dilations, strict=True)
    covered = [
        (count - 1) * stride + effective_kernel_size(kernel, dilation) for count, stride, kernel, dilation in axes
    ]
    ends = zip(w.pads_end, covered, x.shape[2:], w.pads_begin, strict=True)
    return pad(x, (w.pads_begin, tuple(max(end, span - size - begin) for end, span, size, begin in ends)), value)


def max_pool(x: np.ndarray, w: SlidingWindows, start: float) -> np.ndarray:
    """The maximum of each window; NaN only where there is nothing else. One axis after the other.

    Padding counts as ``start``, the lowest finite value of the type: the result of a window beside the data, and of one
    that reaches beyond the data with nothing but NaN and negative infinities, as in OpenVINO 2026.4.
    """
    shape = (*x.shape[:2], *w.counts)
    if 0 in shape:
        return np.zeros(shape, x.dtype)
    return _reduce(np.fmax if x.dtype.kind == "f" else np.maximum, _padded(x, w, start), w)


def _reduce(function: np.ufunc, padded: np.ndarray, w: SlidingWindows) -> np.ndarray:
    """The points of each window combined by a function of two; one axis after the other."""
    result = padded
    for axis, (taps, count, stride, dilation) in enumerate(
        zip(w.kernel, w.counts, w.strides, w.dilations, strict=True), 2
    ):
        slices = [(slice(None),) * axis + tap_slices((tap,), (count,), (stride,), (dilation,)) for tap in range(taps)]
        reduced = result[slices[0]].copy() if taps == 1 else function(result[slices[0]], result[slices[1]])
        for index in slices[2:]:
            function(reduced, result[index], out=reduced)
        result = reduced
    return result


def max_pool_indices(x: np.ndarray, w: SlidingWindows, axis: int, start: float) -> tuple[np.ndarray, np.ndarray]:
    """The maximum of each window and its index in ``x`` flattened from ``axis`` on; the first of equals.

    Values are those of ``max_pool``. A window beside the data gives the index at which its channel begins.
    """
    shape = (*x.shape[:2], *w.counts)
    flat = np.arange(math.prod(x.shape[axis:]), dtype=np.int64).reshape(x.shape[axis:])
    positions = np.broadcast_to(flat, x.shape)
    padded_values, padded_positions = _padded(x, w, start), _padded(positions, w, -1)
    best = np.full(shape, start, x.dtype)
    found = np.full(shape, -1, np.int64)
    for tap in itertools.product(*map(range, w.kernel)):
        check_time()
        index = (slice(None), slice(None), *tap_slices(tap, w.counts, w.strides, w.dilations))
        value, position = padded_values[index], padded_positions[index]
        better = (position >= 0) & ((value > best) | (found < 0) | (np.isnan(best) & ~np.isnan(value)))
        best = np.where(better, value, best)
        found = np.where(better, position, found)
    first = positions[(slice(None), slice(None), *(slice(0, 1),) * len(w.kernel))]
    return max_pool(x, w, start), np.where(found < 0, first, found) if first.size else found


def window_sums(x: np.ndarray, w: SlidingWindows) -> np.ndarray:
    """The sum of each window, padding counted as 0; one axis after the other."""
    shape = (*x.shape[:2], *w.counts)
    if 0 in shape:
        return np.zeros(shape, x.dtype)
    return _reduce(np.add, _padded(x, w, 0), w)


def window_populations(sizes: Sizes, w: SlidingWindows) -> np.ndarray:
    """The number of points of each window (counts...) that lie on the data.

    Raises:
        OpError: positions on an axis, padding included, are beyond 64 bits.
    """
    total = np.ones((), np.int64)
    for size, k, s, d, begin, end, count in zip(
        sizes, w.kernel, w.strides, w.dilations, w.pads_begin, w.pads_end, w.counts, strict=True
    ):
        check(size + begin + end <= ADDRESSABLE, f"an axis of size {size} with pads {begin} and {end} is too long")
        start = np.arange(count) * s - begin
        # The first point that is not before the data, and the one after the last that is not beyond it.
        first, last = np.maximum(-(start // d), 0), np.minimum((size - 1 - start) // d + 1, k)
        total = total[..., None] * np.maximum(last - first, 0)
    return total


def adaptive_windows(size: int, out: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices (out, longest) of the windows that cut an axis into ``out`` parts, and which of them count."""
    starts = np.arange(out) * size // out
    ends = -(-(np.arange(1, out + 1) * size) // out)
    longest = int((ends - starts).max(initial=1))
    index = starts[:, None] + np.arange(longest)
    return np.minimum(index, max(size - 1, 0)), index < ends[:, None]


def adaptive_mean(x: np.ndarray, counts: Sizes) -> np.ndarray:
    """The mean of each adaptive window: sums along one axis after the other, then divided by the number of elements."""
    elements = np.ones((), x.dtype)
    for axis, out in enumerate(counts, 2):
        index, inside = adaptive_windows(x.shape[axis], out)
        shape = (1,) * axis + inside.shape + (1,) * (x.ndim - axis - 1)
        x = np.where(inside.reshape(shape), np.take(x, index, axis), x.dtype.type(0)).sum(axis + 1, dtype=x.dtype)
        elements = elements[..., None] * inside.sum(1).astype(x.dtype)
    return x / elements


def adaptive_max(x: np.ndarray, counts: Sizes) -> tuple[np.ndarray, np.ndarray]:
    """The maximum of each adaptive window, and its index in the flattened spatial axes; the first of equals.

    The values of all windows may take many times the memory of the input, so that only some channels are pooled at a
    time.
    """
    channels = x.reshape(math.prod(x.shape[:2]), 1, *x.shape[2:])
    values = np.empty((len(channels), 1, *counts), x.dtype)
    indices = np.empty(values.shape, np.int64)
    # A window has at most two elements more than its share of an axis.
    each = math.prod(size + 2 * out for size, out in zip(x.shape[2:], counts, strict=True))
    step = max(_WINDOW_VALUES // max(each, 1), 1)
    for begin in range(0, len(channels), step):
        check_time()
        part = slice(begin, begin + step)
        values[part], indices[part] = _adaptive_max(channels[part], counts)
    return values.reshape(*x.shape[:2], *counts), indices.reshape(*x.shape[:2], *counts)


def _adaptive_max(x: np.ndarray, counts: Sizes) -> tuple[np.ndarray, np.ndarray]:
    rank = len(counts)
    flat = np.arange(math.prod(x.shape[2:]), dtype=np.int64).reshape(x.shape[2:])
    values, positions, valid = x, flat, np.ones((), np.bool_)
    for i, out in enumerate(counts):
        index, inside = adaptive_windows(x.shape[2 + i], out)
        values = np.take(values, index, 2 + 2 * i)
        positions = np.take(positions, index, 2 * i)
        valid = valid[..., None, None] & inside
    order = [2 * i for i in range(rank)] + [2 * i + 1 for i in range(rank)]
    window = math.prod(positions.shape[1::2])
    values = values.transpose(0, 1, *(2 + o for o in order)).reshape(*x.shape[:2], *counts, window)
    positions = positions.transpose(order).reshape(*counts, window)
    valid = valid.transpose(order).reshape(*counts, window)
    masked = np.where(valid, values, -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min)
    best = masked.argmax(-1)[..., None]
    indices = np.take_along_axis(np.broadcast_to(positions, masked.shape), best, -1)[..., 0]
    return np.take_along_axis(masked, best, -1)[..., 0].astype(x.dtype), indices
