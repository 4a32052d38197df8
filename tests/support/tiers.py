"""The two tiers of the tests: the default one, and ``slow``, which ``pytest -m "slow or not slow"`` runs too."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import Any

import pytest


def some(values: Iterable[Any], default: Collection[Any]) -> list[Any]:
    """Parameters of a test or fixture, of which only ``default`` are in the default tier.

    Raises:
        ValueError: a value of ``default`` is not one of ``values``.
    """
    values = list(values)
    if missing := [value for value in default if value not in values]:
        raise ValueError(f"{missing} of the default tier are not among {values}")
    return [value if value in default else pytest.param(value, marks=pytest.mark.slow) for value in values]


def some_rows(rows: Iterable[Sequence[Any]], default: Collection[Sequence[Any]]) -> list[Any]:
    """Like ``some`` for several parameters: each row has a value of each."""
    rows = list(rows)
    return [
        pytest.param(*row, marks=value.marks if value is not row else ())
        for row, value in zip(rows, some(rows, default), strict=True)
    ]


def spread(rows: Sequence[Any], count: int) -> Sequence[Any]:
    """About ``count`` of the rows, at equal distances; all where there are fewer."""
    return rows[:: max(1, len(rows) // count)]


def covering(rows: Sequence[Sequence[Hashable]], strength: int) -> list[int]:
    """Indices of rows that have every combination of ``strength`` values that occurs in ``rows``: of any two columns, with
    a strength of 2.

    A greedy choice: the row with most combinations that no earlier row has, the first of several.
    """
    left = [set(_combinations(row, strength)) for row in rows]
    chosen = []
    while best := max((len(combinations) for combinations in left), default=0):
        index = next(i for i, combinations in enumerate(left) if len(combinations) == best)
        chosen.append(index)
        met = set(left[index])
        for combinations in left:
            combinations -= met
    return sorted(chosen)


def _combinations(row: Sequence[Hashable], strength: int) -> Iterable[tuple[tuple[int, Hashable], ...]]:
    return itertools.combinations(enumerate(row), min(strength, len(row)))


def mark_slow(items: Sequence[pytest.Item]) -> None:
    """Mark cases as slow by the markers of their tests.

    Of ``covering(strength)``: those that are not needed to cover its parameters. Of ``sampled(count)``: all but one in
    ``count``, which the hash of a case's id chooses, and which stays the same whatever other cases there are; one at least.
    """
    _mark_covered(items)
    sampled: dict[tuple[str, int], list[pytest.Item]] = {}
    for item in items:
        if (marker := item.get_closest_marker("sampled")) is not None:
            sampled.setdefault((item.nodeid.partition("[")[0], *marker.args), []).append(item)
    for (_, count), cases in sampled.items():
        by_hash = {item: zlib.crc32(item.nodeid.encode()) for item in cases}
        least = min(cases, key=lambda item: by_hash[item])
        for item in cases:
            if item is not least and by_hash[item] % count:
                item.add_marker(pytest.mark.slow)


def _mark_covered(items: Sequence[pytest.Item]) -> None:
    cases: dict[tuple[str, int], list[pytest.Function]] = {}
    for item in items:
        marker = item.get_closest_marker("covering")
        if marker is not None and isinstance(item, pytest.Function):
            cases.setdefault((item.nodeid.partition("[")[0], *marker.args), []).append(item)
    for (_, strength), functions in cases.items():
        # The values of a parameter are the same objects in all cases.
        chosen = set(covering([tuple(map(id, one.callspec.params.values())) for one in functions], strength))
        for index, function in enumerate(functions):
            if index not in chosen:
                function.add_marker(pytest.mark.slow)
