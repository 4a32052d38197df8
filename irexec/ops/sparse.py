"""Rows picked from a table and pooled by bag or segment: EmbeddingBag, EmbeddingSegments, SegmentMax, SparseFillEmptyRows."""

from __future__ import annotations

import functools
from typing import Literal

import numpy as np

from irexec.dtypes.elements import BF16, BOOLEAN, Element
from irexec.errors import check
from irexec.ir.dims import ANY, Size, at_least, high, low, may_equal, meet, span
from irexec.ir.facts import Fact
from irexec.reference.indexing import from_front
from irexec.reference.pooling import lowest
from irexec.schema.element_checks import check_integers, unify_elements
from irexec.schema.injected import ElementTypes
from irexec.schema.registry import op
from irexec.schema.rules import check_scalar, check_vector
from irexec.schema.sizes import scalar_size

Pooling = Literal["sum", "mean"]


def _picked(table: np.ndarray, indices: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    rows = table[from_front(indices, len(table), negative=False)]
    return rows if weights is None else rows * weights.reshape(weights.shape + (1,) * (table.ndim - 1))


def _pooled(
    rows: np.ndarray, bags: np.ndarray, count: int, table: np.ndarray, default_index: np.ndarray | None, pooling: str
) -> np.ndarray:
    """The sum or mean of the rows of each bag; an empty bag has the default row, or zeros. Bags out of range are left out."""
    within = (bags >= 0) & (bags < count)
    order = np.argsort(bags[within], kind="stable")
    filled, starts, amounts = np.unique(bags[within][order], return_index=True, return_counts=True)
    result = np.zeros((count, *table.shape[1:]), table.dtype)
    default = -1 if default_index is None else int(default_index.reshape(-1)[0])
    if default != -1:
        result[:] = table[from_front(np.array(default), len(table), negative=False)]
    if len(filled):
        sums = np.add.reduceat(rows[within][order], starts, 0, dtype=table.dtype)
        sizes = amounts.reshape((-1,) + (1,) * (table.ndim - 1))
        result[filled] = sums if pooling == "sum" else (sums / sizes if table.dtype.kind == "f" else sums // sizes)
    return result


def _by_offsets(
    table: np.ndarray,
    indices: np.ndarray,
    offsets: np.ndarray,
    default_index: np.ndarray | None,
    weights: np.ndarray | None,
    pooling: str,
) -> np.ndarray:
    bags = np.searchsorted(offsets.astype(np.int64), np.arange(len(indices)), "right") - 1
    return _pooled(_picked(table, indices, weights), bags, len(offsets), table, default_index, pooling)


def _table_facts(table: Fact, indices: Fact, weights: Fact | None, ranks: int, count: Size) -> Fact:
    """The result: ``count`` rows of the table."""
    kind = table.element if weights is None else unify_elements(table, weights)
    check_integers(indices, "indices")
    check(indices.rank in (None, ranks), f"indices have rank {indices.rank}, expected {ranks}")
    if weights is not None and weights.shape is not None and indices.shape is not None:
        text = f"per_sample_weights {weights} do not have the shape of indices {indices}"
        check(len(weights.shape) == len(indices.shape) and all(map(may_equal, weights.shape, indices.shape)), text)
    if table.shape is None:
        return Fact(kind, None)
    check(len(table.shape) > 0, "emb_table is a scalar")
    return Fact(kind, (count, *table.shape[1:]))


def _packed_facts(table: Fact, indices: Fact, weights: Fact | None) -> Fact:
    """One bag for each row of the indices, of which there are as many as of weights."""
    counts = [fact.shape[0] for fact in (indices, weights) if fact is not None and fact.shape]
    result = _table_facts(table, indices, weights, 2, ANY)
    if result.shape is None or not counts:
        return result
    return Fact(result.element, (functools.reduce(meet, counts), *result.shape[1:]))


def _offsets_facts(table: Fact, indices: Fact, offsets: Fact, default_index: Fact | None, weights: Fact | None) -> Fact:
    check_integers(offsets, "offsets")
    check_vector(offsets, "offsets")
    if default_index is not None:
        check_integers(default_index, "default_index")
        check_scalar(default_index, "default_index")
    return _table_facts(table, indices, weights, 1, offsets.shape[0] if offsets.shape else ANY)


@op("EmbeddingBagOffsetsSum", since=3, widen=True, tolerance=2e-6)
def embedding_bag_offsets_sum_3(
    emb_table: np.ndarray,
    indices: np.ndarray,
    offsets: np.ndarray,
    default_index: np.ndarray | None = None,
    per_sample_weights: np.ndarray | None = None,
) -> np.ndarray:
    """For each bag the sum of the rows of ``emb_table`` at its ``indices``, each times its weight.

    A bag reaches from its offset to the next. An empty one has the row ``default_index``; zeros for -1 or none.
    Source: EmbeddingBagOffsetsSum-3.
    """
    return _by_offsets(emb_table, indices, offsets, default_index, per_sample_weights, "sum")


@embedding_bag_offsets_sum_3.shape_rule
def _embedding_bag_offsets_sum_3_facts(
    emb_table: Fact, indices: Fact, offsets: Fact, default_index: Fact | None = None, per_sample_weights: Fact | None = None
) -> Fact:
    return _offsets_facts(emb_table, indices, offsets, default_index, per_sample_weights)


@op("EmbeddingBagOffsets", since=15, widen=True, tolerance=2e-6)
def embedding_bag_offsets_15(
    emb_table: np.ndarray,
    indices: np.ndarray,
    offsets: np.ndarray,
    default_index: np.ndarray | None = None,
    per_sample_weights: np.ndarray | None = None,
    *,
    reduction: Pooling = "sum",
) -> np.ndarray:
    """As EmbeddingBagOffsetsSum-3, or the mean of the rows. Source: EmbeddingBagOffsets-15."""
    return _by_offsets(emb_table, indices, offsets, default_index, per_sample_weights, reduction)


@embedding_bag_offsets_15.shape_rule
def _embedding_bag_offsets_15_facts(
    emb_table: Fact,
    indices: Fact,
    offsets: Fact,
    default_index: Fact | None = None,
    per_sample_weights: Fact | None = None,
    *,
    reduction: Pooling = "sum",
) -> Fact:
    check(per_sample_weights is None or reduction == "sum", "reduction mean takes no per_sample_weights")
    return _offsets_facts(emb_table, indices, offsets, default_index, per_sample_weights)


def _packed(table: np.ndarray, indices: np.ndarray, weights: np.ndarray | None, pooling: str) -> np.ndarray:
    rows = _picked(table, indices, weights)
    sums = rows.sum(1, dtype=table.dtype)
    if pooling == "sum" or not rows.shape[1]:
        return sums
    return (sums / rows.shape[1] if table.dtype.kind == "f" else sums // rows.shape[1]).astype(table.dtype)


@op("EmbeddingBagPackedSum", since=3, widen=True, tolerance=2e-6)
def embedding_bag_packed_sum_3(emb_table: np.ndarray, indices: np.ndarray, per_sample_weights: np.ndarray | None = None) -> np.ndarray:
    """For each row of ``indices`` [bags, rows] the sum of those rows of ``emb_table``, each times its weight.

    Source: EmbeddingBagPackedSum-3.
    """
    return _packed(emb_table, indices, per_sample_weights, "sum")


@embedding_bag_packed_sum_3.shape_rule
def _embedding_bag_packed_sum_3_facts(emb_table: Fact, indices: Fact, per_sample_weights: Fact | None = None) -> Fact:
    return _packed_facts(emb_table, indices, per_sample_weights)


@op("EmbeddingBagPacked", since=15, widen=True, tolerance=2e-6)
def embedding_bag_packed_15(
    emb_table: np.ndarray, indices: np.ndarray, per_sample_weights: np.ndarray | None = None, *, reduction: Pooling = "sum"
) -> np.ndarray:
    """As EmbeddingBagPackedSum-3, or the mean of the rows. Source: EmbeddingBagPacked-15."""
    return _packed(emb_table, indices, per_sample_weights, reduction)


@embedding_bag_packed_15.shape_rule
def _embedding_bag_packed_15_facts(
    emb_table: Fact, indices: Fact, per_sample_weights: Fact | None = None, *, reduction: Pooling = "sum"
) -> Fact:
    check(per_sample_weights is None or reduction == "sum", "reduction mean takes no per_sample_weights")
    return _packed_facts(emb_table, indices, per_sample_weights)


@op("EmbeddingSegmentsSum", since=3, widen=True, tolerance=2e-6)
def embedding_segments_sum_3(
    emb_table: np.ndarray,
    indices: np.ndarray,
    segment_ids: np.ndarray,
    num_segments: np.ndarray,
    default_index: np.ndarray | None = None,
    per_sample_weights: np.ndarray | None = None,
) -> np.ndarray:
    """For each segment the sum of the rows of ``emb_table`` at its ``indices``, each times its weight.

    An empty segment has the row ``default_index``; zeros for -1 or none. Ids from num_segments on are left out,
    as OpenVINO does. Source: EmbeddingSegmentsSum-3.
    """
    count = int(num_segments.reshape(-1)[0])
    return _pooled(_picked(emb_table, indices, per_sample_weights), segment_ids, count, emb_table, default_index, "sum")


@embedding_segments_sum_3.shape_rule
def _embedding_segments_sum_3_facts(
    emb_table: Fact,
    indices: Fact,
    segment_ids: Fact,
    num_segments: Fact,
    default_index: Fact | None = None,
    per_sample_weights: Fact | None = None,
) -> Fact:
    check_vector(segment_ids, "segment_ids")
    check_integers(segment_ids, "segment_ids")
    if segment_ids.shape and indices.shape:
        text = f"segment_ids {segment_ids} do not have the shape of indices {indices}"
        check(may_equal(segment_ids.shape[0], indices.shape[0]), text)
    count = scalar_size(num_segments, "num_segments")
    if default_index is not None:
        check_integers(default_index, "default_index")
        check_scalar(default_index, "default_index")
    return _table_facts(emb_table, indices, per_sample_weights, 1, count)


@op("SegmentMax", since=16)
def segment_max_16(
    data: np.ndarray,
    segment_ids: np.ndarray,
    num_segments: np.ndarray | None = None,
    *,
    fill_mode: Literal["zero", "lowest"],
    elements: ElementTypes = ElementTypes(),
) -> np.ndarray:
    """The greatest number of each segment of the first axis; an empty segment has 0 or the lowest number of the type.

    There are as many segments as ``num_segments`` or the last id says; ids beyond are left out. NaN counts
    only where there is nothing else, as the reference, which passes it over. Source: SegmentMax-16.
    """
    count = int(segment_ids.max(initial=-1)) + 1 if num_segments is None else int(num_segments.reshape(-1)[0])
    within = segment_ids < count
    result = np.full(
        (count, *data.shape[1:]), _lowest(elements[0] if elements else None, data.dtype) if fill_mode == "lowest" else 0, data.dtype
    )
    filled, starts = np.unique(segment_ids[within], return_index=True)
    if len(filled):
        greatest = np.fmax if data.dtype.kind == "f" else np.maximum
        result[filled] = greatest.reduceat(data[within], starts, 0)
    return result


# The least finite number of bf16: seven ones behind the point, where f32 has 23.
_LOWEST_BF16 = -(2 - 2.0**-7) * 2.0**127


def _lowest(kind: Element | None, dtype: np.dtype) -> float:
    return _LOWEST_BF16 if kind is BF16 else lowest(dtype)


@segment_max_16.shape_rule
def _segment_max_16_facts(
    data: Fact, segment_ids: Fact, num_segments: Fact | None = None, *, fill_mode: str, elements: ElementTypes = ElementTypes()
) -> Fact:
    check_vector(segment_ids, "segment_ids")
    check_integers(segment_ids, "segment_ids")
    check(data.rank != 0, "data is a scalar")
    if data.shape is not None and segment_ids.shape:
        check(may_equal(data.shape[0], segment_ids.shape[0]), f"segment_ids {segment_ids} do not go with data {data}")
    ids = segment_ids.ints()
    if ids is not None:
        check(list(ids) == sorted(ids) and (not ids or ids[0] >= 0), f"segment_ids {list(ids)[:8]} are not sorted from 0 up")
    count: Size = ANY
    if num_segments is not None:
        count = scalar_size(num_segments, "num_segments")
    elif ids is not None:
        count = ids[-1] + 1 if ids else 0
    return Fact(data.element, None if data.shape is None else (count, *data.shape[1:]))


@op("SparseFillEmptyRows", since=16)
def sparse_fill_empty_rows_16(
    values: np.ndarray, dense_shape: np.ndarray, indices: np.ndarray, default_value: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The positions and values of a sparse matrix in row-major order, with ``default_value`` at column 0 of empty rows.

    ``indices`` are [count, 2]; the third result says which rows were empty. Source: SparseFillEmptyRows-16.
    """
    rows = np.arange(int(dense_shape[0]))
    is_empty = ~np.isin(rows, indices[:, 0])
    filling = np.stack([rows[is_empty], np.zeros(is_empty.sum(), np.int64)], 1).astype(indices.dtype)
    places = np.concatenate([indices, filling])
    order = np.lexsort((places[:, 1], places[:, 0]))
    every = np.concatenate([values, np.full(len(filling), default_value.reshape(-1)[0], values.dtype)])
    return places[order], every[order], is_empty


@sparse_fill_empty_rows_16.shape_rule
def _sparse_fill_empty_rows_16_facts(values: Fact, dense_shape: Fact, indices: Fact, default_value: Fact) -> tuple[Fact, Fact, Fact]:
    kind, place = unify_elements(values, default_value), unify_elements(dense_shape, indices)
    check_integers(dense_shape, "dense_shape")
    check_integers(indices, "indices")
    check_vector(values, "values")
    check_vector(dense_shape, "dense_shape")
    check(not dense_shape.shape or may_equal(dense_shape.shape[0], 2), f"dense_shape {dense_shape} must be two numbers")
    check(indices.rank in (None, 2), f"indices have rank {indices.rank}, expected 2")
    check_scalar(default_value, "default_value")
    given: Size = values.shape[0] if values.shape else ANY
    if indices.shape:
        check(may_equal(indices.shape[1], 2), f"indices {indices} must have two numbers each")
        check(may_equal(indices.shape[0], given), f"indices {indices} do not go with values {values}")
        given = meet(indices.shape[0], given)
    sizes = dense_shape.sizes()
    rows = at_least(sizes[0], 0) if sizes else ANY
    total = _filled(given, rows, indices)
    return Fact(place, (total, 2)), Fact(kind, (total,)), Fact(BOOLEAN, (rows,))


def _filled(given: Size, rows: Size, indices: Fact) -> Size:
    """How many positions there are in the end: those given, and one for each row without any."""
    places = indices.known
    if places is not None and isinstance(rows, int):
        met = np.unique(places[:, 0])
        check(not len(met) or 0 <= met[0] <= met[-1] < rows, f"an index is out of range for {rows} rows")
        return len(places) + rows - len(met)
    most_given, most_rows = high(given), high(rows)
    # Rows are empty, or are among those of the positions given.
    return span(max(low(given), low(rows)), None if most_given is None or most_rows is None else most_given + most_rows)
