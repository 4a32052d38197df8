"""Pooling."""

from __future__ import annotations

import math

import numpy as np

from irexec.bounds.algebra import Function, floats, integers_near, settled
from irexec.bounds.interval import Bound, Interval, Mask, Unbounded
from irexec.bounds.registry import Layer, rule
from irexec.schema.shape_rules import normalize_axis


@rule("MaxPool", "AdaptiveMaxPool", integers=True)
def largest(layer: Layer, x: Interval, *rest: Interval | None) -> tuple[Bound, ...]:
    """The largest element of each window is not rounded; its index is that of any element of the window that may be it.

    Windows with NaN have no bound, and neither have windows in the padding alone, whose minimum depends on the type.
    """
    others = [None if one is None else one.exact for one in rest]

    def run(array: np.ndarray) -> np.ndarray:
        return layer.run(array, *others)[0]

    # Zeros have the maximum zero, but where there is padding alone.
    is_open = run(np.zeros_like(x.exact)) != 0
    if x.exact.dtype.kind != "f":
        found = Interval.certain(run(x.exact))
        found = found.open_where(is_open) if is_open.any() else found
    else:
        exact, low, high = (floats(run(floats(end))) for end in (x.exact, x.low, x.high))
        is_open = is_open | ~np.isfinite(exact) | (np.abs(exact) >= layer.arithmetic.largest)
        if np.isnan(floats(x.exact)).any():
            is_open = np.ones_like(is_open)
        found = settled(exact, low, high).open_where(is_open)
    if len(layer.outputs) == 1:
        return (found,)
    if found.exact.dtype.kind in "iu":
        # A search that begins at the smallest number finds none that is larger.
        is_open = is_open | (found.exact == np.iinfo(found.exact.dtype).min)
    return found, _index_of_largest(layer, x, found, is_open, run, others)


def _index_of_largest(
    layer: Layer, x: Interval, found: Interval, is_open: Mask, run: Function, others: list[np.ndarray | None]
) -> Bound:
    """The index of any element between the first and the last one of the window whose interval meets that of the
    largest value."""
    exact = layer.run(x.exact, *others)[1]
    axis = normalize_axis(getattr(layer.attributes.get("attributes"), "axis", 2), x.exact.ndim)
    if axis > 2:
        return Unbounded("the index of an element within a part of the spatial axes")
    lead = x.exact.shape[:axis]
    own = np.broadcast_to(np.arange(np.prod(x.exact.shape[axis:])).reshape(x.exact.shape[axis:]), x.exact.shape)
    first, last = -run(-own.astype(np.float64)), run(own.astype(np.float64))
    size = math.prod(x.exact.shape[axis:])
    tops = x.high.reshape(*lead, size)

    def admits(index: np.ndarray) -> Mask:
        is_index = (index >= first) & (index <= last) & (index == np.trunc(index))
        flat = np.where(is_index, index, 0).astype(np.int64).reshape(*lead, math.prod(index.shape[axis:]))
        values = np.take_along_axis(tops, flat, -1).reshape(index.shape)
        return np.asarray(is_open | (is_index & (values >= found.low)))

    return Interval(exact, np.zeros_like(exact), np.full_like(exact, size - 1), admits=admits)


@rule("AvgPool", "AdaptiveAvgPool", integers=True)
def mean(layer: Layer, x: Interval, *rest: Interval | None) -> Bound:
    """The sum of each window in any order, divided by a count or multiplied by its reciprocal.

    The kernel's result for absolute values bounds the error; no window has more terms than the tensor has elements
    along the spatial axes. The mean of integers is rounded in any direction.
    """
    others = [None if one is None else one.exact for one in rest]
    with np.errstate(all="ignore"):
        exact, reach, size = (floats(layer.run(floats(one), *others)[0]) for one in (x.exact, x.radius, x.magnitude))
        # The mean of a window beside the data is open: OpenVINO divides zero by zero.
        is_empty = layer.run(np.ones(x.exact.shape), *others)[0] == 0
    kernel = layer.attributes.get("attributes")
    window = getattr(kernel, "kernel", None) or x.exact.shape[2:]
    found = layer.algebra.summed(settled(exact, exact - reach, exact + reach), size, float(np.prod(window)))
    found = layer.algebra.rounded(found, 2.0).open_where(~np.isfinite(exact) | is_empty)
    return found if x.exact.dtype.kind == "f" else integers_near(found, layer.run(x.exact, *others)[0])
