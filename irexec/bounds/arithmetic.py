"""Arithmetics: how a runtime rounds, stated before a bound is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from irexec.errors import InputError

Rounded = np.ndarray


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Rounding of one runtime.

    Attributes:
        name: its name in options and reports.
        unit: unit roundoff of tensors and of element-wise operations: 2 to the power of minus the significant bits.
        factor_unit: unit roundoff of the factors of products; larger than ``unit`` for tf32.
        sum_unit: unit roundoff of partial sums.
        smallest: the smallest normal number; results below it may be flushed to zero.
        largest: the largest finite number; results above it may be infinite, or saturate.
    """

    name: str
    unit: float
    factor_unit: float
    sum_unit: float
    smallest: float
    largest: float

    @property
    def sum_largest(self) -> float:
        """The largest finite partial sum."""
        return self.largest if self.sum_unit >= self.unit else max(self.largest, float(np.finfo(np.float32).max))

    def nearest(self, array: np.ndarray) -> Rounded:
        """The values rounded to nearest, as f64; values out of range are infinite."""
        return _nearest(array, self.unit, self.smallest, self.largest)

    def nearest_factor(self, array: np.ndarray) -> Rounded:
        """The values rounded as factors of products are."""
        return _nearest(array, self.factor_unit, self.smallest, self.largest)


def _nearest(array: np.ndarray, unit: float, smallest: float, largest: float) -> Rounded:
    values = np.asarray(array, np.float64)
    if unit <= 2.0**-51:
        return values
    mantissa, exponent = np.frexp(values)
    # Subnormal numbers are multiples of the last bit of the smallest normal number.
    step = 2 * unit * smallest
    with np.errstate(over="ignore"):
        # frexp's mantissa lies in [0.5, 1): its last bit kept is the unit roundoff.
        rounded = np.ldexp(np.rint(mantissa / unit) * unit, exponent)
        rounded = np.where(np.abs(values) < smallest, np.rint(values / step) * step, rounded)
    return np.where(np.abs(rounded) > largest, np.copysign(np.inf, values), rounded)


def _arithmetic(name: str, bits: int, exponent: int, factor_bits: int | None = None, sum_bits: int = 24) -> Arithmetic:
    unit = 2.0**-bits
    largest = (2 - 2 * unit) * 2.0 ** (exponent - 1)
    return Arithmetic(
        name, unit, 2.0 ** -(factor_bits or bits), 2.0**-sum_bits, 2.0 ** (2 - exponent), largest,
    )  # fmt: skip


# f64 has two bits less than the type, since the exact results are computed in f64 themselves.
_F64 = Arithmetic("f64", 2.0**-51, 2.0**-51, 2.0**-51, 2.0**-1022, float(np.finfo(np.float64).max))

ARITHMETICS: Mapping[str, Arithmetic] = {
    one.name: one
    for one in (
        _F64,
        _arithmetic("f32", 24, 128),
        _arithmetic("tf32", 24, 128, factor_bits=11),
        _arithmetic("f16", 11, 16),
        _arithmetic("f16-sums", 11, 16, sum_bits=11),
        _arithmetic("bf16", 8, 128),
        _arithmetic("bf16-sums", 8, 128, sum_bits=8),
    )
}
"""Arithmetics by name. f16 and bf16 add products in f32; with "-sums" partial sums are rounded to the type as well."""


def arithmetic(name: str) -> Arithmetic:
    """The arithmetic of a name.

    Raises:
        InputError: there is none.
    """
    try:
        return ARITHMETICS[name]
    except KeyError:
        raise InputError(f"arithmetic {name!r} is not known, expected one of {', '.join(ARITHMETICS)}") from None


def joint(a: Arithmetic, b: Arithmetic) -> Arithmetic:
    """An arithmetic as coarse as both, with the range that both have: f16 is finer than bf16, but has less range."""
    name = a.name if a.unit >= b.unit else b.name
    fields = ("unit", "factor_unit", "sum_unit", "smallest")
    return Arithmetic(
        name,
        **{field: max(getattr(a, field), getattr(b, field)) for field in fields},
        largest=min(a.largest, b.largest),
    )
