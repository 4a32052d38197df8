"""Arithmetics: how a runtime rounds, stated before a bound is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

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
        tile_unit: unit roundoff of the tiles of Winograd's method; 0 where these are finer than sums.
        functions: largest error of functions and of Divide in units in the last place, by the operation; see FUNCTIONS.
    """

    name: str
    unit: float
    factor_unit: float
    sum_unit: float
    smallest: float
    largest: float
    tile_unit: float = 0.0
    functions: Mapping[str, float] = field(default_factory=dict)

    def limit(self, type: str) -> float:
        """The published error of a function in units of roundoff, of which two are one unit in the last place."""
        return 2 * self.functions.get(type, 0.0)

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
        replace(_arithmetic("f16-winograd", 11, 16), tile_unit=2.0**-11),
        _arithmetic("bf16", 8, 128),
        _arithmetic("bf16-sums", 8, 128, sum_bits=8),
    )
}
"""Arithmetics by name. f16 and bf16 add products in f32; with "-sums" partial sums are rounded to the type as well, and
with "-winograd" the tiles of convolutions that are computed by Winograd's method."""

FUNCTIONS: Mapping[str, Mapping[str, float]] = {
    "ieee": {},
    "opencl": {
        "Divide": 2.5, "Sqrt": 3, "Exp": 3, "Log": 3, "Power": 16, "Sin": 4, "Cos": 4, "Tan": 5, "Asin": 4, "Acos": 4,
        "Atan": 5, "Sinh": 4, "Cosh": 4, "Tanh": 5, "Asinh": 4, "Acosh": 4, "Atanh": 5, "Erf": 16,
    },
    "cuda": {
        "Divide": 2.5, "Sqrt": 3.5, "Exp": 2.5, "Log": 1.5, "Power": 8.5, "Sin": 2.5, "Cos": 2.5, "Tan": 4.5,
        "Asin": 4.5, "Acos": 3.5, "Atan": 2.5, "Sinh": 3.5, "Cosh": 2.5, "Tanh": 2.5, "Asinh": 3.5, "Acosh": 4.5,
        "Atanh": 3.5, "Erf": 3.5, "ErfInv": 3.5,
    },
    "estimates": {"Divide": 3, "Sqrt": 4, "Softmax": 0.5},
}  # fmt: skip
"""Published errors of functions in units in the last place of f32; a bound is never closer than that of usual CPUs.

- ieee: division and roots rounded correctly, functions as CPUs compute them.
- opencl: The OpenCL C Specification, "Relative Error as ULPs", single precision, full profile, counted from
  the exact result (KhronosGroup/OpenCL-Docs, OpenCL_C.txt). OpenVINO builds its GPU kernels without
  -cl-fp32-correctly-rounded-divide-sqrt.
- cuda: CUDA C++ Programming Guide, "Mathematical Functions", the largest error of any version, with -prec-div=false and
  -prec-sqrt=false. It is counted from the correctly rounded result: half a unit more from the exact one. Both tables
  are side by side in intel/llvm, sycl/doc/cuda/cuda-vs-opencl-math-builtin-precisions.md.
- estimates: 1 / x and 1 / sqrt(x) by an estimate of 12 bits and one step of Newton's method, and softmax as
  exp(x - log(sum)), for each unit of the largest element.
"""


def arithmetic(name: str, functions: str = "ieee") -> Arithmetic:
    """The arithmetic of a name, with the errors of functions of a name of FUNCTIONS.

    Raises:
        InputError: there is none.
    """
    for given, known, what in ((name, ARITHMETICS, "arithmetic"), (functions, FUNCTIONS, "functions")):
        if given not in known:
            raise InputError(f"{what} {given!r} is not known, expected one of {', '.join(known)}")
    return replace(ARITHMETICS[name], functions=FUNCTIONS[functions])


def joint(a: Arithmetic, b: Arithmetic) -> Arithmetic:
    """An arithmetic as coarse as both, with the range that both have: f16 is finer than bf16, but has less range."""
    name = a.name if a.unit >= b.unit else b.name
    fields = ("unit", "factor_unit", "sum_unit", "smallest")
    return Arithmetic(
        name,
        **{field: max(getattr(a, field), getattr(b, field)) for field in fields},
        largest=min(a.largest, b.largest),
        tile_unit=max(a.tile_unit, b.tile_unit),
        functions={**b.functions, **a.functions},
    )
