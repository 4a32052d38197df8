"""Checks of graphs with bodies: converted, written, read and run, or refused.

Expected values are computed by hand in NumPy. With ``--oracle`` ONNX Runtime runs the model and OpenVINO the IR too.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
import pytest
from onnx import parser

import converters
import irexec
from irexec import io
from tests.support.onnx_models import outputs_undeclared


class Row(NamedTuple):
    """A graph in ONNX's text, its inputs and its expected outputs.

    ``openvino`` is the reason why OpenVINO cannot run the IR, ``runtime`` why ONNX Runtime cannot run the model.
    """

    name: str
    graph: str
    feeds: dict[str, np.ndarray]
    gives: list[np.ndarray]
    opset: int = 17
    openvino: str = ""
    runtime: str = ""


def f32(*values: object) -> np.ndarray:
    return np.array(values[0] if len(values) == 1 else values, np.float32)


YES, NO = np.array(True), np.array(False)


def model_of(graph: str, opset: int = 17) -> onnx.ModelProto:
    """A model of a graph in ONNX's text."""
    return outputs_undeclared(parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]>\n{graph}'))


def check_gives(row: Row, live: bool) -> None:
    """The converted model is valid and gives the expected outputs, optimized or not; ``live``: also in the other runtimes."""
    model = model_of(row.graph, row.opset)
    converted = converters.convert(model)
    assert [str(finding) for finding in irexec.validate(converted) if finding.severity == "error"] == []
    read = io.read_text(*io.write_text(converted))
    for optimize in (False, True):
        _compare(list(irexec.compile_model(read, optimize=optimize)(row.feeds).values()), row.gives)
    if live:
        _ask_others(row, model, converted)


def check_refused(graph: str, message: str) -> None:
    """The message names the node, and for a node in a body also the nodes that hold it."""
    with pytest.raises(irexec.ConversionError) as caught:
        converters.convert(model_of(graph))
    assert "node 'y' (ai.onnx." in str(caught.value)
    assert message in str(caught.value)


def _compare(results: list[np.ndarray], expected: list[np.ndarray]) -> None:
    assert len(results) == len(expected)
    for result, reference in zip(results, expected, strict=True):
        assert result.shape == reference.shape
        np.testing.assert_allclose(result, reference, rtol=1e-5, atol=1e-6)


def _ask_others(row: Row, model: onnx.ModelProto, converted: irexec.Model) -> None:
    ort, ov = pytest.importorskip("onnxruntime"), pytest.importorskip("openvino")
    if not row.runtime:
        session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        _compare(session.run(None, row.feeds), row.gives)
    if row.openvino:
        return
    with tempfile.TemporaryDirectory() as folder:
        irexec.save_model(converted, Path(folder) / "m.xml")
        core = ov.Core()
        compiled = core.compile_model(
            core.read_model(Path(folder) / "m.xml"), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
        )
        results = compiled([row.feeds[port.any_name] for port in compiled.inputs])
        _compare([results[port] for port in compiled.outputs], row.gives)
