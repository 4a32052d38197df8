"""Search: Bucketize, SearchSorted, Unique."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np

from irexec.dtypes.elements import Element, element
from irexec.errors import check
from irexec.ir.dims import ANY, Shape, Size, count, high, low, meet, span
from irexec.ir.facts import Fact
from irexec.ir.integers import integer
from irexec.reference.indexing import bisect, distinct
from irexec.schema.inputs import AnyTensor, IntegerElement, Rank, Tensor
from irexec.schema.registry import op
from irexec.schema.shape_rules import normalize_axis, open_shape, unify_elements

IndexType = Literal["i64", "i32"]


@op("Bucketize", since=3)
def bucketize_3(
    data: Tensor, buckets: Annotated[Tensor, Rank(1)], *, output_type: IndexType = "i64", with_right_bound: bool = True
) -> np.ndarray:
    """The number of boundaries below each value; with ``with_right_bound`` a bucket includes its upper boundary, else
    its lower one.

    NaN is in the first bucket with the right bound, and in the last without. Source: Bucketize-3.
    """
    found = bisect(buckets, data.reshape(-1), np.less if with_right_bound else _not_below)
    return found.reshape(data.shape).astype(element(output_type).carrier)


def _not_below(boundary: np.ndarray, value: np.ndarray) -> np.ndarray:
    return ~(value < boundary)


@bucketize_3.shape_rule
def _bucketize_3_shape(data: Fact, buckets: Fact, *, output_type: IndexType) -> Fact:
    return Fact(element(output_type), data.shape)


@op("SearchSorted", since=15)
def search_sorted_15(
    sorted_sequence: Annotated[Tensor, Rank(1, None)],
    values: Tensor,
    *,
    right_mode: bool = False,
    output_type: IndexType = "i64",
) -> np.ndarray:
    """The index at which each value would be inserted to keep its sequence sorted: the first, or the last in
    ``right_mode``.

    The sequences lie along the last axis; a single one serves values of any shape. Source: SearchSorted-15.
    """
    single = sorted_sequence.ndim == 1
    found = bisect(sorted_sequence, values.reshape(-1) if single else values, np.less_equal if right_mode else np.less)
    return found.reshape(values.shape).astype(element(output_type).carrier)


@search_sorted_15.shape_rule
def _search_sorted_15_shape(sorted_sequence: Fact, values: Fact, *, output_type: IndexType) -> Fact:
    unify_elements(sorted_sequence, values)
    index, sequence = element(output_type), sorted_sequence.shape
    if sequence is None or len(sequence) == 1:
        return Fact(index, values.shape)
    if values.shape is None:
        return Fact(index, (*sequence[:-1], ANY))
    check(
        len(sequence) == len(values.shape),
        f"sorted_sequence {sorted_sequence} and values {values} have different ranks",
    )
    lead = [meet(a, b) for a, b in zip(sequence[:-1], values.shape[:-1], strict=True)]
    return Fact(index, (*lead, *values.shape[-1:]))


@op("Unique", since=10)
def unique_10(
    data: AnyTensor,
    axis: IntegerElement | None = None,
    *,
    sorted: bool = True,
    index_element_type: IndexType = "i64",
    count_element_type: IndexType = "i64",
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The distinct values, or slices along ``axis``; the index of the first occurrence, of which distinct one each is,
    and counts.

    They are in ascending order, or in the order of first occurrence; NaN differs from NaN. Source: Unique-10.
    """
    position = None if axis is None else normalize_axis(integer(axis, "axis"), data.ndim)
    rows = data.reshape(-1, 1) if position is None else _slices(data, position)
    first, inverse, counts = distinct(rows.astype(str) if rows.dtype == object else rows, ordered=sorted)
    values = data.reshape(-1)[first] if position is None else data.take(first, position)
    index = element(index_element_type).carrier
    return values, first.astype(index), inverse.astype(index), counts.astype(element(count_element_type).carrier)


def _slices(data: np.ndarray, axis: int) -> np.ndarray:
    moved = np.moveaxis(data, axis, 0)
    return moved.reshape(len(moved), data.size // max(len(moved), 1))


@unique_10.shape_rule
def _unique_10_shapes(
    data: Fact, axis: Fact | None = None, *, index_element_type: IndexType, count_element_type: IndexType
) -> tuple[Fact, Fact, Fact, Fact]:
    index, amount = element(index_element_type), element(count_element_type)
    if axis is None:
        total = ANY if data.shape is None else count(data.shape)
        return _outputs(data.element, (_distinct_count(total),), total, 0, index, amount)
    position = axis.scalar("axis")
    if data.shape is None or position is None:
        return Fact(data.element, open_shape(data.rank)), Fact(index, (ANY,)), Fact(index, (ANY,)), Fact(amount, (ANY,))
    position = normalize_axis(position, len(data.shape))
    size = data.shape[position]
    shape = (*data.shape[:position], _distinct_count(size), *data.shape[position + 1 :])
    return _outputs(data.element, shape, size, position, index, amount)


def _distinct_count(size: Size) -> Size:
    """At least one where there are any, at most all."""
    return span(min(low(size), 1), high(size))


def _outputs(
    kind: Element | None, shape: Shape, size: Size, axis: int, index: Element, amount: Element
) -> tuple[Fact, Fact, Fact, Fact]:
    return Fact(kind, shape), Fact(index, (shape[axis],)), Fact(index, (size,)), Fact(amount, (shape[axis],))
