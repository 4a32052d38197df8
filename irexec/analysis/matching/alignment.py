"""Two sequences aligned as diff aligns lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

_STEPS = 4_000_000
"""Comparisons after which the rest of a pair of sequences is left as it is."""


def aligned(a: Sequence[int], b: Sequence[int]) -> list[tuple[int, int]]:
    """Pairs of positions of equal elements, both increasing: a longest common subsequence, or a shorter one of long
    sequences.

    Equal ends are taken first, then elements that are unique on both sides split the sequences (patience diff). The
    parts between them are searched by Myers' algorithm, within a budget.
    """
    found: list[tuple[int, int]] = []
    waiting = [(0, len(a), 0, len(b))]
    budget = _STEPS
    while waiting:
        first, last, start, stop = waiting.pop()
        while first < last and start < stop and a[first] == b[start]:
            found.append((first, start))
            first, start = first + 1, start + 1
        while first < last and start < stop and a[last - 1] == b[stop - 1]:
            last, stop = last - 1, stop - 1
            found.append((last, stop))
        if first == last or start == stop:
            continue
        splits = _splits(a, b, (first, last), (start, stop))
        if splits:
            edges = [(first - 1, start - 1), *splits, (last, stop)]
            found += splits
            waiting += [(i + 1, k, j + 1, m) for (i, j), (k, m) in pairwise(edges)]
        else:
            shortest, used = _shortest(a[first:last], b[start:stop], budget)
            budget -= used
            found += [(first + i, start + j) for i, j in shortest]
    return sorted(found)


def _splits(
    a: Sequence[int], b: Sequence[int], mine: tuple[int, int], theirs: tuple[int, int]
) -> list[tuple[int, int]]:
    """The longest increasing run of elements that are unique in both ranges."""
    positions = _once(b, *theirs)
    pairs = [(i, positions[key]) for key, i in _once(a, *mine).items() if key in positions]
    pairs.sort()
    tails: list[int] = []
    before: list[int] = []
    for k, (_, j) in enumerate(pairs):
        low, high = 0, len(tails)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if pairs[tails[middle]][1] < j else (low, middle)
        before.append(tails[low - 1] if low else -1)
        tails[low : low + 1] = [k]
    chain: list[tuple[int, int]] = []
    k = tails[-1] if tails else -1
    while k >= 0:
        chain.append(pairs[k])
        k = before[k]
    return chain[::-1]


def _once(keys: Sequence[int], first: int, last: int) -> dict[int, int]:
    found: dict[int, int] = {}
    for i in range(first, last):
        found[keys[i]] = -1 if keys[i] in found else i
    return {key: i for key, i in found.items() if i >= 0}


def _shortest(a: Sequence[int], b: Sequence[int], budget: int) -> tuple[list[tuple[int, int]], int]:
    """Pairs along a shortest edit script, and the comparisons made; none if the budget does not suffice. Source: Myers
    1986."""
    ends, traces, used = {1: 0}, [], 0
    for edits in range(len(a) + len(b) + 1):
        traces.append(dict(ends))
        for diagonal in range(-edits, edits + 1, 2):
            down = diagonal == -edits or (diagonal != edits and ends.get(diagonal - 1, -1) < ends.get(diagonal + 1, -1))
            x = ends.get(diagonal + 1, 0) if down else ends[diagonal - 1] + 1
            y = x - diagonal
            while x < len(a) and y < len(b) and a[x] == b[y]:
                x, y, used = x + 1, y + 1, used + 1
            ends[diagonal] = x
            if x >= len(a) and y >= len(b):
                return list(_backwards(traces, len(a), len(b))), used
        used += 2 * edits + 1
        if used > budget:
            return [], used
    return [], used


def _backwards(traces: list[dict[int, int]], x: int, y: int) -> Iterator[tuple[int, int]]:
    for edits in range(len(traces) - 1, -1, -1):
        ends, diagonal = traces[edits], x - y
        down = diagonal == -edits or (diagonal != edits and ends.get(diagonal - 1, -1) < ends.get(diagonal + 1, -1))
        previous = diagonal + 1 if down else diagonal - 1
        start_x = ends.get(previous, 0)
        start_y = start_x - previous
        while x > start_x and y > start_y and x > 0 and y > 0:
            x, y = x - 1, y - 1
            yield x, y
        x, y = start_x, start_y
