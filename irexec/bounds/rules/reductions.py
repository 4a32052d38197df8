"""Reductions and softmax."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from irexec.bounds.algebra import Algebra, floats, settled
from irexec.bounds.interval import Bound, Interval, Unbounded
from irexec.bounds.registry import Layer, rule


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


@rule("Softmax", "LogSoftmax")
def softmax(layer: Layer, x: Interval) -> Bound:
    """exp(x - max) divided by its sum; the logarithm of it may be computed from the sum's logarithm.

    A row that is -inf throughout, as a mask makes it, or that has NaN or inf, has no bound: implementations give NaN,
    zeros, or equal shares.
    """
    axis = layer.attributes.get("axis", 1)
    of, unit = layer.algebra, layer.arithmetic.unit
    with np.errstate(all="ignore"):
        exact = floats(layer.run(floats(x.exact))[0])
        top = np.max(floats(x.exact), axis=axis, keepdims=True, initial=-np.inf)
        size = x.exact.shape[axis] if x.exact.ndim else 1
        gap = np.abs(floats(x.exact) - top)
        # The difference is rounded once, exp has a relative error of some roundings and of its argument's.
        each = (8 + 2 * np.minimum(gap, 200)) * unit
        mean = np.max(each, axis=axis, keepdims=True, initial=0.0) + size * layer.arithmetic.sum_unit
        shift = 0.0 if x.is_certain else x.radius + np.max(x.radius, axis=axis, keepdims=True, initial=0.0)
        if layer.definition.type == "LogSoftmax":
            reach = 4 * unit * (np.abs(exact) + np.abs(top) + gap + 1) + mean + shift
        else:
            reach = np.abs(exact) * np.expm1(each + mean + 4 * unit + shift)
        found = of.widened(settled(exact, exact, exact), np.where(np.isnan(reach), np.inf, reach))
    return found.open_where(np.isnan(exact))
