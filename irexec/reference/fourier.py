"""Discrete Fourier transforms of arrays whose complex numbers are pairs along a last axis of 2.

NumPy transforms in the precision of its input; here axes without a number, which it refuses, give zeros.
Sources: DFT-7, IDFT-7, RDFT-9, IRDFT-9, STFT-15, ISTFT-16.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import as_strided, sliding_window_view


def joined(pairs: np.ndarray) -> np.ndarray:
    """(..., 2) of floats as (...) of complex numbers."""
    return np.ascontiguousarray(pairs).view(np.result_type(pairs.dtype, np.complex64))[..., 0]


def parted(numbers: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """(...) of complex numbers as (..., 2) of floats of ``dtype``."""
    return np.ascontiguousarray(numbers).view(numbers.real.dtype).reshape(*numbers.shape, 2).astype(dtype, copy=False)


def fitted(x: np.ndarray, axes: Sequence[int], sizes: Sequence[int]) -> np.ndarray:
    """Each axis cut to its size, or filled up with zeros at its end."""
    for axis, size in zip(axes, sizes, strict=True):
        have = x.shape[axis]
        if size < have:
            x = x[(slice(None),) * axis + (slice(0, size),)]
        elif size > have:
            missing = np.zeros((*x.shape[:axis], size - have, *x.shape[axis + 1 :]), x.dtype)
            x = np.concatenate([x, missing], axis)
    return x


def transform(x: np.ndarray, axes: Sequence[int], inverse: bool) -> np.ndarray:
    """The transform of complex numbers along axes; the inverse is divided by the number of them. Nothing of size 0."""
    if x.size == 0 or not axes:
        return x
    return np.fft.ifftn(x, axes=axes) if inverse else np.fft.fftn(x, axes=axes)


def from_real(x: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    """The first half (and one) of the transform along the last of the axes; along the others it is whole."""
    sizes = list(x.shape)
    sizes[axes[-1]] = x.shape[axes[-1]] // 2 + 1 if x.shape[axes[-1]] else 0
    if x.size == 0:
        return np.zeros(sizes, np.result_type(x.dtype, np.complex64))
    return transform(np.fft.rfft(x, axis=axes[-1]), axes[:-1], inverse=False)


def to_real(x: np.ndarray, axes: Sequence[int], size: int) -> np.ndarray:
    """The inverse of :func:`from_real`, ``size`` numbers along the last of the axes."""
    sizes = list(x.shape)
    sizes[axes[-1]] = size
    if x.size == 0 or size == 0:
        return np.zeros(sizes, x.real.dtype)
    return np.fft.irfft(transform(x, axes[:-1], inverse=True), size, axis=axes[-1])


def centred(window: np.ndarray, size: int) -> np.ndarray:
    """The window between zeros that fill it up to ``size``, the larger half behind."""
    before = (size - len(window)) // 2
    return np.pad(window, (before, size - len(window) - before))


def frames_of(signal: np.ndarray, size: int, step: int) -> np.ndarray:
    """(..., N) -> a view (..., frames, size): every ``step``-th run of ``size`` numbers."""
    return sliding_window_view(signal, size, axis=-1)[..., ::step, :]


def overlapped(frames: np.ndarray, step: int) -> np.ndarray:
    """(batch, frames, size) -> (batch, (frames - 1) * step + size): the sum of frames laid ``step`` apart.

    Frames that are far enough apart not to touch are added at once.
    """
    batch, many, size = frames.shape
    result = np.zeros((batch, (many - 1) * step + size if many else 0), frames.dtype)
    apart = -(-size // step)
    for first in range(min(apart, many)):
        some = frames[:, first::apart]
        strides = (result.strides[0], apart * step * result.strides[1], result.strides[1])
        places = as_strided(result[:, first * step :], some.shape, strides)
        places += some
    return result
