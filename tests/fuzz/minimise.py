"""Delta debugging: the smallest case that a budget of runs finds, which still has the same finding."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import chain, islice

from tests.fuzz.case import Case, write_case


def minimise(
    case: Case,
    still: Callable[[Case], bool],
    smaller: Callable[[Case], Iterator[Case]],
    runs: int = 400,
    seconds: float = 60,
) -> tuple[Case, int]:
    """A smaller case for which ``still`` holds, and how many were tried.

    After a success the search goes on where it was, since what did not help before it seldom helps now; it ends when a whole round
    has found nothing.
    """
    tried = {write_case(case)}
    used, position, end = 0, 0, time.monotonic() + seconds
    while True:
        for step, candidate in _from(smaller, case, position):
            text = write_case(candidate)
            if text in tried:
                continue
            if used >= runs or time.monotonic() > end:
                return case, used
            tried.add(text)
            used += 1
            if still(candidate):
                case, position = candidate, step
                break
        else:
            return case, used


def _from(smaller: Callable[[Case], Iterator[Case]], case: Case, position: int) -> Iterator[tuple[int, Case]]:
    """The smaller cases with their positions, from one position on and then those before it."""
    later = enumerate(islice(smaller(case), position, None), position)
    return chain(later, enumerate(islice(smaller(case), position)))
