"""Intervals and the operations on them, with the roundings of an arithmetic.

Every method returns the interval in which each correct implementation lies that computes the operation with one
rounding (or the stated number of roundings) from values inside the given intervals. The exact results are computed in
f64; the 2^-53 of f64 itself is small beside every unit roundoff but that of f64, whose unit is therefore four times as
large.

Sums: for any order of n additions, with unit roundoff u, the error is at most gamma(n) * sum |terms|, where
gamma(n) = n u / (1 - n u) (Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, section 4.2).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from irexec.errors import InputError

Mask = np.ndarray


@dataclass(frozen=True, eq=False, slots=True)
class Interval:
    """The values that one output of a layer may have.

    Attributes:
        exact: the exact result: f64 (or the carrier) for floating-point tensors, else the carrier of the type.
        low, high: least and largest value of each element, in the shape of ``exact``. NaN in both: NaN is demanded.
            -inf and inf: anything is allowed, NaN too.
        codes: codes of the portability table whose alternatives the interval includes.
        admits: for results that are not intervals, such as the index of one of several equal maxima: gives for an array
            a mask of the elements that are allowed; ``low`` and ``high`` then are the least and the largest of them.
    """

    exact: np.ndarray
    low: np.ndarray
    high: np.ndarray
    codes: tuple[str, ...] = ()
    admits: Callable[[np.ndarray], Mask] | None = field(default=None, repr=False)

    @staticmethod
    def certain(array: np.ndarray) -> Interval:
        """The interval of a tensor that is known."""
        whole = np.asarray(array)
        return Interval(whole, whole, whole)

    def open_where(self, mask: Mask) -> Interval:
        """The interval with anything allowed where a mask says so."""
        low, high = np.asarray(self.low, np.float64), np.asarray(self.high, np.float64)
        return Interval(self.exact, np.where(mask, -np.inf, low), np.where(mask, np.inf, high), self.codes)

    def moved(self, function: Callable[[np.ndarray], np.ndarray]) -> Interval:
        """The interval after a function of arrays that moves or adds elements, such as a reshape."""
        if self.is_certain:
            return Interval.certain(function(self.exact))
        return Interval(function(self.exact), function(self.low), function(self.high), self.codes)

    @property
    def is_certain(self) -> bool:
        """Whether there is only one value for each element."""
        return self.low is self.exact and self.high is self.exact and self.admits is None

    @property
    def radius(self) -> np.ndarray:
        """The larger distance from the exact result to an end, as f64; NaN becomes infinite."""
        exact = np.asarray(self.exact, np.float64)
        with np.errstate(invalid="ignore"):
            found = np.maximum(np.asarray(self.high, np.float64) - exact, exact - np.asarray(self.low, np.float64))
        found = np.where(np.isinf(exact) & (self.low == self.high), 0.0, found)
        return np.where(np.isnan(found), np.inf, found)

    @property
    def reach(self) -> float:
        """The largest radius of an element; 0 without elements."""
        return 0.0 if self.is_certain else float(self.radius.max(initial=0.0))

    @property
    def magnitude(self) -> np.ndarray:
        """The largest absolute value of each element, as f64."""
        return np.maximum(np.abs(np.asarray(self.low, np.float64)), np.abs(np.asarray(self.high, np.float64)))

    def outside(self, actual: np.ndarray) -> Mask:
        """Mask of the elements of an array of the same shape that no correct implementation gives.

        Raises:
            ValueError: the shape is another one.
        """
        found = np.asarray(actual)
        if found.shape != np.shape(self.exact):
            raise ValueError(f"the array has shape {found.shape}, expected {np.shape(self.exact)}")
        if self.admits is not None:
            return np.asarray(~self.admits(found), bool)
        if not {self.low.dtype.kind, self.high.dtype.kind} - set("biuOU"):
            return np.asarray((found < self.low) | (found > self.high), bool)
        values, low, high = floats(found), floats(self.low), floats(self.high)
        is_demanded = np.isnan(low) | np.isnan(high)
        with np.errstate(invalid="ignore"):
            is_inside = (values >= low) & (values <= high)
        return np.where(is_demanded, ~np.isnan(values), ~(is_inside | self.is_anything))

    @property
    def is_anything(self) -> Mask:
        """Mask of the elements for which anything is allowed, NaN too."""
        ends = np.asarray(self.low), np.asarray(self.high)
        if self.admits is not None or not all(end.dtype.kind == "f" for end in ends):
            return np.zeros(np.shape(self.exact), bool)
        return np.asarray(np.isneginf(ends[0]) & np.isposinf(ends[1]), bool)

    def excess(self, actual: np.ndarray) -> np.ndarray:
        """Distance of each element from the interval, in radii of the interval: 0 inside, infinite for a wrong NaN."""
        outside = self.outside(actual)
        if self.low.dtype.kind in "OU" or self.admits is not None:
            return np.where(outside, np.inf, 0.0)
        values = np.asarray(actual, np.float64)
        with np.errstate(all="ignore"):
            away = np.maximum(np.asarray(self.low, np.float64) - values, values - np.asarray(self.high, np.float64))
            ratio = away / np.maximum(self.radius, np.finfo(np.float64).tiny)
        return np.where(outside, np.where(np.isnan(ratio), np.inf, ratio), 0.0)


@dataclass(frozen=True, slots=True)
class Unbounded:
    """An output of which no bound is known: it is never accused.

    Attributes:
        reason: why, as one clause.
    """

    reason: str


Bound = Interval | Unbounded


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
        finer_unit: unit roundoff of another type in which a tensor may be held instead; 0 where there is none.
        functions: largest error of functions and of Divide in units in the last place, by the operation; see FUNCTIONS.
    """

    name: str
    unit: float
    factor_unit: float
    sum_unit: float
    smallest: float
    largest: float
    tile_unit: float = 0.0
    finer_unit: float = 0.0
    functions: Mapping[str, float] = field(default_factory=dict)

    def limit(self, type: str) -> float:
        """The published error of a function in units of roundoff, of which two are one unit in the last place."""
        return 2 * self.functions.get(type, 0.0)

    @property
    def sum_largest(self) -> float:
        """The largest finite partial sum."""
        return self.largest if self.sum_unit >= self.unit else max(self.largest, float(np.finfo(np.float32).max))

    def nearest(self, array: np.ndarray, unit: float = 0.0) -> np.ndarray:
        """The values rounded to nearest, as f64; values out of range are infinite. ``unit``: another unit roundoff."""
        values, unit = np.asarray(array, np.float64), unit or self.unit
        if unit <= 2.0**-51:
            return values
        mantissa, exponent = np.frexp(values)
        # Subnormal numbers are multiples of the last bit of the smallest normal number.
        step = 2 * unit * self.smallest
        with np.errstate(over="ignore"):
            # frexp's mantissa lies in [0.5, 1): its last bit kept is the unit roundoff.
            rounded = np.ldexp(np.rint(mantissa / unit) * unit, exponent)
            rounded = np.where(np.abs(values) < self.smallest, np.rint(values / step) * step, rounded)
        return np.where(np.abs(rounded) > self.largest, np.copysign(np.inf, values), rounded)

    def nearest_factor(self, array: np.ndarray) -> np.ndarray:
        """The values rounded as factors of products are."""
        return self.nearest(array, self.factor_unit)


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
        replace(_arithmetic("bf16-f16", 8, 16), smallest=2.0**-14, finer_unit=2.0**-11),
    )
}
"""Arithmetics by name. f16 and bf16 add products in f32; with "-sums" partial sums are rounded to the type as well, and
with "-winograd" the tiles of convolutions that are computed by Winograd's method. "bf16-f16": each tensor may be of
either type, as in a runtime in f16 with a model that has tensors of bf16."""

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
        finer_unit=max(a.finer_unit, b.finer_unit) or _finer(a, b),
        functions={**b.functions, **a.functions},
    )


