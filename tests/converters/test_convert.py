"""Conversion of whole models: valid and invalid files, and the messages about what cannot be converted."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, parser

import converters
import irexec
from converters.onnx.translate import unsupported_nodes
from irexec.cli.main import run as run_cli
from irexec.ir.dims import Dim
from tests.support.onnx_models import model_of, run

CHAIN = "(float[2] x) => (float[2] y) { t = Relu(x) y = Neg(t) }"


def refused(model: onnx.ModelProto | Path) -> irexec.ConversionError:
    with pytest.raises(irexec.ConversionError) as caught:
        converters.convert(model)
    return caught.value


def test_from_a_path_and_from_memory(tmp_path: Path) -> None:
    model = model_of(CHAIN)
    onnx.save(model, tmp_path / "m.onnx")
    for source in (tmp_path / "m.onnx", str(tmp_path / "m.onnx"), model):
        result = irexec.compile_model(converters.convert(source))(np.array([-1, 2], np.float32))
        np.testing.assert_array_equal(result["y"], [0, -2])


def test_nodes_in_any_order() -> None:
    model = model_of(CHAIN)
    nodes = list(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend(reversed(nodes))
    np.testing.assert_array_equal(run(model, np.array([-1, 2], np.float32))[0], [0, -2])


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "it has no graph"), (b"no model at all", "not an ONNX model"), (b"\x08\x0a\x12\x04test", "it has no graph")],
    ids=["empty", "garbage", "without graph"],
)
def test_files_that_are_not_models(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    assert message in str(refused(path))


def test_a_path_that_cannot_be_read(tmp_path: Path) -> None:
    assert "cannot be read" in str(refused(tmp_path / "absent.onnx"))
    assert "cannot be read" in str(refused(tmp_path))


def test_a_truncated_file(tmp_path: Path) -> None:
    """A prefix of the file is a model, or is refused with a ConversionError."""
    onnx.save(model_of("(float[2] x) => (float[2] y) { y = Add(x, w) }", w=np.ones(2, np.float32)), tmp_path / "m.onnx")
    content = (tmp_path / "m.onnx").read_bytes()
    for length in range(len(content)):
        (tmp_path / "cut.onnx").write_bytes(content[:length])
        with contextlib.suppress(irexec.ConversionError):
            converters.convert(tmp_path / "cut.onnx")


def test_a_model_without_opset() -> None:
    model = model_of(CHAIN)
    del model.opset_import[:]
    assert "imports no opset" in str(refused(model))


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        ("(float[2] x) => (float[2] y) { y = Add(x, z) z = Neg(y) }", "cycle"),
        ("(float[2] x) => (float[2] y) { y = Add(x, z) }", "nothing produces 'z'"),
        ("(float[2] x) => (float[2] z) { y = Neg(x) }", "nothing produces 'z'"),
        ("(float[2] x) => (float[2] y) { y = Neg(x) y = Abs(x) }", "produced twice"),
        ("(float[2] x) => (float[2] x) { x = Neg(x) }", "is also an input of the graph"),
        ("(float[2] x, float[2] x) => (float[2] y) { y = Neg(x) }", "two inputs of the graph have the name 'x'"),
        ("(float[2] x) => (float[2] y) { y = Elu <beta: float = 1> (x) }", "attribute 'beta' is unknown"),
        ("(float[4] x) => (float[4] y) { y = Concat(x, x) }", "required attribute axis is missing"),
        ("(float[2] x) => (float[2] y) { y = Neg(x, x) }", "it has 2 inputs, expected 1"),
        ("(float[2] x) => (float[2] y) { y = Add(x) }", "it has 1 input, expected 2"),
        ('(float[2] x) => (float[2] y) { y = Add("", x) }', "a required input is missing"),
        ("(float[2] x, float[3] z) => (float[2] y) { y = Add(x, z) }", "cannot be broadcast together"),
        ("(float[2] x) => (float[2] y, float[2] z) { y, z = Identity(x) }", "its output 1 cannot be converted"),
        ("(seq(float[2]) x) => (float[2] y) { y = Neg(x) }", "input 'x' of the graph is not a tensor"),
    ],
)
def test_invalid_models(graph: str, message: str) -> None:
    assert message in str(refused(model_of(graph)))


def test_an_error_names_the_node() -> None:
    error = refused(model_of("(float[2] x, float[3] z) => (float[2] y) { [adder] y = Add(x, z) }"))
    assert str(error).startswith("node 'adder' (ai.onnx.Add of opset 20): ")
    assert not error.unsupported


def test_every_unsupported_node_is_named_at_once() -> None:
    error = refused(
        model_of("(float[2] x) => (float[2] y) { [a] t = com.example.Foo(x) [b] u = Relu(t) [c] y = Bar(u) }")
    )
    assert error.unsupported
    assert str(error) == (
        "2 nodes cannot be converted: node 'a' (com.example.Foo): the model does not import its domain; "
        "a plug-in can translate operators of other domains (docs: Write a plug-in); node 'c' (ai.onnx.Bar of opset 20)"
    )


def test_nodes_of_one_operator_are_counted_and_the_reason_is_named() -> None:
    chain = "r = ai.onnx.ml.CastMap(x) a = com.example.Bar(r) b = ai.onnx.ml.CastMap(a)"
    error = refused(model_of(f"(float[2] x) => (float[2] y) {{ {chain} [foo] y = com.example.Foo(b) }}"))
    assert str(error) == (
        "4 nodes cannot be converted: ai.onnx.ml.CastMap x 2: its input is a map, which IR has no type for: make its tensor before the model; "
        "node 'a' (com.example.Bar), node 'foo' (com.example.Foo): the model does not import its domain; "
        "a plug-in can translate operators of other domains (docs: Write a plug-in)"
    )


def test_operators_that_are_newer_than_the_model() -> None:
    """Converted, with a warning, where the operator has one meaning in all opsets."""
    model = model_of("(float[2] x) => (float[2] y) { [mish] y = Mish(x) }", 17)
    assert unsupported_nodes(model) == []
    warnings: list[str] = []
    converted = converters.convert(model, warn=warnings.append)
    assert [node.type for node in converted.nodes] == ["Parameter", "Mish", "Result"]
    assert warnings == [
        "ai.onnx.Mish exists since opset 18, the model imports opset 17: it is taken for that of opset 18"
    ]
    align = "(float[1,1,4,4] x, float[1,4] r, int64[1] i) => (float y) { [a] y = RoiAlign (x, r, i) }"
    assert unsupported_nodes(model_of(align, 9)) == ["node 'a' (ai.onnx.RoiAlign of opset 9): it exists since opset 10"]


def test_unsupported_nodes_of_a_subgraph_are_named() -> None:
    body = helper.make_graph(
        [helper.make_node("Foo", [], ["t"], "inner")], "body", [], [helper.make_empty_tensor_value_info("t")]
    )
    model = model_of(CHAIN)
    model.graph.node.append(helper.make_node("Bar", ["y"], ["z"], "outer", branch=body))
    assert [text.split(" (")[0] for text in unsupported_nodes(model)] == ["node 'outer'", "node 'inner'"]


def test_functions_of_the_model_are_inlined() -> None:
    model = parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 20, "own" : 1]>
        tested (float[2] x) => (float[2] y) { y = own.Twice <by: float = 3.0> (x) }
        <domain: "own", opset_import: ["" : 20]>
        Twice <by> (a) => (b) { c = Constant <value_float: float = @by> () b = Mul(a, c) }"""
    )
    np.testing.assert_array_equal(run(model, np.array([1, 2], np.float32))[0], [3, 6])


