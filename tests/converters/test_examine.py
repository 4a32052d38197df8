"""Findings in ONNX models: each code on a model that has it, and on the same model when that is repaired."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, external_data_helper, helper, parser

import irexec
from converters.onnx import examine as examining
from converters.onnx.examine import Examination, examine
from irexec.errors import ConversionError
from irexec.ir.codes import CODES
from irexec.ir.findings import Finding

OPSETS = 'opset_import: ["" : 20, "local" : 1, "com.example" : 1, "com.microsoft" : 1, "ai.onnx.ml" : 3]'


def parsed(text: str, header: str = f"ir_version: 10, {OPSETS}") -> onnx.ModelProto:
    """A model of a graph, and of functions after it, in ONNX's own text."""
    return parser.parse_model(f"<{header}> {text if text.startswith('agraph') else f'agraph {text}'}")


Change = Callable[[onnx.ModelProto], object]


@dataclass(frozen=True)
class Row:
    """A model with a finding.

    Attributes:
        code, index, name, type: of the finding.
        wrong, right: the graph, and the graph when it is repaired.
        words: a part of the message.
        others: further codes, of findings that come with it.
        change: makes the model from the parsed one, where the text has no means for it.
        header: of both models.
    """

    code: str
    index: int | None
    name: str | None
    type: str | None
    wrong: str
    right: str
    words: str
    others: set[str] = field(default_factory=set)
    change: Change = lambda model: None
    header: str = f"ir_version: 10, {OPSETS}"


def _initializer(*values: float, dims: tuple[int, ...] | None = None, name: str = "w") -> Change:
    """An initializer whose bytes may not be those of its shape."""
    raw = np.array(values, np.float32).tobytes()
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=dims or (len(values),), raw_data=raw)
    return lambda model: model.graph.initializer.append(tensor)


def _location(location: str) -> Change:
    def change(model: onnx.ModelProto) -> None:
        external_data_helper.set_external_data(model.graph.initializer[0], location)
        model.graph.initializer[0].ClearField("raw_data")

    return change


def _without_name(model: onnx.ModelProto) -> None:
    """The output of the graph and that of its node are called like one that is not given."""
    model.graph.output[0].name = model.graph.node[0].output[0] = ""


RELU = "(float[2] x) => (float[2] y) { [act] y = Relu (x) }"
WITH_W = "(float[2] x) => (float[2] y) { y = Add (x, w) }"
BODY = "(bool c, float[2,3] x) => (float[2,3] y) {{ [choice] y = If (c) <then_branch = one () => (float[2,3] a) {{ {} }}, else_branch = two () => (float[2,3] b) {{ b = Neg (x) }}> }}"
FUNCTION = 'agraph (float[2,3] x) => (float[2,3] y) {{ t = local.Twice (x) y = local.Twice (t) }} <domain: "local", opset_import: ["" : 20, "com.example" : 1]> Twice (x) => (y) {{ u = Neg (x) {} }}'


def blocked(channels: int) -> str:
    """A convolution of com.microsoft.nchwc with weights of ones."""
    weights = f"<float[{channels},4,1,1] w = {{{', '.join(['1'] * channels * 4)}}}>"
    nodes = f"t = com.microsoft.nchwc.Conv (x, w) y = com.microsoft.nchwc.ReorderOutput <channels = {channels}> (t)"
    return f"(float[1,4,2,2] x) => (float[1,{channels},2,2] y) {weights} {{ {nodes} }}"


