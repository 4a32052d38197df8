"""Rows normalized by blocks, against the reference kernels."""

from __future__ import annotations

import numpy as np
import pytest

from irexec.backend import normalization as fast
from irexec.ops.normalization import group_normalization_12, mvn_6


@pytest.mark.parametrize("cached", [1, 200, 1 << 20])
@pytest.mark.parametrize("mode", ["inside_sqrt", "outside_sqrt"])
def test_blocks_of_rows_give_what_the_whole_gives(monkeypatch: pytest.MonkeyPatch, cached: int, mode: str) -> None:
    monkeypatch.setattr(fast, "_CACHED", cached)
    data = np.random.default_rng(0).normal(3, 2, (7, 11)).astype(np.float32)
    expected = mvn_6(data, np.array([1]), normalize_variance=True, eps=1e-3, eps_mode=mode)
    np.testing.assert_allclose(fast.normalize_rows(data, 1e-3, mode == "inside_sqrt"), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("cached", [1, 200, 1 << 20])
def test_blocks_of_groups_give_what_the_whole_gives(monkeypatch: pytest.MonkeyPatch, cached: int) -> None:
    monkeypatch.setattr(fast, "_CACHED", cached)
    rng = np.random.default_rng(0)
    data = rng.normal(3, 2, (1, 6, 5)).astype(np.float32)
    scale, bias = rng.standard_normal((2, 6), np.float32)
    expected = group_normalization_12(data, scale, bias, num_groups=3, epsilon=1e-3)
    found = fast.normalize_groups(data.reshape(3, 2, 5), scale.reshape(3, 2), bias.reshape(3, 2), 1e-3)
    np.testing.assert_allclose(found.reshape(data.shape), expected, rtol=1e-5, atol=1e-6)
