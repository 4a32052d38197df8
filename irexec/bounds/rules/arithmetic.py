"""Element-wise arithmetic of two floating-point tensors: each operation is rounded once."""

from __future__ import annotations

import numpy as np

from irexec.bounds.algebra import floats, hull, settled
from irexec.bounds.interval import Bound, Interval, Unbounded
from irexec.bounds.registry import Layer, rule
from irexec.schema.elementwise import align, alignment


def aligned(layer: Layer, a: Interval, b: Interval) -> tuple[Interval, Interval]:
    """Both operands broadcast to the shape of the result."""
    mode = alignment(layer.attributes)
    parts = [align(getattr(a, end), getattr(b, end), *mode) for end in ("exact", "low", "high")]
    first, second = (Interval(parts[0][i], parts[1][i], parts[2][i]) for i in (0, 1))
    return _kept(a, first), _kept(b, second)


def _kept(old: Interval, new: Interval) -> Interval:
    return Interval.certain(new.exact) if old.is_certain else new


@rule("Add")
def add(layer: Layer, a: Interval, b: Interval) -> Bound:
    """a + b."""
    return layer.algebra.add(*aligned(layer, a, b))


@rule("Subtract")
def subtract(layer: Layer, a: Interval, b: Interval) -> Bound:
    """a - b."""
    return layer.algebra.subtract(*aligned(layer, a, b))


@rule("Multiply")
def multiply(layer: Layer, a: Interval, b: Interval) -> Bound:
    """a * b."""
    return layer.algebra.multiply(*aligned(layer, a, b))


@rule("Divide")
def divide(layer: Layer, a: Interval, b: Interval) -> Bound:
    """a / b; a reciprocal and a product are as good as a division."""
    if layer.element is not None and not layer.element.is_float:
        return Unbounded("a quotient of integers that are not known")
    return layer.algebra.divide(*aligned(layer, a, b))


@rule("SquaredDifference")
def squared_difference(layer: Layer, a: Interval, b: Interval) -> Bound:
    """(a - b) * (a - b)."""
    difference = layer.algebra.subtract(*aligned(layer, a, b))
    product = layer.algebra.multiply(difference, difference)
    # A square is not negative, although the product of two intervals around zero may be.
    return settled(product.exact, np.where(product.low < 0, 0.0, product.low), product.high)


@rule("Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual")
def compared(layer: Layer, a: Interval, b: Interval) -> Bound:
    """A comparison is open where the intervals of the operands overlap in more than one point."""
    exact = layer.run(a.exact, b.exact)[0]
    if a.is_certain and b.is_certain:
        return Interval.certain(exact)
    a, b = aligned(layer, a, b)
    with np.errstate(invalid="ignore"):
        is_open = ~((floats(a.low) > floats(b.high)) | (floats(a.high) < floats(b.low)))
    is_open = np.broadcast_to(is_open, exact.shape)
    return Interval(exact, exact & ~is_open, exact | is_open)


@rule("Select")
def select(layer: Layer, condition: Interval, a: Interval, b: Interval) -> Bound:
    """One of two tensors; either where the condition is open."""
    chosen = _chosen(layer, condition.exact, a, b)
    if condition.is_certain:
        is_certain = a.is_certain and b.is_certain
        return Interval.certain(chosen.exact) if is_certain else chosen
    if chosen.exact.dtype.kind != "f":
        return Unbounded("the condition of integers is not certain")
    either = hull(chosen, _chosen(layer, ~condition.exact, a, b))
    is_open = np.broadcast_to(condition.low != condition.high, chosen.exact.shape)
    return settled(chosen.exact, np.where(is_open, either.low, chosen.low), np.where(is_open, either.high, chosen.high))


def _chosen(layer: Layer, condition: np.ndarray, a: Interval, b: Interval) -> Interval:
    exact, low, high = (layer.run(condition, getattr(a, end), getattr(b, end))[0] for end in ("exact", "low", "high"))
    return settled(floats(exact), floats(low), floats(high)) if exact.dtype.kind == "f" else Interval(exact, low, high)