ROWS = [
    Row("ON001", 0, "up", "Upsample", "(float[1,1,2,2] x) => (float[1,1,4,4] y) <float[4] s = {1, 1, 2, 2}> { [up] y = Upsample (x, s) }",
        "(float[1,1,2,2] x) => (float[1,1,4,4] y) <float[4] s = {1, 1, 2, 2}> { [up] y = Resize (x, , s) }", "deprecated"),
    Row("ON003", 0, "y", "Add", "(float[2] x) => (float[2] y) { y = Add (x, bias) }", "(float[2] x, float[2] bias) => (float[2] y) { y = Add (x, bias) }", "nothing produces 'bias'"),
    Row("ON003", None, "y", "output", "(float[2] x) => (float[2] y) { t = Relu (x) }", RELU, "an output of the graph", {"ON008"}),
    Row("ON003", None, "", "output", RELU, RELU, "nothing produces '', an output of the graph", {"ON008"}, change=_without_name),
    Row("ON003", 0, "choice/then_branch/a", "Neg", BODY.format("a = Neg (nothing)"), BODY.format("a = Neg (x)"), "'nothing'"),
    Row("ON004", 0, "a", "Relu", "(float[2] x) => (float[2] y) { a = Relu (b) b = Neg (a) y = Add (a, x) }", "(float[2] x) => (float[2] y) { a = Relu (x) b = Neg (a) y = Add (b, x) }", "cycle"),
    Row("ON005", None, "t", "value", "(float[2] x) => (float[2] y) { [one] t = Relu (x) [two] t = Neg (x) y = Add (t, t) }",
        "(float[2] x) => (float[2] y) { [one] t = Relu (x) [two] u = Neg (x) y = Add (t, u) }", "an output of node 'two' and also an output of node 'one'", {"ON008"}),
    Row("ON006", 0, "y", "Neg", "(float[2] x) => (float[2] y) { y = Neg (t) [late] t = Relu (x) }", "(float[2] x) => (float[2] y) { t = Relu (x) y = Neg (t) }", "node 'late', which comes after it"),
    Row("ON007", None, "w", "initializer", WITH_W, RELU, "takes 8", change=_initializer(1, 2, 3, dims=(2,))),
    Row("ON008", 1, "dead", "Neg", "(float[2] x) => (float[2] y) { y = Relu (x) [dead] t = Neg (x) }", RELU, "depends on it"),
    Row("ON008", 0, "choice/then_branch/t", "Neg", BODY.format("t = Neg (x) a = Relu (x)"), BODY.format("a = Relu (x)"), "depends on it"),
    Row("ON009", None, "agraph", "graph", "(float[2] x) => () { [act] y = Relu (x) }", RELU, "no output"),
    Row("ON010", None, None, None, RELU, RELU, "opset 99 is newer than", header='ir_version: 10, opset_import: ["" : 99]'),
    Row("ON011", None, None, None, blocked(16), blocked(8), "fit blocks of 8 and of 16",
        header='ir_version: 10, opset_import: ["" : 20, "com.microsoft.nchwc" : 1]'),
    Row("ON012", None, "Relu", "function", RELU + ' <domain: "", opset_import: ["" : 20]> Relu (u) => (v) { v = Neg (u) }', RELU, "the operator of that name is computed"),
    Row("ON101", 0, "act", "com.example.Swish", "(float[2] x) => (float[2] y) { [act] y = com.example.Swish (x) }", RELU, "the domain 'com.example' of operator 'Swish' is not known"),
    Row("ON101", 0, "act", "Relv", "(float[2] x) => (float[2] y) { [act] y = Relv (x) }", RELU, "similar operators are PRelu, Relu"),
    Row("ON101", 1, "local.Twice/act", "com.example.Swish", FUNCTION.format("[act] y = com.example.Swish (u)"), FUNCTION.format("[act] y = Relu (u)"), "com.example"),
    Row("ON101", 0, "choice/then_branch/act", "com.example.Swish", BODY.format("[act] a = com.example.Swish (x)"), BODY.format("a = Neg (x)"), "com.example"),
    Row("ON102", 0, "y", "ImageDecoder", "(uint8[2] x) => (uint8[2,2,3] y) { y = ImageDecoder (x) }", "(uint8[2] x) => (uint8[2] y) { y = Identity (x) }", "ai.onnx.ImageDecoder of opset 20"),
    Row("ON103", 0, "align", "RoiAlign", "(float[1,1,4,4] x, float[1,4] r, int64[1] i) => (float[1,1,1,1] y) { [align] y = RoiAlign (x, r, i) }",
        "(float[1,1,4,4] x) => (float[1,1,1,1] y) { y = GlobalMaxPool (x) }", "exists since opset 10, the model imports opset 9", header='ir_version: 4, opset_import: ["" : 9]'),
    Row("ON104", 0, "join", "Concat", "(float[2] x) => (float[4] y) { [join] y = Concat (x, x) }", "(float[2] x) => (float[4] y) { [join] y = Concat <axis = 0> (x, x) }", "required attribute axis is missing"),
    Row("ON104", 0, "act", "Relu", "(float[2] x) => (float[2] y) { [act] y = Relu <alpha = 1.0> (x) }", RELU, "attribute 'alpha' is unknown"),
    Row("ON104", 0, "act", "Gelu", "(float[2] x) => (float[2] y) { [act] y = Gelu <approximate = \"sigmoid\"> (x) }", "(float[2] x) => (float[2] y) { [act] y = Gelu <approximate = \"tanh\"> (x) }", "approximate is 'sigmoid', expected none or tanh"),
    Row("ON105", 0, "mm", "MatMul", "(float[2,3] x) => (float[2,2] y) { [mm] y = MatMul (x, x) }", "(float[2,3] x) => (float[2,2] y) { t = Transpose (x) [mm] y = MatMul (x, t) }", "3"),
    Row("ON105", 0, "act", "Relu", "(float[2] x) => (float[2] y) { [act] y = Relu (x, x) }", RELU, "it has 2 inputs, expected 1"),
    Row("ON105", 1, "local.Twice/soft", "Softmax", FUNCTION.format("[soft] y = Softmax <axis = 7> (u)"), FUNCTION.format("[soft] y = Softmax (u)"), "axis 7 is out of range"),
    Row("ON106", 1, "insert", "SequenceInsert", "(float[2] x, int64 i) => (float[4] y) { s = SequenceConstruct (x) [insert] t = SequenceInsert (s, x, i) y = ConcatFromSequence <axis = 0> (t) }",
        "(float[2] x) => (float[4] y) <int64 i = {1}> { s = SequenceConstruct (x) [insert] t = SequenceInsert (s, x, i) y = ConcatFromSequence <axis = 0> (t) }", "must be known when the model is converted"),
    Row("ON107", None, "x", "input", "(complex64[2] x) => (complex64[2] y) { y = Identity (x) }", "(float[2] x) => (float[2] y) { y = Identity (x) }", "COMPLEX64"),
    Row("ON107", None, "y", "output", "(float[2] x) => (seq(float[2]) y) { y = SequenceConstruct (x) }", RELU, "not a tensor"),
    Row("ON108", 0, "deform", "DeformConv",
        "(float[1,1,4] x, float[1,1,2] w, float[1,2,3] o) => (float[1,1,3] y) { [deform] y = DeformConv <kernel_shape = [2]> (x, w, o) }",
        "(float[1,1,3,3] x, float[1,1,2,2] w, float[1,8,2,2] o) => (float[1,1,2,2] y) { [deform] y = DeformConv <kernel_shape = [2, 2]> (x, w, o) }", "OpenVINO does not load"),
    Row("ON109", 0, "act", "Gelu", "(float[2] x) => (float[2] y) { [act] y = Gelu (x) }", RELU, "exists since opset 20, the model imports opset 17", header='ir_version: 8, opset_import: ["" : 17]'),
    Row("ON201", None, "y", "output", "(float[2,4] x) => (float[2,7] y) { y = Relu (x) }", "(float[2,4] x) => (float[N,4] y) { y = Relu (x) }", "declared as f32[2,7], but its node produces f32[2,4]"),
    Row("ON201", None, "choice/then_branch/a", "output", BODY.replace("() => (float[2,3] a)", "() => (float[5,3] a)").format("a = Neg (x)"), BODY.format("a = Neg (x)"), "f32[5,3]"),
    Row("ON202", None, "y", "output", "(float[2] x) => (double[2] y) { y = Relu (x) }", "(float[2] x) => (double[2] y) { y = Cast <to = 11> (x) }", "f64[2]"),
    Row("ON203", None, "t", "value_info", "(float[2,4] x) => (float[2,4] y) <float[2,7] t> { t = Relu (x) y = Neg (t) }", "(float[2,4] x) => (float[2,4] y) <float[2,4] t> { t = Relu (x) y = Neg (t) }", "f32[2,7]"),
    Row("ON204", None, "t", "value_info", "(float[2] x) => (float[2] y) <int64[2] t> { t = Relu (x) y = Neg (t) }", "(float[2] x) => (float[2] y) <float[2] t> { t = Relu (x) y = Neg (t) }", "i64[2]"),
    Row("ON205", None, "w", "input", "(float[2] x, float[3] w) => (float[2] y) { y = Add (x, w) }", "(float[2] x, float[2] w) => (float[2] y) { y = Add (x, w) }", "its initializer is f32[2]", change=_initializer(1, 2)),
    Row("ON206", None, "gone", "value_info", "(float[2] x) => (float[2] y) <float[2] gone> { y = Relu (x) }", RELU, "no value 'gone'"),
]  # fmt: skip


