"""Programs for OpenVINO's Python that run with irexec in its place."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

import irexec
from tests.support.paths import DIGITS


def _answers(library: ModuleType) -> list[np.ndarray]:
    """The outputs of a program that uses names of both libraries."""
    core = library.Core()
    model = core.read_model(str(DIGITS / "classifier.xml"))
    compiled = core.compile_model(model, "CPU")
    name = model.input("image").any_name
    image = np.random.default_rng(0).random((1, 1, 8, 8), np.float32)
    assert [port.any_name for port in model.outputs] == [model.output(0).any_name] == ["probabilities"]
    assert "CPU" in core.available_devices
    request = compiled.create_infer_request()
    return [compiled([image])[0], request.infer({name: image})["probabilities"], compiled({0: image})[0]]


def test_a_program_for_openvino() -> None:
    openvino = pytest.importorskip("openvino")
    # OpenVINO computes in bf16 where the processor does.
    for ours, theirs in zip(_answers(irexec), _answers(openvino), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0.1, atol=0.01)


def test_there_is_no_other_device() -> None:
    with pytest.raises(irexec.InputError, match=r"^there is no device 'GPU': irexec runs models on the CPU$"):
        irexec.Core().compile_model(DIGITS / "classifier.xml", "GPU")
