"""Sums of gathered, scattered and labelled elements: any order, and one rounding for each factor."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from irexec.bounds.algebra import Algebra, floats, joined, settled
from irexec.bounds.interval import Bound, Interval, Unbounded
from irexec.bounds.registry import Layer, rule
from irexec.ir.integers import integer
from irexec.reference.indexing import as_indices
from irexec.schema.registry import newest
from irexec.schema.shape_rules import normalize_axis


@rule("Einsum")
def einsum(layer: Layer, *inputs: Interval) -> Bound:
    """The sum of products is linear in each operand, and may be computed by two operands at a time."""
    if not (layer.element is not None and layer.element.is_float):
        return Unbounded("sums of integers that are not known")
    of, factors = layer.algebra, [layer.algebra.factor(one) for one in inputs]
    with np.errstate(all="ignore"):
        exact, size, upper, base, count = (
            floats(layer.run(*arrays)[0])
            for arrays in (
                [floats(one.exact) for one in inputs], [one.magnitude for one in factors],
                [np.abs(floats(one.exact)) + one.radius for one in factors],
                [np.abs(floats(one.exact)) for one in factors], [np.ones(one.exact.shape) for one in inputs],
            )
        )  # fmt: skip
        reach = upper - base if not all(one.is_certain for one in factors) else 0.0
        # Partial results of three operands and more are rounded to the type, or are not.
        steps = 2 * len(inputs) * max(of.arithmetic.unit, of.arithmetic.sum_unit)
        extra = steps * size if len(inputs) > 2 else 0.0
        found = of.summed(settled(exact, exact - reach - extra, exact + reach + extra), size, count + len(inputs))
    return found.open_where(~np.isfinite(size) | ~np.isfinite(exact))


_WEIGHTED = ("EmbeddingBagOffsetsSum", "EmbeddingBagOffsets", "EmbeddingSegmentsSum", "EmbeddingBagPackedSum",
             "EmbeddingBagPacked")  # fmt: skip


@rule(*_WEIGHTED)
def bags(layer: Layer, table: Interval, *inputs: Interval | None) -> Bound:
    """Sums of rows times weights, or their means; a bag has at most as many rows as there are indices."""
    if table.exact.dtype.kind != "f":
        return Unbounded("sums of integers that are not known")
    of, at = layer.algebra, _weights_at(inputs)
    weights = None if at is None else inputs[at]

    def run(values: np.ndarray, factors: np.ndarray | None) -> np.ndarray:
        others = [None if one is None else one.exact for one in inputs]
        if at is not None:
            others[at] = factors
        with np.errstate(all="ignore"):
            return floats(layer.run(floats(values), *others)[0])

    exact = run(table.exact, None if weights is None else floats(weights.exact))
    size = run(table.magnitude, None if weights is None else weights.magnitude)
    reach = run(table.radius, None if weights is None else weights.magnitude)
    if weights is not None:
        reach = reach + run(table.magnitude, weights.radius)
    indices = inputs[0]
    assert indices is not None
    per_bag = indices.exact.shape[1] if "Packed" in layer.definition.type else indices.exact.size
    found = of.summed(settled(exact, exact - reach, exact + reach), size, float(max(per_bag, 1)))
    found = of.rounded(found, 3.0) if layer.attributes.get("reduction") == "mean" else found
    return found.open_where(~np.isfinite(exact))


def _weights_at(inputs: tuple[Interval | None, ...]) -> int | None:
    """The index of the weights: the only input of a floating-point type beside the table."""
    for i, one in enumerate(inputs):
        if one is not None and one.exact.dtype.kind == "f":
            return i
    return None


@rule("SegmentMax")
def segment_max(layer: Layer, x: Interval, *inputs: Interval | None) -> Bound:
    """A maximum is not rounded; of NaN implementations make what they like. The lowest value may be that of the
    arithmetic's own type."""
    if x.exact.dtype.kind != "f":
        return Unbounded("a maximum of integers that are not known")
    others = [None if one is None else one.exact for one in inputs]
    found = joined(lambda array: layer.run(array.astype(x.exact.dtype), *others)[0], x)
    is_lowest = np.abs(found.exact) >= min(float(np.finfo(np.float32).max), layer.arithmetic.largest) / 2
    return found.open_where(is_lowest | np.isnan(floats(x.exact)).any())


