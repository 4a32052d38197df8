"""Interval arithmetic with the roundings of a stated arithmetic.

Every method returns the interval in which each correct implementation lies that computes the operation with one
rounding (or the stated number of roundings) from values inside the given intervals. The exact results are computed in
f64; the 2^-53 of f64 itself is small beside every unit roundoff but that of f64, whose unit is therefore four times as
large.

Sums: for any order of n additions, with unit roundoff u, the error is at most gamma(n) * sum |terms|, where
gamma(n) = n u / (1 - n u) (Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, section 4.2).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from irexec.bounds.arithmetic import Arithmetic
from irexec.bounds.interval import Interval

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
        spans = np.broadcast_to(spans, quotient.exact.shape)
        return self.rounded(
            Interval(
                quotient.exact, np.where(spans, -np.inf, quotient.low), np.where(spans, np.inf, quotient.high)
            ), max(roundings, self.arithmetic.limit("Divide")),
        )  # fmt: skip

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
        low, high = corners[0], corners[0]
        for corner in corners[1:]:
            low, high = np.minimum(low, corner), np.maximum(high, corner)
        return settled(exact, low, high)


def hull(a: Interval, b: Interval) -> Interval:
    """The smallest interval that holds both; the exact result is that of the first."""
    return settled(floats(a.exact), np.fmin(a.low, b.low), np.fmax(a.high, b.high), (*a.codes, *b.codes))


def joined(function: Callable[..., np.ndarray], *parts: Interval) -> Interval:
    """A function of several tensors that moves elements, such as a concatenation, or decreases in none of them."""
    exact, low, high = (
        floats(function(*(floats(getattr(one, end)) for one in parts))) for end in ("exact", "low", "high")
    )
    return settled(exact, low, high)
