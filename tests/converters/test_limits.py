"""Models of a few bytes that ask for more than a conversion may make: counted before anything is built, refused in one sentence."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, TensorProto, helper, parser

import converters
import irexec
from converters.onnx import functions as functions_module
from converters.onnx import graphs
from converters.onnx.body_builder import BodyBuilder
from converters.onnx.load import external_files
from irexec.analysis.shape_inference import ShapeInference
from irexec.ir.graph import Graph
from tests.support.onnx_models import model_of, outputs_undeclared

_OPSETS = [helper.make_opsetid("", 17), helper.make_opsetid("L", 1)]


def _calling(functions: Sequence[onnx.FunctionProto]) -> onnx.ModelProto:
    """A model of one node, which calls the first function."""
    x, y = (
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [1]),
        helper.make_tensor_value_info("y", TensorProto.FLOAT, None),
    )
    graph = helper.make_graph([helper.make_node("f0", ["x"], ["y"], domain="L")], "g", [x], [y])
    return helper.make_model(graph, functions=functions, opset_imports=_OPSETS, ir_version=10)


def _function(name: str, *nodes: onnx.NodeProto) -> onnx.FunctionProto:
    return helper.make_function("L", name, ["x"], ["y"], nodes, _OPSETS)


def _doubling(depth: int) -> onnx.ModelProto:
    """Functions each of which calls the next one twice."""
    last = _function(f"f{depth - 1}", helper.make_node("Relu", ["x"], ["y"]))
    calls = ([helper.make_node(f"f{i + 1}", [a], [b], domain="L") for a, b in ("xa", "ay")] for i in range(depth - 1))
    return _calling([*(_function(f"f{i}", *nodes) for i, nodes in enumerate(calls)), last])


@pytest.mark.parametrize(("depth", "nodes"), [(30, "536870912"), (5000, r"over 10\*\*18")])
def test_functions_that_double(depth: int, nodes: str) -> None:
    with pytest.raises(
        irexec.ConversionError, match=f"inlining its functions produces {nodes} nodes, more than the 250000 allowed"
    ):
        converters.convert(_doubling(depth))


def test_functions_within_the_limit() -> None:
    """8 calls one inside another of 2 each give 2**7 nodes: Relu of Relu, of which each is a layer."""
    assert sum(node.type == "Relu" for node in converters.convert(_doubling(8)).nodes) == 128


def test_attributes_that_functions_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tensor of about 4 kB that becomes 2**29 tensors."""
    functions = []
    for i in range(30):
        names = [(f"f{i + 1}", "xa"), (f"f{i + 1}", "ay")] if i < 29 else [("Constant", "?y")]
        nodes = [
            helper.make_node(name, [a] if i < 29 else [], [b], domain="L" if i < 29 else "") for name, (a, b) in names
        ]
        for node in nodes:
            node.attribute.append(AttributeProto(name="value", ref_attr_name="value", type=AttributeProto.TENSOR))
        functions.append(helper.make_function("L", f"f{i}", ["x"], ["y"], nodes, _OPSETS, ["value"]))
    model = _calling(functions)
    model.graph.node[0].attribute.append(
        helper.make_attribute("value", helper.make_tensor("t", TensorProto.FLOAT, [1000], np.ones(1000)))
    )
    with pytest.raises(irexec.ConversionError, match="inlining its functions produces 536870912 nodes"):
        converters.convert(model)
    monkeypatch.setattr(functions_module, "MAX_INLINED_NODES", 1 << 40)
    with pytest.raises(
        irexec.ConversionError, match=r"inlining its functions produces 2\d{12} bytes, more than the 2147483647 allowed"
    ):
        converters.convert(model)


@pytest.mark.parametrize("calls", [["f0"], ["f1", "f0"], ["f1", "f2", "f1"]])
def test_functions_that_call_themselves(calls: list[str]) -> None:
    functions = [
        _function(f"f{i}", helper.make_node(callee, ["x"], ["y"], domain="L")) for i, callee in enumerate(calls)
    ]
    with pytest.raises(
        irexec.ConversionError, match=r"the model's own function 'L\.f\d' calls itself, directly or through others"
    ):
        converters.convert(_calling(functions))


def test_two_functions_of_one_name() -> None:
    relu = _function("f0", helper.make_node("Relu", ["x"], ["y"]))
    with pytest.raises(irexec.ConversionError, match="two of the model's own functions have the same name"):
        converters.convert(_calling([relu, relu]))


