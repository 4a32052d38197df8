"""Tensors made from scalars: Range, OneHot, Eye."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import numpy as np

from irexec.dtypes.elements import Element
from irexec.errors import check
from irexec.ir.dims import ANY, Dim, Size, at_least, ceil_div, high, low, span
from irexec.ir.facts import Fact
from irexec.ir.integers import integer, integers
from irexec.schema.inputs import (
    SCALAR,
    AnyTensor,
    IndexElement,
    IndexVector,
    IntegerScalar,
    IntegerTensor,
    NumericTensor,
)
from irexec.schema.registry import op
from irexec.schema.shape_rules import (
    non_negative,
    normalize_axis,
    open_shape,
    scalar_size,
    unify_elements,
    vector_length,
)

NumericScalar = Annotated[NumericTensor, SCALAR]
AnyScalar = Annotated[AnyTensor, SCALAR]


def _length(start: Any, stop: Any, step: Any) -> Size:
    """The number of elements of a range; a Dim where start, stop or step is one.

    A step that is 0 once it is truncated gives no element, as in OpenVINO's reference.
    """
    if any(isinstance(value, Dim) for value in (start, stop, step)):
        return _bounded_length(start, stop, step)
    if not all(math.isfinite(value) for value in (start, stop, step)):
        return ANY
    if step == 0:
        return 0
    return max(math.ceil((stop - start) / step) if isinstance(step, float) else -((start - stop) // step), 0)


def _bounded_length(start: Size, stop: Size, step: Size) -> Size:
    if not isinstance(step, int) or step == 0:
        return ANY
    if start == 0 and step == 1:
        return at_least(stop, 0)
    first, last = (start, stop) if step > 0 else (stop, start)
    max_first, max_last = high(first), high(last)
    minimum = 0 if max_first is None else max(low(last) - max_first, 0)
    return ceil_div(span(minimum, None if max_last is None else max(max_last - low(first), 0)), abs(step))


def _range_facts(start: Fact, stop: Fact, step: Fact, kind: Element | None) -> Fact:
    facts = [fact.value for fact in (start, stop, step) if fact.value is not None and fact.value.size == 1]
    if len(facts) < 3:
        return Fact(kind, (ANY,))
    values: list[Any] = [value.reshape(-1).tolist()[0] for value in facts]
    _check_range(values)
    if kind is not None and kind.is_integer:
        values = [math.trunc(value) if isinstance(value, float) else value for value in values]
    return Fact(kind, (_length(*values),))


def _check_range(values: list[Any]) -> None:
    """Refuse values of which OpenVINO refuses a range."""
    finite = all(isinstance(value, Dim) or math.isfinite(value) for value in values)
    check(finite, "start, stop and step must be finite")
    check(isinstance(values[2], Dim) or values[2] != 0, "step is 0")


def _range(start: np.ndarray, stop: np.ndarray, step: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """start + i * step, in the type of the result: modulo its range for integers, rounded once for floats."""
    values = [array.reshape(-1).tolist()[0] for array in (start, stop, step)]
    _check_range(values)
    if dtype.kind in "iu":
        values = [math.trunc(value) for value in values]
    count = int(_length(*values))
    if dtype.kind not in "iu":
        return (values[0] + np.arange(count, dtype=np.float64) * values[2]).astype(dtype)
    first, step_value = (np.uint64(value % (1 << 64)) for value in (values[0], values[2]))
    return (first + np.arange(count, dtype=np.uint64) * step_value).astype(dtype)


@op("Range", since=1)
def range_1(start: NumericScalar, stop: NumericScalar, step: NumericScalar) -> np.ndarray:
    """start, start + step, ... before stop. Source: Range-1."""
    return _range(start, stop, step, start.dtype)


@range_1.shape_rule
def _range_1_facts(start: Fact, stop: Fact, step: Fact) -> Fact:
    return _range_facts(start, stop, step, unify_elements(start, stop, step))


@op("Range", since=4)
def range_4(start: NumericScalar, stop: NumericScalar, step: NumericScalar, *, output_type: Element) -> np.ndarray:
    """start, start + step, ... before stop, as ``output_type``; for an integer type the inputs are truncated first.

    Source: Range-4.
    """
    return _range(start, stop, step, output_type.carrier)


@range_4.shape_rule
def _range_4_facts(start: Fact, stop: Fact, step: Fact, *, output_type: Element) -> Fact:
    return _range_facts(start, stop, step, output_type)


def _one_hot(
    indices: np.ndarray, depth: np.ndarray, on: np.ndarray, off: np.ndarray, axis: int, *, wrap: bool
) -> np.ndarray:
    size = integer(depth, "depth")
    new_axis = normalize_axis(axis, indices.ndim + 1)
    if indices.size == 0:
        # Nothing of the depth is computed, which may be more than np.arange has.
        return np.zeros((*indices.shape[:new_axis], size, *indices.shape[new_axis:]), on.dtype)
    wide = indices.astype(np.int64)
    if wrap:
        wide = np.where(wide < 0, wide + size, wide)
    hot = np.expand_dims(wide, new_axis) == np.arange(size).reshape((size,) + (1,) * (indices.ndim - new_axis))
    return np.where(hot, on.reshape(()), off.reshape(())).astype(on.dtype)


@op("OneHot", since=1)
def one_hot_1(
    indices: IntegerTensor, depth: IntegerScalar, on_value: AnyScalar, off_value: AnyScalar, *, axis: int
) -> np.ndarray:
    """on_value at the position of the index along the new axis, off_value elsewhere; negative indices are ignored.

    Source: OneHot-1.
    """
    return _one_hot(indices, depth, on_value, off_value, axis, wrap=False)


@op("OneHot", since=16)
def one_hot_16(
    indices: IntegerTensor,
    depth: IntegerScalar,
    on_value: AnyScalar,
    off_value: AnyScalar,
    *,
    axis: int,
    negative_indices_mode: Literal["ignore_negative", "normalize"] = "ignore_negative",
) -> np.ndarray:
    """Same as OneHot-1; with normalize, negative indices are counted from the end. Source: OneHot-16."""
    return _one_hot(indices, depth, on_value, off_value, axis, wrap=negative_indices_mode == "normalize")


@one_hot_1.shape_rule
@one_hot_16.shape_rule
def _one_hot_facts(indices: Fact, depth: Fact, on_value: Fact, off_value: Fact, *, axis: int) -> Fact:
    kind = unify_elements(on_value, off_value)
    if indices.shape is None:
        return Fact(kind, None)
    new_axis = normalize_axis(axis, len(indices.shape) + 1)
    return Fact(kind, (*indices.shape[:new_axis], scalar_size(depth, "depth"), *indices.shape[new_axis:]))


@op("Eye", since=9)
def eye_9(
    num_rows: IndexElement,
    num_columns: IndexElement,
    diagonal_index: IndexElement,
    batch_shape: IndexVector | None = None,
    *,
    output_type: Element,
) -> np.ndarray:
    """Ones on a diagonal, zeros elsewhere, for every batch. Source: Eye-9."""
    rows, columns, diagonal = (
        integer(num_rows, "num_rows"),
        integer(num_columns, "num_columns"),
        integer(diagonal_index, "diagonal_index"),
    )
    matrix = np.eye(rows, columns, diagonal, dtype=output_type.carrier)
    batch = () if batch_shape is None else integers(batch_shape, "batch_shape")
    return np.broadcast_to(matrix, (*batch, rows, columns)).copy()


@eye_9.shape_rule
def _eye_9_facts(
    num_rows: Fact, num_columns: Fact, diagonal_index: Fact, batch_shape: Fact | None = None, *, output_type: Element
) -> Fact:
    sizes = [scalar_size(num_rows, "num_rows"), scalar_size(num_columns, "num_columns")]
    if batch_shape is None:
        return Fact(output_type, tuple(sizes))
    known = batch_shape.sizes("batch_shape")
    what = "a size of batch_shape"
    batch = (
        open_shape(vector_length(batch_shape)) if known is None else tuple(non_negative(size, what) for size in known)
    )
    return Fact(output_type, None if batch is None else (*batch, *sizes))
