"""Operations that move elements, or never decrease in any floating-point input.

The ends of the interval are the results for the ends of the inputs, and nothing is rounded.
"""

from __future__ import annotations

import numpy as np

from irexec.bounds.algebra import floats, settled
from irexec.bounds.interval import Bound, Interval, Unbounded
from irexec.bounds.registry import Layer, rule
from irexec.schema.elementwise import align, alignment
from irexec.schema.moves import MOVES

_PLACES = {"GatherTree": (0, 1, 2, 3), "ReverseSequence": (1,)}
"""Inputs that may be floating-point numbers and tell places: indices, lengths, and the identifiers that are compared
with the end of a text."""


@rule(*MOVES, "SparseFillEmptyRows")
def moved(layer: Layer, *inputs: Interval | None) -> tuple[Bound, ...]:
    """Elements keep their values and change their places, which floating-point inputs may tell as well."""
    places = _PLACES.get(layer.definition.type, ())
    if any(one is not None and not one.is_certain for one in (inputs[i] for i in places if i < len(inputs))):
        return (Unbounded("an index is not certain"),) * len(layer.outputs)
    return _at_ends(layer, inputs)


@rule("Maximum", "Minimum", "Relu", "Clamp", "ReduceMax", "ReduceMin", "Floor", "Ceiling", "Round", "Sign")
def ordered(layer: Layer, *inputs: Interval | None) -> tuple[Bound, ...]:
    """A result never decreases where an input grows; of NaN implementations make what they like."""
    found = _at_ends(layer, inputs)
    if layer.definition.type == "Clamp" and isinstance(found[0], Interval) and inputs[0] is not None:
        found = (_with_limits(layer, inputs[0], found[0]),)
    has_nan = any(one is not None and one.exact.dtype.kind == "f" and np.isnan(one.exact).any() for one in inputs)
    if not has_nan:
        return found
    return tuple(_lenient(layer, inputs, one) for one in found)


def _with_limits(layer: Layer, x: Interval, found: Interval) -> Interval:
    """Limits of Clamp are attributes, which a runtime rounds to its type: so are results that are not the data's."""
    if found.exact.dtype.kind != "f":
        return found
    rounded = layer.algebra.rounded(settled(floats(found.exact), floats(found.low), floats(found.high)))
    is_same = (found.low == x.low) & (found.high == x.high)
    low, high = np.where(is_same, floats(found.low), rounded.low), np.where(is_same, floats(found.high), rounded.high)
    return settled(floats(found.exact), low, high)


def _lenient(layer: Layer, inputs: tuple[Interval | None, ...], found: Bound) -> Bound:
    """Anything where a NaN arrives: maxps returns its second operand, fmax the number, IEEE 754-2019 NaN."""
    if isinstance(found, Unbounded):
        return found
    # A NaN anywhere in a reduced row reaches the result of the row.
    if layer.definition.type.startswith("Reduce"):
        return found.open_where(np.ones(found.exact.shape, bool))
    marks = [np.isnan(floats(one.exact)) for one in inputs if one is not None and one.exact.dtype.kind == "f"]
    if len(marks) == 2:
        marks = list(align(marks[0], marks[1], *alignment(layer.attributes)))
    mark = np.broadcast_to(np.logical_or.reduce(np.broadcast_arrays(*marks)), found.exact.shape)
    return found.open_where(mark)


@rule("PRelu")
def prelu(layer: Layer, x: Interval, slope: Interval) -> Bound:
    """x, or x times the slope where x is negative, rounded once: for each sign monotone in both operands."""
    if not (layer.element is not None and layer.element.is_float):
        return Unbounded("products of integers that are not known")

    def run(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return layer.run(floats(a), floats(b))[0]

    exact = run(x.exact, slope.exact)
    ends = [run(a, b) for a in (x.low, x.high) for b in (slope.low, slope.high)]
    low, high = np.stack(ends).min(0), np.stack(ends).max(0)
    # An interval around zero may have its extreme at zero.
    around = (floats(x.low) < 0) & (floats(x.high) > 0)
    low, high = np.where(around, np.minimum(low, 0), low), np.where(around, np.maximum(high, 0), high)
    return layer.algebra.rounded(settled(exact, low, high))


def _at_ends(layer: Layer, inputs: tuple[Interval | None, ...]) -> tuple[Bound, ...]:
    if all(one is None or one.is_certain for one in inputs):
        return tuple(
            Interval.certain(out) for out in layer.run(*(None if one is None else one.exact for one in inputs))
        )
    if any(one is not None and not one.is_certain and one.exact.dtype.kind != "f" for one in inputs):
        return (Unbounded("an index is not certain"),) * len(layer.outputs)
    exact, low, high = (
        layer.run(*(None if one is None else _end(one, side) for one in inputs)) for side in ("exact", "low", "high")
    )
    return tuple(
        settled(e, a, b) if e.dtype.kind == "f" else Interval(e, a, b) for e, a, b in zip(exact, low, high, strict=True)
    )


def _end(x: Interval, side: str) -> np.ndarray:
    array: np.ndarray = getattr(x, side)
    return floats(array) if x.exact.dtype.kind == "f" else array