def _finer(a: Arithmetic, b: Arithmetic) -> float:
    """The unit of the finer one of two types of 16 bits; 0 for f32, in which a tensor is as it is given."""
    finer, coarser = sorted((a.unit, b.unit))
    return finer if 2.0**-24 < finer < coarser else 0.0


Function = Callable[[np.ndarray], np.ndarray]


def floats(x: np.ndarray) -> np.ndarray:
    """The array as f64."""
    return np.asarray(x, np.float64)


def settled(exact: np.ndarray, low: np.ndarray, high: np.ndarray, codes: tuple[str, ...] = ()) -> Interval:
    """The interval with ends in order. NaN is demanded where both ends and the exact result are NaN; where only some of
    them are, anything is allowed."""
    exact, low, high = np.broadcast_arrays(exact, low, high)
    marks = np.isnan(exact), np.isnan(low), np.isnan(high)
    is_demanded = np.logical_and.reduce(marks)
    is_open = np.logical_or.reduce(marks) & ~is_demanded
    ends = np.minimum(low, exact), np.maximum(high, exact)
    return Interval(
        exact,
        np.where(is_demanded, np.nan, np.where(is_open, -np.inf, ends[0])),
        np.where(is_demanded, np.nan, np.where(is_open, np.inf, ends[1])),
        codes,
    )


