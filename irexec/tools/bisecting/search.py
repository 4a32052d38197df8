"""The binary search for the first of ordered items with another verdict than the first one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

T = TypeVar("T")
Verdict = Callable[[int], "str | None"]
"""The verdict on an item by its position; None if it cannot be had. It is asked for again, and must be remembered."""


class Boundary(NamedTuple):
    """Two items with different verdicts, by position; no item between them has one."""

    before: int
    after: int


def boundary(low: int, high: int, verdict: Verdict) -> Boundary:
    """Two neighbours between two items with different verdicts: the first of them has the verdict of ``low``.

    Verdicts are assumed to change once. Items without a verdict are passed over.
    """
    base = verdict(low)
    while True:
        middle = (low + high) / 2
        between = sorted(range(low + 1, high), key=lambda item: abs(item - middle))
        found = next((item for item in between if verdict(item) is not None), None)
        if found is None:
            return Boundary(low, high)
        if verdict(found) == base:
            low = found
        else:
            high = found


def ends(items: Sequence[T], verdict: Verdict) -> tuple[int, int] | None:
    """The first and the last item with a verdict; None if no item has one."""
    first = next((i for i in range(len(items)) if verdict(i) is not None), None)
    if first is None:
        return None
    return first, next(i for i in reversed(range(len(items))) if verdict(i) is not None)