def found(row: Row, graph: str) -> list[Finding]:
    """The findings in one of the two models of a row."""
    model = parsed(graph, row.header)
    if graph == row.wrong or row.code == "ON205":
        row.change(model)
    return list(examine(model).findings)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.code} {row.name}")
def test_it_is_found_where_it_is(row: Row) -> None:
    findings = found(row, row.wrong)
    assert (row.code, row.index, row.name, row.type) in [
        (f.code, f.layer_id, f.layer_name, f.layer_type) for f in findings
    ]
    assert {f.code for f in findings} == {row.code} | row.others
    assert row.words in " ".join(f.message for f in findings if f.code == row.code)
    assert all(f.severity == CODES[f.code].severity for f in findings)


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row.wrong != row.right], ids=lambda row: f"{row.code} {row.name}"
)
def test_it_is_not_found_where_it_is_not(row: Row) -> None:
    assert row.code not in {f.code for f in found(row, row.right)}


def test_every_code_has_a_row() -> None:
    assert {row.code for row in ROWS} | {"ON002"} == {code for code in CODES if code.startswith("ON")}


def test_the_newest_known_opset_is_not_a_finding() -> None:
    assert not examine(parsed(RELU, 'ir_version: 10, opset_import: ["" : 22]')).findings


def test_what_the_inference_of_onnx_alone_objects_to_is_information(monkeypatch: pytest.MonkeyPatch) -> None:
    """No model is known to which only ONNX objects, rightly; where it has an error of its own, so does the test."""

    def refuse(*_: object, **__: object) -> None:
        raise ConversionError(
            "[ShapeInferenceError] Inference error(s): (op_type:Relu, node name: act): [ShapeInferenceError] Inferred shape is odd\n"
        )

    assert not examine(parsed(RELU)).findings
    monkeypatch.setattr(examining, "infer_shapes", refuse)
    findings = examine(parsed(RELU)).findings
    assert [(f.code, f.severity, f.layer_name, f.message) for f in findings] == [
        ("ON002", "info", "act", "Inferred shape is odd")
    ]


