"""A long way: IR version 5 -> 11 -> ONNX -> 11 -> 10, with the values of Inference Engine 2020 at each end."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec.cli.main import run
from tests.legacy_sweep.case import made, write
from tests.legacy_sweep.record import answer

pytest.importorskip("onnx")
NETWORKS = {"tagger": "back", "detector": "new"}
"""The networks, and the IR that is written as version 10: boxes that come back from ONNX have sizes that are not known,
which no release with version 10 as its newest runs."""


def _run(*words: object) -> None:
    assert run([str(word) for word in words]) == 0


def _same(found: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray]) -> None:
    assert {str(name) for name in found} == set(expected)
    for name, array in found.items():
        np.testing.assert_allclose(array, expected[str(name)], rtol=1e-4, atol=1e-5)


def _in_openvino(path: Path, inputs: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray]) -> None:
    openvino = pytest.importorskip("openvino")
    model = openvino.Core().read_model(path)
    given = [inputs[port.get_node().get_friendly_name()] for port in model.inputs]
    request = openvino.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"}).create_infer_request()
    found = list(request.infer(given).values())
    assert len(found) == len(expected)
    for array, right in zip(found, expected.values(), strict=True):
        np.testing.assert_allclose(array, right, rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="module", params=NETWORKS)
def tour(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict, dict]:
    """The folder of all files, the inputs, and the outputs of Inference Engine in the order of the model's."""
    folder = tmp_path_factory.mktemp("tour")
    net = made(request.param, 5, 0)
    write(net, folder)
    recorded = answer(request.param, 5, 0)
    _run("upgrade", folder / "old.xml", "-o", folder / "new.xml")
    _run("convert", folder / "new.xml", "-o", folder / "new.onnx")
    _run("convert", folder / "new.onnx", "-o", folder / "back.xml")
    _run("convert", folder / f"{NETWORKS[request.param]}.xml", "-o", folder / "v10.xml", "--for", "2021.4")
    names = [port.name for port in irexec.read_model(folder / "old.xml").outputs]
    return folder, net.feeds[0], {name: recorded[name] for name in names}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("name", "version"), [("old", 11), ("new", 11), ("back", 11), ("v10", 10)])
def test_each_ir_gives_the_values(tour: tuple[Path, dict, dict], name: str, version: int) -> None:
    folder, inputs, expected = tour
    model = irexec.read_model(folder / f"{name}.xml")
    assert model.version == version
    assert [issue for issue in irexec.validate(model) if issue.severity == "error"] == []
    _same(irexec.infer(model, inputs), expected)


@pytest.mark.parametrize("name", ["new", "back", "v10"])
def test_openvino_gives_the_values(tour: tuple[Path, dict, dict], name: str) -> None:
    folder, inputs, expected = tour
    _in_openvino(folder / f"{name}.xml", inputs, expected)


def test_onnx_runtime_gives_the_values(tour: tuple[Path, dict, dict]) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    folder, inputs, expected = tour
    session = onnxruntime.InferenceSession(folder / "new.onnx", providers=["CPUExecutionProvider"])
    outputs = [output.name for output in session.get_outputs()]
    _same(dict(zip(outputs, session.run(None, inputs), strict=True)), expected)
