"""Networks of several quantised layers: values beside f64, and the same bits on any number of threads."""

from __future__ import annotations

import pytest

from irexec.native.library import library
from tests.integer_sweep.networks import check
from tests.support.tiers import some

pytestmark = pytest.mark.skipif(library() is None, reason="the C library is not built")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", some(range(60), range(0, 60, 3)))
def test_random_networks(seed: int) -> None:
    assert check(seed, 1) == check(seed, 2 + seed % 3)
