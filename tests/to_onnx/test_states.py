"""Variables written as ONNX are inputs and outputs: passed from run to run they are the states of a session."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import irexec
from converters.ir_to_onnx.export import export
from converters.ir_to_onnx.graph_writer import ExportError
from irexec import Builder

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
