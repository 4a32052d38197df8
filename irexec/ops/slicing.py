"""Parts of tensors: StridedSlice and Slice, with sizes that may not be known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irexec.errors import check
from irexec.ir.dims import ANY, Dim, Size, high, low, span
from irexec.ir.facts import Fact
from irexec.ops.attributes import Ints
from irexec.ops.registry import op
from irexec.ops.rules import normal_axis

Bound = Size | None
_VAST = 1 << 62
_BEYOND = (1 << 31) - 1


def slice_size(size: Size, begin: Bound, end: Bound, step: int) -> Size:
    """How many numbers ``[begin:end:step]`` takes of an axis; None is an open end, as in Python."""
    if isinstance(begin, Dim) or isinstance(end, Dim):
        return _bounded(size, begin, end, step)
    if isinstance(size, int):
        return len(range(*slice(begin, end, step).indices(size))) if size < _VAST else ANY
    begin, end = _opened(size, begin, end, step)
    if not _is_monotonic(begin, end, step):
        return span(0, high(size))
    most = len(range(*slice(begin, end, step).indices(_VAST if size.hi is None else min(size.hi, _VAST))))
    least = len(range(*slice(begin, end, step).indices(min(size.lo, _VAST))))
    return span(least, None if most > _VAST >> 20 and size.hi is None else most)


def _opened(size: Dim, begin: int | None, end: int | None, step: int) -> tuple[int | None, int | None]:
    """A bound that no size of the axis reaches is as good as open; exporters write the greatest i32 or i64 for that."""
    top = _BEYOND if size.hi is None else min(size.hi, _BEYOND)
    if step > 0:
        return begin, None if end is not None and end >= top else end
    return None if begin is not None and begin >= top - 1 else begin, end


def _is_monotonic(begin: int | None, end: int | None, step: int) -> bool:
    """Whether a longer axis never gives fewer numbers: not where one bound counts from each end, towards each other."""
    if step > 0:
        return not (begin is not None and begin < 0 and end is not None and end >= 0)
    return not (begin is not None and begin >= 0 and end is not None and end < 0)


def _bounded(size: Size, begin: Bound, end: Bound, step: int) -> Size:
    """Bounds that are themselves known only by their bounds."""
    top = high(size)
    if step == 1 and begin in (0, None) and end is not None and low(end) >= 0:
        ends = [bound for bound in (high(end), top) if bound is not None]
        return span(min(low(end), low(size)), min(ends) if ends else None)
    return span(0, top if top is None or abs(step) == 1 else -(-top // abs(step)))


@op("Slice", since=8, symbolic=True, view=True)
def slice_8(data: np.ndarray, start: np.ndarray, stop: np.ndarray, step: np.ndarray, axes: np.ndarray | None = None) -> np.ndarray:
    """``[start:stop:step]`` along each of the axes (all the first ones unless given).

    Source: Slice-8.
    """
    places = range(start.size) if axes is None else [int(axis) for axis in axes.ravel().tolist()]
    index: list[slice] = [slice(None)] * data.ndim
    for axis, first, last, stride in zip(places, start.ravel().tolist(), stop.ravel().tolist(), step.ravel().tolist(), strict=True):
        index[axis] = _slice(int(first), int(last), int(stride), data.shape[axis])
    return data[tuple(index)]


def _slice(first: int, last: int, stride: int, size: int) -> slice:
    """A slice whose end is before the first number when it steps backwards beyond it."""
    begin, end, _ = slice(first, last, stride).indices(size)
    return slice(begin, None if end < 0 else end, stride)


@slice_8.facts
def _slice_8_facts(data: Fact, start: Fact, stop: Fact, step: Fact, axes: Fact | None = None) -> Fact:
    steps = step.ints()
    check(steps is None or 0 not in steps, "step is 0")
    given = [fact for fact in (start, stop, step, axes) if fact is not None]
    for fact in given:
        check(fact.rank in (None, 1), f"{fact} given for start, stop, step or axes has rank {fact.rank}, expected 1")
    lengths = {fact.shape[0] for fact in given if fact.shape and isinstance(fact.shape[0], int)}
    check(len(lengths) <= 1, f"start, stop, step and axes have different lengths: {sorted(lengths, key=str)}")
    if data.shape is None:
        return Fact(data.element, None)
    count = next(iter(lengths)) if lengths else None
    places = None if axes is not None and axes.ints() is None else axes.ints() if axes is not None else tuple(range(int(count or 0)))
    if places is None or count is None:
        return Fact(data.element, tuple(span(0, high(size)) for size in data.shape))
    check(len(places) <= len(data.shape), f"{len(places)} axes are cut, data {data} has fewer")
    firsts, lasts = start.sizes(), stop.sizes()
    shape = list(data.shape)
    for i, axis in enumerate(places):
        place = normal_axis(axis, len(shape))
        if firsts is None or lasts is None or steps is None:
            shape[place] = span(0, high(shape[place]))
        else:
            shape[place] = slice_size(shape[place], firsts[i], lasts[i], steps[i])
    return Fact(data.element, tuple(shape))


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

    A set bit of ``begin_mask`` or ``end_mask`` opens that end. Source: StridedSlice-1.
    """
    count = begin.size
    steps = [1] * count if strides is None else strides.ravel().tolist()
    masks = (begin_mask, end_mask, new_axis_mask, shrink_axis_mask, ellipsis_mask)
    index: list[object] = []
    for i, kind in enumerate(_kinds(count, masks)):
        if kind == "slice":
            first = None if _bit(begin_mask, i) else int(begin.ravel()[i])
            last = None if _bit(end_mask, i) else int(end.ravel()[i])
            index.append(slice(first, last, int(steps[i])))
        else:
            index.append({"ellipsis": Ellipsis, "new": None}.get(kind, int(begin.ravel()[i])))
    return np.asarray(data[tuple(index)], data.dtype) if index else data


