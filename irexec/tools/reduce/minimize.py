"""Smallest failing parts of a sequence: bisection and delta debugging as functions of a predicate.

Source: Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002: ddmin.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

T = TypeVar("T")
Fails = Callable[[tuple[T, ...]], bool]
"""Whether a part fails; its items have the order of the whole."""


def shortest_prefix(items: Sequence[T], fails: Fails[T]) -> tuple[T, ...]:
    """A prefix that fails, found by bisection in at most log2(n) + 1 tests.

    It is the shortest one if all longer prefixes fail too; otherwise the bisection saw a shorter one that passes.

    Args:
        items: all items, which fail; the empty prefix passes. Both are not tested.
        fails: the predicate.
    """
    passing, failing = 0, len(items)
    while failing - passing > 1:
        middle = (passing + failing) // 2
        if fails(tuple(items[:middle])):
            failing = middle
        else:
            passing = middle
    return tuple(items[:failing])


def shortest_suffix(items: Sequence[T], fails: Fails[T]) -> tuple[T, ...]:
    """A failing suffix; see ``shortest_prefix``."""
    found = shortest_prefix(items[::-1], lambda part: fails(part[::-1]))
    return found[::-1]


def ddmin(items: Sequence[T], fails: Fails[T]) -> tuple[T, ...]:
    """A failing part that passes without any single one of its items.

    Chunks of neighbours are left out, first halves and then smaller ones. The number of tests is at most n * n + 3 * n,
    and in the order of log n if one item alone is at fault.

    Args:
        items: all items, which fail; the empty part passes. Both are not tested.
        fails: the predicate; it is not called twice in a row for one part.
    """
    kept = tuple(items)
    count = 2
    while len(kept) > 1:
        count = min(count, len(kept))
        chunks = _chunks(len(kept), count)
        shorter = _one_chunk(kept, chunks, fails) if count == 2 else None
        if shorter is None:
            shorter = _without_chunk(kept, chunks, fails) if count > 2 else None
            remaining = max(count - 1, 2)
        else:
            remaining = 2
        if shorter is not None:
            kept, count = shorter, remaining
        elif count == len(kept):
            break
        else:
            count = 2 * count
    return kept


def _chunks(length: int, count: int) -> list[tuple[int, int]]:
    """The bounds of ``count`` chunks of nearly equal length."""
    bounds = [length * i // count for i in range(count + 1)]
    return list(pairwise(bounds))


def _one_chunk(kept: tuple[T, ...], chunks: list[tuple[int, int]], fails: Fails[T]) -> tuple[T, ...] | None:
    return next((kept[start:end] for start, end in chunks if fails(kept[start:end])), None)


def _without_chunk(kept: tuple[T, ...], chunks: list[tuple[int, int]], fails: Fails[T]) -> tuple[T, ...] | None:
    return next((rest for start, end in chunks if fails(rest := kept[:start] + kept[end:])), None)
