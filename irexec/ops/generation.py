"""Tensors made from numbers: Range, OneHot, Eye."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from irexec.dtypes.elements import Element
from irexec.errors import OpError, check
from irexec.ir.dims import ANY, Dim, PartialShape, Size, at_least, ceil_div, high, low, span
from irexec.ir.facts import Fact
from irexec.schema.axes import normalize_axis
from irexec.schema.element_checks import check_integers, unify_elements
from irexec.schema.registry import op
from irexec.schema.rules import check_scalar, check_vector
from irexec.schema.sizes import non_negative, open_shape, scalar_size, vector_length


def _length(start: Any, stop: Any, step: Any) -> Size:
    """How many numbers a range has; a size where the numbers are int | Dim."""
    if any(isinstance(number, Dim) for number in (start, stop, step)):
        return _bounded_length(start, stop, step)
    if not all(math.isfinite(number) for number in (start, stop, step)):
        return ANY
    return max(math.ceil((stop - start) / step) if isinstance(step, float) else -((start - stop) // step), 0)


def _bounded_length(start: Size, stop: Size, step: Size) -> Size:
    if not isinstance(step, int) or step == 0:
        return ANY
    if start == 0 and step == 1:
        return at_least(stop, 0)
    first, last = (start, stop) if step > 0 else (stop, start)
    top, most = high(first), high(last)
    least = 0 if top is None else max(low(last) - top, 0)
    return ceil_div(span(least, None if most is None else max(most - low(first), 0)), abs(step))


def _numbers(*facts: Fact, whole: bool) -> list[Any] | None:
    numbers: list[Any] = []
    for fact in facts:
        if fact.value is None or fact.value.size != 1:
            return None
        number = fact.value.reshape(-1).tolist()[0]
        numbers.append(math.trunc(number) if whole and isinstance(number, float) and math.isfinite(number) else number)
    return numbers


def _range_facts(start: Fact, stop: Fact, step: Fact, kind: Element | None) -> Fact:
    for fact, what in ((start, "start"), (stop, "stop"), (step, "step")):
        check_scalar(fact, what)
    numbers = _numbers(start, stop, step, whole=kind is not None and kind.is_integer)
    if numbers is None:
        return Fact(kind, (ANY,))
    check(all(isinstance(number, Dim) or math.isfinite(number) for number in numbers), "start, stop and step must be finite")
    check(isinstance(numbers[2], Dim) or numbers[2] != 0, "step is 0")
    return Fact(kind, (_length(*numbers),))


def _range(start: np.ndarray, stop: np.ndarray, step: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """start + i * step, in the type of the result (integers exactly, floats as the reference adds them up)."""
    numbers = [array.reshape(-1).tolist()[0] for array in (start, stop, step)]
    if dtype.kind in "iu":
        numbers = [math.trunc(number) for number in numbers]
    check(numbers[2] != 0, "step is 0")
    count = _length(*numbers)
    if not isinstance(count, int):
        raise OpError("start, stop and step must be finite")
    steps = np.arange(count, dtype=np.int64 if dtype.kind in "iu" else np.float64)
    return (numbers[0] + steps * numbers[2]).astype(dtype)


@op("Range", since=1)
def range_1(start: np.ndarray, stop: np.ndarray, step: np.ndarray) -> np.ndarray:
    """start, start + step, ... before stop. Source: Range-1."""
    return _range(start, stop, step, start.dtype)


@range_1.shape_rule
def _range_1_facts(start: Fact, stop: Fact, step: Fact) -> Fact:
    return _range_facts(start, stop, step, unify_elements(start, stop, step))


@op("Range", since=4)
def range_4(start: np.ndarray, stop: np.ndarray, step: np.ndarray, *, output_type: Element) -> np.ndarray:
    """start, start + step, ... before stop, as ``output_type``; for an integer type the inputs are cut first.

    Source: Range-4.
    """
    return _range(start, stop, step, output_type.carrier)


@range_4.shape_rule
def _range_4_facts(start: Fact, stop: Fact, step: Fact, *, output_type: Element) -> Fact:
    return _range_facts(start, stop, step, output_type)


def _one_hot(indices: np.ndarray, depth: np.ndarray, on: np.ndarray, off: np.ndarray, axis: int, *, wrap: bool) -> np.ndarray:
    size = int(depth.reshape(-1)[0])
    place = normalize_axis(axis, indices.ndim + 1)
    wide = indices.astype(np.int64)
    if wrap:
        wide = np.where(wide < 0, wide + size, wide)
    hot = np.expand_dims(wide, place) == np.arange(size).reshape((size,) + (1,) * (indices.ndim - place))
    return np.where(hot, on.reshape(()), off.reshape(())).astype(on.dtype)


def _one_hot_facts(indices: Fact, depth: Fact, on: Fact, off: Fact, axis: int) -> Fact:
    for fact, what in ((depth, "depth"), (on, "on_value"), (off, "off_value")):
        check_scalar(fact, what)
    check_integers(indices, "indices")
    check_integers(depth, "depth")
    kind = unify_elements(on, off)
    size = depth.sizes()
    if indices.shape is None:
        return Fact(kind, None)
    place = normalize_axis(axis, len(indices.shape) + 1)
    count = non_negative(size[0] if size else ANY, "depth")
    shape: PartialShape = (*indices.shape[:place], count, *indices.shape[place:])
    return Fact(kind, shape)


@op("OneHot", since=1)
def one_hot_1(indices: np.ndarray, depth: np.ndarray, on_value: np.ndarray, off_value: np.ndarray, *, axis: int) -> np.ndarray:
    """on_value where the index along the new axis is met, off_value elsewhere; a negative index meets none.

    Source: OneHot-1.
    """
    return _one_hot(indices, depth, on_value, off_value, axis, wrap=False)


@one_hot_1.shape_rule
def _one_hot_1_facts(indices: Fact, depth: Fact, on_value: Fact, off_value: Fact, *, axis: int) -> Fact:
    return _one_hot_facts(indices, depth, on_value, off_value, axis)


@op("OneHot", since=16)
def one_hot_16(
    indices: np.ndarray,
    depth: np.ndarray,
    on_value: np.ndarray,
    off_value: np.ndarray,
    *,
    axis: int,
    negative_indices_mode: Literal["ignore_negative", "normalize"] = "ignore_negative",
) -> np.ndarray:
    """As OneHot-1; with normalize negative indices count from the end. Source: OneHot-16."""
    return _one_hot(indices, depth, on_value, off_value, axis, wrap=negative_indices_mode == "normalize")


@one_hot_16.shape_rule
def _one_hot_16_facts(
    indices: Fact, depth: Fact, on_value: Fact, off_value: Fact, *, axis: int, negative_indices_mode: str = "ignore_negative"
) -> Fact:
    return _one_hot_facts(indices, depth, on_value, off_value, axis)


@op("Eye", since=9)
def eye_9(
    num_rows: np.ndarray,
    num_columns: np.ndarray,
    diagonal_index: np.ndarray,
    batch_shape: np.ndarray | None = None,
    *,
    output_type: Element,
) -> np.ndarray:
    """Ones on a diagonal, zeros elsewhere, for every batch. Source: Eye-9."""
    rows, columns, diagonal = (int(x.reshape(-1)[0]) for x in (num_rows, num_columns, diagonal_index))
    matrix = np.eye(rows, columns, diagonal, dtype=output_type.carrier)
    batch = () if batch_shape is None else tuple(int(size) for size in batch_shape.ravel().tolist())
    return np.broadcast_to(matrix, (*batch, rows, columns)).copy()


@eye_9.shape_rule
def _eye_9_facts(num_rows: Fact, num_columns: Fact, diagonal_index: Fact, batch_shape: Fact | None = None, *, output_type: Element) -> Fact:
    sizes = [scalar_size(num_rows, "num_rows"), scalar_size(num_columns, "num_columns")]
    check_scalar(diagonal_index, "diagonal_index")
    check_integers(diagonal_index, "diagonal_index")
    if batch_shape is None:
        return Fact(output_type, tuple(sizes))
    check_vector(batch_shape, "batch_shape")
    check_integers(batch_shape, "batch_shape")
    known = batch_shape.sizes()
    what = "a size of batch_shape"
    batch = open_shape(vector_length(batch_shape)) if known is None else tuple(non_negative(size, what) for size in known)
    return Fact(output_type, None if batch is None else (*batch, *sizes))
