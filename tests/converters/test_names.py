"""Names: tensors keep theirs, layers are named after ONNX nodes, and outputs are found by their names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import converters
import irexec
from converters.onnx.graphs import every_node
from tests.support.onnx_models import model_of


def test_tensors_and_layers() -> None:
    model = converters.convert(
        model_of(
            "(float[2] in) => (float[2] out) { [first] t = Relu(in) [second] out = Mul(t, w) }",
            w=np.ones(2, np.float32),
        )
    )
    assert [(node.type, node.name, [value.names for value in node.outputs]) for node in model.nodes] == [
        ("Parameter", "in", [["in"]]),
        ("Relu", "first", [["t"]]),
        ("Constant", "w", [["w"]]),
        ("Multiply", "second", [["out"]]),
        ("Result", "out/sink_port_0", []),
    ]


def test_a_node_that_becomes_several_layers_gives_its_name_to_the_last() -> None:
    model = converters.convert(
        model_of(
            "(float[1,1,4,4] x) => (float[1,1,2,2] y) { [c] y = Conv(x, w, b) }",
            w=np.ones((1, 1, 3, 3), np.float32),
            b=np.ones(1, np.float32),
        )
    )
    names = {node.type: node.name for node in model.nodes}
    assert names["Convolution"] == "c/Convolution"
    assert names["Add"] == "c"


def test_nodes_without_names_are_named_after_their_output() -> None:
    model = converters.convert(model_of("(float[2] x) => (float[2] y) { t = Relu(x) y = Neg(t) }"))
    assert [node.name for node in model.nodes] == ["x", "t", "y", "y/sink_port_0"]


def test_nodes_of_the_same_name() -> None:
    model = converters.convert(model_of("(float[2] x) => (float[2] y) { [n] t = Relu(x) [n] y = Neg(t) }"))
    assert len({node.name for node in model.nodes}) == len(model.nodes)


def test_outputs_that_are_the_same_tensor() -> None:
    """An input, one tensor twice, and a constant as outputs: each output is a tensor of its own."""
    graph = "(float[2] x) => (float[2] b, float[2] a, float[2] p, float[2] c) { a = Neg(x) b = Identity(a) p = Identity(x) c = Identity(w) }"
    model = converters.convert(model_of(graph, w=np.array([5, 6], np.float32)))
    assert [port.name for port in model.outputs] == ["b", "a", "p", "c"]
    assert [port.name for port in model.inputs] == ["x"]
    result = irexec.compile_model(model)(np.array([1, 2], np.float32))
    for name, expected in {"a": [-1, -2], "b": [-1, -2], "p": [1, 2], "c": [5, 6]}.items():
        np.testing.assert_array_equal(result[name], expected)


def test_names_survive_the_file(tmp_path: Path) -> None:
    model = converters.convert(model_of('(float[2] "a,b") => (float[2] "c:0") { t = Relu("a,b") "c:0" = Neg(t) }'))
    irexec.save_model(model, tmp_path / "m.xml")
    read = irexec.read_model(tmp_path / "m.xml")
    assert [port.name for port in read.inputs] == ["a,b"]
    assert [port.name for port in read.outputs] == ["c:0"]
    assert [value.names for node in read.nodes for value in node.outputs] == [["a,b"], ["t"], ["c:0"]]


PASSED_ON = {
    "an input": ("(float[2] a) => (float[2] r, float[2] a) { r = Relu(a) }", ["a"], ["r", "a"]),
    "an input twice": (
        "(float[2] a) => (float[2] y, float[2] z, float[2] a) { y = Identity(a) z = Identity(a) }",
        ["a"],
        ["y", "z", "a"],
    ),
    "inputs exchanged": (
        "(float[2] a, float[2] b) => (float[2] c, float[2] d, float[2] a) { c = Identity(b) d = Identity(a) }",
        ["a", "b"],
        ["c", "d", "a"],
    ),
    "a constant": ("(float[2] a) => (float[2] y, float[2] w) { y = Add(a, w) }", ["a"], ["y", "w"]),
    "a constant twice": (
        "(float[2] a) => (float[2] v, float[2] w, float[2] y) { v = Identity(w) y = Add(a, w) }",
        ["a"],
        ["v", "w", "y"],
    ),
}


@pytest.mark.parametrize("case", PASSED_ON)
def test_inputs_and_constants_as_outputs_keep_their_names_both_ways(case: str) -> None:
    graph, inputs, outputs = PASSED_ON[case]
    constants = {"w": np.array([5, 6], np.float32)} if "w" in outputs else {}
    model = converters.convert(model_of(graph, **constants))
    given = {name: np.array([i + 1, -2], np.float32) for i, name in enumerate(inputs)}
    expected = {
        "a": given["a"],
        "r": [1, 0],
        "w": [5, 6],
        "v": [5, 6],
        "c": [2, -2],
        "d": [1, -2],
        "y": [6, 4],
        "z": given["a"],
    }
    if not constants:
        expected["y"] = given["a"]
    # OpenVINO finds an input by the tensor names of its Parameter alone.
    assert [value.names[:1] for node in model.parameters for value in node.outputs] == [[name] for name in inputs]
    assert [port.name for port in model.outputs] == outputs
    result = irexec.compile_model(model)(given)
    back = irexec.to_onnx(model)
    assert [one.name for one in back.graph.input] == inputs
    assert [one.name for one in back.graph.output] == outputs
    ort = pytest.importorskip("onnxruntime")
    found = ort.InferenceSession(back.SerializeToString()).run(outputs, given)
    for name, array in zip(outputs, found, strict=True):
        np.testing.assert_array_equal(result[name], expected[name])
        np.testing.assert_array_equal(array, expected[name])


def test_nodes_of_an_exported_body_have_names_of_their_own() -> None:
    """A node that is named after its operator, and a layer of that name: ONNX Runtime refuses equal names in a graph."""
    x = irexec.opset.parameter([2, 3], "f32", name="x")
    first = irexec.opset.slice(x, [0], [2], [1], [1], name="s")
    node = irexec.opset.relu(irexec.opset.gelu(first, approximation_mode="ERF", name="g"), name="g/Mul")
    proto = irexec.to_onnx(irexec.Model([irexec.opset.abs(node, name="g/Erf")], [x]), opset=17)
    names = [node.name for node in every_node(proto.graph)]
    assert {"g/Mul", "g/Erf"} <= set(names)
    assert len(names) == len(set(names))
