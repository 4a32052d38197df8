"""Attention by blocks, against the reference kernel."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from irexec.backend import attention
from irexec.ops.attention import scaled_dot_product_attention_13 as reference


@pytest.mark.parametrize("cached", [1, 100, 300, 1 << 20])
@pytest.mark.parametrize(("rows", "columns"), [(7, 5), (5, 9), (1, 4)])
@pytest.mark.parametrize("causal", [False, True])
def test_blocks_give_what_the_whole_gives(monkeypatch: pytest.MonkeyPatch, cached: int, rows: int, columns: int, causal: bool) -> None:
    monkeypatch.setattr(attention, "_CACHED", cached)
    rng = np.random.default_rng(0)
    query, key, value = (rng.standard_normal((2, 3, *sizes), np.float32) for sizes in ((rows, 4), (columns, 4), (columns, 6)))
    kept = rng.random((2, 3, rows, columns)) < 0.7
    added = rng.standard_normal(kept.shape, np.float32)
    added[0, 0] = -np.inf
    for mask, sink in product((None, kept, added), (None, rng.standard_normal((2, 3, rows, 1), np.float32))):
        with np.errstate(invalid="ignore"):  # a row that keeps nothing is NaN
            found = attention.attend(query, key, value, np.float32(0.5), mask, sink, causal)
            expected = reference(query, key, value, mask, np.float32(0.5), sink, causal=causal)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
