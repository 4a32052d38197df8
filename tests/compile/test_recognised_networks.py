"""How much is recognised in the recorded networks; tests/test_networks.py compares their results with OpenVINO's."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irexec
from tests.support.networks import difference, feeds, unpacked
from tests.support.passes import optimized


@pytest.mark.parametrize(
    ("network", "count"), [("llama_sdpa", 5), ("gemma2", 9), ("qwen3", 9), ("t5", 12), ("mamba", 3)]
)
def test_root_mean_squares(network: str, count: int, tmp_path: Path) -> None:
    _, rewriting = optimized(irexec.read_model(unpacked(network, tmp_path)), ["recognise normalizations"])
    assert rewriting.report.applied == {"recognise normalizations": count}


@pytest.mark.parametrize("mode", ["packed", "unpacked"])
@pytest.mark.parametrize(("network", "count"), [("llama_int4_asym", 16), ("llama_int8_sym", 16), ("bert_int8", 16)])
def test_compressed_weights(
    network: str, count: int, mode: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recorded networks are small: all of their weights are kept compressed here."""
    monkeypatch.setattr(sys.modules["irexec.compile.passes.recognise_compressed_weights"], "SMALLEST", 1)
    path = unpacked(network, tmp_path)
    model = irexec.read_model(path)
    _, rewriting = optimized(model, ["recognise compressed weights"])
    assert rewriting.report.applied == {"recognise compressed weights": count}
    compiled = irexec.compile_model(model, weights=mode, precision="as-written")
    answers = np.load(path.with_suffix(".npz"))
    for i, inputs in enumerate(feeds(path, compiled.inputs)):
        for j, array in enumerate(compiled(inputs).values()):
            assert difference(array, answers[f"{i}.{j}"]) < 2e-5
