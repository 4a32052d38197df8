"""The runtimes behind one interface give the same tensors, and say what they cannot do; releases in their own processes."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

import irexec
from irexec import (
    Builder,
    EngineError,
    InputError,
    Model,
    ModelError,
    NodeError,
    RunTimeoutError,
    UnsupportedError,
    read_model,
)
from irexec.ir.order import find_value
from irexec.opset import parameter, relu, split
from irexec.tools.compare import CompareOptions, compare
from irexec.tools.engines.inference_engine import VARIABLE, InferenceEngine, environments
from irexec.tools.engines.releases import program
from irexec.tools.engines.releases.program import OpenVINO, layer_outputs, precision_of
from irexec.tools.engines.runtimes import RUNTIMES, Worker, open_runtime
from irexec.tools.reduce.against import check_against
from irexec.tools.reduce.checks import Files
from tests.legacy_sweep.network import Network
from tests.support.paths import ROOT

X = np.array([[1, -2, 3]], np.float32)


def ir() -> Model:
    """Types that NumPy lacks, a value that is read twice, and a result in the middle."""
    builder = Builder("m")
    x = builder.parameter("f32", (1, 3), "x")
    half = builder.emit("Convert", x, destination_type="bf16", name="half")
    twice = builder.emit("Add", half, half, name="twice")
    builder.result(twice)
    back = builder.emit("Relu", builder.emit("Convert", twice, destination_type="f32", name="back"), name="relu")
    builder.result(back)
    return builder.model()


def stateful() -> Model:
    """A sum of all inputs so far."""
    builder = Builder("m")
    x = builder.parameter("f32", (2,), "x")
    start = builder.constant(np.zeros(2, np.float32))
    old = builder.emit("ReadValue", start, variable_id="sum", variable_shape="2", variable_type="f32", name="old")
    new = builder.emit("Add", old, x, name="new")
    builder.emit("Assign", new, variable_id="sum", name="keep")
    builder.result(new)
    return builder.model()


TEXT = """
<ir_version: 8, opset_import: ["": 18]>
g (float[1, 3] x) => (float[1, 3] y) { a = Neg (x)
 b = Relu (a)
 y = Add (a, b) }
