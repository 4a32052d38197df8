"""Bisection and delta debugging: what they return, and how often they ask."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irexec.tools.reduce.minimize import ddmin, shortest_prefix, shortest_suffix

Part = tuple[int, ...]


class Counted:
    """A predicate that keeps what it was asked."""

    def __init__(self, fails: Callable[[Part], bool]) -> None:
        self.fails, self.asked = fails, list[Part]()

    def __call__(self, part: Part) -> bool:
        self.asked.append(part)
        return self.fails(part)


culprits = st.integers(1, 60).flatmap(
    lambda n: st.tuples(st.just(n), st.sets(st.integers(0, n - 1), min_size=1, max_size=5))
)


@given(culprits)
def test_ddmin_finds_exactly_the_items_that_are_needed(case: tuple[int, set[int]]) -> None:
    n, needed = case
    fails = Counted(lambda part: needed <= set(part))
    assert ddmin(range(n), fails) == tuple(sorted(needed))
    assert len(fails.asked) <= n * n + 3 * n


@given(st.integers(1, 4000), st.data())
def test_one_item_takes_a_logarithm_of_tests(n: int, data: st.DataObject) -> None:
    needed = data.draw(st.integers(0, n - 1))
    fails = Counted(lambda part: needed in part)
    assert ddmin(range(n), fails) == (needed,)
    assert len(fails.asked) <= 2 * math.ceil(math.log2(n)) + 2


@given(st.integers(1, 24), st.randoms(use_true_random=False), st.floats(0, 1))
def test_of_any_predicate_the_part_fails_and_nothing_can_be_left_out(n: int, random: object, share: float) -> None:
    answers: dict[Part, bool] = {tuple(range(n)): True, (): False}
    fails = Counted(lambda part: answers.setdefault(part, random.random() < share))
    found = ddmin(range(n), fails)
    assert answers[found]
    if len(found) > 1:
        assert not any(answers[found[:i] + found[i + 1 :]] for i in range(len(found)))
    assert len(fails.asked) <= n * n + 3 * n
    assert all(list(part) == sorted(part) and part for part in fails.asked)


@given(st.integers(1, 3000), st.data())
def test_bisection_finds_where_a_monotone_predicate_changes(n: int, data: st.DataObject) -> None:
    last = data.draw(st.integers(0, n - 1))
    fails = Counted(lambda part: last in part)
    assert shortest_prefix(range(n), fails) == tuple(range(last + 1))
    assert len(fails.asked) <= math.ceil(math.log2(n)) + 1
    assert shortest_suffix(range(n), fails) == tuple(range(last, n))


@given(st.integers(1, 200), st.randoms(use_true_random=False))
def test_bisection_gives_what_fails_for_any_predicate(n: int, random: object) -> None:
    answers: dict[Part, bool] = {tuple(range(n)): True}
    for bisect in (shortest_prefix, shortest_suffix):
        assert answers[bisect(range(n), lambda part: answers.setdefault(part, random.random() < 0.5))]


@pytest.mark.parametrize("items", [(), (3,)])
def test_nothing_to_leave_out_is_not_tested(items: Part) -> None:
    fails = Counted(lambda part: True)
    assert ddmin(items, fails) == items
    assert not fails.asked
