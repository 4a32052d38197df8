"""FakeQuantize in exact arithmetic, value by value, rounded once."""

from __future__ import annotations

from fractions import Fraction

import numpy as np


def rounded(exact: Fraction, dtype: np.dtype) -> np.floating:
    """The value of ``dtype`` nearest to ``exact``; halves to the one with an even last digit."""
    near = np.asarray(float(exact)).astype(dtype)
    around = (np.nextafter(near, -np.inf, dtype=dtype), near, np.nextafter(near, np.inf, dtype=dtype))
    integer = np.uint32 if near.dtype.itemsize == 4 else np.uint16
    found: np.floating = min(
        around, key=lambda x: (abs(Fraction(float(x)) - exact), int(np.asarray(x).view(integer)) % 2)
    )[()]
    return found


def _quantized(
    x: np.floating, low: np.floating, high: np.floating, out_low: np.floating, out_high: np.floating, levels: int
) -> np.floating:
    if x <= low:
        return out_low
    if x > high:
        return out_high
    exact, begin, end, first, last = (Fraction(float(value)) for value in (x, low, high, out_low, out_high))
    index = round((exact - begin) * (levels - 1) / (end - begin))
    value = first + (last - first) * index / (levels - 1)
    half = Fraction(float(np.spacing(np.asarray(float(abs(last - first))).astype(x.dtype)))) / 2
    if 0 < index < levels - 1 and abs(value) <= half and abs(value) < abs(last - first) / (levels - 1) / 2:
        value = Fraction(0)
    return rounded(value, x.dtype)


def fake_quantize(x: np.ndarray, *bounds: np.ndarray, levels: int) -> np.ndarray:
    """What FakeQuantize gives for input_low < input_high: x and input_low, input_high, output_low, output_high, of one type."""
    arrays = np.broadcast_arrays(x, *bounds)
    values = [_quantized(*each, levels) for each in zip(*(array.ravel() for array in arrays), strict=True)]
    return np.array(values, x.dtype).reshape(x.shape)
