"""How work is cut into shares."""

from __future__ import annotations

import itertools

import pytest

from irexec.backend.convolution.geometry import split


@pytest.mark.parametrize("multiple", [1, 2, 3, 4, 7])
def test_every_element_is_in_one_range_and_no_range_is_empty(multiple: int) -> None:
    for count, size in itertools.product([1, 2, 3, 4, 5, 7, 14, 28, 100], [1, 2, 3, 5, 14, 50, 1000]):
        ranges = split(count, size, multiple)
        assert [part.start for part in ranges] == [0, *(part.stop for part in ranges[:-1])]
        assert ranges[-1].stop == count
        assert all(part.start < part.stop for part in ranges)


@pytest.mark.parametrize(
    ("count", "size", "multiple", "lengths"),
    [
        (10, 10, 2, [10]),
        (10, 4, 1, [3, 3, 4]),
        (10, 4, 2, [2, 3, 2, 3]),
        (14, 7, 2, [7, 7]),
        (4, 1, 4, [1, 1, 1, 1]),
    ],
)
def test_shares_are_about_equal(count: int, size: int, multiple: int, lengths: list[int]) -> None:
    assert [part.stop - part.start for part in split(count, size, multiple)] == lengths
