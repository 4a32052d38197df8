"""Functions that NumPy lacks."""

from __future__ import annotations

import math

import numpy as np

_BLOCK = 1 << 15

# A rational minimax approximation x * P(x*x) / Q(x*x) of erf on [-4, 4], good to float32's rounding.
_P = (-2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05, -7.34990630326855e-04,
      -2.95459980854025e-03, -1.60960333262415e-02)  # fmt: skip
_Q = (-1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03, -1.42647390514189e-02)


def erf(x: np.ndarray) -> np.ndarray:
    """The error function, in the type of ``x`` (float32 or float64; float16 through float32)."""
    if x.dtype == np.float64:
        return _erf64(x)
    values = np.ascontiguousarray(x, np.float32).reshape(-1)
    out = np.empty_like(values)
    for start in range(0, values.size, _BLOCK):
        _erf32(values[start : start + _BLOCK], out[start : start + _BLOCK])
    return out.reshape(x.shape).astype(x.dtype, copy=False)


def _erf32(x: np.ndarray, out: np.ndarray) -> None:
    """One block, small enough to stay in cache."""
    clipped = np.clip(x, np.float32(-4), np.float32(4))
    square = clipped * clipped
    above, below = _horner(_P, square), _horner(_Q, square)
    np.multiply(clipped, above, out=out)
    np.divide(out, below, out=out)
    np.clip(out, np.float32(-1), np.float32(1), out=out)


def _horner(coefficients: tuple[float, ...], x: np.ndarray) -> np.ndarray:
    result = np.full_like(x, coefficients[0])
    for c in coefficients[1:]:
        result *= x
        result += np.float32(c)
    return result


def _erf64(x: np.ndarray) -> np.ndarray:
    """By the all-positive series 2x/sqrt(pi) exp(-x*x) sum (2x*x)^n / (2n+1)!! near 0, by a continued fraction away from it."""
    size = np.abs(x)
    near = np.minimum(size, 3.0)
    term = np.ones_like(near)
    total = np.ones_like(near)
    for n in range(1, 90):
        term = term * (2 * near * near) / (2 * n + 1)
        total = total + term
    series = 2 / math.sqrt(math.pi) * near * np.exp(-near * near) * total
    far = np.maximum(size, 3.0)
    fraction = far
    for n in range(60, 0, -1):
        fraction = far + (n / 2) / fraction
    with np.errstate(under="ignore", over="ignore"):
        tail = np.exp(-far * far) / (fraction * math.sqrt(math.pi))
    return np.asarray(np.copysign(np.where(size < 3.0, series, 1 - tail), x))
