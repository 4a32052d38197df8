"""Order, search and counting: TopK, NonZero, CumSum, Bucketize, SearchSorted, Unique."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from irexec.dtypes.elements import I8, I32, I64, Element, element
from irexec.errors import check
from irexec.ir.dims import ANY, Dim, Shape, Size, at_least, at_most, count, high, low, meet, span
from irexec.ir.facts import Fact, integer
from irexec.reference.indexing import bisect, distinct
from irexec.schema.opdef import (
    SCALAR,
    AnyTensor,
    IndexElement,
    IntegerElement,
    IntegerTensor,
    NumericTensor,
    Rank,
    Tensor,
    element_set,
)
from irexec.schema.registry import op
from irexec.schema.shape_rules import normalize_axis, open_shape, unify_elements

IndexType = Literal["i64", "i32"]
Data = Annotated[Tensor, Rank(1, None)]
Count = Annotated[IntegerTensor, SCALAR]
Count1 = Annotated[np.ndarray, element_set("i8, i32 or i64", I8, I32, I64), SCALAR]
"""In version 1. Source: openvino ``topk.cpp``."""


@dataclass(frozen=True, kw_only=True)
class TopKAttributes:
    """Attributes of versions 1 and 3. The specification has no ``index_element_type`` of version 1; OpenVINO writes
    and reads it."""

    axis: int
    mode: Literal["max", "min"]
    sort: Literal["value", "index", "none"]
    index_element_type: IndexType = "i32"

    @property
    def index_element(self) -> Element:
        """The element type of the indices."""
        return element(self.index_element_type)


@dataclass(frozen=True, kw_only=True)
class TopK11Attributes(TopKAttributes):
    """Attributes of version 11."""

    stable: bool = False


@op("TopK", since=1)
def topk_1(data: Data, k: Count1, *, attributes: TopKAttributes) -> tuple[np.ndarray, np.ndarray]:
    """The ``k`` largest or smallest values along ``axis`` and their indices. Source: TopK-1."""
    return topk_11.kernel(data, k, attributes=attributes)


@op("TopK", since=3)
def topk_3(data: Data, k: Count, *, attributes: TopKAttributes) -> tuple[np.ndarray, np.ndarray]:
    """The ``k`` largest or smallest values along ``axis`` and their indices. Source: TopK-3."""
    return topk_11.kernel(data, k, attributes=attributes)


@op("TopK", since=11)
def topk_11(data: Data, k: Count, *, attributes: TopK11Attributes) -> tuple[np.ndarray, np.ndarray]:
    """The ``k`` largest or smallest values along ``axis`` and their indices; always stable here. Source: TopK-11."""
    # Among equal values the lower index comes first; NaN comes last in both modes.
    axis = normalize_axis(attributes.axis, data.ndim)
    size, count = data.shape[axis], integer(k, "k")
    check(0 <= count <= size, f"k is {count}, the axis has {size}")
    if attributes.mode == "max" and data.dtype.kind == "f":
        order = np.argsort(-data, axis, kind="stable")
    elif attributes.mode == "max":
        # A stable descending order: sort the reversed axis and read the order backwards.
        order = size - 1 - np.flip(np.argsort(np.flip(data, axis), axis, kind="stable"), axis)
    else:
        order = np.argsort(data, axis, kind="stable")
    chosen = np.take(order, np.arange(count), axis)
    if attributes.sort == "index":
        chosen = np.sort(chosen, axis)
    return np.take_along_axis(data, chosen, axis), chosen.astype(attributes.index_element.carrier)


@topk_1.shape_rule
@topk_3.shape_rule
@topk_11.shape_rule
def _topk_shapes(data: Fact, k: Fact, *, attributes: TopKAttributes) -> tuple[Fact, Fact]:
    stable = isinstance(attributes, TopK11Attributes) and attributes.stable
    check(not stable or attributes.sort != "none", "stable needs an order: sort must be value or index")
    if data.shape is None:
        return Fact(data.element, None), Fact(attributes.index_element, None)
    axis = normalize_axis(attributes.axis, len(data.shape))
    values = k.sizes("k")
    size = _count_of(data.shape[axis], values[0] if values else None)
    shape = (*data.shape[:axis], size, *data.shape[axis + 1 :])
    return Fact(data.element, shape), Fact(attributes.index_element, shape)


def _count_of(size: Size, k: Size | None) -> Size:
    """The size of the result's axis: k, which must not be larger than the size of the data's axis."""
    if k is None:
        return span(0, high(size))
    maximum, largest = high(size), high(k)
    check(largest is None or largest >= 0, f"k {k} is negative")
    check(maximum is None or low(k) <= maximum, f"k is {k}, the axis has only {size}")
    return at_least(k if maximum is None else at_most(k, maximum), 0)


@op("NonZero", since=3)
def non_zero_3(data: Tensor, *, output_type: IndexType = "i64") -> np.ndarray:
    """The indices of the values that are not 0, one column each, in row-major order: [rank, n].

    A scalar counts as a vector of one value, but a scalar 0 gives no row either, as in openvino
    ``reference/non_zero.hpp`` (the plugin gives one). Source: NonZero-3.
    """
    carrier = element(output_type).carrier
    if data.ndim == 0 and not data:
        return np.zeros((0, 0), carrier)
    return np.stack(np.nonzero(np.atleast_1d(data))).astype(carrier)


@non_zero_3.shape_rule
def _non_zero_3_shape(data: Fact, *, output_type: IndexType) -> Fact:
    if data.shape is None:
        return Fact(element(output_type), (ANY, ANY))
    total = count(data.shape)
    return Fact(element(output_type), (len(data.shape) or Dim(0, 1), span(0, high(total))))


@op("CumSum", since=3, widen=True, tolerance=4e-6)
def cum_sum_3(
    data: NumericTensor,
    axis: IndexElement | None = None,
    *,
    exclusive: bool = False,
    reverse: bool = False,
) -> np.ndarray:
    """Cumulative sums along ``axis`` (default 0), without the element itself if ``exclusive``, from the last one if
    ``reverse``.

    Source: CumSum-3.
    """
    if data.ndim == 0:
        return np.zeros_like(data) if exclusive else data.copy()
    position = normalize_axis(0 if axis is None else integer(axis, "axis"), data.ndim)
    sums = np.cumsum(np.flip(data, position) if reverse else data, position, dtype=data.dtype)
    if exclusive:
        lead = (slice(None),) * position
        zeros = np.zeros_like(sums[(*lead, slice(0, 1))])
        sums = np.concatenate([zeros, sums[(*lead, slice(0, -1))]], position)[(*lead, slice(0, data.shape[position]))]
    return np.ascontiguousarray(np.flip(sums, position)) if reverse else sums


@cum_sum_3.shape_rule
def _cum_sum_3_shape(data: Fact, axis: Fact | None = None) -> Fact:
    position = None if axis is None else axis.scalar("axis")
    if position is not None and data.shape:
        normalize_axis(position, len(data.shape))
    return Fact(data.element, data.shape)


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
    are_of_one_rank = len(sequence) == len(values.shape)
    check(are_of_one_rank, f"sorted_sequence {sorted_sequence} and values {values} have different ranks")
    return Fact(index, (*map(meet, sequence[:-1], values.shape[:-1]), *values.shape[-1:]))


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
