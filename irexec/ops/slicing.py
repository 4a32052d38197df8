"""Slices of tensors: Slice, SliceScatter, StridedSlice."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from types import EllipsisType
from typing import Annotated

import numpy as np

from irexec.errors import check
from irexec.ir.dims import PartialShape, Shape, Size, high, may_equal, shape_text, span
from irexec.ir.facts import Fact, integers, integers_or_bounds
from irexec.schema.attributes import Ints
from irexec.schema.opdef import AnyTensor, IntegerVector, Rank
from irexec.schema.registry import op
from irexec.schema.shape_rules import ANYWHERE, MAX_AXES, Bound, normalize_axes, open_shape, slice_size, unify_elements


@op("Slice", since=8, symbolic=True, view=True)
def slice_8(
    data: AnyTensor, start: IntegerVector, stop: IntegerVector, step: IntegerVector, axes: IntegerVector | None = None
) -> np.ndarray:
    """``[start:stop:step]`` along each of the axes, by default the first ones.

    Source: Slice-8, and OpenVINO for bounds beyond the axis (see ``_slice``).
    """
    return data[_region(data.shape, start, stop, step, axes)]


def _region(
    sizes: Sequence[int], start: np.ndarray, stop: np.ndarray, step: np.ndarray, axes: np.ndarray | None
) -> tuple[slice, ...]:
    """A slice for every axis, by the inputs of Slice."""
    sliced = range(start.size) if axes is None else integers(axes, "axes")
    index = [slice(None)] * len(sizes)
    bounds = integers(start, "start"), integers(stop, "stop"), integers(step, "step")
    for axis, first, last, stride in zip(sliced, *bounds, strict=True):
        index[axis] = _slice(first, last, stride, sizes[axis])
    return tuple(index)


def _slice(first: int | None, last: int | None, stride: int, size: int) -> slice:
    """NumPy's slice for bounds as OpenVINO clips them; None is an open bound.

    A start before the axis means its first element; with a negative step NumPy's slice would be empty.
    """
    if stride < 0 and first is not None and first < -size:
        first = 0
    begin, end, _ = slice(first, last, stride).indices(size)
    return slice(begin, None if end < 0 else end, stride)


@slice_8.shape_rule
def _slice_8_facts(data: Fact, start: Fact, stop: Fact, step: Fact, axes: Fact | None = None) -> Fact:
    return Fact(data.element, _sliced(data, start, stop, step, axes))


def _sliced(data: Fact, start: Fact, stop: Fact, step: Fact, axes: Fact | None) -> PartialShape:
    steps = step.ints("step")
    check(steps is None or 0 not in steps, "step is 0")
    lengths = _lengths(start, stop, step, axes)
    check(len(lengths) <= 1, f"start, stop, step and axes have different lengths: {sorted(lengths)}")
    if data.shape is None:
        return None
    amount = next(iter(lengths), None)
    check(amount is None or amount <= len(data.shape), f"{amount} axes are sliced, data {data} has fewer")
    known = axes.ints("axes") if axes is not None else None if amount is None else tuple(range(amount))
    if known is None:
        return tuple(span(0, high(size)) for size in data.shape)
    sliced = normalize_axes(known, len(data.shape))
    check(len(set(sliced)) == len(sliced), f"axes {list(sliced)} has an axis twice")
    shape = list(data.shape)
    for axis, first, last, stride in zip(sliced, _each(start), _each(stop), _each(step), strict=False):
        shape[axis] = _slice_size(shape[axis], first, last, stride)
    return tuple(shape)


def _slice_size(size: Size, first: Bound, last: Bound, stride: Size) -> Size:
    return slice_size(size, first, last, stride) if isinstance(stride, int) else span(0, high(size))


def _lengths(*vectors: Fact | None) -> set[int]:
    """The different lengths that the inputs are known to have."""
    return {size for fact in vectors if fact is not None for size in fact.shape or () if isinstance(size, int)}


def _each(fact: Fact) -> Iterable[Size]:
    """The elements of a vector, as far as they are known."""
    known = fact.sizes()
    return itertools.repeat(ANYWHERE) if known is None else known


@op("SliceScatter", since=15, symbolic=True)
def slice_scatter_15(
    data: Annotated[AnyTensor, Rank(1, None)],
    updates: AnyTensor,
    start: IntegerVector,
    stop: IntegerVector,
    step: IntegerVector,
    axes: IntegerVector | None = None,
) -> np.ndarray:
    """``data`` with ``[start:stop:step]`` along each of the axes replaced by ``updates``, which have that shape.

    Source: SliceScatter-15.
    """
    result = data.copy()
    result[_region(data.shape, start, stop, step, axes)] = updates
    return result


@slice_scatter_15.shape_rule
def _slice_scatter_15_facts(
    data: Fact, updates: Fact, start: Fact, stop: Fact, step: Fact, axes: Fact | None = None
) -> Fact:
    kind = unify_elements(data, updates)
    region = _sliced(data, start, stop, step, axes)
    if region is not None and updates.shape is not None:
        text = f"updates {shape_text(updates.shape)} do not have the shape {shape_text(region)} of the slice"
        check(len(region) == len(updates.shape) and all(map(may_equal, region, updates.shape)), text)
    return Fact(kind, open_shape(updates.rank) if data.shape is None else data.shape)


@op("StridedSlice", since=1, symbolic=True, view=True)
def strided_slice_1(
    data: AnyTensor,
    begin: IntegerVector,
    end: IntegerVector,
    strides: IntegerVector | None = None,
    *,
    begin_mask: Ints,
    end_mask: Ints,
    new_axis_mask: Ints = (),
    shrink_axis_mask: Ints = (),
    ellipsis_mask: Ints = (),
) -> np.ndarray:
    """Slices, new axes, single indices and an ellipsis, axis by axis.

    A set bit of ``begin_mask`` or ``end_mask`` ignores that bound, but not of a single index. Where several bits
    of one entry are set, the ellipsis has precedence over the new axis, and that over the index. Source:
    StridedSlice-1, and OpenVINO for bounds beyond the axis (see ``_slice``).
    """
    # Bounds that a mask ignores need not be known.
    firsts, lasts = integers_or_bounds(begin, "begin"), integers_or_bounds(end, "end")
    steps = (1,) * len(firsts) if strides is None else integers_or_bounds(strides, "strides")
    kinds = _kinds(len(firsts), new_axis_mask, shrink_axis_mask, ellipsis_mask)
    index: list[int | slice | EllipsisType | None] = []
    axis = 0
    for i, kind in enumerate(kinds):
        if kind == "ellipsis":
            index.append(Ellipsis)
            axis += data.ndim - _sliced_axes(kinds)
        elif kind == "new":
            index.append(None)
        else:
            first = None if _bit(begin_mask, i) else int(firsts[i])
            last = None if _bit(end_mask, i) else int(lasts[i])
            if kind == "index":
                _remaining(data.shape[axis], kind, int(firsts[i]), None, 1)
            index.append(int(firsts[i]) if kind == "index" else _slice(first, last, int(steps[i]), data.shape[axis]))
            axis += 1
    # Indexing an object array gives a Python object instead of an array of rank 0.
    return np.asarray(data[tuple(index)], data.dtype)


def _sliced_axes(kinds: Sequence[str]) -> int:
    return sum(kind in ("slice", "index") for kind in kinds)


def _bit(mask: Sequence[int], i: int) -> bool:
    return i < len(mask) and bool(mask[i])


def _kinds(count: int, new_axis_mask: Ints, shrink_axis_mask: Ints, ellipsis_mask: Ints) -> list[str]:
    """The kind of each entry of ``begin``, by precedence: ellipsis, new axis, single index, slice.

    Bits beyond the entries have no effect.
    """
    masks = (("ellipsis", ellipsis_mask), ("new", new_axis_mask), ("index", shrink_axis_mask))
    return [next((kind for kind, mask in masks if _bit(mask, i)), "slice") for i in range(count)]


@strided_slice_1.shape_rule
def _strided_slice_1_facts(
    data: Fact,
    begin: Fact,
    end: Fact,
    strides: Fact | None = None,
    *,
    begin_mask: Ints,
    end_mask: Ints,
    new_axis_mask: Ints,
    shrink_axis_mask: Ints,
    ellipsis_mask: Ints,
) -> Fact:
    _check_masks(
        begin_mask=begin_mask,
        end_mask=end_mask,
        new_axis_mask=new_axis_mask,
        shrink_axis_mask=shrink_axis_mask,
        ellipsis_mask=ellipsis_mask,
    )
    lengths = _lengths(begin, end, strides)
    check(len(lengths) <= 1, f"begin, end and strides have different lengths: {sorted(lengths)}")
    if data.shape is None or not lengths:
        return Fact(data.element, None)
    count = lengths.pop()
    check(count <= MAX_AXES, f"begin has {count} elements, more than a tensor can have axes")
    entries: list[Entry] = []
    for i, kind in enumerate(_kinds(count, new_axis_mask, shrink_axis_mask, ellipsis_mask)):
        first = None if _bit(begin_mask, i) and kind == "slice" else _element(begin, i)
        last = None if _bit(end_mask, i) else _element(end, i)
        entries.append((kind, first, last, 1 if strides is None else _element(strides, i)))
    return Fact(data.element, _sliced_shape(data.shape, entries))


def _check_masks(**masks: Ints) -> None:
    """Refuse what OpenVINO refuses. Source: openvino ``strided_slice.cpp``."""
    length = len(masks["begin_mask"])
    for name, mask in masks.items():
        check(set(mask) <= {0, 1}, f"{name} is {list(mask)}, expected zeros and ones")
        check(len(mask) in (0, length), f"{name} has the length {len(mask)}, begin_mask has {length}")
    check(sum(masks["ellipsis_mask"]) <= 1, "ellipsis_mask has more than one bit")


# The kind of an entry, its bounds (None: ignored) and its stride.
Entry = tuple[str, Bound, Bound, Size]


def _element(fact: Fact, i: int) -> Size:
    known = fact.sizes()
    return ANYWHERE if known is None or i >= len(known) else known[i]


def _sliced_shape(sizes: Shape, entries: Sequence[Entry]) -> Shape:
    sliced = _sliced_axes([entry[0] for entry in entries])
    check(sliced <= len(sizes), f"{sliced} axes are sliced, data {shape_text(sizes)} has fewer")
    result: list[Size] = []
    axis = 0
    for kind, first, last, stride in entries:
        if kind == "ellipsis":
            rest = axis + len(sizes) - sliced
            result += sizes[axis:rest]
            axis = rest
        elif kind == "new":
            result.append(1)
        else:
            result += _remaining(sizes[axis], kind, first, last, stride)
            axis += 1
    return (*result, *sizes[axis:])


def _remaining(size: Size, kind: str, first: Bound, last: Bound, stride: Size) -> Shape:
    """The size that is left of one axis: none for a single index."""
    if kind == "index":
        limit = high(size)
        inside = limit is None or not isinstance(first, int) or -limit <= first < limit
        check(inside, f"index {first} is out of range for an axis of {size}")
        return ()
    check(stride != 0, "a stride is 0")
    return (_slice_size(size, first, last, stride),)
