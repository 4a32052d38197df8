"""Elements moved, gathered, searched and ordered.

The j-th largest of some numbers never decreases where one of them grows, so that the sorted lower ends and the sorted
upper ends bound the sorted values; nothing is rounded. In every implementation an element comes after all that are
certainly larger, and before all that are certainly smaller: its rank lies between their numbers. Elements whose
intervals overlap, equal ones too, may come in either order, unless a stable order is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from irexec.bounds.interval import Algebra, Bound, Interval, Mask, floats, joined, settled, spanning
from irexec.bounds.registry import Layer, rule
from irexec.errors import check
from irexec.ir.facts import integer
from irexec.reference.indexing import as_indices, bisect
from irexec.schema.registry import newest
from irexec.schema.shape_rules import normalize_axis


@rule("Einsum")
def einsum(layer: Layer, *inputs: Interval) -> Bound:
    """The sum of products is linear in each operand, and may be computed by two operands at a time."""
    check(layer.is_float, "sums of integers that are not known")
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
    check(table.exact.dtype.kind == "f", "sums of integers that are not known")
    # The weights are the only input of a floating-point type beside the table.
    at = next((i for i, one in enumerate(inputs) if one is not None and one.exact.dtype.kind == "f"), None)
    of, weights = layer.algebra, None if at is None else inputs[at]

    def run(values: np.ndarray, factors: np.ndarray | None) -> np.ndarray:
        others: list[np.ndarray | Interval | None] = list(inputs)
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


@rule("SegmentMax")
def segment_max(layer: Layer, x: Interval, *inputs: Interval | None) -> Bound:
    """A maximum is not rounded. NaN leaves the result open; the lowest value may be that of the arithmetic's type."""
    check(x.exact.dtype.kind == "f", "a maximum of integers that are not known")
    found = joined(lambda array: layer.run(array.astype(x.exact.dtype), *inputs)[0], x)
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
    check(x.is_certain and updates.is_certain, "updates of integers that are not known")
    reduction = layer.attributes.get("reduction", "none")
    counts = _counts(layer, x.exact.shape, indices.exact, updates.exact.shape, axis)
    check(not (reduction == "none" and (counts > 1).any()), "several updates of one integer")
    check(reduction != "mean", "means of integers are rounded as the runtime likes")
    exact = layer.run(x.exact, indices.exact, updates.exact, *axis)[0]
    if reduction in ("sum", "sub", "prod") and exact.dtype.kind in "iu":
        sums = layer.run(floats(x.exact), indices.exact, floats(updates.exact), *axis)[0]
        limit = 2.0 ** (8 * exact.dtype.itemsize - 2)
        fits = np.array_equal(sums, floats(exact)) or (np.abs(sums).max(initial=0) < limit and limit > 2.0**53)
        check(bool(fits), "integers that do not fit their type")
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


@dataclass(frozen=True, slots=True)
class _Ranks:
    """The ranks that elements may have along the last axis, the wanted ones first, and the number of those wanted.

    Attributes:
        before, after: for each element the number of those that certainly come before it, and after it.
        count: of wanted elements.
        low, high: ends of the elements, of which the smallest are wanted.
    """

    before: np.ndarray
    after: np.ndarray
    count: int
    low: np.ndarray
    high: np.ndarray

    @staticmethod
    def of(low: np.ndarray, high: np.ndarray, count: int, is_stable: bool) -> _Ranks:
        """From the ends of elements of which the smallest are wanted."""
        before = bisect(np.sort(high, -1), low, np.less)
        after = low.shape[-1] - bisect(np.sort(low, -1), high, np.less_equal)
        if is_stable and np.array_equal(low, high):
            before = np.argsort(np.argsort(low, -1, kind="stable"), -1, kind="stable")
            after = low.shape[-1] - 1 - before
        return _Ranks(before, after, count, low, high)

    @property
    def may_be_wanted(self) -> Mask:
        """Mask of the elements that an implementation may choose."""
        return np.asarray(self.before < self.count)

    @property
    def is_settled(self) -> Mask:
        """Mask, of size 1 along the last axis, of the rows whose choice is the same in all implementations."""
        return np.asarray(self.may_be_wanted.sum(-1, keepdims=True) == self.count)

    def admits(self, index: np.ndarray, order: str) -> Mask:
        """Mask of the indices that an implementation may give at their positions."""
        size = self.low.shape[-1]
        is_index = (index >= 0) & (index < size) & (index == np.trunc(index))
        found = np.where(is_index, index, 0).astype(np.int64)
        if order == "value":
            rank = np.arange(self.count)
            may = (np.take_along_axis(self.before, found, -1) <= rank) & (
                rank < size - np.take_along_axis(self.after, found, -1)
            )
        else:
            may = np.take_along_axis(self.may_be_wanted, found, -1)
        return np.asarray(is_index & may & ~(_descends(found) if order == "index" else _repeated(found)))


