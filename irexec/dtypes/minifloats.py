"""The numbers that the codes of float types below 16 bits stand for.

Sources: OCP 8-bit Floating Point Specification 1.0 (E4M3, E5M2), OCP Microscaling Formats 1.0
(E8M0, E2M1), Dettmers et al. 2023, QLoRA, appendix E (NF4).
"""

from __future__ import annotations

import functools

import numpy as np

from irexec.errors import OpError

# The quantiles of a normal distribution, scaled so that they span -1..1 and include 0.
_NF4 = (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
)  # fmt: skip

# The greatest float32 that still rounds to each code of nf4 but the last. These are the means of neighbours; where float32 lacks
# the mean, the side on which OpenVINO has it (found by bisection) is not always the even one.
NF4_STEPS = np.array(
    [
        -0.84809643, -0.6106329, -0.45999527, -0.33967942, -0.2346074, -0.13791174, -0.045525018, 0.03979015,
        0.120255254, 0.20352125, 0.29201376, 0.38931254, 0.5016634, 0.6427869, 0.8614784,
    ],
    np.float32,
)  # fmt: skip


@functools.cache
def table(name: str) -> np.ndarray:
    """float32 values by code of f8e4m3, f8e5m2, f8e8m0, f4e2m1 or nf4; read-only."""
    values = _values(name).astype(np.float32)
    values.flags.writeable = False
    return values


def _values(name: str) -> np.ndarray:
    if name == "nf4":
        return np.array(_NF4)
    if name == "f8e8m0":
        powers = np.exp2(np.arange(256, dtype=np.float64) - 127)
        powers[255] = np.nan
        return powers
    if name == "f4e2m1":
        return _minifloat(2, 1, 1)
    if name == "f8e5m2":
        values = _minifloat(5, 2, 15)
        values[[0x7C, 0xFC]] = np.inf, -np.inf
        values[0x7D:0x80], values[0xFD:] = np.nan, -np.nan
        return values
    if name == "f8e4m3":
        values = _minifloat(4, 3, 7)
        values[[0x7F, 0xFF]] = np.nan, -np.nan
        return values
    raise OpError(f"{name} is no float type below 16 bits")


def _minifloat(exponent_bits: int, mantissa_bits: int, bias: int) -> np.ndarray:
    """The finite value of every code: sign, exponent, mantissa, with subnormals."""
    half = np.arange(1 << (exponent_bits + mantissa_bits))
    exponent, mantissa = half >> mantissa_bits, (half & ((1 << mantissa_bits) - 1)) / (1 << mantissa_bits)
    normal = np.exp2(exponent - bias) * (1 + mantissa)
    positive = np.where(exponent == 0, np.exp2(1 - bias) * mantissa, normal)
    return np.concatenate([positive, -positive])
