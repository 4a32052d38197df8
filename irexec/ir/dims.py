"""Sizes that may not be known yet: intervals with an optional symbol, and shapes of them.

A known size is a plain int, so most code never meets a Dim. A shape is a tuple of int | Dim,
or None where even the rank is unknown.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from irexec.errors import OpError


@dataclass(frozen=True)
class Dim:
    """An integer that is not known, but lies between ``lo`` and ``hi`` (None: unbounded), with an optional symbol.

    ``==`` compares the description (interval and symbol), not the unknown values.
    Arithmetic gives the interval of the result, an int where only one value is possible.
    Ordering raises OpError unless the bounds decide it.
    """

    lo: int = 0
    hi: int | None = None
    name: str | None = None

    def __add__(self, other: int | Dim) -> int | Dim:
        if not isinstance(other, int | Dim):
            return NotImplemented
        if other == 0:
            return self
        return span(self.lo + low(other), plus(self.hi, high(other)))

    __radd__ = __add__

    def __sub__(self, other: int | Dim) -> int | Dim:
        if isinstance(other, int):
            return self if other == 0 else span(self.lo - other, plus(self.hi, -other))
        if not isinstance(other, Dim):
            return NotImplemented
        if other.hi is None:
            raise OpError("the difference of two unbounded sizes is not known")
        return span(self.lo - other.hi, plus(self.hi, -other.lo))

    def __rsub__(self, other: int) -> int | Dim:
        if self.hi is None:
            raise OpError("an unbounded size subtracted from a value is not known")
        return span(other - self.hi, other - self.lo)

    def __mul__(self, other: int | Dim) -> int | Dim:
        if not isinstance(other, int | Dim):
            return NotImplemented
        if other == 1:
            return self
        if low(self) < 0 or low(other) < 0:
            top_a, top_b = high(self), high(other)
            if top_a is None or top_b is None:
                raise OpError("the product of an unbounded size and a negative value is not known")
            products = [x * y for x in (low(self), top_a) for y in (low(other), top_b)]
            return span(min(products), max(products))
        return span(low(self) * low(other), product(high(self), high(other)))

    __rmul__ = __mul__

    def __floordiv__(self, other: int | Dim) -> int | Dim:
        if isinstance(other, Dim):
            return _quotient(self, other)
        if not isinstance(other, int):
            return NotImplemented
        if other == 1:
            return self
        if other <= 0:
            raise OpError(f"a size divided by {other} is not known")
        return span(self.lo // other, None if self.hi is None else self.hi // other)

    __truediv__ = __floordiv__

    def __rfloordiv__(self, other: int) -> int | Dim:
        return _quotient(other, self)

    __rtruediv__ = __rfloordiv__

    def __mod__(self, other: int) -> int | Dim:
        if not isinstance(other, int) or other <= 0:
            raise OpError(f"a size modulo {other} is not known")
        if self.hi is not None and self.lo // other == self.hi // other:
            return span(self.lo % other, self.hi % other)
        return span(0, other - 1)

    def __rmod__(self, other: int) -> int | Dim:
        if self.lo <= 0:
            raise OpError(f"{other} modulo {self} is not known")
        if 0 <= other < self.lo:
            return other
        tops = [None if self.hi is None else self.hi - 1, other if other >= 0 else None]
        return span(0, min((top for top in tops if top is not None), default=None))

    def __neg__(self) -> int | Dim:
        return 0 - self

    def __abs__(self) -> int | Dim:
        if self.lo >= 0:
            return self
        minimum = 0 if self.hi is None else max(-self.hi, 0)
        return span(minimum, None if self.hi is None else max(-self.lo, self.hi))

    def __lt__(self, other: int | Dim) -> bool:
        if self.hi is not None and self.hi < low(other):
            return True
        top = high(other)
        if top is not None and self.lo >= top:
            return False
        raise OpError(f"{self} and {other} cannot be ordered")

    def __ge__(self, other: int | Dim) -> bool:
        return not self < other

    def __gt__(self, other: int | Dim) -> bool:
        top = high(other)
        if top is not None and self.lo > top:
            return True
        if self.hi is not None and self.hi <= low(other):
            return False
        raise OpError(f"{self} and {other} cannot be ordered")

    def __le__(self, other: int | Dim) -> bool:
        return not self > other

    def __bool__(self) -> bool:
        if self.lo > 0 or (self.hi is not None and self.hi < 0):
            return True
        raise OpError(f"whether {self} is zero is not known")

    def __index__(self) -> int:
        raise OpError(f"{self} is not a known size")

    __int__ = __index__

    def __float__(self) -> float:
        raise OpError(f"{self} is not a known size")

    def __repr__(self) -> str:
        parts = [self.lo, self.hi, self.name]
        while parts and parts[-1] in (None, 0):
            parts.pop()
        return f"Dim({', '.join(map(repr, parts))})"

    def __str__(self) -> str:
        if self.name:
            return self.name
        if self.hi is None:
            return "?" if self.lo == 0 else f"{self.lo}.."
        return f"{self.lo}..{self.hi}"


Size = int | Dim
Shape = tuple[Size, ...]
PartialShape = Shape | None

ANY = Dim()

LARGEST_SIZE = (1 << 63) - 1
"""The largest size that IR, OpenVINO and NumPy have."""
HIGHEST_RANK = 64
"""The maximum number of axes of an array of NumPy."""

# Bytes of an element of the widest carriers.
_LARGEST_ITEM = 8


def low(size: Size) -> int:
    """The minimum of ``size``."""
    return size.lo if isinstance(size, Dim) else size


def smallest(shape: Iterable[Size]) -> tuple[int, ...]:
    """The sizes, with 1 or the minimum of its range for each that is not known."""
    return tuple(size if isinstance(size, int) else max(1, low(size)) for size in shape)


def high(size: Size) -> int | None:
    """The maximum of ``size``; None if unbounded."""
    return size.hi if isinstance(size, Dim) else size


def span(lo: int, hi: int | None) -> Size:
    """The size between lo and hi: a plain int where they are equal."""
    return lo if lo == hi else Dim(lo, hi)


def plus(a: int | None, b: int | None) -> int | None:
    """A sum; None if either is not known."""
    return None if a is None or b is None else a + b


def product(a: int | None, b: int | None) -> int | None:
    """A product; None if either is not known and neither is 0."""
    return 0 if 0 in (a, b) else None if a is None or b is None else a * b


def _quotient(a: Size, b: Size) -> Size:
    if low(b) <= 0 or low(a) < 0:
        raise OpError(f"{a} divided by {b} is not known")
    top, divisor = high(a), high(b)
    return span(0 if divisor is None else low(a) // divisor, None if top is None else top // low(b))


def ceil_div(size: Size, by: int) -> Size:
    """The quotient rounded up; ``by`` is positive."""
    return (size + (by - 1)) // by


def exact_quotient(size: Size, by: int) -> Size:
    """The quotient of a size that is a multiple of the positive ``by``.

    Raises:
        OpError: no possible size is a multiple of it.
    """
    top = high(size)
    if by == 1:
        return size
    minimum, maximum = -(-low(size) // by), None if top is None else top // by
    if maximum is not None and maximum < minimum:
        raise OpError(f"{size} is not a multiple of {by}")
    return span(minimum, maximum)


def at_least(size: Size, floor: int) -> Size:
    """The maximum of ``size`` and ``floor``."""
    top = high(size)
    if low(size) >= floor:
        return size
    return span(floor, None if top is None else max(top, floor))


def at_most(size: Size, ceiling: int) -> Size:
    """The minimum of ``size`` and ``ceiling``."""
    top = high(size)
    if top is not None and top <= ceiling:
        return size
    return span(min(low(size), ceiling), ceiling)


def may_equal(a: Size, b: Size) -> bool:
    """Whether the two can be equal."""
    # Growing states have the shapes of every run compared.
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    top_a, top_b = high(a), high(b)
    return (top_b is None or low(a) <= top_b) and (top_a is None or low(b) <= top_a)


def are_equal(a: Size, b: Size) -> bool:
    """Whether the two are certainly equal: the same int, or the same symbol."""
    return a == b and (isinstance(a, int) or a.name is not None)


def meet(a: Size, b: Size) -> Size:
    """Intersection of two descriptions of one size.

    Raises:
        OpError: no size satisfies both.
    """
    if a == b:
        return a
    if not may_equal(a, b):
        raise OpError(f"sizes {a} and {b} differ")
    if isinstance(a, int):
        return a
    if isinstance(b, int):
        return b
    tops = [top for top in (a.hi, b.hi) if top is not None]
    lo, hi = max(a.lo, b.lo), min(tops) if tops else None
    for one in (a, b):
        if one.name and (one.lo, one.hi) == (lo, hi):
            return one
    return lo if lo == hi else Dim(lo, hi, a.name or b.name)


def join(a: Size, b: Size) -> Size:
    """Union of the descriptions of two sizes."""
    if a == b:
        return a
    top_a, top_b = high(a), high(b)
    return span(min(low(a), low(b)), None if top_a is None or top_b is None else max(top_a, top_b))


def meet_shapes(a: PartialShape, b: PartialShape) -> PartialShape:
    """Intersection of two descriptions of one shape; OpError if no shape satisfies both."""
    if a is None or b is None:
        return b if a is None else a
    if len(a) != len(b):
        raise OpError(f"ranks {len(a)} and {len(b)} of {shape_text(a)} and {shape_text(b)} differ")
    return tuple(meet(x, y) for x, y in zip(a, b, strict=True))


def join_shapes(a: PartialShape, b: PartialShape) -> PartialShape:
    """Union of the descriptions of two shapes."""
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple(join(x, y) for x, y in zip(a, b, strict=True))


def contradict(a: PartialShape, b: PartialShape) -> bool:
    """Whether no tensor can have both shapes."""
    if a is None or b is None:
        return False
    return len(a) != len(b) or not all(map(may_equal, a, b))


def widen_shapes(before: PartialShape, after: PartialShape, attempt: int) -> PartialShape:
    """Shape of a loop's state in every iteration, from its shape before and after one.

    The bounds of the first ``attempt``, 0, include both; a size that changes again later is unknown, so that widening
    ends.
    """
    joined = join_shapes(before, after)
    if attempt == 0 or joined is None or before is None:
        return joined
    return tuple(old if new == old else ANY for old, new in zip(before, joined, strict=True))


def admits(shape: PartialShape, sizes: Iterable[int]) -> bool:
    """Whether a tensor of the given sizes fits the partial shape."""
    if shape is None:
        return True
    known = tuple(sizes)
    return len(known) == len(shape) and all(map(may_equal, shape, known))


def broadcastable_to(shape: Shape, target: Shape) -> bool:
    """Whether NumPy's broadcasting can stretch a shape to a target; unknown sizes may."""
    if len(shape) > len(target):
        return False
    tail = target[len(target) - len(shape) :]
    return all(may_equal(a, 1) or may_equal(a, b) for a, b in zip(shape, tail, strict=True))


