"""The cases of the corpus: random ones of every version of every operation, each with a seed of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from irexec.errors import InputError
from irexec.testing import Case
from irexec.testing.random_cases import random_cases, seeded

Pair = tuple[str, int]


def chosen(patterns: Sequence[str]) -> list[Pair]:
    """The operations whose type, or type and version as in "Softmax-8", match one of the patterns; all without any.

    Raises:
        InputError: a pattern matches no operation.
    """
    pairs = sorted(random_cases())
    for pattern in patterns:
        if not any(_matches(pair, pattern) for pair in pairs):
            raise InputError(f"no operation matches {pattern!r}; irexec ops lists all operations")
    return [pair for pair in pairs if not patterns or any(_matches(pair, pattern) for pattern in patterns)]


def _matches(pair: Pair, pattern: str) -> bool:
    type, since = pair
    return fnmatchcase(type, pattern) or fnmatchcase(f"{type}-{since}", pattern)


def cases(pairs: Sequence[Pair], seed: int, count: int) -> Iterator[Case]:
    """``count`` cases of each operation, with the seeds from ``seed`` on. The name of a case is its seed."""
    table = random_cases()
    for type, since in pairs:
        for number in range(seed, seed + count):
            yield replace(table[type, since](seeded(type, since, number)), name=str(number))
