"""Smaller lists, bytes and JSON values: what targets make smaller cases of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

from tests.fuzz.case import Case

T = TypeVar("T", str, bytes, list[Any])


def parts(items: T, minimum: int = 0) -> Iterator[T]:
    """The sequence without some of its items that follow each other: half of them first, single ones last."""
    count, size = len(items), max(1, len(items) // 2)
    while count > minimum:
        for start in range(0, count, size):
            rest = items[:start] + items[start + size :]
            if len(rest) >= minimum:
                yield rest
        if size == 1:
            return
        size = (size + 1) // 2


def smaller_bytes(data: bytes) -> Iterator[bytes]:
    """Bytes without some of them; then with some of them 0."""
    yield from parts(data)
    size = max(1, len(data) // 2)
    while data and size:
        for start in range(0, len(data), size):
            zeroed = data[:start] + bytes(len(data[start : start + size])) + data[start + size :]
            if zeroed != data:
                yield zeroed
        size //= 2


def smaller_value(value: Any) -> Iterator[Any]:
    """JSON values that are simpler: shorter, or closer to 0."""
    if isinstance(value, bool):
        if value:
            yield False
    elif isinstance(value, int | float):
        yield from _smaller_number(value)
    elif isinstance(value, str):
        yield from parts(value)
    elif isinstance(value, list):
        yield from parts(value)
        for i, item in enumerate(value):
            yield from ([*value[:i], other, *value[i + 1 :]] for other in smaller_value(item))
    elif isinstance(value, dict):
        for key in value:
            yield {name: item for name, item in value.items() if name != key}
        for key, item in value.items():
            yield from ({**value, key: other} for other in smaller_value(item))


def _smaller_number(value: float) -> Iterator[float]:
    for other in (0, 1, 2, -1):
        if abs(other) < abs(value) or value != value:
            yield type(value)(other)
    if isinstance(value, int) and abs(value) > 4:
        yield value // 2


def smaller_files(
    case: Case, by_name: Callable[[str, bytes], Iterator[bytes]] = lambda name, data: smaller_bytes(data)
) -> Iterator[Case]:
    """The case without one of its files, then with one that is smaller."""
    for name in case.files:
        yield replace(case, files={other: data for other, data in case.files.items() if other != name})
    for name, data in case.files.items():
        for less in by_name(name, data):
            yield replace(case, files={**case.files, name: less})


def smaller_arguments(case: Case) -> Iterator[Case]:
    """The case with simpler arguments; each of them stays."""
    for name, value in case.arguments.items():
        for other in smaller_value(value):
            yield case.replaced(**{name: other})
