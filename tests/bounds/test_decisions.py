"""Bounds of operations that choose: either side of an edge where the input is within its bound of it, else one."""

from __future__ import annotations

import numpy as np
import pytest

from irexec.bounds import ARITHMETICS, Interval, Unbounded
from irexec.testing import Case, case
from tests.bounds.rows import row_bounds


def _intervals(row: Case, name: str = "f32") -> tuple[Interval, ...]:
    found = row_bounds(row, ARITHMETICS[name])
    assert all(isinstance(one, Interval) for one in found), found
    return found  # type: ignore[return-value]


def _topk(x: list[float], k: int, name: str = "f32", **attributes: object) -> tuple[Interval, ...]:
    given = {"axis": 0, "mode": "max", "sort": "value", **attributes}
    return _intervals(case("TopK", 11, np.float32(x), np.int64(k), id="a", **given), name)


def test_equal_elements_have_either_index() -> None:
    values, indices = _topk([1, 5, 5, 0], 2)
    assert not values.outside(np.float32([5, 5])).any()
    assert values.outside(np.float32([5, 1])).tolist() == [False, True]
    for given in ([1, 2], [2, 1]):
        assert not indices.outside(np.int32(given)).any()
    for wrong in ([1, 1], [1, 0], [1, 4], [-1, 2]):
        assert indices.outside(np.int32(wrong)).any()


def test_a_stable_order_has_one_answer() -> None:
    indices = _topk([1, 5, 5, 0], 2, stable=True)[1]
    assert indices.outside(np.int32([2, 1])).all()


def test_elements_that_f16_cannot_tell_apart_have_either_index() -> None:
    x = [1.0, 1.0001, 3.0]
    assert _topk(x, 2)[1].outside(np.int32([2, 0])).tolist() == [False, True]
    assert not _topk(x, 2, "f16")[1].outside(np.int32([2, 0])).any()


def test_without_an_order_any_is_right() -> None:
    values, indices = _topk([1, 5, 7, 0], 2, sort="none")
    assert not values.outside(np.float32([5, 7])).any()
    assert not indices.outside(np.int32([1, 2])).any()
    assert values.outside(np.float32([5, 1])).any()
    assert indices.outside(np.int32([1, 0])).any()


def test_in_the_order_of_the_indices_equal_elements_may_change_the_values() -> None:
    values, indices = _topk([5, 7, 5, 0], 2, sort="index")
    for given, index in (([5, 7], [0, 1]), ([7, 5], [1, 2])):
        assert not values.outside(np.float32(given)).any()
        assert not indices.outside(np.int32(index)).any()
    assert indices.outside(np.int32([1, 0])).any()
    settled = _topk([5, 7, 4, 0], 2, sort="index")
    assert settled[0].outside(np.float32([7, 5])).all()


def test_equal_elements_of_a_window_have_either_index() -> None:
    row = case("MaxPool", 8, np.float32([[[3, 3, 1, 2]]]), id="a", kernel=[2], strides=[2], pads_begin=[0],
               pads_end=[0], dilations=[1], rounding_type="floor", auto_pad="explicit", axis=2)  # fmt: skip
    indices = _intervals(row)[1]
    assert not indices.outside(np.int64([[[1, 3]]])).any()
    assert indices.outside(np.int64([[[2, 2]]])).tolist() == [[[True, True]]]


def test_a_mean_of_integers_is_rounded_either_way() -> None:
    row = case("AvgPool", 1, np.int32([[[3, 4]]]), id="a", kernel=[2], strides=[2], pads_begin=[0], pads_end=[0],
               rounding_type="floor", auto_pad="explicit", **{"exclude-pad": True})  # fmt: skip
    (found,) = _intervals(row)
    assert [bool(found.outside(np.int32([[[n]]])).any()) for n in (2, 3, 4, 5)] == [True, False, False, True]


def test_a_boundary_that_f16_reaches_counts_or_does_not() -> None:
    row = case("Bucketize", 3, np.float32([1.0001, 3]), np.float32([1, 2]), id="a")
    assert _intervals(row)[0].outside(np.int64([0, 2])).tolist() == [True, False]
    assert not _intervals(row, "f16")[0].outside(np.int64([0, 2])).any()


def test_a_range_may_add_its_step() -> None:
    row = case("Range", 4, np.float32(0), np.float32(0.95), np.float32(0.1), id="a", output_type="f32")
    (found,) = _intervals(row)
    added = np.cumsum(np.full(10, 0.1, np.float32)) - np.float32(0.1)
    assert not found.outside(added).any()
    assert found.outside(added + np.float32(1e-5)).all()
    edge = case("Range", 4, np.float32(0), np.float32(0.9), np.float32(0.1), id="b", output_type="f32")
    assert isinstance(row_bounds(edge, ARITHMETICS["f32"])[0], Unbounded)


@pytest.mark.parametrize(("values", "is_known"), [([0, 1, -2], True), ([0, 1e-40, 2], False)])
def test_indices_of_what_is_not_zero(values: list[float], is_known: bool) -> None:
    (found,) = row_bounds(case("NonZero", 3, np.float32(values), id="a"), ARITHMETICS["f32"])
    assert isinstance(found, Interval) is is_known
