"""One network by two exporters: ONNX by torch's, IR by OpenVINO's converter, with random weights.

- gelubn: GELU, BatchNorm, a 1x1 convolution; one exporter writes GELU as a formula, the other folds a scale.
- group: GroupNorm, InstanceNorm, Hardswish, PReLU, PixelShuffle.
- tcn: dilated convolutions of one axis, a gate of tanh and sigmoid.
- effnet: SiLU and squeeze-and-excitation; both use the tensor name "x", for different tensors.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec.analysis.builder import packed
from irexec.ir.constants import constant_value
from irexec.tools.compare import CompareOptions, compare
from irexec.tools.compare.pairing import fingerprint
from tests.support.paths import DATA

pytest.importorskip("onnx")
_FOLDER = DATA / "exporters"
_NETWORKS = ("gelubn", "group", "tcn", "effnet")


def _paths(name: str) -> tuple[Path, Path]:
    return _FOLDER / f"{name}.onnx", _FOLDER / f"{name}.xml"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", _NETWORKS)
@pytest.mark.parametrize("seed", [0, 1])
def test_correct_pairs_agree(name: str, seed: int) -> None:
    found = compare(*_paths(name), options=CompareOptions(seed=seed, threads=1))
    assert found.agrees
    assert found.first is None
    assert found.verdict.startswith("the models agree")


def test_a_changed_weight_is_still_found() -> None:
    """The second convolution of the gate: nothing after it may hide it."""
    onnx, xml = _paths("tcn")
    model = irexec.read_model(xml)
    convolutions = [node for node in model.nodes if node.type == "Convolution"]
    source = convolutions[1].inputs[1]
    assert source is not None
    assert source.node.constant is not None
    weights = constant_value(source.node.constant).copy()
    weights[0] += 0.5
    source.node.constant = packed(weights, source.node.constant.element)
    found = compare(onnx, model, options=CompareOptions(threads=1))
    assert not found.agrees
    assert found.verdict == ""
    assert found.first is not None
    layers = [found.first.suspect.layer.name, *(suspect.layer.name for suspect in found.first.between)]
    assert convolutions[1].name in layers
    assert len(layers) <= 5


def test_fingerprints_know_the_order_of_values_but_not_their_axes() -> None:
    values = np.random.default_rng(0).uniform(-1, 1, (4, 5)).astype(np.float32)
    same, other = fingerprint([values.reshape(1, 4, 1, 5)]), fingerprint([values.T])
    own = fingerprint([values])
    assert own is not None and same is not None and other is not None
    assert (own.kind, own.sums, own.moments) == (same.kind, same.sums, same.moments)
    assert own.sums != other.sums
    np.testing.assert_allclose(own.moments, other.moments, rtol=1e-6)
    assert fingerprint([np.zeros((4, 5), np.float32)]) is None
    assert fingerprint([np.arange(4)]) is None
