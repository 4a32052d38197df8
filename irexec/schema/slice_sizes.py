"""How many numbers a slice takes of an axis, where sizes and bounds may be known only by their bounds.

It registers no operation. Sizes may be hostile (10**30): there is only arithmetic.
"""

from __future__ import annotations

from itertools import product

from irexec.ir.dims import Dim, Size, high, low, span

Bound = Size | None

# Stands for a number without bound; whatever still is of its order is unbounded too.
_VAST = 1 << 256
_UNBOUNDED = 1 << 128
# Exporters write the greatest i32 for an end that is open.
_BEYOND = (1 << 31) - 1

ANYWHERE = Dim(-_VAST, None)
"""A bound of which nothing is known, on either side of 0."""


def slice_size(size: Size, begin: Bound, end: Bound, step: int) -> Size:
    """How many numbers ``[begin:end:step]`` takes of an axis; None is an open end, as in Python.

    Unlike Python, a begin before the axis means its first number, also stepping backwards.
    The answer is the tightest interval: along each of size, begin and end the number goes one way between
    the points where a bound changes sign or meets the size, so that its extremes are among those points.
    """
    begin, end = _opened(size, begin, end, step)
    if step == 1 and end is None and begin in (None, 0):
        return size
    if step == 1 and isinstance(end, Dim) and begin in (None, 0) and end.lo >= 0 and end.hi is not None and end.hi <= low(size):
        return end
    begins, ends = _corners(begin), _corners(end)
    counts = [_count(n, b, e, step) for b, e in product(begins, ends) for n in _sizes(size, b, e)]
    return span(min(counts), None if max(counts) > _UNBOUNDED and _is_open(size) else max(counts))


def _is_open(size: Size) -> bool:
    return high(size) is None


def _opened(size: Size, begin: Bound, end: Bound, step: int) -> tuple[Bound, Bound]:
    """A bound that no size of the axis reaches is as good as open."""
    top = high(size)
    top = _BEYOND if top is None else top
    if step > 0:
        return begin, None if end is not None and low(end) >= top else end
    return None if begin is not None and low(begin) >= top - 1 else begin, end


def _corners(bound: Bound) -> list[int | None]:
    """The ends of a bound's interval, and those at 0 where it counts from either end of the axis."""
    if not isinstance(bound, Dim):
        return [bound]
    lo, hi = bound.lo, _VAST if bound.hi is None else bound.hi
    return [lo, hi, *([-1, 0] if lo < 0 <= hi else [])]


def _sizes(size: Size, begin: int | None, end: int | None) -> list[int]:
    """The sizes at which the count can be extreme."""
    if isinstance(size, int):
        return [size]
    top = _VAST if size.hi is None else size.hi
    turns = {abs(bound) + near for bound in (begin, end) if bound is not None for near in (-1, 0, 1)}
    return [size.lo, top, *(turn for turn in turns if size.lo < turn < top)]


def _count(size: int, begin: int | None, end: int | None, step: int) -> int:
    if step > 0:
        reach = _place(end, size, 0, size, size) - _place(begin, size, 0, size, 0)
    else:
        reach = _place(end, size, -1, size - 1, -1) - _place(begin, size, 0, size - 1, size - 1)
    return max(0, -(-reach // step))


def _place(bound: int | None, size: int, first: int, last: int, otherwise: int) -> int:
    """Where a bound is on the axis, kept between first and last."""
    return otherwise if bound is None else min(max(bound + size if bound < 0 else bound, first), last)
