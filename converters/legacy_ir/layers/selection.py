"""Layers that select elements: Gather, Select, OneHot, TopK; sparse tensors, segments, Unique."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

from converters.legacy_ir.layer import Layer
from converters.legacy_ir.layers.shapes import positive, strided_slice
from converters.legacy_ir.registry import translates
from irexec.dtypes.elements import F32, I32, I64
from irexec.errors import check
from irexec.ir.graph import Value


@translates("GatherTree")
def gather_tree(layer: Layer, steps: Value, parents: Value, lengths: Value, end: Value) -> Value:
    """The beams of a search, followed back from the last step; all numbers are of one type."""
    kind = layer.kind(steps)
    numbers = [layer.cast(value, kind) for value in (parents, layer.reshaped(lengths, (layer.shape(steps)[1],)))]
    return layer.emit("GatherTree", steps, *numbers, layer.reshaped(layer.cast(end, kind), ()), version=1)


@translates("Gather")
def gather(layer: Layer, data: Value, indices: Value, *, axis: int = 0) -> Value:
    """Slices of the data along an axis; zeros for every index outside of it, also a negative one."""
    size = layer.shape(data)[positive(axis, layer.rank(data))]
    where = layer.i64(indices)
    known = layer.builder.fact(where).known
    if known is None or known.min(initial=0) < 0:
        kind = layer.kind(where)
        is_negative = layer.emit("Less", where, layer.constant(0, kind), version=1)
        where = layer.emit("Select", is_negative, layer.constant(size, kind), where, version=1)
    return layer.emit("Gather", data, where, layer.constant(axis, I64), version=8, batch_dims=0)


@translates("Select")
def select(layer: Layer, condition: Value, then: Value, otherwise: Value) -> Value:
    """The second input where the first is not 0, else the third; NumPy's broadcasting."""
    if layer.kind(then) is not layer.kind(otherwise):
        then, otherwise = layer.f32(then), layer.f32(otherwise)
    return layer.emit("Select", layer.boolean(condition), then, otherwise, version=1)


@translates("OneHot")
def one_hot(
    layer: Layer, indices: Value, *, depth: int, axis: int = -1, on_value: float = 1.0, off_value: float = 0.0
) -> Value:
    """``on_value`` at the index along a new axis; none for an index out of range."""
    numbers = [layer.constant(number, F32) for number in (on_value, off_value)]
    return layer.emit("OneHot", layer.i64(indices), layer.constant(depth, I64), *numbers, version=1, axis=axis)


@translates("ArgMax")
def arg_max(layer: Layer, data: Value, *, top_k: int = 1, out_max_val: bool = False, axis: int | None = None) -> Value:
    """The indices of the largest elements, as f32.

    With ``axis``, along it: the indices or, with ``out_max_val``, the values. Without, over all axes but the first: the
    indices [N, 1, k, 1] or, with ``out_max_val``, indices and values [N, 2, k, 1].
    """
    data = layer.f32(data)
    if axis is not None:
        values, indices = _top(layer, data, top_k, positive(axis, layer.rank(data)), "max", "value")
        return values if out_max_val else layer.f32(indices)
    batch = layer.shape(data)[0]
    flat = layer.reshaped(data, (batch, math.prod(layer.shape(data)[1:])))
    values, indices = _top(layer, flat, top_k, 1, "max", "value")
    found = layer.f32(indices)
    if out_max_val:
        found = layer.emit("Concat", found, values, version=1, axis=1)
    return layer.reshaped(found, (batch, 1 + out_max_val, top_k, 1))


def _top(layer: Layer, data: Value, k: int, axis: int, mode: str, sort: str) -> tuple[Value, ...]:
    count = layer.constant(k, I64)
    return layer.outputs("TopK", data, count, version=3, axis=axis, mode=mode, sort=sort, index_element_type=I32)


@translates("TopK")
def top_k(
    layer: Layer,
    data: Value,
    k: Value,
    *,
    axis: int,
    mode: Literal["max", "min"],
    sort: Literal["value", "index", "none"],
) -> tuple[Value, ...]:
    """The largest or smallest elements along an axis, and their indices."""
    count = layer.known(k, "the number of elements")
    check(count.size == 1, f"the number of elements has {count.size} values")
    return _top(layer, data, int(count.ravel()[0]), positive(axis, layer.rank(data)), mode, sort)


@translates("Bucketize")
def bucketize(layer: Layer, data: Value, bounds: Value, *, with_right_bound: bool) -> Value:
    """The index of the interval of each element."""
    if layer.kind(data) is not layer.kind(bounds):
        data, bounds = layer.f32(data), layer.f32(bounds)
    return layer.emit("Bucketize", data, bounds, version=3, output_type=I32, with_right_bound=with_right_bound)


@translates("Range")
def range_(layer: Layer, start: Value, limit: Value, step: Value) -> Value:
    """The numbers from start to limit, limit excluded."""
    values = [layer.reshaped(value, ()) for value in (start, limit, step)]
    if len({layer.kind(value) for value in values}) > 1:
        values = [layer.f32(value) for value in values]
    return layer.emit("Range", *values, version=4, output_type=layer.kind(values[0]))


