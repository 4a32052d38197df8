"""verify: the verdict of other values that rounding explains, beside that of a wrong conversion."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec.errors import EngineError
from irexec.native.library import library
from irexec.tools.verify import Verification, verify

onnx = pytest.importorskip("onnx")

# Of fewer columns a C kernel may add in the order of BLAS.
LAYERS, SIZE = 6, 768
SCALE = 0.05


def quantized(path: Path, seed: int, other: str = "Relu") -> Path:
    """Products with a quantization after each: thousands of values lie between two levels. ``other``: the operator of
    the second output."""
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(seed)
    weights = [
        numpy_helper.from_array((rng.normal(size=(SIZE, SIZE)) / 16).astype(np.float32), f"w{i}") for i in range(LAYERS)
    ]
    constants = [
        numpy_helper.from_array(np.array(SCALE, np.float32), "scale"),
        numpy_helper.from_array(np.array(0, np.int8), "zero"),
    ]
    nodes, last = [], "x"
    for i in range(LAYERS):
        nodes += [
            helper.make_node("MatMul", [last, f"w{i}"], [f"p{i}"]),
            helper.make_node("QuantizeLinear", [f"p{i}", "scale", "zero"], [f"q{i}"]),
            helper.make_node("DequantizeLinear", [f"q{i}", "scale", "zero"], [f"d{i}"]),
        ]
        last = f"d{i}"
    nodes.append(helper.make_node(other, ["x"], ["y"]))
    x, *outputs = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", SIZE]) for name in ("x", last, "y"))
    graph = helper.make_graph(nodes, "quantized", [x], outputs, [*weights, *constants])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9), path)
    return path


def verified(model: irexec.Model) -> Verification:
    return verify(model, {"x": (512, SIZE)}, runtime="onnx", seed=0, rtol=1e-4, atol=1e-5)


@pytest.mark.skipif(library() is None, reason="the C kernels, which add in another order, were not built")
def test_values_between_two_levels(tmp_path: Path) -> None:
    found = verified(irexec.read_model(quantized(tmp_path / "m.onnx", 0)))
    assert not found.agrees and found.known is not None
    assert found.known.message.startswith("rounding: kernels of irexec that add in another order differ by as much")


@pytest.mark.parametrize(("seed", "other"), [(1, "Relu"), (0, "Neg")], ids=["other weights", "another output"])
def test_a_wrong_model_is_not_explained_by_rounding(seed: int, other: str, tmp_path: Path) -> None:
    model = irexec.read_model(quantized(tmp_path / "m.onnx", 0))
    quantized(tmp_path / "m.onnx", seed, other)
    found = verified(model)
    assert not found.agrees and found.known is None


@pytest.mark.parametrize(("target", "frozen"), [([0, 0, 2, 3], False), ([0, 7, 2, 3], True)])
def test_an_open_axis_of_one_size_is_named(target: list[int], frozen: bool, tmp_path: Path) -> None:
    """An exporter wrote the number of tokens into a Reshape, and left the input open."""
    from onnx import TensorProto, helper, numpy_helper

    shape = numpy_helper.from_array(np.array(target, np.int64), "shape")
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["B", "T", 6])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["h"], "heads"), helper.make_node("Relu", ["h"], ["y"])]
    graph = helper.make_graph(nodes, "g", [x], [y], [shape])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    model = irexec.read_model(tmp_path / "m.onnx")
    found = verify(model, {"x": (2, 7, 6)}, runtime="onnx", seed=0, rtol=1e-4, atol=1e-5)
    assert found.agrees
    named = ["'x' leaves axis 1 open, but takes 7 only: Reshape 'heads' is made for it"] * frozen
    assert list(found.frozen) == named
    assert [(one.code, one.layer_name, one.severity, one.message) for one in irexec.validate(model)] == [
        ("IR308", "heads", "info", f"the input {text}") for text in named
    ]
    editor = model.edit()
    editor.reshape({"x": "1..4,?,6"})
    assert editor.notes == named
    editor.reshape({"x": "?,7,6"})
    assert editor.notes[len(named) :] == []
    editor.set_batch("?")
    editor.reshape({"x": "1..4,?,6"})
    assert editor.notes == 2 * named
    editor.reshape({"x": "1..4,1..5,6"})
    outside = ["'x' declares 1..5 for axis 1, but takes 7 only: Reshape 'heads' is made for it"] * frozen
    assert editor.notes == 2 * named + outside
    assert [one.message for one in irexec.validate(editor.model)] == [f"the input {text}" for text in outside]
    if frozen:
        with pytest.raises(EngineError, match=outside[0]):
            verify(editor.model, runtime="onnx", seed=0, rtol=1e-4, atol=1e-5)
