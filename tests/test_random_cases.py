"""Every operation that OpenVINO knows has random cases for tests/oracle/sweep.py and irexec conform, and they are sound."""

from __future__ import annotations

import numpy as np
import pytest

from irexec.errors import OpError
from irexec.schema.registry import definitions
from irexec.testing.laws import infer, kernel, read_only
from irexec.testing.random_cases import EXEMPT, random_cases
from irexec.testing.rows import exact_facts


def test_every_operation_is_drawn() -> None:
    known = {(d.type, d.since) for d in definitions() if isinstance(d.since, int)}
    assert known - random_cases().keys() - EXEMPT.keys() == set()
    assert not random_cases().keys() & EXEMPT.keys()


@pytest.mark.parametrize("pair", sorted(random_cases()), ids=lambda pair: f"{pair[0]}-{pair[1]}")
def test_draws_are_sound(pair: tuple[str, int]) -> None:
    """They are of that very operation, the same for the same seed, and most of them can be computed."""
    computed = 0
    for seed in range(5):
        row, again = (random_cases()[pair](np.random.default_rng(seed)) for _ in range(2))
        assert (row.type, row.since, row.digest) == (*pair, again.digest)
        assert row.definition.since == pair[1]
        try:
            infer(row, exact_facts(row))
            kernel(row, read_only(row))
            computed += 1
        except OpError:
            pass
    assert computed >= 3
