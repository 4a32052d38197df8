"""f16 cut to what an 8-bit float type holds, by FakeConvert's own rules.

Source: openvino ``reference/src/op/fake_convert.cpp``.
"""

from __future__ import annotations

import numpy as np

_EXPONENT = np.uint16(0x7C00)


def in_e5m2(x: np.ndarray) -> np.ndarray:
    """f16 with two bits of mantissa, at most 57344, which infinity becomes too: rounded to even, but cut at the end of the range."""
    bits = np.ascontiguousarray(x).view(np.uint16).reshape(x.shape)
    bits = np.where(np.isinf(x), (bits & np.uint16(0x8000)) | np.uint16(0x7B00), bits)
    low, tie = bits & np.uint16(0x00FF), bits & np.uint16(0x0180)
    up = ((low > 0x80) | (tie == 0x180)) & ((bits & np.uint16(0x7F00)) < 0x7B00)
    cut = (bits + (up.astype(np.uint16) << np.uint16(8))) & np.uint16(0xFF00)
    return np.where(np.isnan(x), x, cut.view(np.float16))


def in_e4m3(x: np.ndarray) -> np.ndarray:
    """f16 with three bits of mantissa, at most 448, which NaN and infinity become too; below 2**-9 it is 0.

    Numbers below 2**-6 are rounded as if they had three bits, and then cut to the fewer that they have.
    """
    bits = np.ascontiguousarray(x).view(np.uint16).reshape(x.shape)
    bits = np.where(np.abs(x.astype(np.float32)) < 2.0**-9, np.uint16(0), bits)
    exponent = ((bits & _EXPONENT) >> np.uint16(10)).astype(np.int32) - 15
    mantissa = (bits & np.uint16(0x03FF)).astype(np.int32)
    beyond = exponent > 8
    exponent = np.where(beyond, 8, np.where(exponent < -9, -15, exponent))
    mantissa = np.where(beyond, 0x300, np.where(exponent < -9, 0, mantissa))
    mantissa = np.where((exponent == 8) & (mantissa >= 0x300), 0x300, mantissa)
    up = ((mantissa & 0x7F) > 0x40) | ((mantissa & 0xC0) == 0xC0)
    up &= ((bits & np.uint16(0x7FFF)) < 0x5F80) & ~beyond
    mantissa += up.astype(np.int32) << 7
    lost = np.where((exponent < -6) & (exponent > -15), -6 - exponent, 0)
    mantissa = ((mantissa >> lost) & ~0x7F) << lost
    whole = mantissa + ((exponent + 15) << 10)
    return (whole.astype(np.uint16) | (bits & np.uint16(0x8000))).view(np.float16)
