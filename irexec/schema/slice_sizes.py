"""The size of a slice along an axis, where the size of the axis and the slice's bounds may be known only as intervals.

It registers no operation. Sizes may be as large as a file can write (10**30): no size is allocated or iterated over.
"""

from __future__ import annotations

from itertools import product

from irexec.ir.dims import Dim, Size, high, low, span

Bound = Size | None

# Stands for an unlimited number; a result of its order is unlimited too.
_VAST = 1 << 256
_UNBOUNDED = 1 << 128
# Exporters write the largest i32 for a stop that is open.
_OPEN_STOP = (1 << 31) - 1

ANYWHERE = Dim(-_VAST, None)
"""A bound of which no limit is known, negative or positive."""


def slice_size(size: Size, begin: Bound, end: Bound, step: int) -> Size:
    """The number of elements that ``[begin:end:step]`` has of an axis; None is an open bound, as in Python.

    Unlike in Python, a begin before the axis means its first element, also for a negative step.
    The result is the tightest interval: in each of size, begin and end the number is monotonic between
    the points where a bound changes sign or equals the size, so that its extremes are among those points.
    """
    begin, end = _without_unreachable(size, begin, end, step)
    if step == 1 and end is None and begin in (None, 0):
        return size
    if (
        step == 1
        and isinstance(end, Dim)
        and begin in (None, 0)
        and end.lo >= 0
        and end.hi is not None
        and end.hi <= low(size)
    ):
        return end
    begins, ends = _extreme_points(begin), _extreme_points(end)
    counts = [_count(n, b, e, step) for b, e in product(begins, ends) for n in _sizes(size, b, e)]
    return span(min(counts), None if max(counts) > _UNBOUNDED and _is_open(size) else max(counts))


def _is_open(size: Size) -> bool:
    return high(size) is None


def _without_unreachable(size: Size, begin: Bound, end: Bound, step: int) -> tuple[Bound, Bound]:
    """A bound beyond every possible size of the axis is open."""
    top = high(size)
    top = _OPEN_STOP if top is None else top
    if step > 0:
        return begin, None if end is not None and low(end) >= top else end
    return None if begin is not None and low(begin) >= top - 1 else begin, end


def _extreme_points(bound: Bound) -> list[int | None]:
    """The limits of a bound's interval, and -1 and 0 if it has both: there it changes to count from the front."""
    if not isinstance(bound, Dim):
        return [bound]
    lo, hi = bound.lo, _VAST if bound.hi is None else bound.hi
    return [lo, hi, *([-1, 0] if lo < 0 <= hi else [])]


def _sizes(size: Size, begin: int | None, end: int | None) -> list[int]:
    """The sizes at which the count can be extreme."""
    if isinstance(size, int):
        return [size]
    top = _VAST if size.hi is None else size.hi
    points = {abs(bound) + near for bound in (begin, end) if bound is not None for near in (-1, 0, 1)}
    return [size.lo, top, *(point for point in points if size.lo < point < top)]


def _count(size: int, begin: int | None, end: int | None, step: int) -> int:
    if step > 0:
        length = _position(end, size, 0, size, size) - _position(begin, size, 0, size, 0)
    else:
        length = _position(end, size, -1, size - 1, -1) - _position(begin, size, 0, size - 1, size - 1)
    return max(0, -(-length // step))


def _position(bound: int | None, size: int, first: int, last: int, otherwise: int) -> int:
    """The index that a bound means, clipped to first..last; ``otherwise`` for an open one."""
    return otherwise if bound is None else min(max(bound + size if bound < 0 else bound, first), last)
