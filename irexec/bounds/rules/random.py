"""Random numbers: their shape and their range."""

from __future__ import annotations

import numpy as np

from irexec.bounds.algebra import floats
from irexec.bounds.interval import Bound, Interval, Unbounded
from irexec.bounds.registry import Layer, rule
from irexec.ir.integers import integer, integers


@rule("RandomUniform", integers=True)
def uniform(layer: Layer, shape: Interval, least: Interval, most: Interval) -> Bound:
    """Any number of the range; one that is rounded may reach its end. ``exact`` is the beginning of the range."""
    sizes, element = integers(shape.exact, "shape"), layer.element
    if element is None:
        return Unbounded("the element type is not known")
    low, high = floats(least.low).reshape(()), floats(most.high).reshape(())
    high = high if element.is_float else high - 1
    first = np.full(sizes, low, np.float64)
    return Interval(first, first, np.full(sizes, high, np.float64))


@rule("Multinomial", integers=True)
def sampled(layer: Layer, probabilities: Interval, count: Interval) -> Bound:
    """The index of any class. ``exact`` is the first one."""
    shape = (*probabilities.exact.shape[:-1], integer(count.exact, "num_samples"))
    zeros = np.zeros(shape, np.int64)
    return Interval(zeros, zeros, np.full(shape, probabilities.exact.shape[-1] - 1, np.int64))
