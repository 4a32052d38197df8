"""Reductions and softmax."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from irexec.bounds.algebra import Algebra, floats, settled
from irexec.bounds.interval import Bound, Interval, Unbounded
from irexec.bounds.registry import Layer, rule
from irexec.bounds.rules.normalization import positive, root, squares
from irexec.schema.registry import newest


@rule("ReduceSum", "ReduceMean", "ReduceL1", "CumSum")
def summed(layer: Layer, x: Interval, *rest: Interval | None) -> Bound:
    """A sum of elements or of their absolute values, in any order; a mean divides it, or multiplies by 1/n."""
    if not (layer.element is not None and layer.element.is_float):
        return Unbounded("sums of integers that are not known")

    others = [None if one is None else one.exact for one in rest]

    def run(array: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return floats(layer.run(floats(array), *others)[0])

    exact = run(x.exact)
    ends = (exact - run(x.radius), exact + run(x.radius)) if not x.is_certain else (exact, exact)
    size = run(x.magnitude)
    # No result has more terms than the tensor has elements.
    is_running = layer.definition.type == "CumSum"
    count = float(max(x.exact.shape, default=1)) if is_running else max(1.0, x.exact.size / max(1, exact.size))
    # Every running sum is a result, and may be rounded to the type of the tensor, or cut.
    of = replace(layer.arithmetic, sum_unit=2 * layer.arithmetic.unit) if is_running else layer.arithmetic
    found = Algebra(of).summed(settled(exact, *ends), size, count)
    return layer.algebra.rounded(found, 2.0) if layer.definition.type == "ReduceMean" else found


@rule("ReduceL2")
def root_of_squares(layer: Layer, x: Interval, axes: Interval) -> Bound:
    """The root of a sum of squares in any order; a scaled sum of a few roundings more avoids overflows."""
    of, run = layer.algebra, _run_as("ReduceSum", layer, axes)
    square = squares(of, x)
    total = square.moved(run)
    count = max(1.0, x.exact.size / max(1, total.exact.size))
    found = root(of, positive(of.summed(total, total.magnitude, count + 4)))
    return found.open_where(~(total.high <= layer.arithmetic.largest))


def _run_as(type: str, layer: Layer, axes: Interval) -> Callable[[np.ndarray], np.ndarray]:
    """Another reduction along the layer's axes."""
    definition = newest(type)

    def run(array: np.ndarray) -> np.ndarray:
        return floats(definition(floats(array), axes.exact, **layer.attributes))

    return run


@rule("ReduceProd")
def multiplied(layer: Layer, x: Interval, axes: Interval) -> Bound:
    """A product in any order has one rounding for each factor; open where a partial product may leave the range.

    Every partial product lies between the product of the factors below 1 and that of the others.
    """
    if not (layer.element is not None and layer.element.is_float):
        return Unbounded("products of integers that are not known")
    of = layer.algebra

    def run(array: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return floats(layer.run(floats(array), axes.exact)[0])

    exact, size = run(x.exact), run(x.magnitude)
    count = max(1.0, x.exact.size / max(1, exact.size))
    reach = run(np.abs(floats(x.exact)) + x.radius) - run(np.abs(floats(x.exact))) if not x.is_certain else 0.0
    rounding = np.expm1(count * max(layer.arithmetic.unit, layer.arithmetic.sum_unit) * 1.01)
    found = of.widened(settled(exact, exact, exact), reach + rounding * (size + reach))
    largest, smallest = run(np.maximum(x.magnitude, 1)), run(np.where(x.magnitude > 0, np.minimum(x.magnitude, 1), 1))
    is_open = ~((largest <= layer.arithmetic.largest) & (smallest >= layer.arithmetic.smallest))
    return found.open_where(is_open)


@rule("Softmax", "LogSoftmax")
def softmax(layer: Layer, x: Interval) -> Bound:
    """exp(x - max) divided by its sum; the logarithm of it may be computed from the sum's logarithm.

    A row that is -inf throughout, as a mask makes it, or that has NaN or inf, has no bound: implementations give NaN,
    zeros, or equal shares.
    """
    axis = layer.attributes.get("axis", 1)
    if layer.definition.type == "Softmax" and x.exact.ndim:
        return shares(layer.algebra, x, axis)
    of, unit = layer.algebra, layer.arithmetic.unit
    with np.errstate(all="ignore"):
        exact = floats(layer.run(floats(x.exact))[0])
        top = np.max(floats(x.exact), axis=axis, keepdims=True, initial=-np.inf) if x.exact.ndim else x.exact
        size = x.exact.shape[axis] if x.exact.ndim else 1
        gap = np.abs(floats(x.exact) - top)
        # The difference is rounded once, exp has a relative error of some roundings and of its argument's.
        each = (8 + 2 * np.minimum(gap, 200)) * unit
        if not x.exact.ndim:
            return of.widened(settled(exact, exact, exact), 4 * unit)
        mean = np.max(each, axis=axis, keepdims=True, initial=0.0) + size * layer.arithmetic.sum_unit
        shift = 0.0 if x.is_certain else x.radius + np.max(x.radius, axis=axis, keepdims=True, initial=0.0)
        reach = 4 * unit * (np.abs(exact) + np.abs(top) + gap + 1) + mean + shift
        found = of.widened(settled(exact, exact, exact), np.where(np.isnan(reach), np.inf, reach))
    return found.open_where(np.isnan(exact))


def shares(of: Algebra, x: Interval, axis: int, blocks: float = 0.0) -> Interval:
    """exp(x) divided by its sum along an axis, where an element of -inf has no share.

    The share of an element is largest where it is largest itself and the others are smallest, and the other way round.
    Each exponential has a relative error of some roundings and of its argument's, and so have the sum, to the share of
    each element, and the quotient. An exponential may have an absolute error as well: OpenVINO 2023.1 has one of
    3 roundings of 1 in shares below 1e-7.

    Args:
        blocks: number of parts of the sum that are scaled by exponentials of differences of maxima.
    """
    unit, low, high = of.arithmetic.unit, floats(x.low), floats(x.high)
    if x.exact.size == 0:
        return Interval.certain(floats(x.exact))
    with np.errstate(all="ignore"):
        top = np.max(floats(x.exact), axis=axis, keepdims=True)
        parts = [np.exp(array - top) for array in (floats(x.exact), low, high)]
        exact = parts[0] / parts[0].sum(axis, keepdims=True)
        least = parts[1] / (parts[1] + np.maximum(parts[2].sum(axis, keepdims=True) - parts[2], 0))
        most = parts[2] / (parts[2] + np.maximum(parts[1].sum(axis, keepdims=True) - parts[1], 0))
        gap = np.maximum(np.abs(low - top), np.abs(high - top))
        by_logarithm = of.arithmetic.limit("Softmax") * np.where(np.isfinite(top), np.abs(top), 0.0)
        each = (8 + 8 * blocks + 2 * np.minimum(gap, 200) + by_logarithm) * unit
        weighted = (each * np.minimum(most, 1)).sum(axis, keepdims=True)
        factor = np.expm1(each + weighted + float(of.gamma(x.exact.shape[axis])) + 4 * unit)
        ends = settled(exact, np.maximum(least, 0) * (1 - factor), np.minimum(most, 1) * (1 + factor))
        is_open = ~np.isfinite(top) | ~np.isfinite(parts[2].sum(axis, keepdims=True))
        found = positive(of.widened(ends, np.where(most > 0, 4 * unit, 0.0)))
    return found.open_where(np.broadcast_to(is_open, exact.shape) | np.isnan(exact))
