"""Inputs of wrong element types and ranks, and attributes that contradict them: refused with the node's name and operator."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, TensorProto, defs, helper, numpy_helper

import converters
import irexec
from converters.onnx.load import NEWEST_OPSET
from converters.onnx.registry import operators
from tests.support.onnx_models import model_of

_INF, _NAN = float("inf"), float("nan")
_SIDE = (1 << 63) - 1


def _refused(model: onnx.ModelProto) -> str:
    with pytest.raises(irexec.ConversionError) as raised:
        converters.convert(model)
    assert "\n" not in str(raised.value)
    return str(raised.value)


# For each row a graph and what is wrong with its only node; names of operators are followed by the opset where it is not 20.
_ROWS = {
    "GatherElements": ("(float[3,2] x, float[3,2] i) => (float y) { y = GatherElements (x, i) }", "input 'indices' has element type f32"),
    "Add": ("(string[2] x, string[2] z) => (float y) { y = Add (x, z) }", "input 'A' has element type string, expected u8"),
    "And": ("(float[2] x, bool[2] z) => (bool y) { y = And (x, z) }", "input 'A' has element type f32, expected boolean"),
    "Max": ("(float[2] x, float[2] z, string[2] s) => (float y) { y = Max (x, z, s) }", "input 'data_0' has element type string"),
    "STFT": ("(int64[1,9,1] x, int64 s) => (float y) { y = STFT (x, s) }", "input 'signal' has element type i64"),
    "Attention 23": ("(float[2,3,4,8] q, float[8] k, float[8] v) => (float y) { y = Attention (q, k, v) }", "key has rank 1, expected 3 or 4"),
    "Attention  23": (
        "(float[2,4,24] q, float[2,4,24] k, float[2,3,4,8] v) => (float y) { y = Attention <q_num_heads = 3, kv_num_heads = 3> (q, k, v) }",
        r"the ranks \[3, 3, 4\], expected equal ones",
    ),
    "com.microsoft.Attention": (
        "(float[2,8] x, float[8,24] w) => (float y) { y = com.microsoft.Attention <num_heads = 2> (x, w) }", "x has rank 2, expected 3",
    ),
    "com.microsoft.GroupQueryAttention": (
        "(float[1,4,8] q, int32[1] l, int32 t) => (float y) " "{ y = com.microsoft.GroupQueryAttention <num_heads = 2, kv_num_heads = -1> (q, , , , , l, t) }",
        "num_heads is 2 and kv_num_heads -1, expected 1 or more",
    ),
    "CausalConvWithState 27": ("(float[1,2] x, float[2,1,4] w) => (float y) { y = CausalConvWithState (x, w) }", "x has rank 2, expected 3"),
    "AffineGrid": ("(float t, int64[4] s) => (float y) { y = AffineGrid (t, s) }", "theta has rank 0, expected 3"),
    "LSTM": (
        "(float[2,1,2] x, float[1,8,2] w, float[1,8,2] r) => (float y) { y = LSTM <hidden_size = 4611686018427387904> (x, w, r) }",
        r"W has the shape \[1,8,2\], expected \[1, 18446744073709551616, any\]",
    ),
    "GRU": (
        "(float[2,1,2] x, float[1,6,2] w, float[1,6,2] r) => (float y) { y = GRU <hidden_size = 2, direction = \"bidirectional\"> (x, w, r) }",
        r"W has the shape \[1,6,2\], expected \[2, 6, any\]",
    ),
    "GRU ": (
        "(float[a,b,c] x, float[d,e,f] w, float[g,h,i] r) => (float y) { y = GRU <hidden_size = 4611686018427387904> (x, w, r) }",
        "the bias of shape .* would take .* bytes, more than the 1073741824 allowed",
    ),
    "RNN": ("(float[2,1,2] x, float[1,0,2] w, float[1,0,0] r) => (float y) { y = RNN (x, w, r) }", "hidden_size is 0, expected 1 or more"),
    "Concat": (f"(float[2] x, float[{_SIDE}] z) => (float y) {{ y = Concat <axis = 0> (x, z) }}", r"of which size 9223372036854775809 is larger than 2\*\*63 - 1"),
    "Split": ("(float[6] x) => (float y) { y = Split <num_outputs = 4611686018427387904> (x) }", "the parts would be 4611686018427387904"),
    "SplitToSequence": (
        "(float[4611686018427387904] x) => (float y) { s = SplitToSequence (x) y = ConcatFromSequence <axis = 0> (s) }",
        "the tensors of the sequence would be 4611686018427387904",
    ),
    "TfIdfVectorizer": (
        "(int64[n] x) => (float y) { y = TfIdfVectorizer <max_gram_length = 2, min_gram_length = 2, max_skip_count = 4611686018427387904, "
        'mode = "TF", ngram_counts = [0, 0], ngram_indexes = [0], pool_int64s = [1, 2]> (x) }',
        "the distances between the elements of an n-gram would be 4611686018427387905",
    ),
    "GroupNormalization 18": (
        "(float[1,4611686018427387904,2] x, float[2] s, float[2] b) => (float y) { y = GroupNormalization <num_groups = 2> (x, s, b) }",
        "the indices of groups .* more than the 1073741824 allowed",
    ),
    "RoiAlign": (
        "(float[1,1,4,4] x, float[1,4] r, int64[1] i) => (float y) { y = RoiAlign <output_height = 0> (x, r, i) }",
        "the output is 0 x 1 and sampling_ratio 0",
    ),
    "Clip": ("(float[3] x, float[3] l, float[3] h) => (float y) { y = Clip (x, l, h) }", "low has 3 elements, expected 1"),
    "Loop": (
        f"(float[2] x, int64 n, bool[{_SIDE}] c) => (float y) "
        "{ y = Loop (n, c, x) <body = b (int64 i, bool d, float[2] p) => (bool e, float[2] q) { e = Identity (d) q = Relu (p) }> }",
        "the condition .* does not have one element",
    ),
    "SequenceAt": (
        "(float[6] x) => (float y) { s = SplitToSequence (x) p = Constant <value_ints = [0, 1]> () y = SequenceAt (s, p) }",
        "the position in a sequence has 2 elements, expected 1",
    ),
    "Col2Im": (
        f"(float[1,4,4] x, int64[{_SIDE}] i, int64[2] k) => (float y) {{ y = Col2Im (x, i, k) }}",
        f"the number of axes in image_shape would be {_SIDE}, expected 0 to 10000",
    ),
    "Slice": (f"(float[1,4,4] x, int64[{_SIDE}] i) => (float y) {{ y = Slice (x, i, i) }}", f"the number of sliced axes would be {_SIDE}, expected 0 to 10000"),
    "DFT": ("(float[1,10,10,1] x) => (float y) { b = Constant <value_ints = [0, 1]> () y = DFT (x, , b) }", "the axis has 2 elements, expected 1"),
    "LinearAttention 27": (
        "(float[1,2,0] q, float[1,2,0] k, float[1,2,4] v) => (float y) "
        '{ y = LinearAttention <q_num_heads = 2, kv_num_heads = 2, update_rule = "linear"> (q, k, v) }',
        "have no elements for 2 heads",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", _ROWS)
def test_inputs_that_contradict_the_operator(name: str) -> None:
    operator, _, opset = name.partition(" ")
    graph, message = _ROWS[name]
    error = _refused(model_of(graph, int(opset.strip() or 20)))
    domain = "" if "." in operator else "ai.onnx."
    assert f"({domain}{operator} of opset" in error
    assert re.search(message, error), error


@pytest.mark.parametrize("scale", [_INF, -_INF, _NAN, 0.0, -1.0])
def test_scales_that_give_no_size(scale: float) -> None:
    resize = model_of("(float[a,2] x) => (float y) { y = Resize (x, , s) }", s=np.array([scale, 2.0], np.float32))
    assert "(ai.onnx.Resize of opset 20): the scales are" in _refused(resize)


_NUMERIC = sorted(
    {
        s.name
        for s in defs.get_all_schemas()
        if s.domain == "" and ("", s.name) in operators() and s.min_input and s.inputs[0].types
    }
    - {
        s.name
        for s in defs.get_all_schemas_with_history()
        if s.domain == "" and s.inputs and any("string" in t for t in s.inputs[0].types)
    }
    - {
        s.name
        for s in defs.get_all_schemas()
        if s.inputs and not any(t.startswith("tensor") for t in s.inputs[0].types)
    }
)


def test_operators_that_take_no_text_are_found() -> None:
    assert len(_NUMERIC) > 100


@pytest.mark.parametrize("operator", _NUMERIC)
def test_text_is_refused_where_no_version_of_the_operator_takes_it(operator: str) -> None:
    schema = defs.get_schema(operator, NEWEST_OPSET, "")
    inputs = [f"x{i}" for i in range(schema.min_input)]
    graph = helper.make_graph(
        [helper.make_node(operator, inputs, ["y"])], "g",
        [helper.make_tensor_value_info(name, TensorProto.STRING, [2]) for name in inputs], [helper.make_tensor_value_info("y", 1, None)],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", NEWEST_OPSET)], ir_version=10)
    assert f"input {schema.inputs[0].name!r} has element type string, expected" in _refused(model)


def _forest(**changes: Any) -> onnx.ModelProto:
    """Two trees of TreeEnsemble-5: node 0 goes to leaf 0 or to node 1, which has the leaves 0 and 1; node 2 is a tree of its own."""

    def tensor(values: list[float], kind: type) -> TensorProto:
        return numpy_helper.from_array(np.array(values, kind), "t")

    lists: dict[str, Any] = {
        "nodes_featureids": [0, 1, 0], "nodes_trueleafs": [1, 1, 1], "nodes_truenodeids": [0, 0, 1], "nodes_falseleafs": [0, 1, 1],
        "nodes_falsenodeids": [1, 1, 0], "leaf_targetids": [0, 0], "tree_roots": [0, 2], "n_targets": 1, "aggregate_function": 1,
        "post_transform": 0, "nodes_modes": [0, 0, 0], "nodes_splits": [1.0, 2.0, 3.0], "leaf_weights": [1.0, 2.0],
    } | changes  # fmt: skip
    roots = lists.pop("tree_roots")
    for name, kind in (("nodes_modes", np.uint8), ("nodes_splits", np.float32), ("leaf_weights", np.float32)):
        # A mode that is not an integer needs another type than that of modes.
        lists[name] = tensor(lists[name], kind if all(value == value for value in lists[name]) else np.float32)
    node = helper.make_node("TreeEnsemble", ["X"], ["Y"], domain="ai.onnx.ml", **lists)
    node.attribute.append(helper.make_attribute("tree_roots", roots, attr_type=AttributeProto.INTS))
    return _of_ml(node, 5)


def _of_ml(node: onnx.NodeProto, version: int) -> onnx.ModelProto:
    x = helper.make_tensor_value_info("X", TensorProto.FLOAT, [1, 2])
    graph = helper.make_graph([node], "g", [x], [helper.make_tensor_value_info(name, 1, None) for name in node.output])
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", version)], ir_version=9
    )


def test_a_forest() -> None:
    """Row [5, 1]: node 0 is false, node 1 true, leaf 0; node 2 is false, leaf 0: 1 + 1."""
    compiled = irexec.compile_model(converters.convert(_forest()))
    np.testing.assert_array_equal(compiled([np.float32([[5, 1]])])[0], [[2]])


def test_a_forest_over_data_of_unknown_rank() -> None:
    model = _forest()
    model.graph.input[0].type.tensor_type.ClearField("shape")
    compiled = irexec.compile_model(converters.convert(model))
    np.testing.assert_array_equal(compiled([np.float32([[5, 1]])])[0], [[2]])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"nodes_featureids": [0]}, "nodes_featureids has 1 entry, expected 3"),
        ({"nodes_truenodeids": [0, 1]}, "nodes_truenodeids has 2 entries, expected 3"),
        ({"nodes_splits": [1.0]}, "nodes_splits has 1 entry, expected 3"),
        ({"leaf_weights": [1.0]}, "leaf_weights has 1 entry, expected 2"),
        ({"nodes_modes": [0, 99, 0]}, "a mode is 99, expected 0 to 6"),
        ({"nodes_modes": [0, float("nan"), 0]}, "a mode is nan, expected an integer"),
        ({"tree_roots": [9]}, r"the roots of the trees are \[9\]"),
        ({"tree_roots": [-1]}, r"the roots of the trees are \[-1\]"),
        ({"tree_roots": []}, r"the roots of the trees are \[\]"),
        ({"nodes_truenodeids": [0, 0, -1]}, "a branch is -1, expected 0 to 1"),
        ({"nodes_falsenodeids": [0, 1, 0]}, "node 0 is part of a cycle of nodes, or above one"),
        ({"nodes_featureids": [0, 2, 0]}, "features 0 to 2 are not among the 2 columns of the data"),
        ({"nodes_featureids": [0, -1, 0]}, "features -1 to 0 are not among"),
        ({"aggregate_function": -1}, "aggregate_function is -1, expected 0 to 3"),
        ({"post_transform": 5}, "post_transform is 5, expected 0 to 4"),
        ({"n_targets": 10**9}, r"of shape \[5, 1000000000\] would take 40000000000 bytes, more than the 1073741824 allowed"),
        ({"n_targets": -2}, r"has the shape \[5, -2\]"),
    ],
)  # fmt: skip
def test_damaged_forests(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(
        irexec.ConversionError, match=rf"node 'Y' \(ai\.onnx\.ml\.TreeEnsemble of opset 5\): .*{message}"
    ):
        converters.convert(_forest(**changes))


_TREE = {
    "nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_featureids": [0, 0, 0], "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
    "nodes_values": [0.5, 0.0, 0.0], "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0],
}  # fmt: skip
_REGRESSOR = _TREE | {
    "target_treeids": [0, 0], "target_nodeids": [1, 2], "target_ids": [0, 0], "target_weights": [1.0, 2.0],
    "n_targets": 1,
}  # fmt: skip
_CLASSIFIER = _TREE | {
    "class_treeids": [0, 0], "class_nodeids": [1, 2], "class_ids": [0, 1], "class_weights": [1.0, 2.0], "classlabels_int64s": [3, 4],
}  # fmt: skip


@pytest.mark.parametrize(
    ("operator", "base", "changes", "message"),
    [
        ("Regressor", _REGRESSOR, {"nodes_truenodeids": [0, 0, 0]}, "node 0 is part of a cycle of nodes"),
        ("Regressor", _REGRESSOR, {"nodes_values": [0.5]}, "nodes_values has 1 entry, expected 3"),
        ("Regressor", _REGRESSOR, {"nodes_nodeids": [0, 1]}, "nodes_nodeids has 2 entries, expected 3"),
        ("Regressor", _REGRESSOR, {"target_weights": [1.0]}, "weights has 1 entry, expected 2"),
        ("Regressor", _REGRESSOR, {"n_targets": 10**9}, "would take 24000000000 bytes"),
        ("Regressor", _REGRESSOR, {"base_values": [1.0, 2.0]}, "base_values has 2 entries, expected 1"),
        ("Classifier", _CLASSIFIER, {"class_ids": [0, 5]}, "a leaf has target 5, expected 0 to 1"),
        ("Classifier", _CLASSIFIER, {"classlabels_int64s": []}, "a leaf has target 0, expected 0 to -1"),
        ("Classifier", _CLASSIFIER, {"nodes_falsenodeids": [0, 0, 0]}, "node 0 is part of a cycle of nodes"),
    ],
)
def test_damaged_trees(operator: str, base: dict[str, Any], changes: dict[str, Any], message: str) -> None:
    outputs = ["Y"] if operator == "Regressor" else ["L", "Y"]
    given = {name: value for name, value in (base | changes).items() if value != []}
    model = _of_ml(helper.make_node(f"TreeEnsemble{operator}", ["X"], outputs, domain="ai.onnx.ml", **given), 3)
    with pytest.raises(irexec.ConversionError, match=rf"TreeEnsemble{operator} of opset 3\): .*{message}"):
        converters.convert(model)


def test_a_graph_without_outputs() -> None:
    model = model_of("(float[2] x) => (float y) { y = Relu (x) }")
    del model.graph.output[:]
    assert "graph 'tested' has no outputs" in _refused(model)


def test_operators_are_named_without_control_characters() -> None:
    model = model_of("(float[2] x) => (float y) { y = Relu (x) }")
    model.graph.node[0].op_type = "\x1b]0;title\x07\n"
    assert r"ai.onnx.\x1b]0;title\x07 of opset 20" in _refused(model)


def test_a_sequence_of_sequences_of_bodies(monkeypatch: pytest.MonkeyPatch) -> None:
    """SequenceMaps inside each other: 100 tensors in each of 8 give 10**16 nodes."""
    body = "leaf (float[1] a0) => (float[1] r0) { r0 = Relu (a0) }"
    for i in range(1, 8):
        inner = f"t{i} = SequenceMap <body = {body}> (s) r{i} = ConcatFromSequence <axis = 0> (t{i})"
        body = f"body{i} (float[1] a{i}) => (float[n] r{i}) {{ {inner} }}"
    text = f"(float[100] x) => (float y) {{ s = SplitToSequence (x) t = SequenceMap <body = {body}> (s) y = ConcatFromSequence <axis = 0> (t) }}"
    monkeypatch.setattr("converters.onnx.graphs.MAX_TRANSLATIONS", 1000)
    assert re.search(r"need more than 1\d\d\d translations of nodes", _refused(model_of(text, 18)))


@pytest.mark.parametrize("name", ["\x1b[31m", "a\0b", "\ufffe"])
def test_names_that_ir_cannot_have(name: str) -> None:
    for field in ("name", "output"):
        model = model_of("(float[2] x) => (float y) { h = Relu (x) y = Neg (h) }")
        if field == "name":
            model.graph.node[0].name = name
        else:
            model.graph.node[0].output[0] = model.graph.node[1].input[0] = name
        assert "has characters that XML, and therefore IR, cannot contain" in _refused(model)


def test_an_integer_mask_of_attention_is_padded_with_minus_infinity() -> None:
    """A mask for 2 of 3 keys: the value of the third does not count, so that the result is (1 + 3) / 2."""
    text = "(float[1,1,1,2] q, float[1,1,3,2] k, float[1,1,3,2] v) => (float y) { y = Attention (q, k, v, m) }"
    compiled = irexec.compile_model(converters.convert(model_of(text, 23, m=np.zeros((1, 2), np.int32))))
    value = np.float32([[[[1, 1], [3, 3], [100, 100]]]])
    np.testing.assert_allclose(
        compiled([np.zeros((1, 1, 1, 2), np.float32), np.zeros((1, 1, 3, 2), np.float32), value])[0], [[[[2, 2]]]]
    )


def test_a_negative_scale_of_attention() -> None:
    """Scores -1 and 1 weigh the values 0 and 1: 1 / (1 + exp(-2))."""
    text = "(float[1,1,1,1] q, float[1,1,2,1] k, float[1,1,2,1] v) => (float y, float s) { y, , , s = Attention <scale = -1.0> (q, k, v) }"
    compiled = irexec.compile_model(converters.convert(model_of(text, 23)))
    key, value = np.float32([[[[1], [-1]]]]), np.float32([[[[0], [1]]]])
    result = compiled([np.ones((1, 1, 1, 1), np.float32), key, value])
    np.testing.assert_allclose(result[0], [[[[0.880797]]]], rtol=1e-6)
    np.testing.assert_allclose(result[1], [[[[-1, 1]]]], rtol=1e-6)


@pytest.mark.parametrize(
    ("operator", "domain", "shapes", "attributes", "message"),
    [
        ("Compress", "", [(2, 3), (2, 3)], {}, "condition has rank 2, expected 1"),
        ("Imputer", "ai.onnx.ml", [(2, 3)], {"imputed_value_floats": [1.0, 2.0]}, "there are 2 imputed values for 3 columns of the data"),
        ("FeatureVectorizer", "ai.onnx.ml", [(2, 3)], {"inputdimensions": [1, 2]}, r"inputdimensions is \[1, 2\], expected a number of columns for each of 1 input"),
        ("FeatureVectorizer", "ai.onnx.ml", [(2, 3)], {"inputdimensions": [-1]}, r"inputdimensions is \[-1\]"),
        ("AveragePool", "", [(1, 3, 2, 2)], {"ceil_mode": 1, "kernel_shape": [1, 1], "strides": [0, 0]}, r"strides is \[0, 0\], expected positive numbers"),
        ("MaxPool", "", [(1, 3, 2, 2)], {"ceil_mode": 1, "kernel_shape": [1, 1], "dilations": [1, -1]}, r"dilations is \[1, -1\], expected positive"),
        ("MatMulNBits", "com.microsoft", [(2, 32), (3, 2, 16), (6,)], {"K": 32, "N": 3, "block_size": 0}, "K is 32, N 3 and block_size 0, expected positive"),
        ("GroupQueryAttention", "com.microsoft", [(1, 2, 30), None, None, None, None, (1,), (1,)], {"num_heads": 2, "kv_num_heads": 1}, "the width of .* cannot be split"),
    ],
)  # fmt: skip
def test_sizes_that_contradict_each_other(
    operator: str, domain: str, shapes: list[tuple[int, ...] | None], attributes: dict[str, Any], message: str
) -> None:
    names = ["" if shape is None else f"x{i}" for i, shape in enumerate(shapes)]
    kinds = [TensorProto.BOOL if operator == "Compress" and i else TensorProto.FLOAT for i in range(len(shapes))]
    infos = [helper.make_tensor_value_info(*info) for info in zip(names, kinds, shapes, strict=True) if info[0]]
    node = helper.make_node(operator, names, ["y"], domain=domain, **attributes)
    graph = helper.make_graph([node], "g", infos, [onnx.ValueInfoProto(name="y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)])
    with pytest.raises(
        irexec.ConversionError, match=rf"node 'y' \({domain or 'ai.onnx'}\.{operator} of opset \d+\): {message}"
    ):
        converters.convert(model)
