"""Conversions between element types."""

from __future__ import annotations

import numpy as np

from irexec.bounds.algebra import floats, settled
from irexec.bounds.interval import Bound, Interval, Unbounded
from irexec.bounds.registry import Layer, rule
from irexec.dtypes.elements import Element


@rule("Convert", "ConvertLike")
def converted(layer: Layer, x: Interval, *like: Interval) -> Bound:
    """A number in another floating-point type is rounded, or kept; an integer is what lies nearer to zero.

    A number that no element of the integer type is near to has no bound: C leaves it undefined, and runtimes saturate,
    wrap, or give the smallest integer.
    """
    return _converted(layer.element, layer, x, [one.exact for one in like])


@rule("ConvertPromoteTypes")
def promoted(layer: Layer, *inputs: Interval) -> tuple[Bound, ...]:
    """Two conversions to a common type; see ``converted``. An integer that becomes another one is known or not."""
    exact = layer.run(*(one.exact for one in inputs))
    return tuple(
        _converted(fact.element, layer, one, []) if fact.element is not None and fact.element.is_float
        else Interval.certain(out) if one.exact.dtype.kind in "iub" and one.is_certain and _fits(one.exact, out)
        else Unbounded("an integer that does not fit the common type")
        for fact, one, out in zip(layer.outputs, inputs, exact, strict=True)
    )  # fmt: skip


def _fits(given: np.ndarray, made: np.ndarray) -> bool:
    return bool((given.astype(object) == made.astype(object)).all())


def _converted(element: Element | None, layer: Layer, x: Interval, others: list[np.ndarray]) -> Bound:
    if element is None:
        return Unbounded("the element type is not known")
    if element.is_float:
        if x.exact.dtype.kind not in "fiub":
            return Unbounded("strings become numbers")
        if element.bits < 16:
            return Unbounded("how large numbers become those of few bits is open")
        values = floats(x.exact), floats(x.low), floats(x.high)
        return layer.algebra.rounded(settled(*values))
    if not x.is_certain or element.kind not in ("signed", "unsigned") or element.bits < 8:
        return Unbounded("an edge of a conversion is not certain")
    with np.errstate(all="ignore"):
        exact = layer.run(x.exact, *others)[0]
    limits = np.iinfo(element.carrier)
    given = floats(x.exact)
    is_open = ~((given > float(limits.min) - 1) & (given < float(limits.max)))
    return Interval(exact, np.where(is_open, limits.min, exact), np.where(is_open, limits.max, exact))
