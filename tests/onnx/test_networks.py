"""Nine published networks of the onnx package: converted, validated, written, read and run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import converters
import irexec
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
