"""Partial knowledge of the inputs of a row: what shape inference may know of them before a run."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np

from irexec.ir.dims import ANY, Dim
from irexec.ir.facts import Fact
from irexec.testing.rows import Case

_PLAIN_LEVELS = 6
_MOST_BOUNDED = 64
"""Values of more elements are not bounded."""


def exact_facts(row: Case) -> list[Fact]:
    """Element type, shape and value of each input."""
    return [Fact(x.element, x.array.shape, x.array) for x in row.inputs]


def partial_facts(row: Case) -> Iterator[list[Fact]]:
    """Every combination of what may be known of up to three inputs; of more, every combination for each two of them."""
    exact = exact_facts(row)
    levels = [_levels(fact) for fact in exact]
    if len(exact) <= 3:
        yield from map(list, itertools.product(*levels))
        return
    for level in range(_PLAIN_LEVELS):
        yield [options[level] for options in levels]
    for (i, j), base in itertools.product(itertools.combinations(range(len(exact)), 2), (0, 3)):
        for first, second in itertools.product(levels[i], levels[j]):
            yield [first if k == i else second if k == j else options[base] for k, options in enumerate(levels)]


def bounded_facts(row: Case) -> Iterator[list[Fact]]:
    """Combinations of exact inputs and of inputs whose integers are known by their bounds."""
    options = [[fact, *_bounded(fact)] for fact in exact_facts(row)]
    yield from map(list, itertools.islice(itertools.product(*options), 125))


def _levels(fact: Fact) -> list[Fact]:
    """The exact fact, then less and less down to nothing, then the fact with bounds of its elements."""
    shape = tuple(fact.shape or ())
    sizes = [int(size) for size in shape if isinstance(size, int)]
    plain = [
        fact,
        Fact(fact.element, shape),
        Fact(fact.element, tuple(Dim(max(size - 1, 0), size + 2) for size in sizes)),
        Fact(fact.element, (ANY,) * len(sizes)),
        Fact(fact.element, None),
        Fact(None, None),
    ]
    assert len(plain) == _PLAIN_LEVELS
    return plain + _bounded(fact)


def _bounded(fact: Fact) -> list[Fact]:
    """The fact with integers known only by their bounds: all of them closed or open, or every second one."""
    value = fact.value
    if fact.element is None or not fact.element.is_integer or value is None or not 0 < value.size <= _MOST_BOUNDED:
        return []
    ways: list[Callable[[int, int], int | Dim]] = [
        lambda index, number: _around(number),
        lambda index, number: Dim(_around(number).lo),
        lambda index, number: number if index % 2 else _around(number),
        lambda index, number: _around(number) if index % 2 else number,
    ]
    found = []
    for way in ways[: 2 if value.size == 1 else None]:
        numbers = np.empty(value.size, object)
        numbers[:] = [way(index, number) for index, number in enumerate(value.ravel().tolist())]
        found.append(Fact(fact.element, fact.shape, numbers.reshape(value.shape)))
    return found


def _around(number: int) -> Dim:
    """An interval around a number; it does not reach below zero for a positive one, which may be a size."""
    return Dim(number - 1 if number > 0 else number, number + 2)
