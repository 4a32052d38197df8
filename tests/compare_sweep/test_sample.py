"""A few of the changes of tests.compare_sweep, so that the sweep itself keeps working."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.compare_sweep import ir
from tests.compare_sweep.ir import Network
from tests.compare_sweep.truth import differ


@pytest.mark.sampled(4)
@pytest.mark.parametrize("renamed", [False, True])
@pytest.mark.parametrize("name", ["resnet18", "scripted_loop", "gru_tagger"])
@pytest.mark.covering(1)
def test_ir(name: str, renamed: bool, tmp_path: Path) -> None:
    network = Network.kept(name, tmp_path)
    outcomes = [ir.trial(network, np.random.default_rng(seed), renamed) for seed in range(2)]
    assert [one.text for one in outcomes] == ["", ""]


@pytest.mark.parametrize(("name", "number"), [("renamed", 1), ("folded", 1), ("onnx", 7067), ("planted", 7003)])
def test_graphs(name: str, number: int) -> None:
    """The first three agree; a condition of ONNX has no axis where that of the graph has one."""
    pytest.importorskip("onnx")
    from tests.compare_sweep import graphs

    found = graphs.outcome_of(name, number)
    assert found.kind == ("the layer itself" if name == "planted" else "agrees"), found.text


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["depthwise", "loop"])
def test_onnx(name: str, tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    from tests.compare_sweep import onnx

    network = onnx.OnnxNetwork.built(name, tmp_path)
    outcomes = [onnx.trial(network, np.random.default_rng(seed)) for seed in range(2)]
    assert [one.text for one in outcomes] == ["", ""]


@pytest.mark.slow
def test_openvino() -> None:
    pytest.importorskip("openvino")
    from tests.compare_sweep import openvino

    for name in openvino.MIDDLES:
        assert openvino.traced(name) in ("", openvino.LAYER), name
    assert openvino.traced("inverse_error_function", isolate=True) == openvino.LAYER


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (np.ones(3, np.float32), np.ones(3, np.float32), False),
        (np.ones(3, np.float32), np.full(3, 1.01, np.float32), True),
        (np.ones(3, np.float32), np.full(3, 1 + 1e-5, np.float32), False),
        (np.ones(3), np.ones(4), True),
        (np.array([np.nan]), np.array([np.nan]), False),
        (np.array([np.nan]), np.array([1.0]), True),
        (np.array([1]), np.array([2]), True),
    ],
)
def test_what_differs(a: np.ndarray, b: np.ndarray, expected: bool) -> None:
    assert differ(a, b) is expected
