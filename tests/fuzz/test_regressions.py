"""What the fuzzer has found, and what was mended: each of the cases ends as it should."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fuzz.case import read_case
from tests.fuzz.pool import Pool
from tests.fuzz.worker import Job, Settings

_CASES = sorted((Path(__file__).parent / "regressions").glob("*.case"))


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(1, Settings()) as found:
        yield found


@pytest.mark.parametrize("path", _CASES, ids=lambda path: path.stem)
def test_nothing_is_found_any_more(path: Path, pool: Pool) -> None:
    case = read_case(path.read_text("utf-8"))
    assert pool.one(Job(case.target, case=case)).findings == ()