def test_a_long_chain_of_functions() -> None:
    """Longer than Python's stack; the names of nested calls do not grow without bound."""
    chain = [_function(f"f{i}", helper.make_node(f"f{i + 1}", ["x"], ["y"], "n", domain="L")) for i in range(2000)]
    model = converters.convert(_calling([*chain, _function("f2000", helper.make_node("Relu", ["x"], ["y"], "last"))]))
    assert [node.type for node in model.nodes] == ["Parameter", "Relu", "Result"]
    assert all(len(node.name) < 1000 for node in model.nodes)


def test_many_calls_of_a_function_of_onnx() -> None:
    model = model_of("(int64 n) => (float y) { y = HannWindow (n) }", 17)
    for i in range(3000):
        model.graph.node.append(helper.make_node("HannWindow", ["n"], [f"y{i}"]))
    with pytest.raises(
        irexec.ConversionError,
        match="it has 3001 nodes of HannWindow, which is a function; at most 2500 can be inlined",
    ):
        converters.convert(model)


def _nested(kind: str, depth: int) -> onnx.ModelProto:
    """Ifs in each other's branches, or Loops in each other's bodies whose states grow."""
    if kind == "If":
        graph = "leaf () => (float v0) { v0 = Relu (x) }"
        for i in range(1, depth + 1):
            other = f"other{i} () => (float n{i}) {{ n{i} = Neg (x) }}"
            graph = f"g{i} () => (float v{i}) {{ v{i} = If (c) <then_branch = {graph}, else_branch = {other}> }}"
        text = graph.replace(f"g{depth} () => (float v{depth})", f"(float[2] x, bool c) => (float v{depth})", 1)
    else:
        body = "leaf (int64 i0, bool c0, float[m] p0) => (bool d0, float[k] q0) { d0 = Identity (c0) q0 = Concat <axis = 0> (p0, p0) }"
        for i in range(1, depth):
            body = (
                f"body{i} (int64 i{i}, bool c{i}, float[m] p{i}) => (bool d{i}, float[k] q{i}) {{ d{i} = Identity (c{i}) "
                f"l{i} = Loop (n, c, x) <body = {body}> q{i} = Concat <axis = 0> (p{i}, l{i}) }}"
            )
        text = f"(float[2] x, int64 n, bool c) => (float y) {{ y = Loop (n, c, x) <body = {body}> }}"
    return outputs_undeclared(parser.parse_model(f'<ir_version: 10, opset_import: ["" : 17]> nested {text}'))


def test_bodies_of_nested_loops_are_built_a_few_times_each(monkeypatch: pytest.MonkeyPatch) -> None:
    built = []
    body = BodyBuilder.__init__
    monkeypatch.setattr(BodyBuilder, "__init__", lambda *arguments: (built.append(1), body(*arguments))[1])
    converted = converters.convert(_nested("Loop", 12))
    assert len(built) <= 12 * 12
    assert [f.message for f in irexec.validate(converted) if f.severity == "error"] == []


def test_subgraphs_are_searched_for_names_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    searched = []
    own_names = graphs.own_names
    monkeypatch.setattr(graphs, "own_names", lambda graph: (searched.append(graph.name), own_names(graph))[1])
    converters.convert(_nested("If", 12))
    assert len(searched) == 2 * 12


def _layers(graph: Graph) -> int:
    return sum(1 + sum(_layers(body.graph) for body in node.bodies.values()) for node in graph.nodes)


def test_bodies_are_inferred_once_however_deep_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    inferred = []
    node = ShapeInference.node
    monkeypatch.setattr(ShapeInference, "node", lambda walk, one: (inferred.append(one), node(walk, one))[1])
    converted = converters.convert(_nested("If", 12))
    assert len(inferred) <= _layers(Graph("", list(converted.nodes)))


def test_graphs_too_deep_inside_each_other() -> None:
    """Deeper than in a file, where protobuf has a limit."""
    model = _nested("If", 1)
    graph = model.graph
    for _ in range(graphs.MAX_NESTED_GRAPHS + 1):
        graph = (
            graph.node.add(op_type="If", output=["u"]).attribute.add(name="then_branch", type=AttributeProto.GRAPH).g
        )
    with pytest.raises(irexec.ConversionError, match="has subgraphs nested more than 64 deep"):
        converters.convert(model)