"""


@pytest.fixture
def onnx_model(tmp_path: Path) -> Model:
    onnx = pytest.importorskip("onnx")
    path = tmp_path / "m.onnx"
    onnx.save(onnx.parser.parse_model(TEXT), path)
    return read_model(path)


@pytest.mark.parametrize("name", ["irexec", "reference", "openvino"])
def test_any_value(name: str) -> None:
    if name == "openvino":
        pytest.importorskip("openvino")
    model = ir()
    names = ["relu", "half", "twice", "half", "x"]
    with open_runtime(name, model, precision="as-written") as runtime:
        given = runtime.run({"x": X / 3}, [find_value(model, one) for one in names])
    # bf16 has eight bits: 1/3 is 0.333984375. OpenVINO does not round what it computes in f32 between its layers.
    rounding = 2**-8 if name == "openvino" else 0
    half = np.array([[0.333984375, -0.66796875, 1.0]], np.float32)
    for array, expected in zip(given, (np.maximum(2 * half, 0), half, 2 * half, half, X / 3), strict=True):
        assert array.dtype == np.float32
        np.testing.assert_allclose(array, expected, rtol=rounding, atol=0)


@pytest.mark.parametrize("name", ["irexec", "reference", "openvino"])
def test_state_goes_from_run_to_run_and_starts_anew(name: str) -> None:
    if name == "openvino":
        pytest.importorskip("openvino")
    model = stateful()
    values = [find_value(model, "old"), find_value(model, "keep")]
    runs = [{"x": np.array([1, 2], np.float32)}, {"x": np.array([10, 20], np.float32)}]
    with open_runtime(name, model) as runtime:
        for _ in range(2):
            given = runtime.run_all(runs, values)
            assert [[array.tolist() for array in run] for run in given] == [[[0, 0], [1, 2]], [[1, 2], [11, 22]]]


@pytest.mark.parametrize("name", RUNTIMES)
def test_an_onnx_file(name: str, onnx_model: Model) -> None:
    if name in ("openvino", "onnxruntime"):
        pytest.importorskip(name)
    with open_runtime(name, onnx_model) as runtime:
        values = [find_value(onnx_model, one) for one in ("b", "a", "y", "x")]
        assert all(map(runtime.gives, values))
        given = runtime.run({"x": X}, values)
    for array, expected in zip(given, (np.maximum(-X, 0), -X, np.maximum(-X, 0) - X, X), strict=True):
        np.testing.assert_array_equal(array, expected)


def test_weights_of_four_bits_in_onnxruntime_are_computed_in_f32(tmp_path: Path) -> None:
    """Left alone, ONNX Runtime rounds the data of such a product to 8 bits."""
    pytest.importorskip("onnxruntime")
    onnx = pytest.importorskip("onnx")
    rng = np.random.default_rng(0)
    weights, scale = rng.integers(-8, 8, (64, 16)), np.float32(0.1)
    packed = weights.reshape(-1, 2)
    raw = ((packed[:, 0] & 15) | ((packed[:, 1] & 15) << 4)).astype(np.uint8).tobytes()
    w = onnx.helper.make_tensor("w", onnx.TensorProto.INT4, [64, 16], raw, raw=True)
    s = onnx.helper.make_tensor("s", onnx.TensorProto.FLOAT, [4, 16], np.full(64, scale))
    nodes = [
        onnx.helper.make_node("DequantizeLinear", ["w", "s"], ["d"], axis=0, block_size=16),
        onnx.helper.make_node("MatMul", ["x", "d"], ["y"]),
    ]
    x, y = (onnx.helper.make_tensor_value_info(name, 1, [3, size]) for name, size in (("x", 64), ("y", 16)))
    made = onnx.helper.make_model(
        onnx.helper.make_graph(nodes, "g", [x], [y], [w, s]), ir_version=10,
        opset_imports=[onnx.helper.make_opsetid("", 21)],
    )  # fmt: skip
    onnx.save(made, tmp_path / "m.onnx")
    data = rng.standard_normal((3, 64)).astype(np.float32)
    model = read_model(tmp_path / "m.onnx")
    with open_runtime("onnxruntime", model) as runtime:
        found = runtime.run({"x": data}, [find_value(model, "y")])[0]
    np.testing.assert_allclose(found, data @ (weights * scale).astype(np.float32), rtol=1e-5, atol=1e-5)


def test_values_without_a_name_in_the_file_are_not_given(onnx_model: Model) -> None:
    value = find_value(onnx_model, "a")
    value.names = []
    assert not open_runtime("onnx", onnx_model).gives(value)


@pytest.mark.parametrize("name", ["onnxruntime", "onnx"])
def test_an_ir_is_not_an_onnx_file(name: str) -> None:
    pytest.importorskip(name)
    with pytest.raises(InputError, match=f"{name} runs .onnx files only, and the model is an IR"):
        open_runtime(name, ir())


def test_unknown_and_absent_runtimes(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="there is no runtime 'tensorrt', expected one of irexec, "):
        open_runtime("tensorrt", ir())
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(
        UnsupportedError, match=r"needs the package openvino \(pip install openvino\), which is not installed"
    ):
        open_runtime("openvino", ir())


def _refused() -> Model:
    """A model that OpenVINO's plugin refuses: a transposed convolution of one group."""
    builder = Builder("m")
    x = builder.parameter("f32", (1, 4, 5, 5), "x")
    weights = np.ones((1, 4, 3, 3, 3), np.float32)
    sizes = {"strides": (1, 1), "pads_begin": (0, 0), "pads_end": (0, 0), "dilations": (1, 1)}
    builder.result(
        builder.emit("Relu", builder.emit("GroupConvolutionBackpropData", x, weights, name="up", **sizes), name="relu")
    )
    return builder.model()


