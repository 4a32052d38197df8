"""Variables written as ONNX are inputs and outputs: passed from run to run they are the states of a session."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest

import converters
import irexec
from converters.ir_to_onnx.export import export
from converters.ir_to_onnx.graph_writer import ExportError
from irexec import Builder
from tests.judge_sweep.language import MODELS

onnxruntime = pytest.importorskip("onnxruntime")


def _model(constant: bool) -> irexec.Model:
    """y = x + state, and the state is y afterwards."""
    g = Builder()
    x = g.parameter("f32", [2], "x")
    first = g.constant(np.array([10, 20], np.float32)) if constant else g.emit("Multiply", x, x)
    state = g.emit("ReadValue", first, variable_id="sum", variable_type="f32", variable_shape=(2,))
    y = g.emit("Add", x, state)
    g.emit("Assign", y, variable_id="sum")
    g.result(y, "y")
    return g.model()


def test_states_are_passed() -> None:
    exported = export(_model(constant=True))
    (state,) = exported.states
    assert (state.variable, state.input, state.output) == ("sum", "sum", "sum/next")
    onnx.checker.check_model(exported.proto, full_check=True)
    session = onnxruntime.InferenceSession(exported.proto.SerializeToString())
    x = np.array([1, 2], np.float32)
    y, after = session.run(None, {"x": x})
    np.testing.assert_array_equal(y, [11, 22])
    np.testing.assert_array_equal(session.run(None, {"x": x, "sum": after})[0], [12, 24])


def test_an_initial_value_that_is_computed_is_the_callers() -> None:
    exported = export(_model(constant=False))
    assert "has to be passed" in exported.remarks[0].reason
    session = onnxruntime.InferenceSession(exported.proto.SerializeToString())
    x = np.array([1, 2], np.float32)
    np.testing.assert_array_equal(session.run(["y"], {"x": x, "sum": x * x})[0], [2, 6])
    with pytest.raises(ExportError, match="has to be passed"):
        export(_model(constant=False), strict=True)


def test_a_hybrid_runs_step_by_step(tmp_path: Path) -> None:
    """Gated delta nets are LinearAttention of com.microsoft, whose states pass from run to run as those of attention."""
    model, steps = MODELS["hybrid"](tmp_path)
    proto = converters.to_onnx(model)
    assert Counter(node.op_type for node in proto.graph.node if node.domain) == {"LinearAttention": 2}
    runtime, session = onnxruntime.InferenceSession(proto.SerializeToString()), irexec.compile_model(model)
    names, state = [port.name for port in runtime.get_outputs()], dict[str, np.ndarray]()
    for step in steps:
        given = dict(zip(names, runtime.run(None, step | state), strict=True))
        np.testing.assert_allclose(given["logits"], session(step)[0], rtol=1e-4, atol=1e-5)
        state = {name.removesuffix("/next"): array for name, array in given.items() if name.endswith("/next")}
