"""Windows: their positions, padding, and their reduction to a maximum or mean.

Arrays are (N, C, spatial...). A window has ``kernel`` points per axis, ``dilation`` apart, and moves by ``stride``.
Everything here is arithmetic on ints or a view; only ``pad`` copies.

Loops run over the points of the window; every step is one operation on the whole map.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from irexec.errors import check
from irexec.reference.limits import ADDRESSABLE, check_memory, check_time

Mode = Literal["constant", "edge", "reflect", "symmetric"]
Pads = Sequence[tuple[int, int]]

_BLOCK = 1 << 22
"""Elements of the result that are written at once."""


def padded(data: np.ndarray, pads: Pads, mode: Mode, value: Any) -> np.ndarray:
    """np.pad with pads of 0 and more, and ``value`` for "constant"; the time of the run is looked at between blocks of
    the result."""
    shape = [size + before + after for size, (before, after) in zip(data.shape, pads, strict=True)]
    if math.prod(shape) <= _BLOCK:
        return _padded(data, pads, mode, value)
    result = np.empty(shape, data.dtype)
    _fill(result, data, pads, mode, value)
    return result


def _padded(data: np.ndarray, pads: Pads, mode: Mode, value: Any) -> np.ndarray:
    if not pads:
        # np.pad takes no empty list of pads.
        return data.copy()
    return np.pad(data, pads, mode, constant_values=value) if mode == "constant" else np.pad(data, pads, mode)


def _fill(out: np.ndarray, data: np.ndarray, pads: Pads, mode: Mode, value: Any) -> None:
    """Write the padded data, in blocks along the first axis, or the next one where an entry of it is more than a
    block."""
    step = max(1, len(out) * _BLOCK // out.size)
    for start in range(0, len(out), step):
        check_time()
        target = out[start : start + step]
        rows = _source(np.arange(start, start + len(target)) - pads[0][0], len(data), mode)
        inside = (rows >= 0) & (rows < len(data))
        if target.size > _BLOCK:
            # No axis has an index for an entry outside of the data.
            part = data[rows[0]] if inside[0] else np.empty((0, *data.shape[2:]), data.dtype)
            _fill(target[0], part, pads[1:], mode, value)
            continue
        target[~inside] = value
        target[inside] = _padded(data[rows[inside]], [(0, 0), *pads[1:]], mode, value)


def _source(positions: np.ndarray, size: int, mode: Mode) -> np.ndarray:
    """The index in an axis that each position is a copy of, before the axis from -1 down; for "constant" the position
    itself."""
    if mode == "edge" or (mode == "reflect" and size == 1):
        return positions.clip(0, size - 1)
    if mode == "constant":
        return positions
    period = 2 * size - (2 if mode == "reflect" else 0)
    within = positions % period
    return np.minimum(within, period - within - (0 if mode == "reflect" else 1))


Sizes = Sequence[int]
SpatialPads = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True)
class SlidingWindows:
    """Where the windows of one operation lie; every field has one value per spatial axis.

    Attributes:
        kernel: points of the window.
        strides: distance from one window to the next; 1 where there are no two, since any number up to 2^63 - 1 may be
            given.
        dilations: distance between neighbouring points of a window; 1 where there are no two.
        pads_begin, pads_end: padding before and after the data.
        counts: number of windows, that is the sizes of the result.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads_begin: tuple[int, ...]
    pads_end: tuple[int, ...]
    counts: tuple[int, ...]

    def __post_init__(self) -> None:
        for name, numbers in (("strides", self.counts), ("dilations", self.kernel)):
            distances = zip(getattr(self, name), numbers, strict=True)
            object.__setattr__(self, name, tuple(distance if n > 1 else 1 for distance, n in distances))

    @property
    def pads(self) -> SpatialPads:
        return self.pads_begin, self.pads_end


@dataclass(frozen=True)
class TransposedWindows:
    """Where the windows of a transposed convolution lie on its result; every field has one value per spatial axis.

    Attributes:
        strides, dilations: as for SlidingWindows, on the result.
        begins: number of cropped elements at the start of the natural result.
        natural: the sizes before anything is cropped.
        counts: the sizes of the result; beyond the end of the natural result it is zero.
    """

    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begins: tuple[int, ...]
    natural: tuple[int, ...]
    counts: tuple[int, ...]