def test_a_model_that_openvino_refuses_and_then_another_one() -> None:
    pytest.importorskip("openvino")
    model, good = _refused(), ir()
    with Worker("openvino") as worker:
        with pytest.raises(
            EngineError, match="openvino cannot run m: could not create a primitive descriptor"
        ) as caught:
            open_runtime("openvino", model, worker=worker).run(
                {"x": np.ones((1, 4, 5, 5), np.float32)}, [find_value(model, "relu")]
            )
        assert (caught.value.engine, caught.value.exit_code) == ("openvino", None)
        runtime = open_runtime("openvino", good, worker=worker)
        assert runtime.run({"x": X}, [find_value(good, "relu")])[0].tolist() == [[2, 0, 6]]
        assert runtime.version


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_of_a_layer_is_reported(threads: int) -> None:
    """With one thread, infer of OpenVINO 2025.2 to 2026.4 gives memory that was never written, and no error."""
    pytest.importorskip("openvino")
    builder = Builder("m")
    offsets = builder.parameter("i32", [2], "offsets")
    bags = builder.emit("EmbeddingBagOffsetsSum", np.ones((5, 2), np.float32), np.int32([0, 1]), offsets, np.int32(0))
    builder.result(bags)
    with open_runtime("openvino", builder.model(), threads=threads) as runtime:
        assert runtime.run({"offsets": np.int32([0, 1])}, [bags])[0].tolist() == [[1, 1], [1, 1]]
        with pytest.raises(EngineError, match="Offset value exceeds indices size"):
            runtime.run({"offsets": np.int32([0, 7])}, [bags])


STAND_IN = """
import os, time
__version__ = "1"
class Core:
    def read_model(self, *files):
        os._exit(9) if "DIES" in os.environ else time.sleep(60)
"""


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("variable", "timeout", "error", "message"),
    [
        # Long enough to be started on a busy machine.
        ("DIES", 300, EngineError, "the process of openvino ended with exit code 9"),
        # Longer than a clock counts.
        ("DIES", 1e300, EngineError, "the process of openvino ended with exit code 9"),
        ("HANGS", 2, RunTimeoutError, "openvino took longer than 2 s"),
    ],
)
def test_a_runtime_that_dies_or_hangs(
    variable: str, timeout: float, error: type[Exception], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "openvino.py").write_text(STAND_IN)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv(variable, "1")
    model = ir()
    with open_runtime("openvino", model, timeout=timeout) as runtime:
        for _ in range(2):
            with pytest.raises(error, match=message):
                runtime.run({"x": X}, [find_value(model, "relu")])


def test_a_layer_that_cannot_be_run_matters_only_to_what_depends_on_it() -> None:
    builder = Builder("m")
    x = builder.parameter("f32", (1, 3), "x")
    builder.result(
        builder.emit("Reshape", builder.emit("Relu", x, name="good"), np.array([1, 3]), special_zero=False, name="bad")
    )
    model = builder.model()
    next(node for node in model.nodes if node.name == "bad").attributes["special_zero"] = "perhaps"
    with open_runtime("irexec", model) as runtime:
        assert runtime.run({"x": X}, [find_value(model, "good")])[0].tolist() == [[1, 0, 3]]
        with pytest.raises(NodeError, match="'bad'"):
            runtime.run({"x": X}, [find_value(model, "bad")])


@pytest.mark.parametrize(
    ("name", "precision"), [("openvino", "f32"), ("onnxruntime", "f32"), ("onnx", "as-written"), ("reference", "f32")]
)
def test_irexec_computes_as_the_other_runtime(name: str, precision: str) -> None:
    assert CompareOptions(b_runtime=name).own_precision == precision
    assert CompareOptions(a_runtime=name).own_precision == precision
    assert CompareOptions(b_runtime=name, precision="as-written").own_precision == "as-written"


def _in_f16() -> Model:
    builder = Builder("m")
    x = builder.parameter("f16", (3,), "x")
    large = builder.constant(np.float16(1000), "f16")
    builder.result(builder.emit("Subtract", builder.emit("Add", x, large, name="sum"), large, name="y"))
    return builder.model()


@pytest.mark.slow
def test_beside_openvino_f16_is_computed_in_f32() -> None:
    pytest.importorskip("openvino")
    inputs = {"x": np.float16([1 / 3, 0.1, 2])}
    found = compare(_in_f16(), None, inputs, CompareOptions(b_runtime="openvino"))
    assert found.agrees
    assert (
        "irexec computes f16 and bf16 in f32, as OpenVINO does; --precision as-written rounds every result"
        in found.notes
    )
    found = compare(_in_f16(), None, inputs, CompareOptions(b_runtime="openvino", precision="as-written"))
    assert not found.agrees and not any("f16" in note for note in found.notes)
    assert check_against("openvino").command(Files("m.xml", None))[-1] == "openvino"
    assert (
        check_against("openvino", precision="as-written").command(Files("m.xml", None))[-1] == "--precision=as-written"
    )


