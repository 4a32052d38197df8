"""How work is cut into shares for threads."""

from __future__ import annotations

import itertools
import math

import pytest

from irexec.backend.convolution.geometry import split


@pytest.mark.parametrize("threads", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("cost", [1.0, 20_000.0, 200_000.0, math.inf])
def test_every_element_is_in_one_range_and_no_range_is_empty(threads: int, cost: float) -> None:
    for count, size in itertools.product([1, 2, 3, 4, 5, 7, 14, 28, 100], [1, 2, 3, 5, 14, 50, 1000]):
        ranges = split(count, size, threads, cost)
        assert [part.start for part in ranges] == [0, *(part.stop for part in ranges[:-1])]
        assert ranges[-1].stop == count
        assert all(part.start < part.stop for part in ranges)


@pytest.mark.parametrize(
    ("count", "size", "threads", "cost", "lengths"),
    [
        (10, 10, 2, 1e6, [10]),
        (10, 4, 1, math.inf, [3, 3, 4]),
        (10, 4, 2, math.inf, [2, 3, 2, 3]),
        (14, 7, 2, math.inf, [7, 7]),
        (14, 7, 2, 100_000.0, [9, 5]),
        (100, 25, 4, 100_000.0, [44, 18, 19, 19]),
        (4, 1, 4, 1.0, [1, 1, 1, 1]),
        (100, 50, 2, 1.0, [75, 25]),
    ],
)
def test_the_calling_thread_has_the_longer_share_of_little_work(
    count: int, size: int, threads: int, cost: float, lengths: list[int]
) -> None:
    assert [part.stop - part.start for part in split(count, size, threads, cost)] == lengths