@pytest.mark.parametrize("version", [1 << 31, 1 << 62, -1])
def test_versions_that_onnx_cannot_have(version: int) -> None:
    model = model_of("(float[2] x) => (float y) { y = Relu (x) }")
    model.opset_import[0].version = version
    with pytest.raises(irexec.ConversionError, match=f"it imports opset {version} of ai.onnx"):
        converters.convert(model)
    model = model_of("(float[2] x) => (float y) { y = Relu (x) }")
    model.ir_version = version
    with pytest.raises(irexec.ConversionError, match=f"its IR version is {version}"):
        converters.convert(model)


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        ([-3, -3], r"has the shape \[-3, -3\]"),
        (
            [1 << 62, 1 << 62],
            "would take 85070591730234615865843651857942052864 bytes, more than the 1073741824 allowed",
        ),
        ([1 << 40], "would take 4398046511104 bytes"),
        ([1 << 62, 255, 0], "is empty, but with other sizes that are too large for an array"),
        ([0, 3], "has indices out of range"),
    ],
)
def test_sparse_tensors_of_any_size(dims: list[int], message: str) -> None:
    model = model_of("(float[2] x) => (float y) { y = Add (x, w) }")
    values = helper.make_tensor("w", TensorProto.FLOAT, [1], [1.0])
    sparse = onnx.SparseTensorProto(
        values=values, indices=helper.make_tensor("i", TensorProto.INT64, [1], [0]), dims=dims
    )
    model.graph.sparse_initializer.append(sparse)
    with pytest.raises(irexec.ConversionError, match=f"initializer 'w': sparse tensor 'w' .*{message}"):
        converters.convert(model)


def _external(location: bytes) -> bytes:
    """A model whose weights are in a file of this name, which protobuf would not take from Python if it is not UTF-8."""
    model = model_of("(float[2] x) => (float y) { y = Add (x, w) }")
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
    stand_in = "?" * len(location)
    tensor.external_data.add(key="location", value=stand_in)
    model.graph.initializer.append(tensor)
    return model.SerializeToString().replace(stand_in.encode(), location)


@pytest.mark.parametrize(
    ("location", "message"),
    [
        (
            b"x" * 5000,
            f"tensor 'w' has its data in '{'x' * 196}...{'x' * 98}', which cannot be read: File name too long",
        ),
        (b"a\0b", r"tensor 'w' has its data in 'a\\x00b', which cannot be read"),
        (b"a\xffb", "a name in it is not UTF-8 text"),
        (b"cycle.bin", "tensor 'w' has its data in 'cycle.bin', which does not exist"),
        (
            b"linked.bin",
            "tensor 'w' has its data in 'linked.bin', a file with several hard links, which is not allowed",
        ),
    ],
)
def test_names_of_external_data(tmp_path: Path, location: bytes, message: str) -> None:
    (tmp_path / "weights.bin").write_bytes(bytes(8))
    os.link(tmp_path / "weights.bin", tmp_path / "linked.bin")
    (tmp_path / "cycle.bin").symlink_to("cycle.bin")
    path = tmp_path / "m.onnx"
    path.write_bytes(_external(location))
    with pytest.raises(irexec.ConversionError, match=message) as raised:
        converters.convert(path)
    assert external_files(path) == []
    assert len(str(raised.value)) < 500


def test_a_constant_without_elements_whose_other_sizes_no_array_has() -> None:
    """NumPy counts an axis of size 0 as 1."""
    model = model_of("(float[1] x) => (float y) { y = ConstantOfShape (s) }", s=np.array([1 << 62, 255, 0]))
    with pytest.raises(irexec.ConversionError, match="y"):
        converters.convert(model)
    assert irexec.compile_model(
        converters.convert(model_of("(float[1] x) => (float y) { y = ConstantOfShape (s) }", s=np.array([4, 0])))
    )([np.zeros(1, np.float32)])[0].shape == (4, 0)


def test_no_queries_share_the_heads_of_any_number_of_keys() -> None:
    """There are no indices of shared heads to be generated."""
    model = model_of(
        f"(float[1, 0, 2, 4] q, float[1, {2**40}, 3, 4] k) => (float[1, 0, 2, 4] y) {{ y = Attention (q, k, k) }}", 23
    )
    assert converters.convert(model).outputs[0].shape == (1, 0, 2, 4)
