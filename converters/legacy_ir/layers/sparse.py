"""Sparse tensors, sums of segments, and Unique: outputs have the declared number of rows, more than are filled."""

from __future__ import annotations

from collections.abc import Callable

from converters.legacy_ir.layer import Layer
from converters.legacy_ir.layers.shapes import strided_slice
from converters.legacy_ir.registry import translates
from irexec.dtypes.elements import F32, I64
from irexec.ir.graph import Value


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
