"""Parts of tensors: StridedSlice and Slice, with sizes that may not be known."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from types import EllipsisType

import numpy as np

from irexec.errors import check
from irexec.ir.dims import PartialShape, Shape, Size, high, may_equal, shape_text, span
from irexec.ir.facts import Fact
from irexec.schema.attributes import Ints
from irexec.schema.axes import MAX_AXES, normalize_axes
from irexec.schema.element_checks import check_integers, unify_elements
from irexec.schema.registry import op
from irexec.schema.rules import check_vector
from irexec.schema.sizes import open_shape
from irexec.schema.slice_sizes import ANYWHERE, Bound, slice_size


@op("Slice", since=8, symbolic=True, view=True)
def slice_8(data: np.ndarray, start: np.ndarray, stop: np.ndarray, step: np.ndarray, axes: np.ndarray | None = None) -> np.ndarray:
    """``[start:stop:step]`` along each of the axes (all the first ones unless given).

    Source: Slice-8, and OpenVINO for what bounds beyond the axis mean (see ``_slice``).
    """
    return data[_region(data.shape, start, stop, step, axes)]


def _region(sizes: Sequence[int], start: np.ndarray, stop: np.ndarray, step: np.ndarray, axes: np.ndarray | None) -> tuple[slice, ...]:
    """The slices of every axis that the inputs of Slice name."""
    places = range(start.size) if axes is None else [int(axis) for axis in axes.ravel().tolist()]
    index = [slice(None)] * len(sizes)
    for axis, first, last, stride in zip(places, start.ravel().tolist(), stop.ravel().tolist(), step.ravel().tolist(), strict=True):
        index[axis] = _slice(int(first), int(last), int(stride), sizes[axis])
    return tuple(index)


def _slice(first: int | None, last: int | None, stride: int, size: int) -> slice:
    """NumPy's slice for bounds as OpenVINO clips them; None is an open end.

    A first number before the axis is its first one, of which NumPy takes none when it steps backwards.
    """
    if stride < 0 and first is not None and first < -size:
        first = 0
    begin, end, _ = slice(first, last, stride).indices(size)
    return slice(begin, None if end < 0 else end, stride)


@slice_8.shape_rule
def _slice_8_facts(data: Fact, start: Fact, stop: Fact, step: Fact, axes: Fact | None = None) -> Fact:
    return Fact(data.element, _sliced(data, start, stop, step, axes))


def _sliced(data: Fact, start: Fact, stop: Fact, step: Fact, axes: Fact | None) -> PartialShape:
    steps = step.ints()
    check(steps is None or 0 not in steps, "step is 0")
    lengths = _lengths(start=start, stop=stop, step=step, axes=axes)
    check(len(lengths) <= 1, f"start, stop, step and axes have different lengths: {sorted(lengths)}")
    if data.shape is None:
        return None
    amount = next(iter(lengths), None)
    check(amount is None or amount <= len(data.shape), f"{amount} axes are cut, data {data} has fewer")
    places = axes.ints() if axes is not None else None if amount is None else tuple(range(amount))
    if places is None:
        return tuple(span(0, high(size)) for size in data.shape)
    places = normalize_axes(places, len(data.shape))
    check(len(set(places)) == len(places), f"axes {list(places)} name an axis twice")
    shape = list(data.shape)
    for axis, first, last, stride in zip(places, _each(start), _each(stop), _each(step), strict=False):
        if isinstance(stride, int):
            shape[axis] = slice_size(shape[axis], first, last, stride)
        else:
            shape[axis] = span(0, high(shape[axis]))
    return tuple(shape)


def _lengths(**vectors: Fact | None) -> set[int]:
    """The different numbers of integers that the inputs are known to have; OpError for another type or rank."""
    lengths: set[int] = set()
    for what, fact in vectors.items():
        if fact is not None:
            check_integers(fact, what)
            check_vector(fact, what)
            lengths |= {size for size in fact.shape or () if isinstance(size, int)}
    return lengths


def _each(fact: Fact) -> Iterable[Size]:
    """The numbers of a vector, as far as they are known."""
    known = fact.sizes()
    return itertools.repeat(ANYWHERE) if known is None else known


@op("SliceScatter", since=15, symbolic=True)
def slice_scatter_15(
    data: np.ndarray, updates: np.ndarray, start: np.ndarray, stop: np.ndarray, step: np.ndarray, axes: np.ndarray | None = None
) -> np.ndarray:
    """``data`` with ``[start:stop:step]`` along each of the axes replaced by ``updates``, which have that shape.

    Source: SliceScatter-15.
    """
    result = data.copy()
    result[_region(data.shape, start, stop, step, axes)] = updates
    return result


@slice_scatter_15.shape_rule
def _slice_scatter_15_facts(data: Fact, updates: Fact, start: Fact, stop: Fact, step: Fact, axes: Fact | None = None) -> Fact:
    kind = unify_elements(data, updates)
    check(data.rank != 0, "data is a scalar")
    place = _sliced(data, start, stop, step, axes)
    if place is not None and updates.shape is not None:
        text = f"updates {shape_text(updates.shape)} do not have the shape {shape_text(place)} of the slice"
        check(len(place) == len(updates.shape) and all(map(may_equal, place, updates.shape)), text)
    return Fact(kind, open_shape(updates.rank) if data.shape is None else data.shape)


@op("StridedSlice", since=1, symbolic=True, view=True)
def strided_slice_1(
    data: np.ndarray,
    begin: np.ndarray,
    end: np.ndarray,
    strides: np.ndarray | None = None,
    *,
    begin_mask: Ints,
    end_mask: Ints,
    new_axis_mask: Ints = (),
    shrink_axis_mask: Ints = (),
    ellipsis_mask: Ints = (),
) -> np.ndarray:
    """Slices, new axes, single indices and an ellipsis, axis by axis.

    A set bit of ``begin_mask`` or ``end_mask`` opens that end, but not of a single index. Where several bits
    of one entry are set, the ellipsis counts before the new axis, and that before the index. Source:
    StridedSlice-1, and OpenVINO for what bounds beyond the axis mean (see ``_slice``).
    """
    firsts, lasts = begin.ravel().tolist(), end.ravel().tolist()
    steps = [1] * len(firsts) if strides is None else strides.ravel().tolist()
    kinds = _kinds(len(firsts), new_axis_mask, shrink_axis_mask, ellipsis_mask)
    index: list[int | slice | EllipsisType | None] = []
    axis = 0
    for i, kind in enumerate(kinds):
        if kind == "ellipsis":
            index.append(Ellipsis)
            axis += data.ndim - _taken_axes(kinds)
        elif kind == "new":
            index.append(None)
        else:
            first = None if _bit(begin_mask, i) else int(firsts[i])
            last = None if _bit(end_mask, i) else int(lasts[i])
            index.append(int(firsts[i]) if kind == "index" else _slice(first, last, int(steps[i]), data.shape[axis]))
            axis += 1
    # A single number is taken out as a scalar of Python where the data are objects.
    return np.asarray(data[tuple(index)], data.dtype)


def _taken_axes(kinds: Sequence[str]) -> int:
    return sum(kind in ("slice", "index") for kind in kinds)


def _bit(mask: Sequence[int], i: int) -> bool:
    return i < len(mask) and bool(mask[i])


def _kinds(count: int, new_axis_mask: Ints, shrink_axis_mask: Ints, ellipsis_mask: Ints) -> list[str]:
    """What each entry of ``begin`` does: ellipsis before a new axis, that before a single index, that before a slice."""
    kinds = []
    for i in range(max(count, len(new_axis_mask), len(ellipsis_mask))):
        if _bit(ellipsis_mask, i):
            kinds.append("ellipsis")
        elif _bit(new_axis_mask, i):
            kinds.append("new")
        elif i < count:
            kinds.append("index" if _bit(shrink_axis_mask, i) else "slice")
    return kinds


@strided_slice_1.shape_rule
def _strided_slice_1_facts(
    data: Fact,
    begin: Fact,
    end: Fact,
    strides: Fact | None = None,
    *,
    begin_mask: Ints,
    end_mask: Ints,
    new_axis_mask: Ints = (),
    shrink_axis_mask: Ints = (),
    ellipsis_mask: Ints = (),
) -> Fact:
    lengths = _lengths(begin=begin, end=end, strides=strides)
    check(sum(map(bool, ellipsis_mask)) <= 1, "ellipsis_mask has more than one bit")
    check(len(lengths) <= 1, f"begin, end and strides have different lengths: {sorted(lengths)}")
    if data.shape is None or not lengths:
        return Fact(data.element, None)
    count = lengths.pop()
    check(count <= MAX_AXES, f"begin has {count} numbers, more than there can be axes")
    entries: list[Entry] = []
    for i, kind in enumerate(_kinds(count, new_axis_mask, shrink_axis_mask, ellipsis_mask)):
        first = None if _bit(begin_mask, i) and kind == "slice" else _number(begin, i)
        last = None if _bit(end_mask, i) else _number(end, i)
        entries.append((kind, first, last, 1 if strides is None else _number(strides, i)))
    return Fact(data.element, _cut(data.shape, entries))


# What an entry does, its bounds (None: open) and its stride.
Entry = tuple[str, Bound, Bound, Size]


def _number(fact: Fact, i: int) -> Size:
    known = fact.sizes()
    return ANYWHERE if known is None or i >= len(known) else known[i]


def _cut(sizes: Shape, entries: Sequence[Entry]) -> Shape:
    taken = _taken_axes([entry[0] for entry in entries])
    check(taken <= len(sizes), f"{taken} axes are cut, data {shape_text(sizes)} has fewer")
    result: list[Size] = []
    axis = 0
    for kind, first, last, stride in entries:
        if kind == "ellipsis":
            rest = axis + len(sizes) - taken
            result += sizes[axis:rest]
            axis = rest
        elif kind == "new":
            result.append(1)
        else:
            result += _taken(sizes[axis], kind, first, last, stride)
            axis += 1
    return (*result, *sizes[axis:])


def _taken(size: Size, kind: str, first: Bound, last: Bound, stride: Size) -> Shape:
    """What is left of one axis: nothing of a single index."""
    if kind == "index":
        most = high(size)
        inside = most is None or not isinstance(first, int) or -most <= first < most
        check(inside, f"index {first} is out of range for an axis of {size}")
        return ()
    check(stride != 0, "a stride is 0")
    return (slice_size(size, first, last, stride) if isinstance(stride, int) else span(0, high(size)),)