# A runtime as a command: irexec itself, called as the module irexec.tools.engines.runtimes.kinds says.
RUNNER = """
import sys
import numpy as np
import irexec
compiled = irexec.compile_model(sys.argv[1])
with np.load(sys.argv[2]) as inputs:
    given = compiled(dict(inputs))
np.savez(sys.argv[3], *given.values())
"""


def command(tmp_path: Path, text: str) -> str:
    (tmp_path / "runner.py").write_text(text)
    return f"command:{shlex.quote(sys.executable)} {shlex.quote(str(tmp_path / 'runner.py'))}"


@pytest.mark.slow
def test_a_command_gives_any_value(tmp_path: Path) -> None:
    model = ir()
    with open_runtime(command(tmp_path, RUNNER), model) as runtime:
        given = runtime.run({"x": X}, [find_value(model, name) for name in ("relu", "half", "x")])
    for array, expected in zip(given, ([[2, 0, 6]], X, X), strict=True):
        np.testing.assert_array_equal(array, np.array(expected, np.float32))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("print('no such layer'); raise SystemExit(3)", "ended with exit code 3: no such layer"),
        ("", "wrote no outputs"),
        ("import sys, numpy; numpy.savez(sys.argv[3])", "gives 0 of 1 tensor"),
    ],
)
def test_a_command_that_fails(tmp_path: Path, text: str, message: str) -> None:
    model = ir()
    with open_runtime(command(tmp_path, text), model) as runtime, pytest.raises(EngineError, match=message):
        runtime.run({"x": X}, [find_value(model, "relu")])


def test_a_damaged_file_is_named_and_not_the_one_that_the_runtime_would_get(tmp_path: Path) -> None:
    damaged = ROOT / "samples" / "digits" / "damaged.xml"
    with pytest.raises(ModelError, match=r"damaged\.xml, line 353: an edge .* \(and 1 more, see validate\)"):
        open_runtime(command(tmp_path, RUNNER), damaged)


@pytest.mark.parametrize("name", ["openvin", "openvino:", "command:", "onnx:CPU"])
def test_names_that_are_not_runtimes(name: str) -> None:
    with pytest.raises(InputError, match="there is no runtime"):
        open_runtime(name, ir())


@pytest.mark.slow
def test_a_device_and_properties() -> None:
    pytest.importorskip("openvino")
    model = ir()
    with open_runtime("openvino:CPU", model, properties={"INFERENCE_PRECISION_HINT": "f32"}) as runtime:
        given = runtime.run({"x": X}, [find_value(model, "relu")])
        assert runtime.precision == "f32"
    np.testing.assert_array_equal(given[0], np.array([[2, 0, 6]], np.float32))
    with pytest.raises(InputError, match="has no properties"):
        open_runtime("irexec", model, properties={"A": "B"})
    with open_runtime("openvino:NONE", model) as runtime, pytest.raises(EngineError):
        runtime.run({"x": X}, [find_value(model, "relu")])


# The program that a release runs.


def test_releases_before_2022_name_outputs_by_layers_and_ports(tmp_path: Path) -> None:
    # The names that IECore of 2021.4.2 gives for this file: network.outputs.
    x = parameter((4, 2), "f32", "x")
    first, second = split(x, 0, num_splits=2, name="halves")
    path = tmp_path / "m.xml"
    irexec.save_model(irexec.Model([second, relu(first, name="positive")], [x]), path)
    assert layer_outputs(str(path)) == ["halves.1", "positive"]


def test_a_precision_that_the_release_cannot_return() -> None:
    """2022.1 takes the hint, and fails to return it."""

    class Compiled:
        def get_property(self, name: str) -> object:
            raise TypeError(f"Unable to convert {name}")

    assert precision_of(Compiled(), {"INFERENCE_PRECISION_HINT": "f32"}) == "f32"


class _Request:
    """A request that does not read scalars, as that of 2023.3 with NumPy 2, and which gives its inputs."""

    def __init__(self) -> None:
        self.tensors = [SimpleNamespace(data=np.zeros(shape, np.float32), shape=shape) for shape in ((), (2,))]

    def start_async(self, given: dict[int, np.ndarray]) -> None:
        for index, array in given.items():
            self.tensors[index].data[...] = array if array.ndim else np.nan

    def get_input_tensor(self, index: int) -> SimpleNamespace:
        return self.tensors[index]

    get_output_tensor = get_input_tensor

    def wait(self) -> None:
        """The run is complete."""


