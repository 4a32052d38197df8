"""Whole networks, the suites in files of the onnx wheel, and the worked examples of the seed documents."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import converters
import irexec
from converters.onnx.translate import unsupported_nodes
from irexec import io
from tests.data.seeds import CONV, CONV_TRANSPOSE, Example, upsampling_model
from tests.support.equality import differences
from tests.support.tiers import some

_FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
_NETWORKS = sorted(path.stem for path in _FOLDER.glob("light_*.onnx"))
_DEFAULT = ("light_resnet50", "light_shufflenet")


# Its 1000 equal scores are 9.5e9, where adjacent f32 values differ by 1024: the CPU plugin rounds some of them up, and
# its Softmax gives 0 for the others. The scores themselves are compared.
_ILL_CONDITIONED = {"light_squeezenet"}


def test_there_are_nine() -> None:
    assert len(_NETWORKS) == 9


@pytest.fixture(scope="module", params=some(_NETWORKS, _DEFAULT))
def network(request: pytest.FixtureRequest) -> tuple[str, irexec.Model]:
    return request.param, converters.convert(_FOLDER / f"{request.param}.onnx")


def _input(model: irexec.Model) -> dict[str, np.ndarray]:
    """The inputs with which the package's expected outputs were made: 0, 1, 2, ... over the number of elements."""
    port = model.inputs[0]
    shape = tuple(int(size) for size in port.shape or () if isinstance(size, int))
    count = int(np.prod(shape))
    return {port.name: (np.arange(count, dtype=np.float32).reshape(shape) / np.float32(count)).astype(np.float32)}


def _expected(name: str) -> np.ndarray:
    tensor = onnx.TensorProto.FromString((_FOLDER / f"{name}_output_0.pb").read_bytes())
    return numpy_helper.to_array(tensor)


def test_validates_clean(network: tuple[str, irexec.Model]) -> None:
    assert [str(finding) for finding in irexec.validate(network[1])] == []


def test_gives_what_the_package_says(network: tuple[str, irexec.Model], tmp_path: Path) -> None:
    name, model = network
    irexec.save_model(model, tmp_path / "m.xml")
    read = irexec.read_model(tmp_path / "m.xml")
    assert differences(model, read) == []
    result = irexec.compile_model(read)(_input(read))
    np.testing.assert_allclose(result[0], _expected(name), rtol=1e-3, atol=1e-7)


def test_openvino_loads_it_and_agrees(network: tuple[str, irexec.Model], tmp_path: Path, live: bool) -> None:
    ov = pytest.importorskip("openvino") if live else None
    if ov is None:
        return
    name, model = network
    irexec.save_model(model, tmp_path / "m.xml")
    core, options = ov.Core(), {"INFERENCE_PRECISION_HINT": "f32"}
    theirs = core.read_model(tmp_path / "m.xml")
    inputs = _input(model)
    if name not in _ILL_CONDITIONED:
        result = core.compile_model(theirs, "CPU", options)(list(inputs.values()))[0]
        np.testing.assert_allclose(irexec.compile_model(model)(inputs)[0], result, rtol=1e-3, atol=1e-7)
    scores = [node.input_value(0) for node in theirs.get_ordered_ops() if node.get_type_name() == "Softmax"]
    if not scores:
        return
    before = next(node.inputs[0] for node in model.nodes if node.type == "Softmax")
    cut = ov.Model([scores[0]], theirs.get_parameters(), "cut")
    result = core.compile_model(cut, "CPU", options)(list(inputs.values()))[0]
    assert before is not None
    np.testing.assert_allclose(irexec.compile_model(model).values(inputs, [before])[0], result, rtol=1e-3)


# The test suites in files of the onnx wheel: models of PyTorch's operators and layers, and simple ones.


_DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"
_MODELS = sorted(
    path
    for suite in ("pytorch-operator", "pytorch-converted", "simple")
    for path in (_DATA / suite).glob("*/model.onnx")
)
# IR has no training.
_NOT_IN_IR = ("test_gradient",)


def _load(path: Path) -> np.ndarray:
    return numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes()))


def _numbered(folder: Path, kind: str) -> list[np.ndarray]:
    return [_load(path) for path in sorted(folder.glob(f"{kind}_*.pb"), key=lambda path: int(path.stem.split("_")[1]))]


@pytest.mark.parametrize("path", _MODELS, ids=lambda path: f"{path.parent.parent.name}/{path.parent.name}")
def test_suite(path: Path) -> None:
    if path.parent.name.startswith(_NOT_IN_IR):
        assert unsupported_nodes(path)
        return
    read = io.read_text(*io.write_text(converters.convert(path)))
    assert [finding for finding in irexec.validate(read) if finding.severity == "error"] == []
    compiled = irexec.compile_model(read)
    for folder in sorted(path.parent.glob("test_data_set_*")):
        results = compiled(_numbered(folder, "input"))
        for result, expected in zip(results.values(), _numbered(folder, "output"), strict=True):
            if expected.dtype == object:
                assert (result.shape, result.tolist()) == (expected.shape, expected.astype(str).tolist())
                continue
            np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-6)


# The worked examples of the seed documents, converted, written, read and run; also as channels-last operators of ONNX
# Runtime.


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
