"""TopK: the values by order statistics, the indices by the ranks that each element may have.

The j-th largest of some numbers never decreases where one of them grows, so that the sorted lower ends and the sorted
upper ends bound the sorted values; nothing is rounded. In every implementation an element comes after all that are
certainly larger, and before all that are certainly smaller: its rank lies between their numbers. Elements whose
intervals overlap, equal ones too, may come in either order, unless a stable order is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from irexec.bounds.algebra import floats, settled
from irexec.bounds.interval import Bound, Interval, Mask, Unbounded
from irexec.bounds.registry import Layer, rule
from irexec.ir.integers import integer
from irexec.reference.indexing import bisect
from irexec.schema.shape_rules import normalize_axis


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
    if not k.is_certain:
        return (Unbounded("the number of elements is not known"),) * 2
    if x.exact.dtype.kind == "f" and np.isnan([x.exact, x.low, x.high]).any():
        return (Unbounded("how NaN is ordered is open"),) * 2
    attributes = layer.attributes["attributes"]
    axis, order = normalize_axis(attributes.axis, x.exact.ndim), attributes.sort
    count = integer(k.exact, "k")
    exact = layer.run(x.exact, k.exact)
    if not count:
        return tuple(Interval.certain(each) for each in exact)
    low, high = (np.moveaxis(_signed(end), axis, -1) for end in (x.low, x.high))
    is_largest = attributes.mode == "max"
    ends = (-high, -low) if is_largest else (low, high)
    ranks = _Ranks.of(*ends, count, getattr(attributes, "stable", False) and x.is_certain)
    values = _values(ranks, np.moveaxis(exact[0], axis, -1), order, is_largest)
    indices = _indices(ranks, exact[1], axis, order)
    return _moved(values, axis, exact[0].dtype), indices


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
    return Interval(
        exact, np.where(ranks.is_settled, own[0], least), np.where(ranks.is_settled, own[1], most)
    )  # fmt: skip


def _any_order(found: np.ndarray, low: np.ndarray, high: np.ndarray) -> Mask:
    """Mask of the values that are inside where each row is sorted."""
    order = np.argsort(found, -1, kind="stable")
    mask = np.zeros(found.shape, bool)
    values = np.take_along_axis(found, order, -1)
    np.put_along_axis(mask, order, (values >= low) & (values <= high), -1)
    return mask


def _moved(x: Interval, axis: int, dtype: np.dtype) -> Interval:
    exact, low, high = (np.moveaxis(each, -1, axis) for each in (x.exact, x.low, x.high))
    if np.array_equal(low, exact) and np.array_equal(high, exact) and x.admits is None:
        return Interval.certain(exact)
    inner = x.admits
    admits = None if inner is None else _along(inner, axis)
    if dtype.kind != "f":
        return Interval(exact, low, high, admits=admits)
    made = settled(floats(exact), floats(low), floats(high))
    return Interval(made.exact, made.low, made.high, admits=admits)


def _along(inner: Callable[[np.ndarray], Mask], axis: int) -> Callable[[np.ndarray], Mask]:
    return lambda found: np.moveaxis(inner(np.moveaxis(found, axis, -1)), -1, axis)


def _indices(ranks: _Ranks, exact: np.ndarray, axis: int, order: str) -> Interval:
    size = ranks.low.shape[-1]
    may = ranks.is_settled.all() if order == "index" else bool((ranks.before + ranks.after == size - 1).all())
    if may and order != "none":
        return Interval.certain(exact)
    low, high = np.zeros_like(exact), np.full_like(exact, size - 1)
    return Interval(exact, low, high, admits=_along(lambda found: ranks.admits(found, order), axis))