def _descends(index: np.ndarray) -> Mask:
    """Mask of the indices that are not larger than the one before them."""
    return np.concatenate([np.zeros_like(index[..., :1], bool), np.diff(index, axis=-1) <= 0], -1)


def _repeated(index: np.ndarray) -> Mask:
    """Mask of the indices that another position of their row has too."""
    order = np.argsort(index, -1, kind="stable")
    mask = np.zeros(index.shape, bool)
    np.put_along_axis(mask, order, _descends(np.take_along_axis(index, order, -1)), -1)
    return mask


@rule("TopK", integers=True)
def topk(layer: Layer, x: Interval, k: Interval) -> tuple[Bound, ...]:
    """The largest or smallest elements, and their indices; rows with NaN have no bound."""
    check(k.is_certain, "the number of elements is not known")
    check(not (x.exact.dtype.kind == "f" and np.isnan([x.exact, x.low, x.high]).any()), "how NaN is ordered is open")
    attributes = layer.attributes["attributes"]
    axis, order = normalize_axis(attributes.axis, x.exact.ndim), attributes.sort
    count = integer(k.exact, "k")
    if not count:
        return layer.certain(x, k)
    exact = layer.run(x, k)
    low, high = (np.moveaxis(_signed(end), axis, -1) for end in (x.low, x.high))
    is_largest = attributes.mode == "max"
    ends = (-high, -low) if is_largest else (low, high)
    ranks = _Ranks.of(*ends, count, getattr(attributes, "stable", False) and x.is_certain)
    values = _values(ranks, np.moveaxis(exact[0], axis, -1), order, is_largest)
    indices = _indices(ranks, exact[1], axis, order)
    return _moved(values, axis), indices


def _signed(end: np.ndarray) -> np.ndarray:
    """The end in a type in which its negative exists."""
    return end.astype(np.int64) if end.dtype.kind in "biu" and end.dtype.itemsize < 8 else floats(end)


def _values(ranks: _Ranks, exact: np.ndarray, order: str, is_largest: bool) -> Interval:
    """The interval of the values, along the last axis."""
    low, high = (np.sort(end, -1)[..., : ranks.count] for end in (ranks.low, ranks.high))
    low, high = (-high, -low) if is_largest else (low, high)
    if order == "value":
        return Interval(exact, low, high)
    least, most = (
        np.broadcast_to(end, exact.shape) for end in (low.min(-1, keepdims=True), high.max(-1, keepdims=True))
    )
    if order == "none":
        ends = np.sort(low, -1), np.sort(high, -1)
        return Interval(exact, least, most, admits=lambda found: _any_order(found, *ends))
    # In the order of the indices, a choice that is settled has the elements in their order.
    chosen = np.sort(np.argsort(~ranks.may_be_wanted, -1, kind="stable")[..., : ranks.count], -1)
    own = [np.take_along_axis(end, chosen, -1) for end in (ranks.low, ranks.high)]
    own = [-own[1], -own[0]] if is_largest else own
    ends = np.where(ranks.is_settled, own[0], least), np.where(ranks.is_settled, own[1], most)
    return Interval(exact, *ends)


