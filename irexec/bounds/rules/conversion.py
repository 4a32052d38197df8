"""Conversions between element types."""

from __future__ import annotations

import numpy as np

from irexec.bounds.algebra import floats, settled
from irexec.bounds.interval import Bound, Interval, Unbounded
from irexec.bounds.registry import Layer, rule


@rule("Convert", "ConvertLike")
def converted(layer: Layer, x: Interval, *like: Interval) -> Bound:
    """A number in another floating-point type is rounded, or kept; an integer is what lies nearer to zero.

    A number that no element of the integer type is near to has no bound: C leaves it undefined, and runtimes saturate,
    wrap, or give the smallest integer.
    """
    element = layer.element
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
    others = [one.exact for one in like]
    with np.errstate(all="ignore"):
        exact = layer.run(x.exact, *others)[0]
    limits = np.iinfo(element.carrier)
    given = floats(x.exact)
    is_open = ~((given > float(limits.min) - 1) & (given < float(limits.max)))
    return Interval(exact, np.where(is_open, limits.min, exact), np.where(is_open, limits.max, exact))
