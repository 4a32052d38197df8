"""Offsets of buffers in an arena: two buffers share bytes only if no step needs both; bytes in use at each step."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from irexec.records import Record

ALIGNMENT = 64


@dataclass(frozen=True)
class Interval(Record):
    """Bytes in use between two positions, both included.

    Attributes:
        bytes: the size; None if it is not known.
        first, last: the positions.
    """

    bytes: int | None
    first: int
    last: int


def in_use(intervals: Iterable[Interval], count: int) -> list[int]:
    """Bytes in use at each of ``count`` positions, as far as they are known."""
    changes = [0] * (count + 1)
    for interval in intervals:
        if interval.first < count:
            changes[interval.first] += interval.bytes or 0
            changes[min(interval.last, count - 1) + 1] -= interval.bytes or 0
    return list(accumulate(changes[:count]))


@dataclass(eq=False)
class Buffer:
    """Bytes in use from one step to another, both included.

    Attributes:
        offset: in the arena, once offsets are assigned.
        parent, inside: the buffer of which this one is a piece, and the offset in it; the parent is in use as long as
            its pieces.
    """

    size: int
    first: int
    last: int
    offset: int = 0
    parent: Buffer | None = None
    inside: int = 0

    @property
    def whole(self) -> Buffer:
        """The buffer of which this one is a piece of a piece; itself if it is not a piece."""
        return self if self.parent is None else self.parent.whole


def assign_offsets(buffers: Sequence[Buffer]) -> int:
    """Assign an offset to every buffer. Returns the size of the arena.

    Buffers are placed in the order of their first steps, the largest first, each in the smallest gap in which it fits.
    """
    gaps = _Gaps()
    ends: list[Buffer] = []
    for buffer in sorted(
        (buffer for buffer in buffers if buffer.parent is None), key=lambda buffer: (buffer.first, -buffer.size)
    ):
        while ends and ends[0].last < buffer.first:
            done = ends.pop(0)
            gaps.free(done.offset, _aligned(done.size))
        buffer.offset = gaps.take(_aligned(buffer.size))
        bisect.insort(ends, buffer, key=lambda other: other.last)
    for buffer in buffers:
        buffer.offset = _offset(buffer)
    return gaps.size


def _offset(buffer: Buffer) -> int:
    return buffer.offset if buffer.parent is None else _offset(buffer.parent) + buffer.inside


def _aligned(size: int) -> int:
    return -(-max(size, 1) // ALIGNMENT) * ALIGNMENT


class _Gaps:
    """The gaps between buffers, as (offset, size) in order; ``size`` is the highest end that was ever in use."""

    def __init__(self) -> None:
        self.size = 0
        self._gaps: list[tuple[int, int]] = []

    def take(self, size: int) -> int:
        fitting = [(gap[1], i) for i, gap in enumerate(self._gaps) if gap[1] >= size]
        if fitting:
            _, i = min(fitting)
            offset, whole = self._gaps.pop(i)
            if whole > size:
                self._gaps.insert(i, (offset + size, whole - size))
            return offset
        offset = self.size
        if self._gaps and sum(self._gaps[-1]) == self.size:
            offset = self._gaps.pop()[0]
        self.size = offset + size
        return offset

    def free(self, offset: int, size: int) -> None:
        i = bisect.bisect(self._gaps, (offset, 0))
        if i < len(self._gaps) and self._gaps[i][0] == offset + size:
            size += self._gaps.pop(i)[1]
        if i and sum(self._gaps[i - 1]) == offset:
            offset, before = self._gaps.pop(i - 1)
            size += before
            i -= 1
        self._gaps.insert(i, (offset, size))
