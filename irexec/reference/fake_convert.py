"""f16 rounded to the values of an 8-bit floating-point type, by FakeConvert's own rules.

Source: openvino ``reference/src/op/fake_convert.cpp``.
"""

from __future__ import annotations

import numpy as np

_EXPONENT = np.uint16(0x7C00)


def round_e5m2(x: np.ndarray) -> np.ndarray:
    """f16 rounded to two bits of mantissa, halves to even; values from 57344 on, and infinities, become 57344."""
    bits = np.ascontiguousarray(x).view(np.uint16).reshape(x.shape)
    bits = np.where(np.isinf(x), (bits & np.uint16(0x8000)) | np.uint16(0x7B00), bits)
    low, tie = bits & np.uint16(0x00FF), bits & np.uint16(0x0180)
    up = ((low > 0x80) | (tie == 0x180)) & ((bits & np.uint16(0x7F00)) < 0x7B00)
    truncated = (bits + (up.astype(np.uint16) << np.uint16(8))) & np.uint16(0xFF00)
    return np.where(np.isnan(x), x, truncated.view(np.float16))


def round_e4m3(x: np.ndarray) -> np.ndarray:
    """f16 rounded to three bits of mantissa; at most 448, which NaN and infinities become too; below 2**-9 it is 0.

    Values below 2**-6 are rounded to three bits, and then truncated to the fewer that the type has there.
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
    result = mantissa + ((exponent + 15) << 10)
    return (result.astype(np.uint16) | (bits & np.uint16(0x8000))).view(np.float16)
