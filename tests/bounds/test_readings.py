"""Readings of known differences: each contains what OpenVINO gives, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from irexec.analysis.portability import DIFFERENCES
from irexec.bounds import ARITHMETICS, Interval
from irexec.bounds.readings import READINGS
from irexec.conformance.running import case_bounds
from irexec.testing import Case, case


def test_readings_are_of_rows_of_the_portability_table() -> None:
    assert READINGS.keys() <= DIFFERENCES.keys()
    assert {"fails"}.isdisjoint(DIFFERENCES[code].effect for code in READINGS)


# By code: a layer, the value of OpenVINO's CPU plugin by the text of its row, and a value that the row does not explain.
_ROWS: tuple[tuple[str, Case, list, list], ...] = (
    ("IR911", case("Divide", 1, np.int32([-3, 5]), np.int32([2, 2]), id="a", m_pythondiv=True), [-1, 2], [0, 2]),
    ("IR912", case("Less", 1, np.float32([[1, 4], [2, 3]]), np.float32([0, 3.5]), id="a", auto_broadcast="pdpd"),
     [[False, False], [False, True]], [[True, True], [True, True]]),
    ("IR913", case("ReduceSum", 1, np.uint8([200, 100]), np.int64(0), id="a", keep_dims=False), 255, 254),
    ("IR939", case("FakeQuantize", 1, np.float32([0.01]), *(np.float32(end) for end in (-2.9, 2.6, -2.9, 2.6)), id="a",
                   levels=256), [0.0117651], [0.0118]),
    ("IR946", case("LRN", 1, np.float32([[[1]], [[2]]]).reshape(1, 2, 1, 1), np.int64([1]), id="a", alpha=2.0, beta=1.0,
                   bias=1.5, size=1), [[[[1 / 3]], [[2 / 9]]]], [[[[0.5]], [[0.3]]]]),
    ("IR969", case("Range", 1, np.int32(5), np.int32(8), np.int32(-1), id="a"), [5, 4, 3], [5, 4, 2]),
)  # fmt: skip


@pytest.mark.parametrize(("code", "row", "theirs", "wrong"), _ROWS, ids=lambda one: one if isinstance(one, str) else "")
def test_a_reading_has_the_size_of_its_difference(code: str, row: Case, theirs: list, wrong: list) -> None:
    (right,) = case_bounds(row, ARITHMETICS["f32"])
    (read,) = case_bounds(row, ARITHMETICS["f32"], [code])
    assert isinstance(read, Interval)
    assert not read.outside(np.array(theirs, read.exact.dtype)).any()
    assert read.outside(np.array(wrong, read.exact.dtype)).any()
    if code != "IR939" and isinstance(right, Interval) and right.exact.shape == read.exact.shape:
        assert right.outside(np.array(theirs, right.exact.dtype)).any()