@translates("ScatterUpdate")
def scatter_update(layer: Layer, data: Value, indices: Value, updates: Value, *, axis: int = 0) -> Value:
    """The data with slices replaced along an axis."""
    return layer.emit(
        "ScatterUpdate",
        data,
        layer.i64(indices),
        layer.cast(updates, layer.kind(data)),
        layer.constant(axis, I64),
        version=3,
    )


def first_rows(layer: Layer, rows: int, *parts: Value) -> Value:
    """The first ``rows`` rows of tensors one after the other, the last of which has as many itself."""
    return strided_slice(layer, layer.emit("Concat", *parts, version=1, axis=0), [0], [rows])


@translates("Unique")
def unique(
    layer: Layer, data: Value, *, sorted: bool, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Value, ...]:
    """The distinct values, of which the last one is repeated; positions of the elements among them; counts, then 0."""
    count = layer.size()[0]
    values, _, inverse, counts = layer.outputs(
        "Unique", layer.f32(data), version=10, sorted=sorted, index_element_type=I64, count_element_type=I64
    )
    size = layer.emit("ShapeOf", values, version=3, output_type=I64)
    last = layer.emit("Subtract", size, layer.constant([1]), version=1)
    limits = [layer.constant(number, I64) for number in (0, count, 1)]
    every = layer.emit("Range", *limits, version=4, output_type=I64)
    positions = layer.emit("Minimum", every, last, version=1)
    found = [layer.emit("Gather", values, positions, layer.constant(0), version=8, batch_dims=0)]
    if return_inverse:
        found.append(inverse)
    if return_counts:
        found.append(first_rows(layer, count, layer.f32(counts), layer.filled(0, (count,), F32)))
    return tuple(found)


@translates("SparseFillEmptyRows")
def sparse_fill_empty_rows(
    layer: Layer, indices: Value, values: Value, shape: Value, default: Value
) -> tuple[Value, ...]:
    """The indices, followed by a row of -1, the values and 1 for each empty row; the rest is 0."""
    rows = layer.size()[0]
    positions, filled, is_empty = layer.outputs(
        "SparseFillEmptyRows", layer.f32(values), layer.i64(shape), layer.i64(indices),
        layer.reshaped(layer.f32(default), ()), version=16,
    )  # fmt: skip
    end = layer.constant([[-1.0, -1.0]], F32)
    return (
        first_rows(layer, rows, layer.f32(positions), end, layer.filled(0, (rows, 2), F32)),
        first_rows(layer, rows, filled, layer.filled(0, (rows,), F32)),
        layer.f32(is_empty),
    )


@translates("SparseToDense")
def sparse_to_dense(layer: Layer, indices: Value, shape: Value, values: Value, default: Value | None = None) -> Value:
    """The default in the declared sizes, with values at the indices."""
    fill = layer.constant(0, layer.kind(values)) if default is None else layer.cast(default, layer.kind(values))
    dense = layer.emit("Broadcast", fill, layer.constant(list(layer.size()), I64), version=3, mode="numpy")
    return layer.emit("ScatterNDUpdate", dense, layer.i64(indices), values, version=4)


def _segments(layer: Layer, table: Value, indices: Value, segments: Value) -> Value:
    """Sums of the rows of a table in each of the declared segments; 0 for an empty one."""
    ids = [layer.cast(layer.i64(value), I64) for value in (indices, segments)]
    return layer.emit("EmbeddingSegmentsSum", table, *ids, layer.constant(layer.size()[0], I64), version=3)


def _segment_reduction(divisor: str | None) -> Callable[[Layer, Value, Value, Value], Value]:
    """The translator of sums of segments, divided by a function of the number of their rows: itself, or its root."""

    def translate(layer: Layer, data: Value, indices: Value, segments: Value) -> Value:
        data = layer.f32(data)
        total = _segments(layer, data, indices, segments)
        if divisor is None:
            return total
        shape = layer.shape(data)
        ones = layer.filled(1, (shape[0], *[1] * (len(shape) - 1)), F32)
        counts = layer.emit("Maximum", _segments(layer, ones, indices, segments), layer.constant(1.0, F32), version=1)
        if divisor == "root":
            counts = layer.emit("Sqrt", counts, version=1)
        return layer.emit("Divide", total, counts, version=1)

    return translate


translates("SparseSegmentSum")(_segment_reduction(None))
translates("SparseSegmentMean")(_segment_reduction("count"))
translates("SparseSegmentSqrtN")(_segment_reduction("root"))


@translates("ExperimentalSparseWeightedSum")
def sparse_weighted_sum(
    layer: Layer,
    indices: Value,
    values: Value,
    shape: Value,
    table: Value,
    default: Value,
    weights: Value | None = None,
) -> Value:
    """Weighted sums of the rows of the table that the values of each sparse row name; an empty row has the default."""
    table = layer.f32(table)
    rows = layer.emit(
        "Gather", layer.cast(layer.i64(indices), I64), layer.constant(0), layer.constant(1), version=8, batch_dims=0
    )
    return layer.emit(
        "EmbeddingSegmentsSum", table, layer.cast(layer.i64(values), I64), rows, layer.constant(layer.size()[0], I64),
        layer.reshaped(layer.cast(layer.i64(default), I64), ()), None if weights is None else layer.f32(weights),
        version=3,
    )  # fmt: skip
