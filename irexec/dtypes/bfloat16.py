"""bf16 in float32: rounded to nearest, ties to even.

Unlike OpenVINO on purpose, whose "to nearest even" leaves an even code as it is however near the next one is (ties
agree), and makes an infinity of a signalling NaN.
"""

from __future__ import annotations

import numpy as np


def round_bf16(array: np.ndarray) -> np.ndarray:
    """float32 values with the low 16 bits rounded away, ties to even; NaN stays NaN."""
    return _rounded_bits(array).view(np.float32)


def bf16_bits(array: np.ndarray) -> np.ndarray:
    """uint16 codes of float32 values, in the shape of ``array``."""
    return (_rounded_bits(array) >> np.uint32(16)).astype(np.uint16)


def from_bf16_bits(codes: np.ndarray) -> np.ndarray:
    """The float32 values of uint16 codes."""
    return (codes.astype(np.uint32) << np.uint32(16)).view(np.float32)


def _rounded_bits(array: np.ndarray) -> np.ndarray:
    """The float32 bits of the values after rounding: the low 16 are zero."""
    values = np.asarray(array, np.float32, order="C")
    bits = values.view(np.uint32)
    rounded = np.asarray(bits >> np.uint32(16))
    rounded &= np.uint32(1)
    rounded += np.uint32(0x7FFF)
    rounded += bits
    nan = np.isnan(values)
    if nan.any():
        # A NaN keeps its high bits, unless they alone would make it an infinity.
        rounded[nan] = np.where(bits[nan] & np.uint32(0x7F0000), bits[nan], bits[nan] | np.uint32(0x400000))
    rounded &= np.uint32(0xFFFF0000)
    return rounded
