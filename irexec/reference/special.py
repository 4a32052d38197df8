"""Functions that NumPy lacks, and discrete Fourier transforms.

NumPy transforms in the precision of its input; axes of size 0, which it refuses, give zeros here.
Sources: DFT-7, IDFT-7, RDFT-9, IRDFT-9, STFT-15, ISTFT-16.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.lib.stride_tricks import as_strided, sliding_window_view

from irexec.reference.limits import check_memory, check_time


def round_half_away(x: np.ndarray) -> np.ndarray:
    """The nearest integer, in the type of floating-point ``x``; ties are rounded away from zero."""
    truncated = np.trunc(x)
    return truncated + np.copysign(np.abs(x - truncated) >= 0.5, x).astype(x.dtype)


def power(base: np.ndarray, exponent: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """``base`` to the power of ``exponent``, both of one floating-point type, by the rules of IEEE 754's pow.

    NumPy computes a square root where one exponent of 0.5 holds for many elements: -0 then stays -0, and minus infinity
    becomes NaN. The powers are 0 and infinity.
    """
    roots = exponent == 0.5
    if roots.any():
        base = np.where(roots, np.where(np.isneginf(base), np.inf, base + 0), base)
    return np.power(base, exponent, out=out)


def erf(x: np.ndarray) -> np.ndarray:
    """The error function of each element, computed in double precision, in the type of floating-point ``x``."""
    return np.asarray(_ERF(x), np.float64).astype(x.dtype)


def erfc(x: np.ndarray) -> np.ndarray:
    """1 - erf(x) of each element, exact where that is small, in double precision."""
    return np.asarray(_ERFC(x), np.float64)


_ERF, _ERFC = np.frompyfunc(math.erf, 1, 1), np.frompyfunc(math.erfc, 1, 1)


# Rational approximations of the quantile of the normal distribution near 0.5, in the tails and far out in them,
# good to double precision. Source: Wichura, algorithm AS 241 (PPND16); each is P and Q, highest power first.
_QUANTILE = (
    ((2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
    1.3731693765509461125e4,
      1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080e0),
     (5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
     5.3941960214247511077e3,
      6.8718700749205790830e2, 4.2313330701600911252e1, 1.0)),
    ((7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258e0,
      3.64784832476320460504e0, 5.76949722146069140550e0, 4.63033784615654529590e0, 1.42343711074968357734e0),
     (1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
      6.89767334985100004550e-1, 1.67638483018380384940e0, 2.05319162663775882187e0, 1.0)),
    ((2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
      2.96560571828504891230e-1, 1.78482653991729133580e0, 5.46378491116411436990e0, 6.65790464350110377720e0),
     (2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
      1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0)),
)  # fmt: skip


def erfinv(x: np.ndarray) -> np.ndarray:
    """The inverse of the error function: infinite at -1 and 1, NaN outside; computed in double precision."""
    values = x.astype(np.float64)
    size = np.abs(values)
    with np.errstate(all="ignore"):
        distance = np.sqrt(-np.log(np.maximum((1 - size) / 2, np.finfo(np.float64).tiny)))
        middle = values / 2 * _quotient(0, 0.180625 - np.square(values / 2))
        tail = np.copysign(np.where(distance <= 5, _quotient(1, distance - 1.6), _quotient(2, distance - 5)), values)
        found = np.where(size <= 0.85, middle, tail) / math.sqrt(2)
        found = np.where(size == 1, np.copysign(np.inf, values), np.where(size <= 1, found, np.nan))
        return np.asarray(found.astype(x.dtype))


def _quotient(row: int, x: np.ndarray) -> np.ndarray:
    numerator, denominator = _QUANTILE[row]
    return np.polyval(numerator, x) / np.polyval(denominator, x)


def sigmoid(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x))."""
    return np.asarray(1 / (1 + np.exp(-x)))


def swish(x: np.ndarray, beta: np.ndarray | np.floating | float = 1) -> np.ndarray:
    """x / (1 + exp(-beta * x))."""
    return np.asarray(x / (1 + np.exp(x * -beta)))


def elu(x: np.ndarray, alpha: float) -> np.ndarray:
    """x where it is positive, alpha * (exp(x) - 1) elsewhere."""
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def softplus(x: np.ndarray) -> np.ndarray:
    """log(1 + exp(x)), as max(x, 0) + log(1 + exp(-abs(x))), which does not overflow."""
    return np.asarray(np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))))


def mish(x: np.ndarray) -> np.ndarray:
    """x * tanh(log(1 + exp(x)))."""
    return np.asarray(x * np.tanh(softplus(x)))


def gelu(x: np.ndarray) -> np.ndarray:
    """x * (1 + erf(x / sqrt(2))) / 2, as x * erfc(-x / sqrt(2)) / 2, which does not cancel below zero."""
    return np.asarray(x * erfc(x * np.float64(-math.sqrt(0.5))) / 2).astype(x.dtype)


def gelu_tanh(x: np.ndarray) -> np.ndarray:
    """x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) / 2, close to ``gelu``, in a form that does not cancel."""
    return swish(x, 2 * math.sqrt(2 / math.pi) * (1 + 0.044715 * x * x))


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
    function = np.fft.ifftn if inverse else np.fft.fftn
    return _by_blocks(x, axes, x.shape, lambda part: function(part, axes=axes))


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
    sizes, last = list(x.shape), axes[-1]
    sizes[last] = x.shape[last] // 2 + 1 if x.shape[last] else 0
    if x.size == 0:
        return np.zeros(sizes, np.result_type(x.dtype, np.complex64))
    return _by_blocks(x, axes, sizes, lambda part: transform(np.fft.rfft(part, axis=last), axes[:-1], inverse=False))


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