def _any_order(found: np.ndarray, low: np.ndarray, high: np.ndarray) -> Mask:
    """Mask of the values that are inside where each row is sorted."""
    order = np.argsort(found, -1, kind="stable")
    mask = np.zeros(found.shape, bool)
    values = np.take_along_axis(found, order, -1)
    np.put_along_axis(mask, order, (values >= low) & (values <= high), -1)
    return mask


def _moved(x: Interval, axis: int) -> Interval:
    exact, low, high = (np.moveaxis(each, -1, axis) for each in (x.exact, x.low, x.high))
    if np.array_equal(low, exact) and np.array_equal(high, exact) and x.admits is None:
        return Interval.certain(exact)
    return replace(spanning(exact, low, high), admits=None if x.admits is None else _along(x.admits, axis))


def _along(inner: Callable[[np.ndarray], Mask], axis: int) -> Callable[[np.ndarray], Mask]:
    return lambda found: np.moveaxis(inner(np.moveaxis(found, axis, -1)), -1, axis)


def _indices(ranks: _Ranks, exact: np.ndarray, axis: int, order: str) -> Interval:
    size = ranks.low.shape[-1]
    may = ranks.is_settled.all() if order == "index" else bool((ranks.before + ranks.after == size - 1).all())
    if may and order != "none":
        return Interval.certain(exact)
    low, high = np.zeros_like(exact), np.full_like(exact, size - 1)
    return Interval(exact, low, high, admits=_along(lambda found: ranks.admits(found, order), axis))


@rule("ShapeOf", "Eye")
def shape_of(layer: Layer, *inputs: Interval | None) -> tuple[Bound, ...]:
    """No element of a floating-point input is read; zeros and ones are exact in every type."""
    return layer.certain(*inputs)


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
    check(not any(np.isnan(end).any() for end in ends if end.dtype.kind == "f"), "how NaN is ordered is open")
    check(not any((np.diff(end.astype(np.float64)) < 0).any() for end in ends[:2]), "boundaries out of order")

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
    check(x.exact.ndim > 0, "the indices of a scalar")
    is_open = (x.low <= 0) & (x.high >= 0) & ~(is_zero & (x.low == x.high))
    check(not is_open.any(), "an element may be zero, or may not")
    return layer.certain(x)[0]


@rule("Unique")
def unique(layer: Layer, x: Interval, *axis: Interval | None) -> tuple[Bound, ...]:
    """Elements that are certain are equal or not; how NaN, and zeros of both signs, count is open."""
    is_open = not x.is_certain or np.isnan(x.exact).any()
    is_open = is_open or len(set(np.signbit(x.exact[x.exact == 0]).tolist())) > 1
    check(not is_open, "elements that may be equal, or may not")
    return layer.certain(x, *axis)


@rule("Range")
def ranged(layer: Layer, *ends: Interval) -> Bound:
    """start + i * step, or the step added i times: at most i + 1 roundings of numbers no larger than the largest
    element.

    The number of elements is known unless the quotient (stop - start) / step may lie on either side of an integer.
    """
    start, stop, step = (floats(one.exact).reshape(-1)[0] for one in ends)
    is_finite = all(one.is_certain for one in ends) and bool(np.isfinite([start, stop, step]).all())
    check(is_finite and step != 0, "the ends of a range are not certain")
    unit = layer.arithmetic.unit
    whole = all(each == np.trunc(each) and abs(each) * unit <= 0.5 for each in (start, stop, step))
    if not layer.is_float:
        check(whole, "a range of integers from fractions")
        return layer.certain(*ends)[0]
    quotient = (stop - start) / step
    error = 4 * unit * (abs(quotient) + (abs(stop) + abs(start)) / abs(step))
    is_certain = whole or np.ceil(quotient - error) == np.ceil(quotient + error)
    check(bool(is_certain), "the number of elements may be one more or less")
    number = np.arange(max(0, int(np.ceil(quotient))))
    exact = start + number * step
    size = max(abs(start), float(np.abs(exact).max(initial=0)) + abs(step))
    found = settled(exact, exact, exact)
    return found if whole else layer.algebra.widened(found, (number + 2) * unit * size)
