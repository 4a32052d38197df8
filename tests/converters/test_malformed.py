"""Malformed models, and models of a few bytes that ask for too much: refused with a ConversionError of one line."""

from __future__ import annotations

import os
import random
import warnings
from collections.abc import Iterator, Sequence
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
        ([1 << 62, 1 << 62], "would take 85070591730234615865843651857942052864 bytes, more than the 1073741824 allowed"),
        ([1 << 40], "would take 4398046511104 bytes"),
        ([1 << 62, 255, 0], "is empty, but with other sizes that are too large for an array"),
        ([0, 3], "has indices out of range"),
    ],
)  # fmt: skip
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
        (b"x" * 5000, f"tensor 'w' has its data in '{'x' * 196}...{'x' * 98}', which cannot be read: File name too long"),
        (b"a\0b", r"tensor 'w' has its data in 'a\\x00b', which cannot be read"),
        (b"a\xffb", "a name in it is not UTF-8 text"),
        (b"cycle.bin", "tensor 'w' has its data in 'cycle.bin', which does not exist"),
        (b"linked.bin", "tensor 'w' has its data in 'linked.bin', a file with several hard links, which is not allowed"),
    ],
)  # fmt: skip
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


# Malformed models are refused with a ConversionError of one line, whatever is wrong with them.


_WRONG_VALUES = [
    3, -7, 2**62, 1.5, float("nan"), "abc", b"\xff\xfe", [1, 2, 3, 4, 5, 6, 7], [-9], [0.5], [2**62], ["x"], [0, 0, 0, 0], 0, -1,
    helper.make_tensor("t", TensorProto.FLOAT, [2], [1.0, 2.0]),
]  # fmt: skip
_SHAPES = [[], [0], [3], [2, 0, 3], [5, 5, 5, 5, 5, 5], None]
_TYPES = [
    TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.STRING, TensorProto.FLOAT16,
    TensorProto.BFLOAT16,
]  # fmt: skip

# Graphs of one node, with attributes and inputs of many types.
_GRAPHS = {
    "Conv": "(float[1,2,6,6] x, float[4,1,3,3] w, float[4] b) => (float y) { y = Conv <group = 2, strides = [2, 1], dilations = [1, 2], "
    "pads = [1, 1, 1, 1], kernel_shape = [3, 3]> (x, w, b) }",
    "ConvTranspose": "(float[1,2,4,4] x, float[2,1,3,3] w) => (float y) { y = ConvTranspose <group = 2, strides = [2, 2], "
    'output_shape = [8, 8], output_padding = [1, 1], auto_pad = "SAME_UPPER"> (x, w) }',
    "DeformConv": "(float[1,1,3,3] x, float[1,1,2,2] w, float[1,8,2,2] o, float[1] b) => (float y) "
    "{ y = DeformConv <kernel_shape = [2, 2], offset_group = 1, group = 1> (x, w, o, b) }",
    "MaxPool": "(float[1,1,6,6] x) => (float y, int64 i) { y, i = MaxPool <kernel_shape = [3, 2], ceil_mode = 1, storage_order = 1, "
    "strides = [2, 2], pads = [1, 0, 1, 0]> (x) }",
    "AveragePool": "(float[1,1,6,6] x) => (float y) { y = AveragePool <kernel_shape = [3, 2], ceil_mode = 1, count_include_pad = 1, "
    "strides = [2, 2], pads = [1, 0, 1, 0]> (x) }",
    "LpPool": '(float[1,1,6,6] x) => (float y) { y = LpPool <kernel_shape = [3, 2], ceil_mode = 1, p = 2, auto_pad = "VALID"> (x) }',
    "Resize": '(float[1,1,4,4] x, float[4] roi, float[2] s) => (float y) { y = Resize <mode = "cubic", axes = [2, 3], antialias = 1, '
    'coordinate_transformation_mode = "tf_crop_and_resize", cubic_coeff_a = -0.5> (x, roi, s) }',
    "Pad": '(float[2,3] x, int64[2] p, float v, int64[1] a) => (float y) { y = Pad <mode = "wrap"> (x, p, v, a) }',
    "Slice": "(float[4,5] x, int64[1] a, int64[1] b) => (float y) { y = Slice (x, a, b) }",
    "Split": "(float[6] x) => (float y, float z) { y, z = Split <axis = 0, num_outputs = 2> (x) }",
    "Gemm": "(float[2,3] x, float[3,4] w, float[4] c) => (float y) { y = Gemm <alpha = 0.5, beta = 2.0, transA = 0> (x, w, c) }",
    "ReduceSum": "(float[2,3] x, int64[1] a) => (float y) { y = ReduceSum <keepdims = 0, noop_with_empty_axes = 1> (x, a) }",
    "TopK": "(float[4] x, int64[1] k) => (float y, int64 i) { y, i = TopK <axis = 0, largest = 0> (x, k) }",
    "OneHot": "(int64[3] x, int64 d, float[2] v) => (float y) { y = OneHot <axis = 1> (x, d, v) }",
    "GatherND": "(float[2,3] x, int64[2,1] i) => (float y) { y = GatherND <batch_dims = 1> (x, i) }",
    "Cast": "(float[2] x) => (int64 y) { y = Cast <to = 7, saturate = 1> (x) }",
    "Max": "(float[2] x, float[2] z) => (float y) { y = Max (x, z) }",
    "ConstantOfShape": "(int64[2] x) => (float y) { y = ConstantOfShape <value = float[1] {1}> (x) }",
    "LayerNormalization": "(float[2,3] x, float[3] s, float[3] b) => (float y) { y = LayerNormalization <axis = -1, epsilon = 0.1> (x, s, b) }",
    "GroupNormalization": "(float[1,4,2] x, float[4] s, float[4] b) => (float y) { y = GroupNormalization <num_groups = 2> (x, s, b) }",
    "BatchNormalization": "(float[1,2,3] x, float[2] s, float[2] b, float[2] m, float[2] v) => (float y, float n, float o) "
    "{ y, n, o = BatchNormalization <training_mode = 1, momentum = 0.5> (x, s, b, m, v) }",
    "QuantizeLinear": "(float[2,4] x, float[2,2] s, int8[2,2] z) => (int8 y) { y = QuantizeLinear <axis = 1, block_size = 2> (x, s, z) }",
    "QLinearMatMul": "(uint8[2,3] x, float s, uint8 z, uint8[3,2] w, float t, uint8 v, float u, uint8 q) => (uint8 y) "
    "{ y = QLinearMatMul (x, s, z, w, t, v, u, q) }",
    "QLinearConv": "(uint8[1,1,4,4] x, float s, uint8 z, uint8[1,1,2,2] w, float t, uint8 v, float u, uint8 q, int32[1] b) => (uint8 y) "
    "{ y = QLinearConv <strides = [1, 2]> (x, s, z, w, t, v, u, q, b) }",
    "channels-last Conv": "(float[1,6,6,2] x, float[4,2,3,3] w) => (float y) "
    '{ y = com.ms.internal.nhwc.Conv <activation = "Clip", activation_params = [0.0, 1.0]> (x, w) }',
}  # fmt: skip