def effective_kernel_size(kernel: Any, dilation: int) -> Any:
    """The span of a window along one axis, from its first point to its last, both included; for an int or any other
    arithmetic size."""
    return dilation * (kernel - 1) + 1


def pad(x: np.ndarray, pads: SpatialPads, value: float = 0) -> np.ndarray:
    """``x`` with its last axes padded by ``value``; ``x`` itself where there is nothing to pad."""
    begins, ends = pads
    if not any(begins) and not any(ends):
        return x
    lead = x.ndim - len(begins)
    sizes = [size + b + e for size, b, e in zip(x.shape[lead:], begins, ends, strict=True)]
    shape = (*x.shape[:lead], *sizes)
    check_memory(shape, x.dtype, "the padded input")
    padded = np.full(shape, value, x.dtype) if value else np.zeros(shape, x.dtype)
    inner = tuple(slice(b, b + size) for b, size in zip(begins, x.shape[lead:], strict=True))
    padded[(slice(None),) * lead + inner] = x
    return padded


def windows(x: np.ndarray, kernel: Sizes, strides: Sizes, dilations: Sizes, counts: Sizes) -> np.ndarray:
    """A read-only view (leading axes, counts..., kernel...) on an array that is padded already; ``counts`` windows must
    fit."""
    lead = x.ndim - len(kernel)
    item_strides = x.strides[lead:]
    between_windows = tuple(step * stride for step, stride in zip(item_strides, strides, strict=True))
    between_points = tuple(step * dilation for step, dilation in zip(item_strides, dilations, strict=True))
    shape = (*x.shape[:lead], *counts, *kernel)
    view_strides = (*x.strides[:lead], *between_windows, *between_points)
    return np.lib.stride_tricks.as_strided(x, shape, view_strides, writeable=False)


def tap_slices(tap: Sizes, counts: Sizes, strides: Sizes, dilations: Sizes) -> tuple[slice, ...]:
    """Where one point of the window meets the padded axes: ``counts`` positions per axis, ``stride`` apart."""
    axes = zip(tap, counts, strides, dilations, strict=True)
    return tuple(slice(t * d, t * d + s * (n - 1) + 1 if n else t * d, s) for t, n, s, d in axes)


# Number of values of adaptive windows held at once.
_WINDOW_VALUES = 1 << 20


def lowest(dtype: np.dtype) -> float | int:
    """The lowest finite value of a NumPy type; irexec.dtypes.elements has those of element types."""
    return float(np.finfo(dtype).min) if dtype.kind == "f" else int(np.iinfo(dtype).min)


def _padded_image(x: np.ndarray, w: SlidingWindows, value: float) -> np.ndarray:
    """``x`` padded, at the end also by as much as the last windows reach beyond the padding when counts are rounded
    up."""
    axes = zip(w.counts, w.strides, w.kernel, w.dilations, strict=True)
    covered = [(count - 1) * stride + effective_kernel_size(*points) for count, stride, *points in axes]
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
    return _reduce(np.fmax if x.dtype.kind == "f" else np.maximum, _padded_image(x, w, start), w)


def _reduce(function: np.ufunc, padded: np.ndarray, w: SlidingWindows) -> np.ndarray:
    """The points of each window combined by a function of two; one axis after the other."""
    result = padded
    axes = zip(w.kernel, w.counts, w.strides, w.dilations, strict=True)
    for axis, (taps, count, stride, dilation) in enumerate(axes, 2):
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
    padded_values, padded_positions = _padded_image(x, w, start), _padded_image(positions, w, -1)
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
    return _reduce(np.add, _padded_image(x, w, 0), w)


def window_populations(sizes: Sizes, w: SlidingWindows) -> np.ndarray:
    """The number of points of each window (counts...) that lie on the data.

    Raises:
        OpError: positions on an axis, padding included, are beyond 64 bits.
    """
    total = np.ones((), np.int64)
    axes = zip(sizes, w.kernel, w.strides, w.dilations, w.pads_begin, w.pads_end, w.counts, strict=True)
    for size, k, s, d, begin, end, count in axes:
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
