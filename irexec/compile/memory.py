"""Where values lie in a run's arena: offsets such that two values share bytes only if they never live at once."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass

ALIGNMENT = 64


@dataclass(eq=False)
class Buffer:
    """Bytes that live from one step to another, both included.

    Attributes:
        offset: in the arena, once it is planned.
        parent, inside: the buffer that it is a piece of, and its offset there; that buffer lives as long as all its pieces.
    """

    size: int
    first: int
    last: int
    offset: int = 0
    parent: Buffer | None = None
    inside: int = 0


def place(buffers: Sequence[Buffer]) -> int:
    """Give every buffer an offset; the size of the arena.

    Buffers are taken in the order in which they begin to live, the largest first, and each goes into the smallest gap that
    holds it.
    """
    arena = _Arena()
    ends: list[Buffer] = []
    for buffer in sorted(
        (buffer for buffer in buffers if buffer.parent is None), key=lambda buffer: (buffer.first, -buffer.size)
    ):
        while ends and ends[0].last < buffer.first:
            done = ends.pop(0)
            arena.free(done.offset, _aligned(done.size))
        buffer.offset = arena.take(_aligned(buffer.size))
        bisect.insort(ends, buffer, key=lambda other: other.last)
    for buffer in buffers:
        buffer.offset = _offset(buffer)
    return arena.size


def _offset(buffer: Buffer) -> int:
    return buffer.offset if buffer.parent is None else _offset(buffer.parent) + buffer.inside


def _aligned(size: int) -> int:
    return -(-max(size, 1) // ALIGNMENT) * ALIGNMENT


class _Arena:
    """Gaps between buffers, as (offset, size) in order; ``size`` is the highest end that was ever in use."""

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
