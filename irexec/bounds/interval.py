"""Intervals: for each element of a tensor the values that a correct implementation may give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

Mask = np.ndarray


@dataclass(frozen=True, eq=False, slots=True)
class Interval:
    """The values that one output of a layer may have.

    Attributes:
        exact: the exact result: f64 (or the carrier) for floating-point tensors, else the carrier of the type.
        low, high: least and largest value of each element, in the shape of ``exact``. NaN in both: NaN is demanded.
            -inf and inf: anything is allowed, NaN too.
        codes: codes of the portability table whose alternatives the interval includes.
        admits: for results that are no interval, such as the index of one of several equal maxima: gives for an array
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
        if self.low.dtype.kind in "biuO" and self.high.dtype.kind in "biuO":
            return np.asarray((found < self.low) | (found > self.high), bool)
        return self._float_outside(found)

    @property
    def is_anything(self) -> Mask:
        """Mask of the elements for which anything is allowed, NaN too."""
        ends = np.asarray(self.low), np.asarray(self.high)
        if self.admits is not None or not all(end.dtype.kind == "f" for end in ends):
            return np.zeros(np.shape(self.exact), bool)
        return np.asarray(np.isneginf(ends[0]) & np.isposinf(ends[1]), bool)

    def _float_outside(self, found: np.ndarray) -> Mask:
        values = found.astype(np.float64)
        low, high = np.asarray(self.low, np.float64), np.asarray(self.high, np.float64)
        is_demanded = np.isnan(low) | np.isnan(high)
        with np.errstate(invalid="ignore"):
            is_inside = (values >= low) & (values <= high)
        return np.where(is_demanded, ~np.isnan(values), ~(is_inside | self.is_anything))

    def excess(self, actual: np.ndarray) -> np.ndarray:
        """Distance of each element from the interval, in radii of the interval: 0 inside, infinite for a wrong NaN."""
        outside = self.outside(actual)
        values = np.asarray(actual, np.float64) if self.low.dtype.kind != "O" else outside.astype(np.float64)
        if self.low.dtype.kind == "O" or self.admits is not None:
            return np.where(outside, np.inf, 0.0)
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
