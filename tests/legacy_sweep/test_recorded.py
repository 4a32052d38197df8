"""A sample of the sweep of old IR against recorded answers of Inference Engine, and live where it is installed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from irexec.tools.engines.inference_engine import InferenceEngine, environments
from tests.legacy_sweep.case import difference, differences, made, own, run
from tests.legacy_sweep.record import key, recorded

ANSWERS = recorded()


def test_enough_is_recorded() -> None:
    assert len(ANSWERS) > 150


@pytest.mark.sampled(4)
@pytest.mark.parametrize("case", sorted(ANSWERS))
def test_recorded(case: str, tmp_path: Path) -> None:
    name, version, seed, _ = case.split("|")
    net = made(name, int(version), int(seed))
    assert key(name, int(version), int(seed), net) == case, "run python -m tests.legacy_sweep.record"
    assert differences(net, ANSWERS[case], own(net, tmp_path)) == []


@pytest.mark.skipif(not environments(), reason="Inference Engine is not installed")
@pytest.mark.parametrize("release", ["2020.1", "2020.4"])
def test_live(release: str, tmp_path: Path) -> None:
    with InferenceEngine(release, environments()[release]) as engine:
        for name in ("Convolution", "Gather", "LSTMCell"):
            outcome = run(name, 6, 0, {release: engine}, tmp_path)
            assert (outcome.ran, outcome.faults) == ([release], [])


def test_a_difference_is_found() -> None:
    right = np.array([1.0, np.nan, 100.0], np.float32)
    assert difference(right, right.copy(), 1e-4, 1e-5) == ""
    assert "shape" in difference(right, right[:2], 1e-4, 1e-5)
    assert "1 of 3 elements differ, at (1,)" in difference(right, np.array([1.0, 0.0, 100.0], np.float32), 1e-4, 1e-5)
    assert "at (0,) 1.1" in difference(right, np.array([1.1, np.nan, 100.0], np.float32), 1e-4, 1e-5)
