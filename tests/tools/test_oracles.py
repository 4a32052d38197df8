"""Oracles run the user's file: a fault of reading it is seen; verify rests on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irexec
from irexec import Model
from irexec.errors import EngineError
from irexec.ir.order import find_value
from irexec.native.library import library
from irexec.tools.compare import CompareOptions, compare
from irexec.tools.engines.runtimes import open_runtime
from irexec.tools.verify import Verification, verify

onnx = pytest.importorskip("onnx")
X = np.array([[-1, 2, -3], [4, -5, 6]], np.float32)
BY_HAND = np.where(X > 0, -X * np.float32(0.3), -X) * 2


@pytest.fixture(params=["onnxruntime", "onnx"])
def oracle(request: pytest.FixtureRequest) -> str:
    pytest.importorskip(request.param)
    return str(request.param)


@pytest.fixture
def file(tmp_path: Path, oracle: str) -> Path:
    """A function with an attribute: a LeakyRelu of -x with 0.3, and its double."""
    from onnx import AttributeProto, helper

    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("loc", 1)]
    leaky = helper.make_node("LeakyRelu", ["minus"], ["leaky"])
    if oracle == "onnx":
        # Its evaluator knows no default values of functions.
        leaky.attribute.append(helper.make_attribute("alpha", 0.3))
    else:
        leaky.attribute.append(AttributeProto(name="alpha", type=AttributeProto.FLOAT, ref_attr_name="slope"))
    nodes = [helper.make_node("Neg", ["x"], ["minus"]), leaky, helper.make_node("Identity", ["leaky"], ["y"])]
    default = [] if oracle == "onnx" else [helper.make_attribute("slope", 0.3)]
    function = helper.make_function("loc", "Leak", ["x"], ["y"], nodes, opsets[:1], [], default)
    calls = [helper.make_node("Leak", ["a"], ["b"], domain="loc"), helper.make_node("Add", ["b", "b"], ["c"])]
    a, c = (helper.make_tensor_value_info(name, 1, [2, 3]) for name in "ac")
    graph = helper.make_graph(calls, "g", [a], [c])
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, functions=[function], ir_version=9), path)
    return path


def plant(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of our reading: functions are inlined with another slope."""
    from converters.onnx import load

    right = load.inlined

    def wrong(model: Any, where: str) -> Any:
        made = right(model, where)
        for node in made.graph.node:
            for attribute in node.attribute:
                if attribute.name == "alpha":
                    attribute.f = 0.01
        return made

    monkeypatch.setattr(load, "inlined", wrong)


def verified(model: Model, oracle: str) -> bool:
    return verify(model, runtime=oracle, seed=0, rtol=1e-4, atol=1e-5).agrees


def test_a_right_conversion_agrees(file: Path, oracle: str) -> None:
    model = irexec.read_model(file)
    with open_runtime(oracle, model) as runtime:
        np.testing.assert_allclose(runtime.run({"a": X}, [find_value(model, "c")])[0], BY_HAND, rtol=1e-6)
    found = compare(file, None, {"a": X}, CompareOptions(a_runtime=oracle))
    assert found.agrees and len(found.rows) > 2


