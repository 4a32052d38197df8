"""Levels of a tensor in a plan: the ranges of its FakeQuantize, and the levels of attention's queries and keys."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from irexec.reference.integers import exact_values, zero_level

MOST = 256
"""Levels that a byte tells apart."""

_ROUNDED = 2.0**-16
"""Levels by which the rounding of bounds to f32 may move an index: less than the rounding of its product to f32."""


@dataclass(frozen=True)
class Grid:
    """The levels of a FakeQuantize with one range for all elements, or one for each channel (axis 1).

    Attributes:
        levels: their number, at most ``MOST``.
        input_low, input_high: the ranges of the data, f32; f64 for one of ``affine``.
        output_low, output_high: the values of the first and the last level, likewise.
    """

    levels: int
    input_low: tuple[float, ...]
    input_high: tuple[float, ...]
    output_low: tuple[float, ...]
    output_high: tuple[float, ...]

    @staticmethod
    def affine(zero: int, step: float, levels: int = MOST) -> Grid:
        """The grid whose level ``i`` is ``(i - zero) * step``, of data and of values, for a step of f32."""
        low, high = (-zero * step,), ((levels - 1 - zero) * step,)
        return Grid(levels, low, high, low, high)

    @property
    def ranges(self) -> tuple[tuple[float, ...], ...]:
        """The four bounds of each range, in the order of FakeQuantize's inputs."""
        return self.input_low, self.input_high, self.output_low, self.output_high

    @property
    def is_single(self) -> bool:
        """Whether there is one range."""
        return len(self.input_low) == 1

    @functools.cached_property
    def values(self) -> np.ndarray:
        """The value of each level of a single range: f32 (levels,)."""
        low, high, index = np.array(self.output_low), np.array(self.output_high), np.arange(self.levels, dtype=float)
        values = exact_values(index, low, high, self.levels).astype(np.float32)
        values[index == self.zero] = 0
        return values

    @functools.cached_property
    def step(self) -> np.ndarray:
        """The distance of two levels of each range, f64."""
        return (np.array(self.output_high) - np.array(self.output_low)) / (self.levels - 1)

    @functools.cached_property
    def per_unit(self) -> np.ndarray:
        """Levels in a unit of the data, for each range, f64."""
        return (self.levels - 1) / (np.array(self.input_high) - np.array(self.input_low))

    @functools.cached_property
    def origin(self) -> np.ndarray:
        """The index of the data 0 in each range, not rounded, f64."""
        return -np.array(self.input_low) * self.per_unit

    @functools.cached_property
    def zero(self) -> int:
        """The level whose value is 0 in all ranges; -1 where there is none."""
        low, high = np.array(self.output_low, np.float32), np.array(self.output_high, np.float32)
        zeros = np.where(low == 0, 0, np.where(high == 0, self.levels - 1, zero_level(low, high, self.levels)))
        return int(zeros[0]) if (zeros == zeros[0]).all() else -1

    def along(self, values: tuple[float, ...], rank: int) -> np.ndarray:
        """Values of the ranges, f32, in the shape in which they broadcast to a tensor."""
        array = np.array(values, np.float32)
        return array[0] if self.is_single else array.reshape(1, -1, *(1,) * (rank - 2))

    @property
    def is_whole(self) -> bool:
        """Whether the data 0 is a level but for the rounding of the bounds, so that it may be taken for one."""
        return bool((np.abs(self.origin - np.rint(self.origin)) <= _ROUNDED).all())


@dataclass(frozen=True)
class Scores:
    """The numbers that make scores of attention of the levels of queries and keys.

    Attributes:
        query_zero, key_zero: the levels whose values are 0.
        step: the product of the distances of two levels of each.
    """

    query_zero: int
    key_zero: int
    step: float
