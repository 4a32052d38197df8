"""Integers beyond what an operation allows: it answers within its facts, or refuses with a sentence, and never trips."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterator

import pytest

from irexec.errors import OpError
from irexec.testing import Case, Typed
from irexec.testing.laws import infer, kernel, read_only
from irexec.testing.rows import exact_facts
from tests.support.cases import families

_MAX_CHANGES = 3


def _changed(row: Case, index: int, number: int) -> Case | None:
    """The row with the last number of an input replaced; None if the input's type does not have the number."""
    array = row.inputs[index].array.copy()
    try:
        array.flat[array.size - 1] = number
    except (OverflowError, ValueError):
        return None
    inputs = tuple(Typed(x.element, array) if i == index else x for i, x in enumerate(row.inputs))
    return dataclasses.replace(row, inputs=inputs, gives=None, name=f"{row.name}, input {index} with {number}")


def _rows() -> Iterator[Case]:
    """A few rows of each operation for each input of integers."""
    taken: Counter[tuple[str, int | str, int, int]] = Counter()
    for row in itertools.chain(*families().values()):
        if not isinstance(row, Case):
            continue
        for index, number in itertools.product(range(len(row.inputs)), (99, -99, -1, 0)):
            x = row.inputs[index]
            key = (row.type, row.since, index, number)
            changed = (
                _changed(row, index, number)
                if x.element.is_integer and x.array.size and taken[key] < _MAX_CHANGES
                else None
            )
            if changed is not None:
                taken[key] += 1
                yield changed


_ROWS: dict[str, list[Case]] = {}
for _row in _rows():
    _ROWS.setdefault(_row.type, []).append(_row)


@pytest.mark.parametrize("type", sorted(_ROWS))
def test_answers_or_refuses(type: str) -> None:
    for row in _ROWS[type]:
        try:
            facts = infer(row, exact_facts(row))
            results = kernel(row, read_only(row))
        except OpError:
            continue
        for fact, result in zip(facts, results, strict=True):
            assert fact.admits(result), f"{row.id}: {fact} does not admit {result.dtype} {result.shape}"
