"""compare and verify: products of bytes that ONNX Runtime saturates on x86 processors without VNNI."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec.tools.compare import CompareOptions, blame, compare
from tests.tools.compare.models import Recorded, stand_in

onnx = pytest.importorskip("onnx")

NARROW = np.array([[64, -64], [1, 2], [3, 4], [5, 6]], np.int8)
"""Weights of 7 bits: 2 * 255 * 64 is 32,640, which 16 bits hold."""
WIDE = np.array([[65, 65], [1, 2], [3, 4], [5, 6]], np.int8)
X = np.full((3, 4), 200, np.uint8)
QUANTIZED = {
    "xs": np.float32(0.02), "xz": np.uint8(128), "ws": np.float32(0.01), "wz": np.int8(0), "ys": np.float32(0.5),
    "yz": np.uint8(100),
}  # fmt: skip


def _saved(path: Path, nodes: list[object], x: np.ndarray, constants: Mapping[str, object]) -> Path:
    from onnx import helper, numpy_helper

    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    inputs = [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)]
    output = onnx.ValueInfoProto(name="y")
    graph = helper.make_graph(nodes, "g", inputs, [output], tensors)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), str(path))
    return path


def matmul_integer(path: Path, weights: np.ndarray) -> Path:
    node = onnx.helper.make_node("MatMulInteger", ["x", "w", "xz"], ["y"])
    return _saved(path, [node], X, {"w": weights, "xz": np.uint8(128)})


def qlinear_matmul(path: Path, weights: np.ndarray) -> Path:
    node = onnx.helper.make_node("QLinearMatMul", ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"], ["y"])
    return _saved(path, [node], X, {**QUANTIZED, "w": weights})


def qlinear_conv(path: Path, weights: np.ndarray) -> Path:
    node = onnx.helper.make_node("QLinearConv", ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"], ["y"])
    return _saved(path, [node], X.reshape(1, 4, 3, 1), {**QUANTIZED, "w": weights.T.reshape(2, 4, 1, 1)})


def qdq_matmul(path: Path, weights: np.ndarray) -> Path:
    make = onnx.helper.make_node
    nodes = [
        make("QuantizeLinear", ["x", "xs", "xz"], ["xq"]),
        make("DequantizeLinear", ["xq", "xs", "xz"], ["xd"]),
        make("DequantizeLinear", ["w", "ws", "wz"], ["wd"]),
        make("MatMul", ["xd", "wd"], ["y"]),
    ]
    return _saved(path, nodes, X.astype(np.float32), {**QUANTIZED, "w": weights})


def float_matmul(path: Path, weights: np.ndarray) -> Path:
    node = onnx.helper.make_node("MatMul", ["x", "w"], ["y"])
    return _saved(path, [node], X.astype(np.float32), {"w": weights.astype(np.float32)})


def found(path: Path) -> list[str]:
    model = irexec.read_model(path)
    return [node.type for node in blame.products_of_bytes(model, model.nodes)]


@pytest.mark.parametrize("make", [matmul_integer, qlinear_matmul, qlinear_conv, qdq_matmul])
def test_products_of_bytes_of_8_bits_are_found(
    make: Callable[[Path, np.ndarray], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blame, "_saturates", lambda: True)
    wanted = "Convolution" if make is qlinear_conv else "MatMul"
    assert found(make(tmp_path / "wide.onnx", WIDE)) == [wanted]
    assert found(make(tmp_path / "narrow.onnx", NARROW)) == []
    assert found(float_matmul(tmp_path / "float.onnx", WIDE)) == []
    monkeypatch.setattr(blame, "_saturates", lambda: False)
    assert found(make(tmp_path / "wide.onnx", WIDE)) == []


def _values(feeds: Mapping[str, np.ndarray], off: int) -> dict[str, np.ndarray]:
    sums = (feeds["x"].astype(int) - 128) @ WIDE.astype(int) - off
    return {"x": feeds["x"], "y": sums.astype(np.int32)}


@pytest.mark.parametrize("side", ["a", "b"])
def test_compare_names_the_product(side: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blame, "_saturates", lambda: True)
    path = matmul_integer(tmp_path / "m.onnx", WIDE)
    options = CompareOptions(a_runtime="onnxruntime") if side == "a" else CompareOptions(b_runtime="onnxruntime")
    stand_in(monkeypatch, "onnxruntime", lambda feeds: _values(feeds, 0))
    assert compare(path, options=options, inputs={"x": X}).known == ()
    stand_in(monkeypatch, "onnxruntime", lambda feeds: _values(feeds, 900))
    made = compare(path, options=options, inputs={"x": X})
    (one,) = made.known
    assert not made.agrees and one.right == "irexec" and "products of bytes in 16 bits" in one.message
    assert made.as_dict()["known"][0]["right"] == "irexec"
    assert compare(path, options=CompareOptions(b_runtime="reference"), inputs={"x": X}).known == ()


def test_verify_names_the_product(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from irexec.tools import verify as module

    monkeypatch.setattr(blame, "_saturates", lambda: True)
    model = irexec.read_model(matmul_integer(tmp_path / "m.onnx", WIDE))
    runtime = Recorded("onnxruntime", model, lambda feeds: _values(feeds, 900))
    monkeypatch.setattr(module, "open_runtime", lambda name, model: runtime)
    made = module.verify(model, runtime="onnxruntime", seed=0, rtol=1e-3, atol=1e-4)
    assert not made.agrees and made.known is not None and "16 bits" in made.known.message