def _bit(mask: Sequence[int], i: int) -> bool:
    return i < len(mask) and bool(mask[i])


def _kinds(count: int, masks: Sequence[Sequence[int]]) -> list[str]:
    """What each entry of ``begin`` does: ellipsis before a new axis, that before a single index, that before a slice."""
    _, _, new_axis_mask, shrink_axis_mask, ellipsis_mask = masks
    kinds = []
    for i in range(max(count, *(len(mask) for mask in (new_axis_mask, shrink_axis_mask, ellipsis_mask)), 0)):
        if _bit(ellipsis_mask, i):
            kinds.append("ellipsis")
        elif _bit(new_axis_mask, i):
            kinds.append("new")
        elif i < count:
            kinds.append("index" if _bit(shrink_axis_mask, i) else "slice")
    return kinds


@strided_slice_1.facts
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
    for fact, what in ((begin, "begin"), (end, "end"), (strides, "strides")):
        check(fact is None or fact.rank in (None, 1), f"{what} has shape {fact}, expected rank 1")
    check(sum(map(bool, ellipsis_mask)) <= 1, "ellipsis_mask has more than one bit")
    lengths = {fact.shape[0] for fact in (begin, end, strides) if fact is not None and fact.shape and isinstance(fact.shape[0], int)}
    check(len(lengths) <= 1, f"begin, end and strides have different lengths: {sorted(lengths, key=str)}")
    if data.shape is None or not lengths:
        return Fact(data.element, None)
    kinds = _kinds(int(next(iter(lengths))), (begin_mask, end_mask, new_axis_mask, shrink_axis_mask, ellipsis_mask))
    taken = sum(kind in ("slice", "index") for kind in kinds)
    check(taken <= len(data.shape), f"{taken} axes are cut, data {data} has fewer")
    steps = (1,) * len(kinds) if strides is None else strides.ints()
    check(steps is None or 0 not in steps, "a stride is 0")
    bounds = [_bounds(begin.sizes(), begin_mask, len(kinds)), _bounds(end.sizes(), end_mask, len(kinds))]
    return Fact(data.element, _cut(list(data.shape), kinds, bounds, steps, taken))


def _bounds(values: Sequence[Size] | None, mask: Sequence[int], count: int) -> list[tuple[bool, Bound]]:
    """For each entry whether its bound is known, and the bound; None is open."""
    return [
        (True, None) if _bit(mask, i) else (False, None) if values is None or i >= len(values) else (True, values[i]) for i in range(count)
    ]


def _cut(
    sizes: list[Size], kinds: list[str], bounds: list[list[tuple[bool, Bound]]], steps: Sequence[int] | None, taken: int
) -> tuple[Size, ...]:
    result: list[Size] = []
    axis = 0
    for i, kind in enumerate(kinds):
        (begin_known, begin), (end_known, end) = bounds[0][i], bounds[1][i]
        if kind == "ellipsis":
            rest = len(sizes) - taken
            result += sizes[axis : axis + rest]
            axis += rest
        elif kind == "new":
            result.append(1)
        elif kind == "index":
            size = sizes[axis]
            if isinstance(size, int) and isinstance(begin, int) and begin_known:
                check(-size <= begin < size, f"index {begin} is out of range for an axis of {size}")
            axis += 1
        else:
            known = begin_known and end_known and steps is not None
            result.append(slice_size(sizes[axis], begin, end, steps[i]) if known and steps else span(0, high(sizes[axis])))
            axis += 1
    return tuple(result + sizes[axis:])