def test_a_newer_opset_is_a_warning() -> None:
    with pytest.warns(UserWarning, match="opset 99 is newer than"):
        converters.convert(model_of(CHAIN, 99))


def test_a_type_that_is_not_in_ir() -> None:
    error = refused(model_of("(complex64[2] x) => (complex64[2] y) { y = Identity(x) }"))
    assert str(error) == "input 'x' of the graph: ONNX type COMPLEX64 is not a type of IR"
    assert error.unsupported


def test_dims_keep_their_names_and_inputs_can_be_given_shapes() -> None:
    model = model_of("(float[N,3,?] x) => (float[N,3,?] y) { y = Relu(x) }")
    (port,) = converters.convert(model).outputs
    assert str(port) == "y: f32[?,3,?]"
    (port,) = converters.convert(model, inputs={"x": (2, 3, Dim(1, 8))}).outputs
    assert port.shape == (2, 3, Dim(1, 8))
    (port,) = converters.convert(model, inputs={"x": "2,3,1..8"}).outputs
    assert port.shape == (2, 3, Dim(1, 8))
    for invalid in ("2,x", (2, 1.5, 3), 5, (-2, 3, 4)):
        with pytest.raises(irexec.InputError, match="shape of input 'x'"):
            converters.convert(model, inputs={"x": invalid})
    with pytest.raises(irexec.InputError, match="input 'z' does not exist: the model has 'x'"):
        converters.convert(model, inputs={"z": (1,)})


def test_an_input_of_unknown_rank() -> None:
    model = model_of("(float[2] x) => (float[2] y) { y = Relu(x) }")
    model.graph.input[0].type.tensor_type.ClearField("shape")
    assert converters.convert(model).outputs[0].shape is None


