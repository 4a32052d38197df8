"""The work of the long runs is done right; that nothing grows is measured by the command."""

from __future__ import annotations

import sys

import pytest

from tests.benchmarks.long_running import THREADS, WORK, state

FEW = {
    "runs": 20,
    "compilations": 2,
    "files": 3,
    "shapes": 20,
    "threads": 4 * THREADS,
    "sessions": 4 * THREADS,
    "forks": 2,
    "exits": 2,
}


@pytest.mark.skipif(sys.platform != "linux", reason="fork and /proc")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("name", WORK)
def test_a_little_of_it(name: str) -> None:
    work = WORK[name][0]()
    work(FEW[name])
    before = state()
    work(FEW[name])
    after = state()
    assert after[1] <= before[1], "open files"
    assert after[2] <= before[2], "threads"
