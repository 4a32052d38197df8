"""Numbers looked up among others: Bucketize, SearchSorted, Unique."""

from __future__ import annotations

from typing import Literal

import numpy as np

from irexec.dtypes.elements import Element, element
from irexec.errors import check
from irexec.ir.dims import ANY, Shape, Size, count, high, low, meet, span
from irexec.ir.facts import Fact
from irexec.reference.searching import bisect, distinct
from irexec.schema.registry import op
from irexec.schema.rules import check_integers, check_scalar, check_vector, normalize_axis, open_shape, same_element

IndexType = Literal["i64", "i32"]


@op("Bucketize", since=3)
def bucketize_3(data: np.ndarray, buckets: np.ndarray, *, output_type: IndexType = "i64", with_right_bound: bool = True) -> np.ndarray:
    """How many boundaries a number is beyond; a boundary itself belongs to the bucket before it, or behind it.

    NaN is beyond none with the right bound, and beyond all without. Source: Bucketize-3.
    """
    found = bisect(buckets, data.reshape(-1), np.less if with_right_bound else _not_below)
    return found.reshape(data.shape).astype(element(output_type).carrier)


def _not_below(boundary: np.ndarray, value: np.ndarray) -> np.ndarray:
    return ~(value < boundary)


@bucketize_3.shape_rule
def _bucketize_3_facts(data: Fact, buckets: Fact, *, output_type: IndexType = "i64", with_right_bound: bool = True) -> Fact:
    check_vector(buckets, "buckets")
    return Fact(element(output_type), data.shape)


@op("SearchSorted", since=15)
def search_sorted_15(
    sorted_sequence: np.ndarray, values: np.ndarray, *, right_mode: bool = False, output_type: IndexType = "i64"
) -> np.ndarray:
    """Where each value would go to keep its sequence sorted: the first place, or the last in ``right_mode``.

    The sequences lie along the last axis; a single one serves values of any shape. Source: SearchSorted-15.
    """
    single = sorted_sequence.ndim == 1
    found = bisect(sorted_sequence, values.reshape(-1) if single else values, np.less_equal if right_mode else np.less)
    return found.reshape(values.shape).astype(element(output_type).carrier)


@search_sorted_15.shape_rule
def _search_sorted_15_facts(sorted_sequence: Fact, values: Fact, *, right_mode: bool = False, output_type: IndexType = "i64") -> Fact:
    same_element(sorted_sequence, values)
    kind, many = element(output_type), sorted_sequence.shape
    check(many is None or len(many) > 0, "sorted_sequence is a scalar")
    if values.shape is None:
        return Fact(kind, None if many is None or len(many) == 1 else (*many[:-1], ANY))
    check(
        len(values.shape) > 0 or many is None or len(many) == 1, f"values are a scalar, sorted_sequence {sorted_sequence} has several axes"
    )
    if many is None or len(many) == 1:
        return Fact(kind, values.shape)
    check(len(many) == len(values.shape), f"sorted_sequence {sorted_sequence} and values {values} have different ranks")
    lead = [meet(a, b) for a, b in zip(many[:-1], values.shape[:-1], strict=True)]
    return Fact(kind, (*lead, *values.shape[-1:]))


@op("Unique", since=10)
def unique_10(
    data: np.ndarray,
    axis: np.ndarray | None = None,
    *,
    sorted: bool = True,
    index_element_type: IndexType = "i64",
    count_element_type: IndexType = "i64",
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The distinct numbers, or slices along ``axis``; where each is first met; which of them each is; how many.

    They are in ascending order, or in the order in which they are met; NaN differs from NaN. Source: Unique-10.
    """
    place = None if axis is None else normalize_axis(int(axis.reshape(-1)[0]), data.ndim)
    lines = data.reshape(-1, 1) if place is None else _slices(data, place)
    first, which, counts = distinct(lines.astype(str) if lines.dtype == object else lines, ordered=sorted)
    values = data.reshape(-1)[first] if place is None else data.take(first, place)
    index = element(index_element_type).carrier
    return values, first.astype(index), which.astype(index), counts.astype(element(count_element_type).carrier)


def _slices(data: np.ndarray, axis: int) -> np.ndarray:
    moved = np.moveaxis(data, axis, 0)
    return moved.reshape(len(moved), data.size // max(len(moved), 1))


@unique_10.shape_rule
def _unique_10_facts(
    data: Fact,
    axis: Fact | None = None,
    *,
    sorted: bool = True,
    index_element_type: IndexType = "i64",
    count_element_type: IndexType = "i64",
) -> tuple[Fact, Fact, Fact, Fact]:
    index, amount = element(index_element_type), element(count_element_type)
    if axis is None:
        total = ANY if data.shape is None else count(data.shape)
        return _found(data.element, (_distinct_of(total),), total, 0, index, amount)
    check_integers(axis, "axis")
    check_scalar(axis, "axis")
    place = axis.scalar("axis")
    if data.shape is None or place is None:
        return Fact(data.element, open_shape(data.rank)), Fact(index, (ANY,)), Fact(index, (ANY,)), Fact(amount, (ANY,))
    place = normalize_axis(place, len(data.shape))
    size = data.shape[place]
    shape = (*data.shape[:place], _distinct_of(size), *data.shape[place + 1 :])
    return _found(data.element, shape, size, place, index, amount)


def _distinct_of(size: Size) -> Size:
    """At least one of what there is, at most all."""
    return span(min(low(size), 1), high(size))


def _found(kind: Element | None, shape: Shape, size: Size, axis: int, index: Element, amount: Element) -> tuple[Fact, Fact, Fact, Fact]:
    return Fact(kind, shape), Fact(index, (shape[axis],)), Fact(index, (size,)), Fact(amount, (shape[axis],))
