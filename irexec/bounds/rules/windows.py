"""Pooling, and normalization by known statistics."""

from __future__ import annotations

import numpy as np

from irexec.bounds.algebra import floats, settled
from irexec.bounds.interval import Bound, Interval, Unbounded
from irexec.bounds.registry import Layer, rule


@rule("MaxPool", "AdaptiveMaxPool")
def largest(layer: Layer, x: Interval, *rest: Interval | None) -> tuple[Bound, ...]:
    """The largest element of each window is not rounded; its index has no bound, since equal elements have several.

    Windows with NaN have no bound, and neither have windows in the padding alone, whose minimum depends on the type.
    """
    others = [None if one is None else one.exact for one in rest]
    if x.exact.dtype.kind != "f":
        return (Unbounded("the index of the largest element"),) * len(layer.outputs)
    exact, low, high = (floats(layer.run(floats(end), *others)[0]) for end in (x.exact, x.low, x.high))
    is_open = ~np.isfinite(exact) | (np.abs(exact) >= layer.arithmetic.largest)
    if np.isnan(floats(x.exact)).any():
        is_open = np.ones_like(is_open)
    found = settled(exact, low, high).open_where(is_open)
    return (found, *(Unbounded("the index of the largest element") for _ in layer.outputs[1:]))


@rule("AvgPool", "AdaptiveAvgPool")
def mean(layer: Layer, x: Interval, *rest: Interval | None) -> Bound:
    """The sum of each window in any order, divided by a count or multiplied by its reciprocal.

    The kernel's result for absolute values bounds the error; no window has more terms than the tensor has elements
    along the spatial axes.
    """
    others = [None if one is None else one.exact for one in rest]
    if x.exact.dtype.kind != "f":
        return Unbounded("means of integers are rounded as the runtime likes")
    with np.errstate(all="ignore"):
        exact, reach, size = (floats(layer.run(floats(one), *others)[0]) for one in (x.exact, x.radius, x.magnitude))
    kernel = layer.attributes.get("attributes")
    window = getattr(kernel, "kernel", None) or x.exact.shape[2:]
    found = layer.algebra.summed(settled(exact, exact - reach, exact + reach), size, float(np.prod(window)))
    return layer.algebra.rounded(found, 2.0).open_where(~np.isfinite(exact))


@rule("BatchNormInference")
def batch_norm(layer: Layer, *inputs: Interval) -> Bound:
    """gamma * (data - mean) / sqrt(variance + epsilon) + beta, also computed as data * scale + shift.

    Every implementation has at most eight roundings, each of which is relative to one of the three terms of the sum.
    """
    data = 2 if layer.definition.since == 1 else 0
    x = inputs[data]
    gamma, beta, mean, variance = (floats(one.exact) for i, one in enumerate(inputs) if i != data)
    if not all(one.is_certain for i, one in enumerate(inputs) if i != data):
        return Unbounded("statistics that are not certain")
    shape = (1, -1, *(1,) * (x.exact.ndim - 2))
    with np.errstate(all="ignore"):
        arrays = [floats(one.exact) for one in inputs]
        exact = floats(layer.run(*arrays)[0])
        scale = np.abs(gamma / np.sqrt(variance + layer.attributes["epsilon"])).reshape(shape)
        terms = scale * (x.magnitude + np.abs(mean).reshape(shape)) + np.abs(beta).reshape(shape)
        reach = scale * x.radius + 8 * layer.arithmetic.unit * terms
    return layer.algebra.widened(settled(exact, exact, exact), np.where(np.isnan(reach), np.inf, reach))
