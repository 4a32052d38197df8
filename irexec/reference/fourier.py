"""Discrete Fourier transforms of arrays whose complex numbers are pairs along a last axis of 2.

NumPy transforms in the precision of its input; axes of size 0, which it refuses, give zeros here.
Sources: DFT-7, IDFT-7, RDFT-9, IRDFT-9, STFT-15, ISTFT-16.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import as_strided, sliding_window_view


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
    return np.fft.ifftn(x, axes=axes) if inverse else np.fft.fftn(x, axes=axes)


def from_real(x: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    """The transform of real numbers: n // 2 + 1 points along the last of the axes, all along the others."""
    sizes = list(x.shape)
    sizes[axes[-1]] = x.shape[axes[-1]] // 2 + 1 if x.shape[axes[-1]] else 0
    if x.size == 0:
        return np.zeros(sizes, np.result_type(x.dtype, np.complex64))
    return transform(np.fft.rfft(x, axis=axes[-1]), axes[:-1], inverse=False)


def to_real(x: np.ndarray, axes: Sequence[int], size: int) -> np.ndarray:
    """The inverse of :func:`from_real`, of ``size`` along the last of the axes."""
    sizes = list(x.shape)
    sizes[axes[-1]] = size
    if x.size == 0 or size == 0:
        return np.zeros(sizes, x.real.dtype)
    return np.fft.irfft(transform(x, axes[:-1], inverse=True), size, axis=axes[-1])


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
    result = np.zeros((batch, (count - 1) * step + size if count else 0), frames.dtype)
    interval = -(-size // step)
    for first in range(min(interval, count)):
        disjoint = frames[:, first::interval]
        strides = (result.strides[0], interval * step * result.strides[1], result.strides[1])
        target = as_strided(result[:, first * step :], disjoint.shape, strides)
        target += disjoint
    return result
