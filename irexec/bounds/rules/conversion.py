"""Conversions, quantization and random numbers."""

from __future__ import annotations

import numpy as np

from irexec.bounds.interval import Algebra, Bound, Interval, Unbounded, floats, joined, settled
from irexec.bounds.registry import Layer, rule
from irexec.dtypes.elements import Element
from irexec.ir.facts import integer, integers
from irexec.reference.integers import round_e4m3, round_e5m2
from irexec.schema.shape_rules import align, alignment


@rule("Convert", "ConvertLike")
def converted(layer: Layer, x: Interval, *like: Interval) -> Bound:
    """A number in another floating-point type is rounded, or kept; an integer is what lies nearer to zero, of each end.

    Where a number may lie beyond the integer type every element of it is allowed: C leaves it undefined, and runtimes
    saturate, wrap, or give the smallest integer.
    """
    return _converted(layer.element, layer, x, *like)


@rule("ConvertPromoteTypes")
def promoted(layer: Layer, *inputs: Interval) -> tuple[Bound, ...]:
    """Two conversions to a common type; see ``converted``. An integer that becomes another one is known or not."""
    exact = layer.run(*inputs)
    return tuple(
        _converted(fact.element, layer, one) if fact.element is not None and fact.element.is_float
        else Interval.certain(out) if one.exact.dtype.kind in "iub" and one.is_certain and _fits(one.exact, out)
        else Unbounded("an integer that does not fit the common type")
        for fact, one, out in zip(layer.outputs, inputs, exact, strict=True)
    )  # fmt: skip


def _fits(given: np.ndarray, made: np.ndarray) -> bool:
    return bool((given.astype(object) == made.astype(object)).all())


def _converted(element: Element | None, layer: Layer, x: Interval, *others: Interval) -> Bound:
    if element is None:
        return Unbounded("the element type is not known")
    if element.is_float:
        if x.exact.dtype.kind not in "fiub":
            return Unbounded("strings become numbers")
        if element.bits < 16:
            return Unbounded("how large numbers become those of few bits is open")
        return layer.algebra.rounded(settled(floats(x.exact), floats(x.low), floats(x.high)))
    if element.kind not in ("signed", "unsigned") or element.bits < 8 or x.exact.dtype.kind not in "fiub":
        return Unbounded("an edge of a conversion is not certain")
    with np.errstate(all="ignore"):
        exact = layer.run(x, *others)[0]
    limits = np.iinfo(element.carrier)
    low, high = floats(x.low), floats(x.high)
    is_open = ~((low > float(limits.min) - 1) & (high < float(limits.max) + 1))
    with np.errstate(invalid="ignore"):
        least, most = (exact if x.is_certain else np.trunc(end).astype(exact.dtype) for end in (x.low, x.high))
    return Interval(exact, np.where(is_open, limits.min, least), np.where(is_open, limits.max, most))


@rule("FakeQuantize")
def fake_quantize(
    layer: Layer, x: Interval, low: Interval, high: Interval, out_low: Interval, out_high: Interval
) -> Bound:
    """The index of a level, rounded; then its value.

    The index is (x - low) * (levels - 1) / (high - low), or x * scale + shift with a scale and a shift computed
    first: at most eight roundings relative to (|x| + |low|) * scale. The value is index * step + out_low in any form:
    eight roundings relative to the larger of the two bounds of the output. Beyond the bounds of the input the index
    is the first or the last. Bounds in the wrong order, equal or not finite have no bound.
    """
    of, last = layer.algebra, layer.attributes["levels"] - 1
    mode = alignment(layer.attributes)
    low, high, out_low, out_high = (
        one.moved(lambda array: align(x.exact, array, *mode)[1]) for one in (low, high, out_low, out_high)
    )
    exact = floats(layer.run(*(floats(one.exact) for one in (x, low, high, out_low, out_high)))[0])
    with np.errstate(all="ignore"):
        span = floats(high.low) - floats(low.high)
        scale = last / span
        inside = joined(np.clip, x, low, high) if low.is_certain and high.is_certain else x
        error = 8 * of.arithmetic.unit * (inside.magnitude + low.magnitude + high.magnitude) * scale
        error = error + (inside.radius + 2 * low.radius + high.radius) * scale
        index = np.clip((floats(inside.exact) - low.exact) * last / (floats(high.exact) - floats(low.exact)), 0, last)
        ends = [np.clip(np.rint(index + side * error), 0, last) / last for side in (-1, 1)]
        found = _levels(of, exact, ends, out_low, out_high)
    return found.open_where(~(span > 0) | ~np.isfinite(floats(x.exact)) | ~np.isfinite(scale))


def _levels(of: Algebra, exact: np.ndarray, ends: list[np.ndarray], low: Interval, high: Interval) -> Interval:
    """The values of a range of levels, given as parts of the way from ``low`` to ``high``."""
    values = [floats(low.exact) + (floats(high.exact) - low.exact) * part for part in ends]
    size = np.maximum(low.magnitude, high.magnitude)
    reach = 8 * of.arithmetic.unit * size + np.maximum(low.radius, high.radius)
    return of.widened(settled(exact, np.minimum(*values), np.maximum(*values)), reach)


@rule("FakeConvert")
def fake_convert(layer: Layer, x: Interval, scale: Interval, shift: Interval | None = None) -> Bound:
    """(x * scale - shift) rounded to f16 and to eight bits, which never decreases; then (y + shift) / scale.

    Results below the smallest normal number of eight bits may be any of the numbers beside them, and those beyond the
    largest, or NaN, have no bound: implementations differ there.
    """
    of, is_e5m2 = layer.algebra, layer.attributes["destination_type"] == "f8e5m2"
    scaled = of.multiply(x, scale)
    scaled = scaled if shift is None else of.subtract(scaled, shift)
    round_ = round_e5m2 if is_e5m2 else round_e4m3
    largest, smallest, step = (57344.0, 2.0**-14, 2.0**-16) if is_e5m2 else (448.0, 2.0**-6, 2.0**-9)

    def held(array: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return floats(round_(floats(array).astype(np.float16)))

    exact = floats(layer.run(*(None if one is None else floats(one.exact) for one in (x, scale, shift)))[0])
    rounded = joined(held, scaled)
    is_small = scaled.magnitude < 2 * smallest
    reach = np.where(is_small, step, 0.0)
    rounded = settled(rounded.exact, rounded.low - reach, rounded.high + reach)
    found = of.divide(rounded if shift is None else of.add(rounded, shift), scale)
    ends = settled(exact, np.minimum(found.low, exact), np.maximum(found.high, exact))
    return ends.open_where(~(scaled.magnitude <= largest) | np.isnan(exact))


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