@rule("ScatterUpdate", "ScatterElementsUpdate", "ScatterNDUpdate", integers=True)
def scattered(layer: Layer, x: Interval, indices: Interval, updates: Interval, *axis: Interval) -> Bound:
    """Sums, products and means of the updates of an element in any order; the others are not rounded.

    Of several updates of one element without a reduction any one may remain.
    """
    others = [one.exact for one in axis]
    if x.exact.dtype.kind != "f":
        return _scattered_integers(layer, x, indices, updates, others)

    def run(data: np.ndarray, values: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return floats(layer.run(floats(data), indices.exact, floats(values), *others)[0])

    reduction = layer.attributes.get("reduction", "none")
    counts = _counts(layer, x.exact.shape, indices.exact, updates.exact.shape, others)
    if reduction in ("none", "min", "max"):
        found = joined(run, x, updates)
        return found.open_where(counts > 1 if reduction == "none" else np.isnan(found.exact))
    exact, of = run(x.exact, updates.exact), layer.algebra
    if reduction == "prod":
        found = _product(of, exact, run, x, updates, counts)
    else:
        sign = -1 if reduction == "sub" else 1
        size, reach = run(x.magnitude, sign * updates.magnitude), run(x.radius, sign * updates.radius)
        found = of.summed(settled(exact, exact - reach, exact + reach), size, counts + 1)
        found = of.rounded(found, 3.0) if reduction == "mean" else found
    # Elements without an update are not rounded.
    ends = (np.where(counts == 0, floats(x.low), found.low), np.where(counts == 0, floats(x.high), found.high))
    return settled(exact, *ends).open_where(~np.isfinite(exact))


def _scattered_integers(
    layer: Layer, x: Interval, indices: Interval, updates: Interval, axis: Sequence[np.ndarray]
) -> Bound:
    """The results themselves: without sums, or where each element has one update at most."""
    if not (x.is_certain and updates.is_certain):
        return Unbounded("updates of integers that are not known")
    reduction = layer.attributes.get("reduction", "none")
    counts = _counts(layer, x.exact.shape, indices.exact, updates.exact.shape, axis)
    if reduction == "none" and (counts > 1).any():
        return Unbounded("several updates of one integer")
    if reduction == "mean":
        return Unbounded("means of integers are rounded as the runtime likes")
    exact = layer.run(x.exact, indices.exact, updates.exact, *axis)[0]
    if reduction in ("sum", "sub", "prod") and exact.dtype.kind in "iu":
        sums = layer.run(floats(x.exact), indices.exact, floats(updates.exact), *axis)[0]
        limit = 2.0 ** (8 * exact.dtype.itemsize - 2)
        if not (np.array_equal(sums, floats(exact)) or (np.abs(sums).max(initial=0) < limit and limit > 2.0**53)):
            return Unbounded("integers that do not fit their type")
    return Interval.certain(exact)


def _counts(
    layer: Layer, shape: tuple[int, ...], indices: np.ndarray, updates: tuple[int, ...], axis: Sequence[np.ndarray]
) -> np.ndarray:
    """The number of updates of each element."""
    if layer.definition.type == "ScatterUpdate":
        along = normalize_axis(integer(axis[0], "axis"), len(shape))
        counts = np.bincount(as_indices(indices.ravel()), minlength=shape[along])
        return np.broadcast_to(counts.reshape((-1,) + (1,) * (len(shape) - along - 1)), shape).astype(np.float64)
    adding = newest(layer.definition.type)
    return floats(adding(np.zeros(shape), indices, np.ones(updates), *axis, reduction="sum"))


def _product(
    of: Algebra, exact: np.ndarray, run: Callable[[np.ndarray, np.ndarray], np.ndarray], x: Interval,
    updates: Interval, counts: np.ndarray,
) -> Interval:  # fmt: skip
    size = run(x.magnitude, updates.magnitude)
    reach: np.ndarray | float = 0.0
    if not (x.is_certain and updates.is_certain):
        reach = run(np.abs(floats(x.exact)) + x.radius, np.abs(floats(updates.exact)) + updates.radius) - np.abs(exact)
    rounding = np.expm1((counts + 1) * max(of.arithmetic.unit, of.arithmetic.sum_unit) * 1.01)
    found = of.widened(settled(exact, exact, exact), reach + rounding * (size + reach))
    largest = run(np.maximum(x.magnitude, 1), np.maximum(updates.magnitude, 1))
    return found.open_where(~(largest <= of.arithmetic.largest))
