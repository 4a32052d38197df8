"""Rows gathered from a table and pooled by bag or segment: EmbeddingBag, EmbeddingSegments, SegmentMax,
SparseFillEmptyRows."""

from __future__ import annotations

import functools
from typing import Annotated, Literal

import numpy as np

from irexec.dtypes.elements import BOOLEAN, element_of, lowest
from irexec.errors import check
from irexec.ir.dims import ANY, Size, at_least, high, low, may_equal, meet, span
from irexec.ir.facts import Fact, integer, integers
from irexec.reference.indexing import from_front
from irexec.reference.integers import truncated_quotient
from irexec.schema.attributes import ElementTypes
from irexec.schema.opdef import (
    SCALAR,
    VECTOR,
    AnyTensor,
    IndexScalar,
    IndexTensor,
    IndexVector,
    IntegerScalar,
    IntegerVector,
    NumericTensor,
    Rank,
)
from irexec.schema.registry import op
from irexec.schema.shape_rules import scalar_size, unify_elements

Pooling = Literal["sum", "mean"]
Table = Annotated[NumericTensor, Rank(1, None)]
IndexMatrix = Annotated[IndexTensor, Rank(2)]
NumericVector = Annotated[NumericTensor, VECTOR]
NumericMatrix = Annotated[NumericTensor, Rank(2)]


