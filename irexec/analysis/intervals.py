"""Memory that is in use from one position of an order of work to another: of layers, or of the steps of a plan."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate

from irexec.records import Record


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