def test_a_fault_of_reading_is_seen(file: Path, oracle: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    model = irexec.read_model(file)
    assert not verified(model, oracle)
    found = compare(file, None, {"a": X}, CompareOptions(a_runtime=oracle))
    assert not found.agrees
    assert found.first is not None and found.first.row.b.type == "PRelu"
    reasons = {one.reason for one in found.uncompared}
    assert any("with its functions inlined, output 'c' is another one" in reason for reason in reasons)


def test_tensors_of_functions_are_not_believed_unless_the_copy_agrees(
    file: Path, oracle: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for is_planted in (False, True):
        if is_planted:
            plant(monkeypatch)
        model = irexec.read_model(file)
        value = next(value for node in model.nodes for value in node.outputs if node.type == "Negative")
        with open_runtime(oracle, model) as runtime:
            assert runtime.gives(value)
            if is_planted:
                with pytest.raises(EngineError, match="tensors of their bodies are not observed"):
                    runtime.run({"a": X}, [value])
                assert not runtime.gives(value)
            else:
                np.testing.assert_allclose(runtime.run({"a": X}, [value])[0], -X, rtol=1e-6)


def test_a_lost_output_is_a_difference(file: Path, oracle: str) -> None:
    model = irexec.read_model(file)
    for node in model.nodes:
        for value in node.outputs:
            value.names = [name for name in value.names if name != "c"]
    assert not verified(model, oracle)


# verify: the verdict of other values that rounding explains, beside that of a wrong conversion.


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


def verified_conversion(model: irexec.Model) -> Verification:
    return verify(model, {"x": (512, SIZE)}, runtime="onnx", seed=0, rtol=1e-4, atol=1e-5)


@pytest.mark.skipif(library() is None, reason="the C kernels, which add in another order, were not built")
def test_values_between_two_levels(tmp_path: Path) -> None:
    found = verified_conversion(irexec.read_model(quantized(tmp_path / "m.onnx", 0)))
    assert not found.agrees and found.known is not None
    assert found.known.message.startswith("rounding: kernels of irexec that add in another order differ by as much")


@pytest.mark.parametrize(("seed", "other"), [(1, "Relu"), (0, "Neg")], ids=["other weights", "another output"])
def test_a_wrong_model_is_not_explained_by_rounding(seed: int, other: str, tmp_path: Path) -> None:
    model = irexec.read_model(quantized(tmp_path / "m.onnx", 0))
    quantized(tmp_path / "m.onnx", seed, other)
    found = verified_conversion(model)
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


@pytest.mark.parametrize(("size", "sizes"), [(8, "7 to 8"), (33, "33 to 34"), (224, "223 to 224"), (513, "513 to 514")])
def test_a_flattened_image_of_one_size_is_named(size: int, sizes: str) -> None:
    """With a batch of -1 rows, 64 x 64 of the 3 x 3 that it is made for are many rows of one image, and no fault."""
    b = irexec.Builder("m")
    x = b.parameter("f32", (-1, 3, -1, -1), "x")
    weights = np.ones((16, 3, 3, 3), np.float32)
    made = b.emit("Convolution", x, weights, strides=(2, 2), pads_begin=(0, 0), pads_end=(0, 0), dilations=(1, 1))
    row = 16 * ((size - 1) // 2) ** 2
    made = b.emit("Reshape", made, np.int64([-1, row]), special_zero=False)
    b.result(b.emit("MatMul", made, np.ones((row, 10), np.float32)), "y")
    named = [
        f"the input 'x' leaves axis {axis} open, but takes {sizes} only: Reshape 'Reshape' is made for it"
        for axis in (2, 3)
    ]
    assert [one.message for one in irexec.validate(b.model()) if one.code == "IR308"] == named


def test_a_layer_of_a_branch_that_takes_one_size_is_named(tmp_path: Path) -> None:
    then, other = (
        f"{name}g () => (float[N] {name}) {{ s{name} = Constant <value_ints = [7]> () {name} = Reshape (x, s{name}) }}"
        for name in "ab"
    )
    nodes = f"y = If (c) <then_branch = {then}, else_branch = {other}>"
    text = f'<ir_version: 8, opset_import: ["": 17]> g (float[T] x, bool c) => (float[N] y) {{ {nodes} }}'
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    found = [one.message for one in irexec.validate(irexec.read_model(tmp_path / "m.onnx")) if one.code == "IR308"]
    assert found and found[0].startswith("the input 'x' leaves axis 0 open, but takes 7 only: Reshape ")


def test_rows_that_are_parts_of_axes_leave_them_open() -> None:
    b = irexec.Builder("m")
    x = b.parameter("f32", (-1, -1, 8), "x")
    for i, row in enumerate(([-1, 8], [-1, 2], [-1, 4, 2])):
        b.result(b.emit("Reshape", x, np.int64(row), special_zero=False), f"y{i}")
    assert "IR308" not in {one.code for one in irexec.validate(b.model())}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("labels", ['classlabels_strings = ["cat", "dog"]', "classlabels_int64s = [7, 4]"])
def test_the_scores_of_maps_are_compared_by_label(tmp_path: Path, oracle: str, labels: str) -> None:
    """As a classifier of sklearn ends: the file gives a sequence of maps, the model one output for each label."""
    nodes = f"{{ n = Neg (x) p = Softmax <axis = 1> (n) z = ai.onnx.ml.ZipMap <{labels}> (p) }}"
    kind = "string" if "strings" in labels else "int64"
    opsets = '<ir_version: 8, opset_import: ["": 18, "ai.onnx.ml": 3]>'
    file = onnx.parser.parse_model(f"{opsets} g (float[N,2] x) => (seq(map({kind}, float)) z, float[N,2] n) {nodes}")
    onnx.save(file, tmp_path / "m.onnx")
    model = irexec.read_model(tmp_path / "m.onnx")
    found = verify(model, runtime=oracle, seed=0, rtol=1e-4, atol=1e-5)
    assert [one.name for one in found.agreements] == [*(port.name for port in model.outputs)]
    assert found.agrees
    file.graph.node[0].op_type = "Abs"
    onnx.save(file, tmp_path / "m.onnx")
    assert not verified(model, oracle)