def test_the_ir_can_be_reshaped() -> None:
    graph = "(float[2,3,4] x) => (float[8,3] y) { s = Shape <end: int = 1> (x) t = Transpose <perm: ints = [0,2,1]> (x) y = Reshape(t, w) }"
    converted = converters.convert(model_of(graph, w=np.array([-1, 3])))
    converted.reshape("5,3,4")
    assert converted.outputs[0].shape == (20, 3)


def test_unused_nodes_are_left_out() -> None:
    graph = "(float[2] x) => (float[2] y) { unused = Exp(x) y = Clip(x, low, high) }"
    converted = converters.convert(model_of(graph, low=np.float32(0), high=np.float32(6)))
    assert [node.type for node in converted.nodes] == ["Parameter", "Clamp", "Result"]
    assert [node.id for node in converted.nodes] == [0, 1, 2]


@pytest.mark.parametrize(
    ("graph", "opset", "constants", "shape"),
    [
        ("(float[2] x) => (float[2] y) { y = Unsqueeze(x, e) }", 13, {"e": []}, (2,)),
        ("(float x) => (float y) { y = Tile(x, e) }", 13, {"e": []}, ()),
        ("(float x) => (float y) { y = Pad(x, e) }", 13, {"e": []}, ()),
        ("(float x) => (float y) { y = Expand(x, e) }", 13, {"e": []}, ()),
        ("(float[2] x) => (float[2] y) { y = ReduceMax <keepdims: int = 0, noop_with_empty_axes: int = 1> (x, e) }", 18, {"e": []}, (2,)),
    ],
)  # fmt: skip
def test_operations_on_no_axes_load_in_openvino(
    graph: str, opset: int, constants: dict[str, list[int]], shape: tuple[int, ...]
) -> None:
    """OpenVINO refuses these operations, or reads memory that nobody wrote."""
    model = converters.convert(model_of(graph, opset, **{k: np.array(v, np.int64) for k, v in constants.items()}))
    assert not {node.type for node in model.nodes} & {"Unsqueeze", "Tile", "Pad", "Broadcast"}
    x = np.arange(3.0, 3.0 + np.prod(shape), dtype=np.float32).reshape(shape)
    np.testing.assert_array_equal(irexec.compile_model(model)(x)["y"], x)
    assert not irexec.validate(model, portability=True)


def test_layers_that_openvino_does_not_have(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = model_of("(string[2] a, string[2] b) => (string[2] y) { [joined] y = StringConcat(a, b) }")
    onnx.save(model, tmp_path / "m.onnx")
    assert run_cli(["convert", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "m.xml")]) == 0
    assert [one.code for one in irexec.validate(irexec.read_model(tmp_path / "m.xml"))] == ["IR109"]
    assert run_cli(["convert", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "n.xml"), "--strict"]) == 4
    assert not (tmp_path / "n.xml").exists()
    for options, code in (
        ("", "IR109"),
        ("--portability", "IR109"),
        ("--for 2026.4 --portability", "IR901"),
        ("--for 2026.4 --ignore IR901", "IR109"),
    ):
        capsys.readouterr()
        assert run_cli(["validate", str(tmp_path / "m.xml"), "--json", *options.split()]) == 1
        assert [one["code"] for one in json.loads(capsys.readouterr().out)["findings"]] == [code], options


def test_layers_that_openvino_only_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A translator of a plug-in may make them."""
    builder = irexec.Builder("norm")
    x = builder.parameter("f32", (2, 3), "x")
    weights = builder.constant(np.ones(3, np.float32))
    builder.result(builder.emit("RMS", x, weights, version="ie_internal_opset", name="norm", epsilon="1e-5"))
    model = builder.model()
    monkeypatch.setattr(converters, "convert", lambda *args, **settings: model)
    onnx.save(model_of("(float[2,3] x) => (float[2,3] y) { y = Relu(x) }"), tmp_path / "m.onnx")
    words = ["convert", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "n.xml")]
    assert run_cli([*words, "--strict"]) == 4
    assert "it does not read the operations of 1 layer: 'norm' (RMS)" in capsys.readouterr().err
    assert not (tmp_path / "n.xml").exists()
    assert run_cli(words) == 0
    assert "it does not read the operations of 1 layer: 'norm' (RMS)" in capsys.readouterr().err


def test_a_model_without_results_is_not_written_as_onnx() -> None:
    model = irexec.Model([], [irexec.opset.parameter([2], "f32", name="x")])
    with pytest.raises(irexec.ConversionError, match="no Result"):
        irexec.to_onnx(model)
