"""The Python API as its users meet it: what is accepted, what is shown, what is said of mistakes."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irexec
from irexec.ir.shape_text import as_shape, parse_shape
from tests.support.paths import DIGITS, IRS

XML = IRS / "state.xml"


def _model() -> irexec.Model:
    builder = irexec.Builder("net")
    x = builder.parameter(irexec.f32, "1..8,3", "x")
    k = builder.parameter(np.int64, (), "k")
    first, second = builder.emit(
        "TopK", x, k, axis=1, mode="max", sort="value", index_element_type=np.int32, version=11
    )
    builder.result(builder.emit("Relu", first, name="act"), "values")
    builder.result(second)
    return builder.model()


@pytest.mark.parametrize("model", [str(XML), XML, irexec.read_model(XML)], ids=["str", "Path", "Model"])
def test_a_model_is_compiled_from_a_path_or_a_model(model: Any) -> None:
    assert irexec.compile_model(model)([np.ones((1, 3), np.float32)])[0].tolist() == [[1, 1, 1]]


@pytest.mark.parametrize(
    "weights", [XML.with_suffix(".bin").read_bytes(), XML.with_suffix(".bin"), str(XML.with_suffix(".bin"))], ids=type
)
def test_a_model_is_read_and_compiled_from_bytes(weights: Any) -> None:
    text = XML.read_bytes()
    assert irexec.validate(irexec.read_model(text, weights)) == []
    assert irexec.compile_model(text, weights)([np.ones((1, 3), np.float32)])[0].tolist() == [[1, 1, 1]]


def test_models_and_weights_must_go_together() -> None:
    with pytest.raises(irexec.InputError, match="weights are given for a model that has its own"):
        irexec.compile_model(_model(), b"")
    with pytest.raises(irexec.ModelError, match="cannot be read"):
        irexec.compile_model("nowhere.xml")


@pytest.mark.parametrize("kind", [irexec.f32, "f32", "F32", "FP32", np.float32, np.dtype("f4")], ids=str)
def test_an_element_type_is_given_by_any_of_its_names(kind: Any) -> None:
    builder = irexec.Builder()
    x = builder.parameter(kind, (2,), "x")
    converted = builder.emit("Convert", builder.constant([1, 2], irexec.i32), destination_type=kind)
    assert converted.node.attributes["destination_type"] == "f32"
    assert builder.fact(builder.constant([1, 2], kind)).element is irexec.f32
    assert builder.fact(builder.emit("Add", x, converted)).element is irexec.f32


def test_inputs_and_outputs_of_a_builder_have_tensor_names(tmp_path: Path) -> None:
    model = _model()
    assert [value.names for node in model.parameters for value in node.outputs] == [["x"], ["k"]]
    assert [port.name for port in model.outputs] == ["values", "TopK:1"]
    irexec.save_model(model, tmp_path / "m.xml")
    again = irexec.read_model(tmp_path / "m.xml")
    assert [port.names for port in again.outputs] == [("values", "act"), ("TopK:1", "TopK", "TopK/sink_port_1")]


def test_a_model_saves_itself_as_save_model_does(tmp_path: Path) -> None:
    model = _model()
    model.save(tmp_path / "a.xml")
    irexec.save_model(model, tmp_path / "b.xml")
    for suffix in (".xml", ".bin"):
        assert (tmp_path / "a").with_suffix(suffix).read_bytes() == (tmp_path / "b").with_suffix(suffix).read_bytes()
    with pytest.raises(irexec.InputError, match=r"\.xml"):
        model.save(tmp_path / "c.onnx")


def test_tensor_names_that_are_given_are_kept_and_stay_unique() -> None:
    builder = irexec.Builder()
    x = builder.parameter("f32", (2,), "x", ["data"])
    y = builder.emit("Relu", x, name="relu", names=["x"])
    builder.result(y, "y")
    builder.result(builder.emit("Abs", y), "data")
    model = builder.model()
    builder.model()
    names = [name for node in model.nodes for value in node.outputs for name in value.names]
    assert len(names) == len(set(names))
    assert x.names == ["data"]
    assert y.names == ["x"]


def test_ports_are_found_by_name_and_position() -> None:
    compiled = irexec.compile_model(_model())
    assert compiled.input() is compiled.inputs[0]
    assert compiled.input("k") is compiled.inputs[1]
    assert compiled.output(1) is compiled.outputs[1]
    with pytest.raises(
        irexec.InputError, match=r"there is no output 'prob': the model has values: f32\[1..8,0..3\]; TopK:1"
    ):
        compiled.output("prob")


def test_ports_are_keys_of_inputs_shapes_and_results() -> None:
    compiled = irexec.compile_model(_model())
    result = compiled({compiled.input(0): np.ones((1, 3), np.float32), compiled.input("k"): 2})
    assert [result[port] is result[i] for i, port in enumerate(compiled.outputs)] == [True, True]
    model = _model()
    model.reshape({model.inputs[0]: (4, 3)})
    assert model.inputs[0].shape == (4, 3)
    with pytest.raises(irexec.InputError, match=r"there is no output 'k': the model has values: f32"):
        result[compiled.input("k")]


def test_a_profile_has_the_rows_that_there_are() -> None:
    profile = irexec.compile_model(_model()).profile([np.ones((1, 3), np.float32), 2], runs=1)
    with pytest.raises(irexec.InputError, match="by is 'op', expected 'step', 'layer', 'type'"):
        profile.rows("op")
    with pytest.raises(irexec.InputError, match="sort is 'name', expected 'time', 'macs', 'memory'"):
        profile.rows("layer", sort="name")


def test_a_wrong_output_name_lists_the_names() -> None:
    result = irexec.compile_model(_model())([np.ones((1, 3), np.float32), 2])
    for key, message in (
        ("prob", "there is no output 'prob': the model has values: f32"),
        (7, "there is no output 7: the model has 2"),
    ):
        for error in (KeyError, irexec.InputError):
            with pytest.raises(error) as caught:
                result[key]
            assert str(caught.value).startswith(message)
    assert "prob" not in result
    assert result.get("prob") is None


def test_reprs_are_short_and_readable() -> None:
    model = _model()
    compiled = irexec.compile_model(model)
    assert (
        repr(model)
        == "<Model 'net': 6 layers, x: f32[1..8,3], k: i64[] -> values: f32[1..8,0..3], TopK:1: i32[1..8,0..3]>"
    )
    assert repr(model.inputs[0]) == "<Port x: f32[1..8,3]>"
    assert repr(compiled) == (
        "<CompiledModel 'net': x: f32[1..8,3], k: i64[] -> values: f32[1..8,0..3], TopK:1: i32[1..8,0..3]>"
    )
    assert repr(compiled.session()) == "<Session of 'net': variables none>"
    assert repr(compiled([np.ones((1, 3), np.float32), 2])) == "Outputs('values': float32[1, 2], 'TopK:1': int32[1, 2])"
    body = next(node for node in irexec.read_model(IRS / "loop.xml").nodes if node.bodies).bodies["body"]
    assert len(repr(body.graph)) < 80


def test_a_model_of_many_inputs_has_a_short_repr() -> None:
    builder = irexec.Builder("many")
    for i in range(50):
        builder.result(builder.parameter("f32", (1,), f"x{i}"))
    model = builder.model()
    shown = "x0: f32[1], x1: f32[1], x2: f32[1] and 47 more"
    assert repr(model) == f"<Model 'many': 100 layers, {shown} -> {shown}>"
    assert repr(irexec.compile_model(model)) == f"<CompiledModel 'many': {shown} -> {shown}>"


def test_results_can_be_pickled() -> None:
    result = irexec.compile_model(_model())([np.float32([[3, 1, 2]]), 2])
    again = pickle.loads(pickle.dumps(result))
    assert list(again) == list(result)
    np.testing.assert_array_equal(again["act"], [[3, 2]])


ANY, UP = irexec.Dim(), irexec.Dim(2, 5)


@pytest.mark.parametrize(
    ("given", "shape"),
    [
        ("1,3,?,2..5", (1, 3, ANY, UP)),
        ("[1,3,?,2..5]", (1, 3, ANY, UP)),
        (" [ 1 , 3 , -1 , 2 .. 5 ] ", (1, 3, ANY, UP)),
        ("", ()),
        ("[]", ()),
        ("...", None),
        ("[...]", None),
        (None, None),
        ([1, 3, -1, UP], (1, 3, ANY, UP)),
        ((1, np.int64(3), None, (2, 5)), (1, 3, ANY, UP)),
        ((1, "3", "?", "2..5"), (1, 3, ANY, UP)),
        (((1, 8), (2, None), (4, 4), (None, 7)), (irexec.Dim(1, 8), irexec.Dim(2), 4, irexec.Dim(0, 7))),
        (((2, -1),), (irexec.Dim(2),)),
        (np.zeros((2, 3)).shape, (2, 3)),
    ],
)
def test_one_grammar_of_shapes(given: Any, shape: Any) -> None:
    assert as_shape(given) == shape
    builder = irexec.Builder()
    assert builder.fact(builder.parameter("f32", given, "x")).shape == shape
    builder.result(builder.emit("Relu", builder.parameter("f32", None, "y")))
    model = builder.model()
    model.reshape({"y": given})
    assert model.outputs[0].shape == shape


@pytest.mark.parametrize(
    "given", ["[1,3", "1,3]", "1,,3", "a", "5..2", 5, [1.5], [-2], [(5, 2)], [(1, 2, 3)], [("a", 2)], [(-3, 2)], {1}]
)
def test_what_is_not_a_shape_is_refused(given: Any) -> None:
    with pytest.raises(irexec.InputError, match="shape of input 'x'"):
        irexec.Builder().parameter("f32", given, "x")


def test_a_written_shape_is_read_again() -> None:
    for text in ("1,3", "?,2..5", "..4,3..", "...", ""):
        builder = irexec.Builder()
        node = builder.parameter("f32", text, "x").node
        assert parse_shape(node.attributes["shape"]) == parse_shape(text)


def test_layers_are_found_by_name_and_type() -> None:
    model = irexec.read_model(DIGITS / "classifier.xml")
    assert model["relu1"].type == "Relu" and model["relu1"] in model.nodes
    assert [node.name for node in model.find(type="MaxPool")] == ["maxpool2", "maxpool5"]
    assert [node.name for node in model.find("relu?")] == ["relu1", "relu4"]
    assert model.find("relu1", type="MatMul") == []
    with pytest.raises(irexec.InputError, match=r"there is no tensor or layer 'relu2'; similar names are 'relu\d'"):
        model["relu2"]
    produced = model["maxpool2"].outputs[0]
    assert produced.shape == (1, 16, 4, 4) and produced.element_type is irexec.f32
    produced.names.append("pooled")
    assert model["pooled"] is model["maxpool2"]


def test_a_constant_is_an_array() -> None:
    model = irexec.read_model(DIGITS / "classifier.xml")
    constant = model.find(type="Constant")[0]
    assert constant.array.shape == constant.outputs[0].shape and not constant.array.flags.writeable
    assert np.array_equal(np.asarray(constant), constant.array)
    with pytest.raises(irexec.InputError, match="'relu1' is a Relu: only a Constant has an array"):
        np.asarray(model["relu1"])
    with pytest.raises(irexec.ModelError, match=r"layer 15 'dense6.w' \(Constant\) has 5120 bytes"):
        np.asarray(irexec.read_model(DIGITS / "damaged.xml")["dense6.w"])


def test_tensors_asked_for_are_outputs() -> None:
    image = np.ones((1, 1, 8, 8), np.float32)
    tensors = irexec.infer(DIGITS / "classifier.xml", image, ["relu1", 0])
    assert type(tensors) is irexec.Outputs and list(tensors) == ["relu1", "0"]
    assert tensors["relu1"] is tensors[0] and tensors[1].shape == (1, 10)


def test_onnx_is_written_to_a_path(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    proto = irexec.to_onnx(DIGITS / "classifier.xml", tmp_path / "m.onnx")
    assert onnx.load(tmp_path / "m.onnx") == proto
    with pytest.raises(irexec.InputError, match="is the model, which would be overwritten"):
        irexec.to_onnx(tmp_path / "m.onnx", tmp_path / "m.onnx")


def test_models_are_measured_and_summed_up() -> None:
    path = DIGITS / "classifier.xml"
    assert irexec.inspect(path).layers == 21
    assert irexec.profile(path, options=irexec.ProfileOptions(runs=2)).runs == 2
    assert irexec.bench(path, options=irexec.BenchOptions(runs=2)).engines[0].engine == "irexec"


def test_a_clone_has_layers_of_its_own() -> None:
    model = irexec.read_model(DIGITS / "classifier.xml")
    clone = model.clone()
    clone["probabilities"].attributes["axis"] = "0"
    clone.nodes.remove(clone["relu1"])
    assert type(clone) is irexec.Model
    assert model["probabilities"].attributes["axis"] == "1" and model["relu1"].type == "Relu"
