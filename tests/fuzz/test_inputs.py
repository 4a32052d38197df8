"""A few odd inputs of every kind in every run of the tests; ``python -m tests.fuzz --target inputs`` goes through all of them."""

from __future__ import annotations

from tests.fuzz.pool import Pool
from tests.fuzz.worker import Job, Settings

_CASES = 250


def test_odd_inputs_end_in_a_result_or_in_a_sentence() -> None:
    with Pool(1, Settings()) as pool:
        results = [pool.one(Job("inputs", seed=1, number=number)) for number in range(_CASES)]
    assert {number: list(map(str, result.findings)) for number, result in enumerate(results) if result.findings} == {}