def test_scalars_are_written_into_the_tensors_of_a_request() -> None:
    run = object.__new__(OpenVINO)
    run.index, run.request, run.count = {"scalar": 0, "pair": 1}, _Request(), 2
    for number in (3.0, -1.0):
        scalar, pair = run({"scalar": np.array(number, np.float32), "pair": np.array([1, number], np.float32)})
        assert scalar == number
        assert pair.tolist() == [1, number]


class _Core:
    """A Core whose plugin looks for LP_TRANSFORMS_MODE among its own properties alone, as that of 2022.3."""

    seen: ClassVar[list[tuple[dict[str, str], dict[str, str]]]] = []

    def __init__(self) -> None:
        self.properties: dict[str, str] = {}

    def get_versions(self, device: str) -> None:
        """Load the plugin."""

    def set_property(self, device: str, properties: dict[str, str]) -> None:
        if "LACKED" in properties:
            raise RuntimeError("no such property")
        self.properties.update(properties)

    def read_model(self, path: str) -> SimpleNamespace:
        return SimpleNamespace(inputs=[])

    def compile_model(self, model: object, device: str, properties: dict[str, str]) -> SimpleNamespace:
        self.seen.append((dict(self.properties), dict(properties)))
        return SimpleNamespace(create_infer_request=lambda: None, outputs=[], get_property=lambda name: [])


def test_a_release_is_told_twice_not_to_compute_in_8_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "openvino", lambda: (SimpleNamespace(Core=_Core), "2022.3"))
    preferred = {"LP_TRANSFORMS_MODE": "NO", "LACKED": "1"}
    OpenVINO({"model": "m.xml", "device": "CPU", "preferred": preferred, "options": {}, "threads": None})
    of_plugin, of_model = _Core.seen[-1]
    assert of_plugin == {"LP_TRANSFORMS_MODE": "NO"}
    assert of_model == {**of_plugin, "PERFORMANCE_HINT": "LATENCY"}


# Inference Engine of 2020 in its process; it runs where it is installed.


def _environment(folder: Path) -> Path:
    """A virtual environment of this Python, with a library that cannot be loaded."""
    libraries = folder / "2020.4/lib/python3.7/site-packages/cv2"
    libraries.mkdir(parents=True)
    (libraries / "libinference_engine_c_api.so").write_bytes(b"no library")
    python = folder / "2020.4/bin/python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    return folder / "2020.4"


def test_environments_are_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = _environment(tmp_path)
    (tmp_path / "2020.1").mkdir()
    assert environments(str(tmp_path)) == {"2020.4": environment}
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    assert environments() == {"2020.4": environment}
    monkeypatch.delenv(VARIABLE)
    assert environments() == {}


def test_no_library(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="opencv-python-inference-engine"):
        InferenceEngine("2020.4", tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="the script is one of a shell")
def test_the_process_ends(tmp_path: Path) -> None:
    (tmp_path / "a.xml").touch()
    with (
        InferenceEngine("2020.4", _environment(tmp_path)) as engine,
        pytest.raises(EngineError, match=r"the process of Inference Engine 2020\.4 ended"),
    ):
        engine.run(tmp_path / "a.xml", tmp_path / "a.xml", [{}])


@pytest.mark.skipif(not environments(), reason="Inference Engine is not installed")
@pytest.mark.parametrize("release", ["2020.1", "2020.4"])
def test_a_network(release: str, tmp_path: Path) -> None:
    net = Network(5, np.random.default_rng(0))
    x = net.input(np.array([[1, 2, 3]], np.float32), name="x")
    net.layer("Power", [x], [(1, 3)], {"power": 2, "scale": 2, "shift": 1}, name="y")
    (tmp_path / "a.xml").write_text(net.xml())
    (tmp_path / "a.bin").touch()
    with InferenceEngine(release, environments()[release]) as engine:
        (found,) = engine.run(tmp_path / "a.xml", tmp_path / "a.bin", net.feeds)
        np.testing.assert_array_equal(found["y"], [[9, 25, 49]])
        with pytest.raises(EngineError, match="it refuses to read the network"):
            engine.run(tmp_path / "a.bin", tmp_path / "a.bin", [{}])
