"""Discrete Fourier transforms of arrays whose complex numbers are pairs along a last axis of 2.

NumPy transforms in the precision of its input; axes of size 0, which it refuses, give zeros here.
Sources: DFT-7, IDFT-7, RDFT-9, IRDFT-9, STFT-15, ISTFT-16.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.lib.stride_tricks import as_strided, sliding_window_view

from irexec.reference.limits import check_memory, check_time

# Number of values transformed at once.
_BLOCK = 1 << 16


def to_complex(pairs: np.ndarray) -> np.ndarray:
    """(..., 2) of floats as (...) of complex numbers."""
    return np.ascontiguousarray(pairs).view(np.result_type(pairs.dtype, np.complex64))[..., 0]


def to_pairs(points: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """(...) of complex numbers as (..., 2) of floats of ``dtype``."""
    return np.ascontiguousarray(points).view(points.real.dtype).reshape(*points.shape, 2).astype(dtype, copy=False)


def resized(x: np.ndarray, axes: Sequence[int], sizes: Sequence[int]) -> np.ndarray:
    """Each axis truncated to its size, or padded with zeros at its end."""
    for axis, size in zip(axes, sizes, strict=True):
        current = x.shape[axis]
        if size < current:
            x = x[(slice(None),) * axis + (slice(0, size),)]
        elif size > current:
            missing = np.zeros((*x.shape[:axis], size - current, *x.shape[axis + 1 :]), x.dtype)
            x = np.concatenate([x, missing], axis)
    return x


def transform(x: np.ndarray, axes: Sequence[int], inverse: bool) -> np.ndarray:
    """The transform of complex numbers along axes; the inverse is divided by the number of points."""
    if x.size == 0 or not axes:
        return x
    return _by_blocks(
        x, axes, x.shape, lambda part: np.fft.ifftn(part, axes=axes) if inverse else np.fft.fftn(part, axes=axes)
    )


def _by_blocks(
    x: np.ndarray, axes: Sequence[int], shape: Sequence[int], compute: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """``compute`` of an array, which gives ``shape``, by blocks along an axis that is not among ``axes``.

    NumPy takes several times the memory of what it transforms.
    """
    kept = [axis for axis in range(x.ndim) if axis not in axes and x.shape[axis] > 1]
    if not kept or x.size <= _BLOCK:
        return compute(x)
    before = (slice(None),) * kept[0]
    step = max(_BLOCK * x.shape[kept[0]] // x.size, 1)
    result = np.empty(0)
    for begin in range(0, x.shape[kept[0]], step):
        check_time()
        index = (*before, slice(begin, begin + step))
        part = compute(x[index])
        if begin == 0:
            result = np.empty(shape, part.dtype)
        result[index] = part
    return result


def from_real(x: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    """The transform of real numbers: n // 2 + 1 points along the last of the axes, all along the others."""
    sizes = list(x.shape)
    sizes[axes[-1]] = x.shape[axes[-1]] // 2 + 1 if x.shape[axes[-1]] else 0
    if x.size == 0:
        return np.zeros(sizes, np.result_type(x.dtype, np.complex64))
    return _by_blocks(
        x, axes, sizes, lambda part: transform(np.fft.rfft(part, axis=axes[-1]), axes[:-1], inverse=False)
    )


def to_real(x: np.ndarray, axes: Sequence[int], size: int) -> np.ndarray:
    """The inverse of :func:`from_real`, of ``size`` along the last of the axes."""
    sizes = list(x.shape)
    sizes[axes[-1]] = size
    if x.size == 0 or size == 0:
        return np.zeros(sizes, x.real.dtype)
    last = axes[-1]
    return _by_blocks(
        x, axes, sizes, lambda part: np.fft.irfft(transform(part, axes[:-1], inverse=True), size, axis=last)
    )


def centered(window: np.ndarray, size: int) -> np.ndarray:
    """The window padded with zeros on both sides to ``size``, one more at the end if their number is odd."""
    before = (size - len(window)) // 2
    return np.pad(window, (before, size - len(window) - before))


def frames_of(signal: np.ndarray, size: int, step: int) -> np.ndarray:
    """(..., N) -> a view (..., frames, size): ``size`` consecutive elements at each multiple of ``step``."""
    return sliding_window_view(signal, size, axis=-1)[..., ::step, :]


def overlap_add(frames: np.ndarray, step: int) -> np.ndarray:
    """(batch, frames, size) -> (batch, (frames - 1) * step + size): the sum of frames at a stride of ``step``.

    Frames that do not overlap are added at once.
    """
    batch, count, size = frames.shape
    length = (count - 1) * step + size if count else 0
    check_memory((batch, length), frames.dtype, "the whole signal")
    result = np.zeros((batch, length), frames.dtype)
    interval = -(-size // step)
    for first in range(min(interval, count)):
        check_time()
        disjoint = frames[:, first::interval]
        strides = (result.strides[0], interval * step * result.strides[1], result.strides[1])
        target = as_strided(result[:, first * step :], disjoint.shape, strides)
        target += disjoint
    return result
