"""Small ONNX models from text, for the tests of the converter."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper, parser

import converters
import irexec


def model_of(graph: str, opset: int = 20, /, **constants: np.ndarray) -> onnx.ModelProto:
    """A model of ``(inputs) => (outputs) { nodes }`` in ONNX's own text, with initializers by name; see ``outputs_undeclared``."""
    domains = '"com.microsoft" : 1, "com.ms.internal.nhwc" : 1'
    model = parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}, {domains}]> tested {graph}')
    model.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in constants.items())
    return outputs_undeclared(model)


def outputs_undeclared(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model; an output without sizes, "float y" in ONNX's text, is one of unknown rank here, not a scalar."""
    for output in model.graph.output:
        tensor = output.type.tensor_type
        if tensor.HasField("shape") and not tensor.shape.dim:
            tensor.ClearField("shape")
    return model


def run(model: onnx.ModelProto, *inputs: Any) -> list[np.ndarray]:
    """The outputs of the model, converted and run."""
    converted = converters.convert(model)
    assert [str(finding) for finding in irexec.validate(converted) if finding.severity == "error"] == []
    results = irexec.compile_model(converted)([np.asarray(value) for value in inputs])
    return [results[i] for i in range(len(model.graph.output))]
