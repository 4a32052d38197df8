"""FakeQuantize in place of QuantizeLinear and DequantizeLinear: values beside ONNX Runtime, and OpenVINO in 8 bits."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irexec
from irexec.cli.main import run
from irexec.errors import InputError

onnx = pytest.importorskip("onnx")
converters = pytest.importorskip("converters")


def _model(kind: Any, zero: int, outputs: tuple[str, ...] = ("y",)) -> Any:
    """x -> pair -> convolution of i8 weights -> pair -> y, and the integers of the second pair as q."""
    rng = np.random.default_rng(3)
    weights = rng.integers(-60, 60, (8, 4, 3, 3)).astype(np.int8)
    constants = {
        "s": np.float32(0.05), "z": np.array(zero, kind), "w": weights, "ws": np.float32(0.01),
        "wz": np.int8(0), "t": np.float32(0.125),
    }  # fmt: skip
    node = onnx.helper.make_node
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["xq"]), node("DequantizeLinear", ["xq", "s", "z"], ["xd"]),
        node("DequantizeLinear", ["w", "ws", "wz"], ["wd"]), node("Conv", ["xd", "wd"], ["c"], name="conv"),
        node("QuantizeLinear", ["c", "t", "z"], ["q"]), node("DequantizeLinear", ["q", "t", "z"], ["y"], name="last"),
    ]  # fmt: skip
    types = {"y": onnx.TensorProto.FLOAT, "q": onnx.helper.np_dtype_to_tensor_dtype(np.dtype(kind))}
    graph = onnx.helper.make_graph(
        nodes, "m",
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 4, 9, 9])],
        [onnx.helper.make_tensor_value_info(name, types[name], [1, 8, 7, 7]) for name in outputs],
        [onnx.numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
    )  # fmt: skip
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize(("kind", "zero"), [(np.uint8, 131), (np.uint8, 0), (np.int8, 0), (np.int8, -77)])
def test_values_beside_onnxruntime(kind: Any, zero: int, tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    proto = _model(kind, zero)
    x = np.random.default_rng(0).normal(0, 2, (1, 4, 9, 9)).astype(np.float32)
    (expected,) = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"x": x})
    model = converters.convert(proto)
    with model.edit() as editor:
        editor.fake_quantize()
        assert editor.notes[-1].startswith("2 FakeQuantize layers")
    types = [node.type for node in model.nodes]
    assert types.count("FakeQuantize") == 2 and "Round" not in types and "Clamp" not in types
    last = model["last"]
    assert last.type == "FakeQuantize" and last.outputs[0].names == ["y"]
    # A value on the threshold between two levels may get the other one.
    (result,) = irexec.compile_model(model)({"x": x}).values()
    assert np.abs(result - expected).max() < 0.126 and np.mean(result != expected) < 0.01
    openvino = pytest.importorskip("openvino")
    irexec.save_model(model, tmp_path / "m.xml")
    compiled = openvino.compile_model(tmp_path / "m.xml", "CPU")
    (conv,) = (node for node in compiled.get_runtime_model().get_ops() if node.rt_info["layerType"] == "Convolution")
    # The low-precision transformations of the plugin let it read bytes, for certain on these processors.
    assert conv.input(0).get_element_type().get_size() == 1 or platform.machine() not in ("x86_64", "AMD64")
    assert np.abs(compiled({"x": x})[0] - expected).max() < 0.126


def test_integers_that_are_read_elsewhere_stay() -> None:
    model = converters.convert(_model(np.uint8, 131, ("y", "q")))
    with model.edit() as editor:
        editor.fake_quantize()
    types = [node.type for node in model.nodes]
    assert (types.count("FakeQuantize"), types.count("Round")) == (2, 1)


def test_a_model_without_pairs_is_refused() -> None:
    builder = irexec.Builder("m")
    builder.result(builder.emit("Relu", builder.parameter("f32", (2,), "x")))
    model = irexec.Model.of(builder.model())
    with (
        pytest.raises(InputError, match="no QuantizeLinear with its DequantizeLinear in 8 bits"),
        model.edit() as editor,
    ):
        editor.fake_quantize()


def test_convert_says_where_the_step_helps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Not where the scale is computed: no FakeQuantize has such a range."""
    node = onnx.helper.make_node
    tensors = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2, 3]) for name in ("x", "y")]
    nodes = [node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]), node("DequantizeLinear", ["q", "s", "z"], ["y"])]
    graph = onnx.helper.make_graph(nodes, "m", tensors[:1], tensors[1:])
    computed = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9)
    for proto, expected in ((_model(np.uint8, 131), True), (_model(np.int8, 0), True), (computed, False)):
        onnx.save(proto, tmp_path / "m.onnx")
        assert run(["convert", str(tmp_path / "m.onnx")]) == 0
        assert ("--fake-quantize" in capsys.readouterr().err) is expected
