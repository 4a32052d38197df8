"""The worked examples of the seed documents, converted, written, read and run; also as channels-last operators of ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import converters
import irexec
from irexec import io
from tests.data.seeds import CONV, CONV_TRANSPOSE, Example, upsampling_model

EXAMPLES = [*CONV, *CONV_TRANSPOSE]


def _model(example: Example, *, nhwc: bool, **more: object) -> onnx.ModelProto:
    domain = "com.ms.internal.nhwc" if nhwc else ""
    node = helper.make_node(example.operator, ["x", "w"], ["y"], "node", domain=domain, **example.attributes, **more)
    shape = list(example.x.shape)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [shape[0], *shape[2:], shape[1]] if nhwc else shape)
    w = helper.make_tensor("w", TensorProto.FLOAT, example.w.shape, np.array(example.w.numbers, np.float32))
    graph = helper.make_graph(
        [node], "example", [x], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], [w]
    )
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 11), helper.make_opsetid("com.ms.internal.nhwc", 1)]
    )


def _run(model: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    converted = converters.convert(model)
    assert irexec.validate(converted) == []
    read = io.read_text(*io.write_text(converted))
    reference, fast = (irexec.compile_model(read, optimize=optimize)([x])[0] for optimize in (False, True))
    np.testing.assert_allclose(fast, reference, rtol=1e-5)
    return reference


def _last(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.moveaxis(array, 1, -1))


@pytest.mark.parametrize("example", EXAMPLES, ids=[example.name for example in EXAMPLES])
def test_from_onnx(example: Example) -> None:
    np.testing.assert_array_equal(_run(_model(example, nhwc=False), example.x.array()), example.y.array())


@pytest.mark.parametrize("example", EXAMPLES, ids=[example.name for example in EXAMPLES])
def test_channels_last(example: Example) -> None:
    np.testing.assert_array_equal(_run(_model(example, nhwc=True), _last(example.x.array())), _last(example.y.array()))


ACTIVATIONS = {
    "Relu": ([], lambda y: np.maximum(y, 0)),
    "Tanh": ([], np.tanh),
    "Sigmoid": ([], lambda y: 1 / (1 + np.exp(-y))),
    "Silu": ([], lambda y: y / (1 + np.exp(-y))),
    "LeakyRelu": ([0.1], lambda y: np.where(y < 0, 0.1 * y, y)),
    "Clip": ([10.0, 20.0], lambda y: np.clip(y, 10, 20)),
    "HardSigmoid": ([0.1, 0.2], lambda y: np.clip(0.1 * y + 0.2, 0, 1)),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("example", [CONV[0], CONV_TRANSPOSE[0]], ids=["Conv", "ConvTranspose"])
def test_fused_activations(example: Example, name: str) -> None:
    parameters, function = ACTIVATIONS[name]
    more = {"activation": name} | ({"activation_params": parameters} if parameters else {})
    y = _run(_model(example, nhwc=True, **more), _last(example.x.array()))
    np.testing.assert_allclose(y, _last(function(example.y.array().astype(np.float64))), rtol=1e-5)


@pytest.mark.parametrize(("name", "parameters"), [("Clip", [1.0]), ("Relu", [1.0]), ("Softmax", []), ("LeakyRelu", [])])
def test_wrong_activations_are_refused(name: str, parameters: list[float]) -> None:
    more = {"activation": name} | ({"activation_params": parameters} if parameters else {})
    with pytest.raises(irexec.ConversionError, match=f"activation '?{name}"):
        converters.convert(_model(CONV[0], nhwc=True, **more))


def test_the_upsampling_layer_validates_clean() -> None:
    """The layer of the OpenVINO document, 20 channels to 8, 224 to 447."""
    model = io.read_text(upsampling_model())
    assert irexec.validate(model) == []
    compiled = irexec.compile_model(model)
    inputs = [
        np.zeros([int(size) for size in port.shape or () if isinstance(size, int)], np.float32)
        for port in compiled.inputs
    ]
    assert compiled(inputs)[0].shape[-2:] == (447, 447)