MANY = """(float[N,4] x, bool c) => (float[N,7] y, float[N,4] w, float[N,4] v) <float[N,4] t, int64[N,4] v2> {
    [first] t = com.example.A (x)
    [second] u = MatMul (x, x)
    [third] y = Relu (t)
    [fourth] v2 = Neg (t)
    [fifth] v = Concat (v2, u)
    [choice] w = If (c) <then_branch = one () => (float[N,4] a) { [sixth] a = com.example.B (x) }, else_branch = two () => (float[N,4] b) { [seventh] b = Softmax <axis = 5> (x) }>
}"""


def test_one_finding_does_not_hide_the_next() -> None:
    """After a node that cannot be converted its outputs are as they are declared; what depends on an unknown value is not reported."""
    examined = examine(parsed(MANY))
    assert examined.model is None
    assert [(f.code, f.layer_name) for f in examined.findings] == [
        ("ON201", "y"), ("ON204", "v2"), ("ON101", "first"), ("ON104", "fifth"),
        ("ON105", "choice/else_branch/seventh"), ("ON101", "choice/then_branch/sixth"),
    ]  # fmt: skip


def test_a_function_is_reported_once_however_often_it_is_called() -> None:
    calls = " ".join(f"y{i} = local.Twice (x)" for i in range(5))
    text = f'agraph (float[2] x) => (float[2] y) {{ {calls} y = Sum (y0, y1, y2, y3, y4) }} <domain: "local", opset_import: ["com.example" : 1]> Twice (x) => (y) {{ y = com.example.Swish (x) }}'
    assert [(f.code, f.layer_name) for f in examine(parsed(text)).findings] == [("ON101", "local.Twice/y")]


def test_an_operator_that_becomes_others_is_named_itself() -> None:
    """Celu has no translator: ONNX's own function of it is used."""
    findings = examine(parsed("(int32[2] x) => (int32[2] y) { [own] y = Celu (x) }")).findings
    assert {(f.layer_id, f.layer_name, f.layer_type) for f in findings} == {(0, "own", "Celu")}


def test_a_loop_whose_body_is_built_again_has_each_finding_once() -> None:
    body = "body = b (int64 i, bool go, float[N] s) => (bool more, float[M] next) { more = Identity (go) next = Concat <axis = 0> (s, s) [bad] z = Softmax <axis = 3> (s) }"
    findings = examine(
        parsed(f"(int64 n, bool c, float[2] x) => (float[K] y) {{ [loop] y = Loop (n, c, x) <{body}> }}")
    ).findings
    assert [(f.code, f.layer_name) for f in findings] == [("ON008", "loop/body/bad"), ("ON105", "loop/body/bad")]


def test_a_model_without_errors_is_the_one_that_is_converted() -> None:
    examined = examine(parsed("(float[2] x) => (float[2] y) { [act] t = Relu (x) y = Neg (t) }"))
    assert examined.model is not None
    assert not examined.findings
    np.testing.assert_array_equal(irexec.compile_model(examined.model)([np.array([-1, 2], np.float32)])["y"], [0, -2])


