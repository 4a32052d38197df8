"""compare: one model in several runtimes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec import Builder, InputError
from irexec.tools.compare import CompareOptions, compare
from tests.support.paths import DIGITS
from tests.tools.compare.models import chain


def test_one_model_needs_two_runtimes() -> None:
    with pytest.raises(InputError, match="nothing to be compared with"):
        compare(chain())
    assert compare(chain(), options=CompareOptions(a_runtime="reference")).agrees


def test_the_sample_in_other_runtimes() -> None:
    pytest.importorskip("openvino")
    pytest.importorskip("onnxruntime")
    xml, onnx = DIGITS / "classifier.xml", DIGITS / "classifier.onnx"
    for options in (
        {"b_runtime": "openvino"}, {"b_runtime": "openvino", "isolate": True}, {"a_runtime": "onnxruntime"}, {"a_runtime": "onnx"},
    ):  # fmt: skip
        a = onnx if str(options.get("a_runtime", "")).startswith("onnx") else xml
        found = compare(a, xml, options=CompareOptions(**options))
        assert found.agrees
        assert len(found.rows) >= 6


STAND_IN = """
import os
__version__ = "1"
class Core:
    def read_model(self, *files):
        os._exit(9)
"""


def test_a_runtime_that_dies_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "openvino.py").write_text(STAND_IN)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(irexec.EngineError, match="the process of openvino ended with exit code 9"):
        compare(chain(), options=CompareOptions(b_runtime="openvino"))


def test_many_layers_take_few_compilations(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openvino")
    from irexec.tools.engines.runtimes.kinds import OpenVINORuntime

    builder = Builder("m")
    y = builder.parameter("f32", (1, 8), "x")
    for i in range(150):
        y = builder.emit(("Sin", "Tanh", "Sigmoid")[i % 3], y, name=f"layer{i}")
    builder.result(y)
    counts: list[int] = []
    run_all = OpenVINORuntime.run_all
    monkeypatch.setattr(
        OpenVINORuntime, "run_all", lambda self, runs, values: counts.append(len(values)) or run_all(self, runs, values)
    )
    found = compare(builder.model(), options=CompareOptions(b_runtime="openvino"))
    assert found.agrees and len(found.rows) == 150
    assert counts == [150, 1]
    assert found.b.startswith("m (openvino 20")
    counts.clear()
    assert len(compare(builder.model(), options=CompareOptions(b_runtime="openvino", isolate=True)).rows) == 150
    assert counts == [150]


def test_a_layer_that_openvino_refuses_is_left_out() -> None:
    pytest.importorskip("openvino")
    builder = Builder("m")
    x = builder.emit("Relu", builder.parameter("f32", (1, 4, 5, 5), "x"), name="good")
    weights = np.ones((1, 4, 3, 3, 3), np.float32)
    sizes = {"strides": (1, 1), "pads_begin": (0, 0), "pads_end": (0, 0), "dilations": (1, 1)}
    y = builder.emit("GroupConvolutionBackpropData", x, weights, name="up", **sizes)
    builder.result(builder.emit("Sigmoid", y, name="after"))
    builder.result(builder.emit("Tanh", x, name="beside"))
    found = compare(builder.model(), options=CompareOptions(b_runtime="openvino"))
    assert {row.b.name for row in found.rows} == {"good", "beside"}
    reasons = {one.name: one.reason for one in found.uncompared}
    assert "could not create a primitive descriptor" in reasons["up"]
    assert reasons["after"] == "it depends on 'up', which openvino does not run"
    assert found.missing_results == ("after",)