def check_sizes(shape: PartialShape) -> None:
    """Raise OpError for a shape that no tensor has: a size is negative, or larger than any size can be, or there are
    too many.

    NumPy has no empty array either whose other sizes are those of a tensor beyond 64 bits.
    """
    if shape is not None and len(shape) > HIGHEST_RANK:
        raise OpError(f"the result would have rank {len(shape)}, and at most {HIGHEST_RANK} are possible")
    for size in shape or ():
        if isinstance(size, int) and 0 <= size <= LARGEST_SIZE:
            continue
        top = high(size)
        if top is not None and top < 0:
            raise OpError(f"the result would have shape {shape_text(shape)}, of which size {size} is negative")
        if low(size) > LARGEST_SIZE:
            raise OpError(
                f"the result would have shape {shape_text(shape)}, of which size {size} is larger than 2**63 - 1"
            )
    if shape is not None and 0 in shape and not has_room(tuple(map(low, shape))):
        raise OpError(
            f"the result would have shape {shape_text(shape)}, empty, but with other sizes that are too large for an "
            "array"
        )


def has_room(shape: Sequence[int]) -> bool:
    """Whether NumPy has arrays of the shape for elements of any size; it refuses empty ones whose other axes are too
    long, too."""
    return math.prod(max(size, 1) for size in shape) <= LARGEST_SIZE // _LARGEST_ITEM


def is_static(shape: PartialShape) -> TypeGuard[tuple[int, ...]]:
    """Whether every size is known."""
    if shape is None:
        return False
    # Not all(...), which takes three times as long: compiling asks this for every value.
    for size in shape:  # noqa: SIM110
        if not isinstance(size, int):
            return False
    return True


def count(shape: Iterable[Size]) -> Size:
    """The number of elements of a shape of known rank."""
    total: Size = 1
    for size in shape:
        total = total * size
    return total


def shape_text(shape: PartialShape) -> str:
    """For people: ``[1,3,?,2..5]``; ``[...]`` where the rank is unknown."""
    return "[...]" if shape is None else "[" + ",".join(map(str, shape)) + "]"