def spanning(exact: np.ndarray, low: np.ndarray, high: np.ndarray) -> Interval:
    """The interval between two arrays: ``settled`` of floating-point numbers, else as they are."""
    is_float = exact.dtype.kind == "f"
    return settled(floats(exact), floats(low), floats(high)) if is_float else Interval(exact, low, high)


def integers_near(x: Interval, exact: np.ndarray) -> Interval:
    """The integers that a result becomes by any of the usual roundings: up, down, to zero or to nearest.

    Args:
        x: the result in floating point.
        exact: the integers of the reference kernel.
    """
    limits = np.iinfo(exact.dtype)
    low, high = np.floor(floats(x.low)), np.ceil(floats(x.high))
    # A number that does not fit saturates or wraps.
    is_open = ~((low >= float(limits.min)) & (high <= float(limits.max)))
    low, high = np.minimum(low, floats(exact)), np.maximum(high, floats(exact))
    return Interval(exact, np.where(is_open, -np.inf, low), np.where(is_open, np.inf, high))


def _single(x: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return x.astype(np.float32).astype(np.float64)


@dataclass(frozen=True, slots=True)
class Algebra:
    """Operations on intervals with the roundings of an arithmetic."""

    arithmetic: Arithmetic

    def read(self, x: Interval) -> Interval:
        """A tensor as the runtime may hold it: as given, or rounded to the type of the arithmetic.

        A number below the smallest normal one may be read as zero.
        """
        return self._read(x, self.arithmetic.nearest)

    def factor(self, x: Interval) -> Interval:
        """A tensor as a factor of a product, which tf32 rounds."""
        return self._read(x, self.arithmetic.nearest_factor)

    def _read(self, x: Interval, nearest: Function) -> Interval:
        if x.exact.dtype.kind != "f":
            return x
        low, high = nearest(x.low), nearest(x.high)
        is_small = (np.abs(floats(x.exact)) < self.arithmetic.smallest) & (x.exact != 0)
        if x.is_certain and not is_small.any() and np.array_equal(low, floats(x.exact), equal_nan=True):
            return x
        ends = floats(x.low), floats(x.high)
        low, high = np.minimum(low, ends[0]), np.maximum(high, ends[1])
        if self.arithmetic.finer_unit:
            finer = [self.arithmetic.nearest(end, self.arithmetic.finer_unit) for end in ends]
            low, high = np.minimum(low, finer[0]), np.maximum(high, finer[1])
        if x.exact.dtype == np.float64 and self.arithmetic.unit >= 2.0**-24:
            # A runtime of a coarser arithmetic may hold f64 in f32, which may lie beyond the number as given.
            low, high = np.minimum(low, _single(ends[0])), np.maximum(high, _single(ends[1]))
        low, high = np.where(is_small, np.minimum(low, 0), low), np.where(is_small, np.maximum(high, 0), high)
        largest = self.arithmetic.largest
        # A value out of range may be held as the largest number.
        low, high = np.where(ends[0] > largest, largest, low), np.where(ends[1] < -largest, -largest, high)
        return settled(floats(x.exact), low, high)

    def rounded(self, x: Interval, roundings: float = 1.0) -> Interval:
        """The interval after a number of roundings of the result."""
        return self.widened(x, roundings * self.arithmetic.unit * x.magnitude)

    def widened(self, x: Interval, radius: np.ndarray | float) -> Interval:
        """The interval made larger by an absolute error; results too small are zero, and too large ones saturate."""
        of = self.arithmetic
        with np.errstate(invalid="ignore", over="ignore"):
            reach = np.asarray(radius) + of.smallest
            low, high = floats(x.low) - reach, floats(x.high) + reach
        # An exact infinity stays one; the difference above would make it NaN where the radius is infinite too.
        low = np.where(np.isposinf(x.low), of.largest, np.where(np.isneginf(x.low), -np.inf, low))
        high = np.where(np.isneginf(x.high), -of.largest, np.where(np.isposinf(x.high), np.inf, high))
        low = np.where(low > of.largest, of.largest, np.where(low < -of.largest, -np.inf, low))
        high = np.where(high < -of.largest, -of.largest, np.where(high > of.largest, np.inf, high))
        return settled(floats(x.exact), low, high, x.codes)

    def add(self, a: Interval, b: Interval) -> Interval:
        """a + b, rounded once."""
        with np.errstate(all="ignore"):
            return self.rounded(settled(floats(a.exact) + b.exact, floats(a.low) + b.low, floats(a.high) + b.high))

    def subtract(self, a: Interval, b: Interval) -> Interval:
        """a - b, rounded once."""
        return self.add(a, self.negated(b))

    def negated(self, x: Interval) -> Interval:
        """-x, which is not rounded."""
        return Interval(-floats(x.exact), -floats(x.high), -floats(x.low), x.codes)

    def multiply(self, a: Interval, b: Interval) -> Interval:
        """a * b, rounded once; the factors are read as they are."""
        return self.rounded(corners(np.multiply, a, b))

    def divide(self, a: Interval, b: Interval, roundings: float = 3.0) -> Interval:
        """a / b with a division or a reciprocal and a product; anything where the divisor may be zero but is not."""
        quotient = corners(np.divide, a, b)
        spans = (floats(b.low) <= 0) & (floats(b.high) >= 0) & (floats(b.low) < floats(b.high))
        return self.rounded(quotient.open_where(spans), max(roundings, self.arithmetic.limit("Divide")))

    def published(self, type: str, error: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
        """The error of a function, see ``increasing``, or the published one of its type where that is larger."""
        limit = self.arithmetic.limit(type)
        return (lambda x, y: np.maximum(error(x, y), limit * y)) if limit else error

    def increasing(self, function: Function, x: Interval, error: Callable[..., np.ndarray] | None = None) -> Interval:
        """f(x) for a function that never decreases.

        Args:
            error: of the largest |x| and |f(x)|, the error of an implementation in units of roundoff; None for a
                function without rounding.
        """
        with np.errstate(all="ignore"):
            exact = floats(function(floats(x.exact)))
            ends = (exact, exact) if x.is_certain else (function(floats(x.low)), function(floats(x.high)))
            result = settled(exact, floats(ends[0]), floats(ends[1]), x.codes)
            return result if error is None else self.approximated(x, result, error)

    def decreasing(self, function: Function, x: Interval, error: Callable[..., np.ndarray] | None = None) -> Interval:
        """f(x) for a function that never increases; see ``increasing``."""
        return self.negated(self.increasing(lambda v: -function(v), x, error))

    def smooth(self, function: Function, slope: float, x: Interval, error: Callable[..., np.ndarray]) -> Interval:
        """f(x) for a function whose slope is nowhere larger than ``slope``; see ``increasing``."""
        with np.errstate(all="ignore"):
            exact = floats(function(floats(x.exact)))
            reach = 0.0 if x.is_certain else slope * x.radius
            return self.approximated(x, settled(exact, exact - reach, exact + reach, x.codes), error)

    def approximated(self, x: Interval, result: Interval, error: Callable[..., np.ndarray]) -> Interval:
        """The result of a function of x with the error of its implementations."""
        with np.errstate(all="ignore"):
            found = error(x.magnitude, result.magnitude) * self.arithmetic.unit
            return self.widened(result, np.where(np.isnan(found), np.inf, found))

    def overflowing(self, x: Interval) -> Interval:
        """The results of exp by a power of two, which may overflow although its product with the rest would not: from
        half the largest number on, OpenVINO 2026.4 gives infinity."""
        half, low, high = self.arithmetic.largest / 2, floats(x.low), floats(x.high)
        ends = np.where(low <= -half, -np.inf, low), np.where(high >= half, np.inf, high)
        return settled(floats(x.exact), *ends, x.codes)

    def total(self, x: Interval, axes: tuple[int, ...], keepdims: bool = True) -> Interval:
        """The sum along axes, in any order."""
        count = int(np.prod([x.exact.shape[axis] for axis in axes], dtype=np.int64))
        with np.errstate(all="ignore"):
            exact, low, high, size = (
                np.sum(floats(each), axis=axes, keepdims=keepdims) for each in (x.exact, x.low, x.high, x.magnitude)
            )
            return self.summed(settled(exact, low, high), size, count)

    def gamma(self, count: np.ndarray | float) -> np.ndarray:
        """The error of ``count`` additions in any order, relative to the sum of absolute values."""
        share = np.asarray(count, np.float64) * self.arithmetic.sum_unit
        with np.errstate(all="ignore"):
            return np.where(share < 0.5, share / (1 - share), np.inf)

    def summed(self, x: Interval, magnitude: np.ndarray, count: np.ndarray | float) -> Interval:
        """A sum with the error of adding ``count`` terms whose absolute values add up to ``magnitude``, in any order,
        and with one rounding of the result."""
        with np.errstate(all="ignore"):
            error = np.where(magnitude == 0, 0.0, self.gamma(count) * magnitude) + count * self.arithmetic.smallest
            return self.rounded(self.widened(x, np.where(np.isnan(error), np.inf, error)))


def corners(function: Callable[..., np.ndarray], a: Interval, b: Interval) -> Interval:
    """The hull of a function of two tensors that is monotone in each of them."""
    with np.errstate(all="ignore"):
        exact = function(floats(a.exact), floats(b.exact))
        if a.is_certain and b.is_certain:
            return settled(exact, exact, exact)
        corners = [function(floats(x), floats(y)) for x in (a.low, a.high) for y in (b.low, b.high)]
        return settled(exact, functools.reduce(np.minimum, corners), functools.reduce(np.maximum, corners))


def hull(a: Interval, b: Interval) -> Interval:
    """The smallest interval that holds both; the exact result is that of the first."""
    return settled(floats(a.exact), np.fmin(a.low, b.low), np.fmax(a.high, b.high), (*a.codes, *b.codes))


def joined(function: Callable[..., np.ndarray], *parts: Interval) -> Interval:
    """A function of several tensors that moves elements, such as a concatenation, or decreases in none of them."""
    exact, low, high = (
        floats(function(*(floats(getattr(one, end)) for one in parts))) for end in ("exact", "low", "high")
    )
    return settled(exact, low, high)