def _gathered(table: np.ndarray, indices: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    rows = table[from_front(indices, len(table), negative=False)]
    return rows if weights is None else rows * weights.reshape(weights.shape + (1,) * (table.ndim - 1))


def _pooled(
    rows: np.ndarray, bags: np.ndarray, count: int, table: np.ndarray, default_index: np.ndarray | None, pooling: str
) -> np.ndarray:
    """The sum or mean of the rows of each bag; an empty bag has the default row, or zeros. Bags out of range are
    ignored."""
    within = (bags >= 0) & (bags < count)
    order = np.argsort(bags[within], kind="stable")
    occupied, starts, counts = np.unique(bags[within][order], return_index=True, return_counts=True)
    result = np.zeros((count, *table.shape[1:]), table.dtype)
    default = -1 if default_index is None else integer(default_index, "default_index")
    if default != -1:
        result[:] = table[from_front(np.array(default), len(table), negative=False)]
    if len(occupied):
        sums = np.add.reduceat(rows[within][order], starts, 0, dtype=table.dtype)
        sizes = counts.reshape((-1,) + (1,) * (table.ndim - 1))
        result[occupied] = sums if pooling == "sum" else truncated_quotient(sums, sizes)
    return result


def _table_facts(table: Fact, indices: Fact, weights: Fact | None, count: Size) -> Fact:
    """The result: ``count`` rows of the table."""
    kind = unify_elements(table, weights)
    if weights is not None and weights.shape is not None and indices.shape is not None:
        text = f"per_sample_weights {weights} do not have the shape of indices {indices}"
        check(len(weights.shape) == len(indices.shape) and all(map(may_equal, weights.shape, indices.shape)), text)
    return Fact(kind, None if table.shape is None else (count, *table.shape[1:]))


@op("EmbeddingBagOffsetsSum", since=3, widen=True, tolerance=2e-6)
def embedding_bag_offsets_sum_3(
    emb_table: Table,
    indices: IntegerVector,
    offsets: IntegerVector,
    default_index: IntegerScalar | None = None,
    per_sample_weights: NumericVector | None = None,
) -> np.ndarray:
    """The sum of the rows of ``emb_table`` at the ``indices`` of each bag, each times its weight.

    A bag is the indices from its offset to the next. An empty one has the row ``default_index``; zeros if it is -1 or
    not given. Source: EmbeddingBagOffsetsSum-3.
    """
    return embedding_bag_offsets_15.kernel(emb_table, indices, offsets, default_index, per_sample_weights)


@op("EmbeddingBagOffsets", since=15, widen=True, tolerance=2e-6)
def embedding_bag_offsets_15(
    emb_table: Table,
    indices: IntegerVector,
    offsets: IntegerVector,
    default_index: IntegerScalar | None = None,
    per_sample_weights: NumericVector | None = None,
    *,
    reduction: Pooling = "sum",
) -> np.ndarray:
    """Same as EmbeddingBagOffsetsSum-3, or the mean of the rows. Source: EmbeddingBagOffsets-15."""
    bags = np.searchsorted(offsets.astype(np.int64), np.arange(len(indices)), "right") - 1
    rows = _gathered(emb_table, indices, per_sample_weights)
    return _pooled(rows, bags, len(offsets), emb_table, default_index, reduction)


@embedding_bag_offsets_sum_3.shape_rule
@embedding_bag_offsets_15.shape_rule
def _offsets_facts(
    emb_table: Fact,
    indices: Fact,
    offsets: Fact,
    default_index: Fact | None = None,
    per_sample_weights: Fact | None = None,
    *,
    reduction: Pooling = "sum",
) -> Fact:
    _check_reduction(reduction, per_sample_weights)
    return _table_facts(emb_table, indices, per_sample_weights, offsets.shape[0] if offsets.shape else ANY)


def _check_reduction(reduction: Pooling, weights: Fact | None) -> None:
    check(weights is None or reduction == "sum", "reduction mean does not take per_sample_weights")


@op("EmbeddingBagPackedSum", since=3, widen=True, tolerance=2e-6)
def embedding_bag_packed_sum_3(
    emb_table: Table, indices: IndexMatrix, per_sample_weights: NumericMatrix | None = None
) -> np.ndarray:
    """The sum of the rows of ``emb_table`` at each row of ``indices`` [bags, rows], each times its weight.

    Source: EmbeddingBagPackedSum-3.
    """
    return embedding_bag_packed_15.kernel(emb_table, indices, per_sample_weights)


@op("EmbeddingBagPacked", since=15, widen=True, tolerance=2e-6)
def embedding_bag_packed_15(
    emb_table: Table,
    indices: IndexMatrix,
    per_sample_weights: NumericMatrix | None = None,
    *,
    reduction: Pooling = "sum",
) -> np.ndarray:
    """Same as EmbeddingBagPackedSum-3, or the mean of the rows. Source: EmbeddingBagPacked-15."""
    rows = _gathered(emb_table, indices, per_sample_weights)
    sums = rows.sum(1, dtype=emb_table.dtype)
    return sums if reduction == "sum" or not rows.shape[1] else truncated_quotient(sums, rows.shape[1])


@embedding_bag_packed_sum_3.shape_rule
@embedding_bag_packed_15.shape_rule
def _packed_facts(
    emb_table: Fact, indices: Fact, per_sample_weights: Fact | None = None, *, reduction: Pooling = "sum"
) -> Fact:
    """One bag for each row of the indices and weights."""
    _check_reduction(reduction, per_sample_weights)
    counts = [fact.shape[0] for fact in (indices, per_sample_weights) if fact is not None and fact.shape]
    result = _table_facts(emb_table, indices, per_sample_weights, ANY)
    if result.shape is None or not counts:
        return result
    return Fact(result.element, (functools.reduce(meet, counts), *result.shape[1:]))


@op("EmbeddingSegmentsSum", since=3, widen=True, tolerance=2e-6)
def embedding_segments_sum_3(
    emb_table: Table,
    indices: IndexVector,
    segment_ids: IndexVector,
    num_segments: IndexScalar,
    default_index: IndexScalar | None = None,
    per_sample_weights: NumericVector | None = None,
) -> np.ndarray:
    """The sum of the rows of ``emb_table`` at the ``indices`` of each segment, each times its weight.

    An empty segment has the row ``default_index``; zeros if it is -1 or not given. Ids of num_segments and above are
    ignored, as in OpenVINO. Source: EmbeddingSegmentsSum-3.
    """
    count = integer(num_segments, "num_segments")
    rows = _gathered(emb_table, indices, per_sample_weights)
    return _pooled(rows, segment_ids, count, emb_table, default_index, "sum")


@embedding_segments_sum_3.shape_rule
def _embedding_segments_sum_3_facts(
    emb_table: Fact,
    indices: Fact,
    segment_ids: Fact,
    num_segments: Fact,
    default_index: Fact | None = None,
    per_sample_weights: Fact | None = None,
) -> Fact:
    if segment_ids.shape and indices.shape:
        text = f"segment_ids {segment_ids} do not have the shape of indices {indices}"
        check(may_equal(segment_ids.shape[0], indices.shape[0]), text)
    count = scalar_size(num_segments, "num_segments")
    return _table_facts(emb_table, indices, per_sample_weights, count)


@op("SegmentMax", since=16)
def segment_max_16(
    data: Table,
    segment_ids: IndexVector,
    num_segments: IndexScalar | None = None,
    *,
    fill_mode: Literal["zero", "lowest"],
    elements: ElementTypes = ElementTypes(),
) -> np.ndarray:
    """The maximum of each segment of the first axis; an empty segment has 0 or the lowest value of the type.

    ``num_segments`` is the last id + 1 by default; ids of ``num_segments`` and above are ignored. NaN is the maximum
    of a segment only where it has no other element, as in OpenVINO's reference. Source: SegmentMax-16.
    """
    last = integer(segment_ids[-1:], "segment_ids") if segment_ids.size else -1
    count = last + 1 if num_segments is None else integer(num_segments, "num_segments")
    within = segment_ids < count
    start = lowest((elements[0] if elements else None) or element_of(data.dtype)) if fill_mode == "lowest" else 0
    result = np.full((count, *data.shape[1:]), start, data.dtype)
    occupied, starts = np.unique(segment_ids[within], return_index=True)
    if len(occupied):
        maximum = np.fmax if data.dtype.kind == "f" else np.maximum
        result[occupied] = maximum.reduceat(data[within], starts, 0)
    return result


@segment_max_16.shape_rule
def _segment_max_16_facts(data: Fact, segment_ids: Fact, num_segments: Fact | None = None) -> Fact:
    if data.shape is not None and segment_ids.shape:
        text = f"segment_ids {segment_ids} do not have one id for each row of data {data}"
        check(may_equal(data.shape[0], segment_ids.shape[0]), text)
    ids = segment_ids.ints("segment_ids")
    if ids is not None:
        are_ascending = list(ids) == sorted(ids) and (not ids or ids[0] >= 0)
        check(are_ascending, f"segment_ids {list(ids)[:8]} are not ascending from 0")
    count: Size = ANY
    if num_segments is not None:
        count = scalar_size(num_segments, "num_segments")
    elif ids is not None:
        count = ids[-1] + 1 if ids else 0
    return Fact(data.element, None if data.shape is None else (count, *data.shape[1:]))


@op("SparseFillEmptyRows", since=16)
def sparse_fill_empty_rows_16(
    values: Annotated[AnyTensor, VECTOR],
    dense_shape: IndexVector,
    indices: IndexMatrix,
    default_value: Annotated[AnyTensor, SCALAR],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The indices and values of a sparse matrix in row-major order, with ``default_value`` at column 0 of empty rows.

    ``indices`` are [count, 2]; the third result is true for the rows that were empty. Source: SparseFillEmptyRows-16.
    """
    rows = np.arange(integers(dense_shape, "dense_shape")[0])
    is_empty = ~np.isin(rows, indices[:, 0])
    filling = np.stack([rows[is_empty], np.zeros(is_empty.sum(), np.int64)], 1).astype(indices.dtype)
    all_indices = np.concatenate([indices, filling])
    order = np.lexsort((all_indices[:, 1], all_indices[:, 0]))
    all_values = np.concatenate([values, np.full(len(filling), default_value.reshape(-1)[0], values.dtype)])
    return all_indices[order], all_values[order], is_empty


@sparse_fill_empty_rows_16.shape_rule
def _sparse_fill_empty_rows_16_facts(
    values: Fact, dense_shape: Fact, indices: Fact, default_value: Fact
) -> tuple[Fact, Fact, Fact]:
    kind, index_kind = unify_elements(values, default_value), unify_elements(dense_shape, indices)
    is_pair = not dense_shape.shape or may_equal(dense_shape.shape[0], 2)
    check(is_pair, f"dense_shape {dense_shape} must have 2 elements")
    given: Size = values.shape[0] if values.shape else ANY
    if indices.shape:
        check(may_equal(indices.shape[1], 2), f"indices {indices} must have 2 columns")
        check(may_equal(indices.shape[0], given), f"indices {indices} do not have one row for each of values {values}")
        given = meet(indices.shape[0], given)
    sizes = dense_shape.sizes("dense_shape")
    rows = at_least(sizes[0], 0) if sizes else ANY
    total = _filled_count(given, rows, indices)
    return Fact(index_kind, (total, 2)), Fact(kind, (total,)), Fact(BOOLEAN, (rows,))


def _filled_count(given: Size, rows: Size, indices: Fact) -> Size:
    """The number of elements of the result: those given, and one for each row without any."""
    known = indices.known
    if known is not None and isinstance(rows, int):
        occupied = np.unique(known[:, 0])
        check(not len(occupied) or 0 <= occupied[0] <= occupied[-1] < rows, f"an index is out of range for {rows} rows")
        return len(known) + rows - len(occupied)
    max_given, max_rows = high(given), high(rows)
    # A row is empty, or has at least one of the given elements.
    return span(max(low(given), low(rows)), None if max_given is None or max_rows is None else max_given + max_rows)
