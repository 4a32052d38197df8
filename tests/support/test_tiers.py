"""What the markers of tests leave to the tier ``slow``."""

from __future__ import annotations

import pytest

from tests.support.tiers import covering, some

pytest_plugins = ("pytester",)


def test_pairs_are_covered() -> None:
    rows = [(a, b, c) for a in "ab" for b in "cd" for c in "ef"]
    chosen = [rows[i] for i in covering(rows, 2)]
    assert len(chosen) < len(rows)
    for left, right in ((0, 1), (0, 2), (1, 2)):
        assert {(row[left], row[right]) for row in chosen} == {(row[left], row[right]) for row in rows}


def test_only_what_exists_can_be_in_the_default_tier() -> None:
    assert [value for value in some("abc", ("b",)) if isinstance(value, str)] == ["b"]
    with pytest.raises(ValueError, match="not among"):
        some("abc", ("d",))


def test_a_sample_is_a_part_and_one_at_least(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        "from tests.support.tiers import mark_slow\ndef pytest_collection_modifyitems(items):\n    mark_slow(items)\n"
    )
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.sampled(4)
        @pytest.mark.parametrize("number", range(40))
        def test_many(number): pass

        @pytest.mark.sampled(1000)
        @pytest.mark.parametrize("number", range(3))
        def test_few(number): pass

        def test_other(): pass
        """
    )
    found = pytester.runpytest("-m", "not slow", "-p", "no:xdist").parseoutcomes()
    assert found["passed"] + found["deselected"] == 44
    assert 4 <= found["passed"] - 2 <= 18
    again = pytester.runpytest("-m", "not slow", "-p", "no:xdist", "-k", "many").parseoutcomes()
    assert again["passed"] == found["passed"] - 2
