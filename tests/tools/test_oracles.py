"""ONNX Runtime and the evaluator of onnx run the user's file: a fault of reading it is seen, whatever it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irexec
from irexec import Model
from irexec.errors import EngineError
from irexec.ir.order import find_value
from irexec.tools.compare import CompareOptions, compare
from irexec.tools.engines.runtimes import open_runtime
from irexec.tools.verify import verify

onnx = pytest.importorskip("onnx")
X = np.array([[-1, 2, -3], [4, -5, 6]], np.float32)
BY_HAND = np.where(X > 0, -X * np.float32(0.3), -X) * 2


@pytest.fixture(params=["onnxruntime", "onnx"])
def oracle(request: pytest.FixtureRequest) -> str:
    pytest.importorskip(request.param)
    return str(request.param)


@pytest.fixture
def file(tmp_path: Path, oracle: str) -> Path:
    """A function with an attribute: a LeakyRelu of -x with 0.3, and its double."""
    from onnx import AttributeProto, helper

    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("loc", 1)]
    leaky = helper.make_node("LeakyRelu", ["minus"], ["leaky"])
    if oracle == "onnx":
        # Its evaluator knows no default values of functions.
        leaky.attribute.append(helper.make_attribute("alpha", 0.3))
    else:
        leaky.attribute.append(AttributeProto(name="alpha", type=AttributeProto.FLOAT, ref_attr_name="slope"))
    nodes = [helper.make_node("Neg", ["x"], ["minus"]), leaky, helper.make_node("Identity", ["leaky"], ["y"])]
    default = [] if oracle == "onnx" else [helper.make_attribute("slope", 0.3)]
    function = helper.make_function("loc", "Leak", ["x"], ["y"], nodes, opsets[:1], [], default)
    calls = [helper.make_node("Leak", ["a"], ["b"], domain="loc"), helper.make_node("Add", ["b", "b"], ["c"])]
    a, c = (helper.make_tensor_value_info(name, 1, [2, 3]) for name in "ac")
    graph = helper.make_graph(calls, "g", [a], [c])
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, functions=[function], ir_version=9), path)
    return path


def plant(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of our reading: functions are inlined with another slope."""
    from converters.onnx import load

    right = load.inlined

    def wrong(model: Any, where: str) -> Any:
        made = right(model, where)
        for node in made.graph.node:
            for attribute in node.attribute:
                if attribute.name == "alpha":
                    attribute.f = 0.01
        return made

    monkeypatch.setattr(load, "inlined", wrong)


def verified(model: Model, oracle: str) -> bool:
    return verify(model, runtime=oracle, seed=0, rtol=1e-4, atol=1e-5).agrees


def test_a_right_conversion_agrees(file: Path, oracle: str) -> None:
    model = irexec.read_model(file)
    with open_runtime(oracle, model) as runtime:
        np.testing.assert_allclose(runtime.run({"a": X}, [find_value(model, "c")])[0], BY_HAND, rtol=1e-6)
    found = compare(file, None, {"a": X}, CompareOptions(a_runtime=oracle))
    assert found.agrees and len(found.rows) > 2


def test_a_fault_of_reading_is_seen(file: Path, oracle: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    model = irexec.read_model(file)
    assert not verified(model, oracle)
    found = compare(file, None, {"a": X}, CompareOptions(a_runtime=oracle))
    assert not found.agrees
    assert found.first is not None and found.first.row.b.type == "PRelu"
    reasons = {one.reason for one in found.uncompared}
    assert any("with its functions inlined, output 'c' is another one" in reason for reason in reasons)


def test_tensors_of_functions_are_not_believed_unless_the_copy_agrees(
    file: Path, oracle: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for is_planted in (False, True):
        if is_planted:
            plant(monkeypatch)
        model = irexec.read_model(file)
        value = next(value for node in model.nodes for value in node.outputs if node.type == "Negative")
        with open_runtime(oracle, model) as runtime:
            assert runtime.gives(value)
            if is_planted:
                with pytest.raises(EngineError, match="tensors of their bodies are not observed"):
                    runtime.run({"a": X}, [value])
                assert not runtime.gives(value)
            else:
                np.testing.assert_allclose(runtime.run({"a": X}, [value])[0], -X, rtol=1e-6)


def test_a_lost_output_is_a_difference(file: Path, oracle: str) -> None:
    model = irexec.read_model(file)
    for node in model.nodes:
        for value in node.outputs:
            value.names = [name for name in value.names if name != "c"]
    assert not verified(model, oracle)
