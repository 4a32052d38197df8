"""Operations with exact results: searches, counts, tests of one number, and tensors made from scalars."""

from __future__ import annotations

import numpy as np

from irexec.bounds.algebra import floats, settled
from irexec.bounds.interval import Bound, Interval, Unbounded
from irexec.bounds.registry import Layer, rule


@rule("ShapeOf", "Eye")
def shape_of(layer: Layer, *inputs: Interval | None) -> tuple[Bound, ...]:
    """No element of a floating-point input is read; zeros and ones are exact in every type."""
    return tuple(Interval.certain(out) for out in layer.run(*(None if one is None else one.exact for one in inputs)))


@rule("IsFinite", "IsInf", "IsNaN")
def tested(layer: Layer, x: Interval) -> Bound:
    """A test for infinity has one answer within an interval unless its ends differ; a test for NaN unless anything
    goes."""
    exact, low, high = (layer.run(end)[0] for end in (x.exact, x.low, x.high))
    is_open = (low != exact) | (high != exact) | (np.isneginf(x.low) & np.isposinf(x.high))
    return Interval(exact, exact & ~is_open, exact | is_open) if is_open.any() else Interval.certain(exact)


@rule("Bucketize", "SearchSorted")
def counted(layer: Layer, a: Interval, b: Interval) -> Bound:
    """The number of boundaries below a value grows with the value, and falls where a boundary grows.

    Beside floating-point numbers integers may be read as such ones. What NaN and boundaries out of order give is open.
    """
    if a.exact.dtype.kind == "f" or b.exact.dtype.kind == "f":
        a, b = (layer.algebra.read(settled(floats(x.exact), floats(x.low), floats(x.high))) for x in (a, b))
    is_bucketize = layer.definition.type == "Bucketize"
    boundaries, values = (b, a) if is_bucketize else (a, b)
    ends = (boundaries.low, boundaries.high, values.low, values.high)
    if any(np.isnan(end).any() for end in ends if end.dtype.kind == "f"):
        return Unbounded("how NaN is ordered is open")
    if any((np.diff(end.astype(np.float64)) < 0).any() for end in ends[:2]):
        return Unbounded("boundaries out of order")

    def run(value: np.ndarray, boundary: np.ndarray) -> np.ndarray:
        return layer.run(*(value, boundary) if is_bucketize else (boundary, value))[0]

    exact = run(values.exact, boundaries.exact)
    if values.is_certain and boundaries.is_certain:
        return Interval.certain(exact)
    return Interval(exact, run(values.low, boundaries.high), run(values.high, boundaries.low))


@rule("NonZero")
def non_zero(layer: Layer, x: Interval) -> Bound:
    """The indices are known if no element may be zero that is not, or the other way; of a scalar the shape is open."""
    is_zero = x.exact == 0
    if x.exact.ndim == 0:
        return Unbounded("the indices of a scalar")
    if ((x.low <= 0) & (x.high >= 0) & ~(is_zero & (x.low == x.high))).any():
        return Unbounded("an element may be zero, or may not")
    return Interval.certain(layer.run(x.exact)[0])


@rule("Unique")
def unique(layer: Layer, x: Interval, *axis: Interval | None) -> tuple[Bound, ...]:
    """Elements that are certain are equal or not; how NaN, and zeros of both signs, count is open."""
    if not x.is_certain or np.isnan(x.exact).any() or len(set(np.signbit(x.exact[x.exact == 0]).tolist())) > 1:
        return (Unbounded("elements that may be equal, or may not"),) * len(layer.outputs)
    outputs = layer.run(x.exact, *(None if one is None else one.exact for one in axis))
    return tuple(Interval.certain(out) for out in outputs)


@rule("Range")
def ranged(layer: Layer, *ends: Interval) -> Bound:
    """start + i * step, or the step added i times: at most i + 1 roundings of numbers no larger than the largest
    element.

    The number of elements is known unless the quotient (stop - start) / step may lie on either side of an integer.
    """
    start, stop, step = (floats(one.exact).reshape(-1)[0] for one in ends)
    is_float = layer.element is not None and layer.element.is_float
    if not all(one.is_certain for one in ends) or not np.isfinite([start, stop, step]).all() or step == 0:
        return Unbounded("the ends of a range are not certain")
    unit = layer.arithmetic.unit
    whole = all(each == np.trunc(each) and abs(each) * unit <= 0.5 for each in (start, stop, step))
    if not is_float:
        exact = layer.run(*(one.exact for one in ends))[0]
        return Interval.certain(exact) if whole else Unbounded("a range of integers from fractions")
    quotient = (stop - start) / step
    error = 4 * unit * (abs(quotient) + (abs(stop) + abs(start)) / abs(step))
    if not whole and np.ceil(quotient - error) != np.ceil(quotient + error):
        return Unbounded("the number of elements may be one more or less")
    number = np.arange(max(0, int(np.ceil(quotient))))
    exact = start + number * step
    size = max(abs(start), float(np.abs(exact).max(initial=0)) + abs(step))
    found = settled(exact, exact, exact)
    return found if whole else layer.algebra.widened(found, (number + 2) * unit * size)