def _copy(model: onnx.ModelProto) -> onnx.ModelProto:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return copy


def _damaged(model: onnx.ModelProto) -> Iterator[onnx.ModelProto]:
    """The model with one wrong attribute or input."""
    node = model.graph.node[0]
    for i, attribute in enumerate(node.attribute):
        for value in _WRONG_VALUES:
            copy = _copy(model)
            copy.graph.node[0].attribute[i].CopyFrom(helper.make_attribute(attribute.name, value))
            yield copy
    for i in range(len(node.input)):
        copy = _copy(model)
        copy.graph.node[0].input[i] = ""
        yield copy
        for shape in _SHAPES:
            for kind in (model.graph.input[i].type.tensor_type.elem_type, *_TYPES):
                copy = _copy(model)
                copy.graph.input[i].CopyFrom(helper.make_tensor_value_info(node.input[i], kind, shape))
                yield copy


def _convert(model: onnx.ModelProto | Path) -> None:
    """Raises no exception but a ConversionError, which is caught."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            converters.convert(model)
        except irexec.ConversionError as error:
            assert "\n" not in str(error)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", _GRAPHS)
def test_one_wrong_attribute_or_input(name: str) -> None:
    model = model_of(_GRAPHS[name], 21)
    converters.convert(model)
    for damaged in _damaged(model):
        _convert(damaged)


@pytest.mark.parametrize("text", [b"MatMul", b"tested", b"hidden", b"rows"])
def test_names_that_are_not_text(tmp_path: Path, text: bytes) -> None:
    model = model_of(
        "(float[rows,3] x) => (float y) { hidden = MatMul (x, w) y = Relu (hidden) }", w=np.ones((3, 4), np.float32)
    )
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString().replace(text, b"\xff" * len(text), 1))
    with pytest.raises(irexec.ConversionError, match="not an ONNX model: a name in it is not UTF-8 text"):
        converters.convert(path)


@pytest.mark.slow
def test_random_bytes(tmp_path: Path) -> None:
    graph = "(float[2,3] x) => (float y) { a = MatMul (x, w) b = Add (a, c) y = Softmax <axis = 1> (b) }"
    content = model_of(graph, w=np.ones((3, 4), np.float32), c=np.ones(4, np.float32)).SerializeToString()
    generator, path = random.Random(1), tmp_path / "m.onnx"
    for _ in range(600):
        damaged = bytearray(content)
        for _ in range(generator.randint(1, 4)):
            damaged[generator.randrange(len(damaged))] = generator.randrange(256)
        path.write_bytes(bytes(damaged))
        _convert(path)


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        (helper.make_attribute("axis", 1.5), "node 'n' .*: attribute 'axis' is of type FLOAT, expected INT"),
        (helper.make_attribute("axis", [1]), "node 'n' .*: attribute 'axis' is of type INTS, expected INT"),
        (AttributeProto(name="axis", ref_attr_name="outer", type=AttributeProto.INT), "attribute 'axis' refers to an attribute of a function"),
        (helper.make_attribute("axes", 1), "attribute 'axes' is unknown"),
    ],
)  # fmt: skip
def test_attributes_that_contradict_the_schema(attribute: AttributeProto, message: str) -> None:
    model = model_of("(float[2,3] x) => (float y) { [n] y = Softmax (x) }")
    model.graph.node[0].attribute.append(attribute)
    with pytest.raises(irexec.ConversionError, match=message):
        converters.convert(model)


def test_attributes_without_a_type_in_files_of_ir_version_1() -> None:
    model = model_of("(float[2,3] x) => (float y) { y = Softmax (x) }", 1)
    model.graph.node[0].attribute.append(AttributeProto(name="axis", i=0))
    result = irexec.compile_model(converters.convert(model))([np.zeros((2, 3), np.float32)])[0]
    np.testing.assert_allclose(result, np.full((2, 3), 1 / 6), rtol=1e-6)