def test_contradictions_do_not_keep_it_from_being_converted() -> None:
    examined = examine(parsed("(float[2,4] x) => (float[2,7] y) { y = Relu (x) }"))
    assert [f.code for f in examined.findings] == ["ON201"]
    assert examined.model is not None


@pytest.mark.parametrize(
    ("location", "words"),
    [("absent.bin", "does not exist"), ("../w.bin", "outside the model's folder"), ("short.bin", "which has 4 bytes")],
)
def test_external_data(tmp_path: Path, location: str, words: str) -> None:
    model = parsed(WITH_W)
    _initializer(1, 2)(model)
    _location(location)(model)
    (tmp_path / "short.bin").write_bytes(bytes(4))
    onnx.save(model, tmp_path / "m.onnx")
    findings = examine(tmp_path / "m.onnx").findings
    assert [(f.code, f.layer_name) for f in findings] == [("ON007", "w")]
    assert words in findings[0].message
    (tmp_path / "w.bin").write_bytes(bytes(8))
    model.graph.initializer[0].external_data[0].value = "w.bin"
    onnx.save(model, tmp_path / "m.onnx")
    assert not examine(tmp_path / "m.onnx").findings


def test_the_given_model_is_not_changed() -> None:
    model = parsed(MANY)
    before = model.SerializeToString(deterministic=True)
    examine(model)
    assert model.SerializeToString(deterministic=True) == before


def test_several_damaged_tensors_are_all_named() -> None:
    model = parsed("(float[2] x) => (float[2] y) { t = Add (x, w) y = Add (t, v) }")
    _initializer(1, dims=(2,), name="w")(model)
    _initializer(1, dims=(2,), name="v")(model)
    assert [(f.code, f.layer_name) for f in examine(model).findings] == [("ON007", "w"), ("ON007", "v")]


@pytest.mark.parametrize(
    "content", [b"", b"no model at all", b"\x08\x0a\x12\x04test"], ids=["empty", "text", "without graph"]
)
def test_what_is_not_a_model_is_an_error(content: bytes) -> None:
    with pytest.raises(irexec.ConversionError, match="not an ONNX model"):
        examine(content)


def test_a_large_model_takes_time_in_proportion() -> None:
    """A chain of nodes with a value_info each: nothing looks at all nodes for each of them."""
    count = 3000
    nodes = [helper.make_node("Relu", [f"v{i}"], [f"v{i + 1}"], name=f"n{i}") for i in range(count)]
    inputs, outputs = ([helper.make_tensor_value_info(name, TensorProto.FLOAT, [2])] for name in ("v0", f"v{count}"))
    nodes[7].op_type = "Softplus"
    nodes[count // 2].attribute.append(helper.make_attribute("odd", 1))
    examined: Examination = examine(helper.make_model(helper.make_graph(nodes, "long", inputs, outputs)))
    assert [(f.code, f.layer_id) for f in examined.findings] == [("ON104", count // 2)]


def test_two_initializers_of_the_name_of_an_input() -> None:
    """One is the input's default; the second is one too many."""
    tensors = [helper.make_tensor("w", TensorProto.FLOAT, [1], [value]) for value in (1.0, 2.0)]
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "wy"]
    for count in (1, 2):
        graph = helper.make_graph([helper.make_node("Relu", ["w"], ["y"])], "g", infos[:1], infos[1:], tensors[:count])
        found = examine(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9))
        says = [finding.message for finding in found.findings if finding.severity == "error"]
        assert says == ["'w' is an initializer and also an initializer"] * (count - 1)
        assert (found.model is None) is (count == 2)


def test_what_the_findings_of_nodes_do_not_explain_is_what_the_conversion_says() -> None:
    """A function that gives one value twice, and whose value is lost where it is inlined."""
    call = 'agraph (float[2] x) => (float[2] y) { y = local.Odd (x) } <domain: "local", opset_import: ["" : 20]> Odd (x) => (y, y) { y = Relu (x) }'
    examination = examine(parsed(call))
    assert examination.model is not None or [f.severity for f in examination.findings].count("error") == 1


def _without_types_of_attributes(model: onnx.ModelProto) -> None:
    for attribute in model.graph.node[0].attribute:
        attribute.ClearField("type")


def test_bodies_are_looked_into_where_attributes_have_no_type() -> None:
    """As in files of ONNX IR version 1; what keeps the body from being converted is said beside a contradiction."""
    model = parsed(BODY.format("a = Add (x, absent)"))
    _without_types_of_attributes(model)
    found = examine(model)
    assert [f.layer_name for f in found.findings if f.code == "ON003"] == ["choice/then_branch/a"]
    assert found.model is None
