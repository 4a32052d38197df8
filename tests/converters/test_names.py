"""Names of tensors and layers, and functions of the model."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

import converters
import irexec
from converters.onnx import registry
from converters.onnx.graphs import every_node
from converters.onnx.registry import operators
from converters.onnx.translate import unsupported_nodes
from irexec.io.payload import module_of
from tests.support.onnx_models import model_of, run


def test_a_body_with_defaults() -> None:
    """The Hann window of size 4, periodic by default: sin(pi n / 4) squared."""
    result = run(model_of("(int64 n) => (float y) { y = HannWindow (n) }", 17), np.int64(4))[0]
    np.testing.assert_allclose(result, [0, 0.5, 1, 0.5], atol=1e-6)


def test_a_body_that_calls_another() -> None:
    """The loss of a sample with equal scores for 4 classes is log 4."""
    model = model_of("(float[1,4] x, int64[1] t) => (float y) { y = SoftmaxCrossEntropyLoss (x, t) }", 13)
    result = run(model, np.zeros((1, 4), np.float32), np.array([2]))[0]
    np.testing.assert_allclose(result, np.log(4), rtol=1e-6)


def test_a_body_by_the_types_of_the_inputs() -> None:
    """Padded with zeros, or cropped, at the centre."""
    model = model_of("(float[3] x, int64[1] s) => (float y) { y = CenterCropPad (x, s) }", 18)
    x = np.array([1, 2, 3], np.float32)
    np.testing.assert_array_equal(run(model, x, np.array([5]))[0], [0, 1, 2, 3, 0])
    np.testing.assert_array_equal(run(model, x, np.array([1]))[0], [2])


@pytest.mark.parametrize("inside", [False, True])
def test_a_body_whose_inputs_are_initializers(inside: bool) -> None:
    """Losses and shapes are most often called so; in a subgraph, the initializer is in the graph around it."""
    call = "y = CenterCropPad (x, s)"
    if inside:
        branches = ", ".join(
            f"{name}_branch = {name} () => (float[] {name}_y) {{ {call.replace('y', name + '_y', 1)} }}"
            for name in ("then", "else")
        )
        call = f"y = If <{branches}> (c)"
    model = model_of(f"(float[3] x, bool c) => (float[] y) <int64[1] s = {{5}}> {{ {call} }}", 18)
    np.testing.assert_array_equal(run(model, np.array([1, 2, 3], np.float32), np.array(True))[0], [0, 1, 2, 3, 0])
    loss = '(float[1,2] x) => (float[] y) <int64[1] t = {1}, float[2] w = {3.0, 2.0}> { y = SoftmaxCrossEntropyLoss <reduction: string = "sum"> (x, t, w) }'
    np.testing.assert_allclose(run(model_of(loss, 13), np.zeros((1, 2), np.float32))[0], 2 * np.log(2), rtol=1e-6)


def test_a_body_inside_a_function_of_the_model() -> None:
    text = """<ir_version: 10, opset_import: ["" : 18, "own" : 1]> outer (int64 n) => (float[length] y) { y = own.window (n) }
    <domain: "own", opset_import: ["" : 18]> window (m) => (w) { h = HannWindow (m) w = Neg (h) }"""
    result = run(parser.parse_model(text), np.int64(2))[0]
    np.testing.assert_allclose(result, [0, -1], atol=1e-6)


def test_other_tensors_keep_their_names() -> None:
    converted = converters.convert(model_of("(int64 n) => (float z) { y = HannWindow (n) z = Neg (y) }", 17))
    names = {name for node in converted.nodes for value in node.outputs for name in value.names}
    assert {"n", "y", "z"} <= names


def test_a_body_that_cannot_be_translated_is_named_by_its_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a translator of RandomUniformLike, which the body of Bernoulli uses."""
    operators()
    monkeypatch.setattr(
        registry,
        "_TRANSLATIONS",
        {k: v for k, v in registry._TRANSLATIONS.items() if k[1] not in ("Bernoulli", "RandomUniformLike")},
    )
    model = model_of("(float[2] x) => (float y) { [random] a = Bernoulli (x) y = Relu (a) }", 22)
    assert unsupported_nodes(model) == ["node 'random' (ai.onnx.Bernoulli of opset 22)"]
    with pytest.raises(
        irexec.ConversionError, match=r"1 node cannot be converted: node 'random' \(ai.onnx.Bernoulli of opset 22\)"
    ):
        converters.convert(model)


def test_the_model_is_not_changed() -> None:
    model = model_of("(int64 n) => (float y) { y = HannWindow (n) }", 17)
    before = model.SerializeToString()
    converters.convert(model)
    assert model.SerializeToString() == before


def with_functions(main: str, *functions: str, opset: int = 18) -> onnx.ModelProto:
    """A model of ai.onnx 18 whose functions are in the domain "own" and import an opset."""
    head = '<ir_version: 10, opset_import: ["": 18, "own": 1]> g '
    imports = f'<domain: "own", opset_import: ["": {opset}, "own": 1]> '
    return parser.parse_model(" ".join([head + main, *(imports + function for function in functions)]))


LEAK = "Leak <slope: float = 0.5> (u) => (v) { v = LeakyRelu <alpha: float = @slope> (u) }"
CHOICE = "If (c) <then_branch = a () => (w) {{ {} }}, else_branch = b () => (w) {{ {} }}>"
LOOP = "v = Loop (n, , u) <body = b (int64 i, bool go, float[2] s) => (bool on, float[2] t) { on = Identity (go) t = LeakyRelu <alpha: float = @slope> (s) }>"


@pytest.mark.parametrize(
    ("main", "functions", "expected"),
    [
        pytest.param("{ y = own.Leak (x) }", [LEAK], [-1, 4], id="float"),
        pytest.param("{ y = own.Leak <slope = 0.25> (x) }", [LEAK], [-0.5, 4], id="overridden"),
        pytest.param(
            "{ y = own.Out (x) }", [LEAK, "Out <p: float = 0.75> (u) => (v) { v = own.Leak <slope: float = @p> (u) }"],
            [-1.5, 4], id="passed on by reference",
        ),
        pytest.param("{ y = own.Out (x) }", [LEAK, "Out <p> (u) => (v) { v = own.Leak <slope: float = @p> (u) }"], [-1, 4], id="a reference without a value"),
        pytest.param("{ y = own.Out (x) }", [LEAK, "Out (u) => (v) { t = own.Leak (u) v = own.Leak <slope = 2.0> (t) }"], [-2, 4], id="nested calls"),
        pytest.param(
            "{ c = Constant <value_int = 1> () y = own.Pick (x, c) }",
            ["Pick <slope: float = 0.5> (u, k) => (v) { c = Cast <to = 9> (k) v = "
             + CHOICE.format("h = LeakyRelu <alpha: float = @slope> (u) w = Neg (h)", "h = Abs (u) w = Neg (h)") + " }"],
            [1, -4], id="in an If",
        ),
        pytest.param(
            "{ c = Constant <value_int = 0> () d = Cast <to = 9> (c) y = "
            + CHOICE.format("w = own.Leak (x)", "w = own.Leak <slope = 3.0> (x)") + " }",
            [LEAK], [-6, 4], id="calls in an If",
        ),
        pytest.param(
            "{ n = Constant <value_int = 2> () y = own.Twice (x, n) }",
            ["Twice <slope: float = 0.5> (u, n) => (v) { " + LOOP + " }"], [-0.5, 4], id="in a Loop",
        ),
        pytest.param(
            "{ y = own.Scaled (x) }",
            ["Scaled <k: ints = [3, 2]> (u) => (v) { c = Constant <value_ints: ints = @k> () d = Cast <to = 1> (c) v = Mul (u, d) }"],
            [-6, 8], id="list of a Constant",
        ),
        pytest.param(
            "{ y = own.Scaled (x) }",
            ["Scaled <k: tensor = float[2] {3, 2}> (u) => (v) { c = Constant <value: tensor = @k> () v = Mul (u, c) }"],
            [-6, 8], id="tensor",
        ),
        pytest.param(
            "{ t = own.Whole (x) y = Cast <to = 1> (t) }",
            ["Whole <kind: int = 7> (u) => (v) { h = Div (u, three) v = Cast <to: int = @kind> (h) three = Constant <value_float = 3.0> () }"],
            [0, 1], id="a required attribute",
        ),
        pytest.param(
            '{ y = own.Act (x) }', ['Act <how: string = "tanh"> (u) => (v) { z = Constant <value_floats = [0.0, 0.0]> () g = Gelu <approximate: string = @how> (z) v = Add (u, g) }'],
            [-2, 4], id="text",
        ),
    ],
)  # fmt: skip
def test_default_values_of_attributes(main: str, functions: list[str], expected: list[float]) -> None:
    """Computed by hand from -2 and 4. ONNX Runtime 1.32 agrees; onnx.reference 1.23 has no defaults, as onnx.inliner."""
    main = main.replace("If (c)", "If (d)") if "d = " in main else main
    opset = 20 if "Gelu" in functions[0] else 18
    model = with_functions("(float[2] x) => (float[2] y) " + main, *functions, opset=opset)
    np.testing.assert_allclose(run(model, np.array([-2, 4], np.float32))[0], expected, atol=1e-6)


def test_values_of_a_function_do_not_meet_those_around_its_call() -> None:
    """Equal names outside, absent inputs and outputs, outputs that are inputs or twice the same value."""
    function = "Mixed (x, low, h) => (y, y, x, t) { h2 = Relu (x) h3 = Clip (h, low) t = Add (h2, h3) y = Neg (h2) }"
    main = "{ h = Neg (x) y, z, same = own.Mixed (h, , x) }"
    model = with_functions("(float[2] x) => (float[2] y, float[2] z, float[2] same) " + main, function)
    y, z, same = run(model, np.array([-2, 4], np.float32))
    assert (y.tolist(), z.tolist(), same.tolist()) == ([-2, 0], [-2, 0], [2, -4])


@pytest.mark.parametrize(("call", "words"), [("y = own.Leak (x, x)", "2 inputs"), ("y, z = own.Leak (x)", "2 outputs")])
def test_a_call_that_does_not_fit(call: str, words: str) -> None:
    model = with_functions(f"(float[2] x) => (float[2] y) {{ {call} }}", LEAK)
    with pytest.raises(irexec.ConversionError, match=f"node 'y' has {words}, but the function 'own.Leak' has 1"):
        converters.convert(model)


@pytest.mark.parametrize("opset", [11, 18])
def test_a_node_keeps_the_opset_of_its_function(opset: int) -> None:
    """Softmax before opset 13 flattens the axes from 1 on: four equal values instead of two. The model has opset 18."""
    function = "Old (u) => (v) { v = Softmax (u) }"
    model = with_functions("(float[1,2,2] x) => (float[1,2,2] y) { y = own.Old (x) }", function, opset=opset)
    np.testing.assert_allclose(run(model, np.zeros((1, 2, 2), np.float32))[0], 0.25 if opset == 11 else 0.5)


def test_a_function_imports_a_domain_that_the_model_does_not() -> None:
    text = """<ir_version: 10, opset_import: ["": 18, "own": 1]> g (float[1,2] x) => (float[1,2] y) { y = own.Signs (x) }
    <domain: "own", opset_import: ["ai.onnx.ml": 3]> Signs (u) => (v) { v = ai.onnx.ml.Binarizer (u) }"""
    assert run(parser.parse_model(text), np.array([[-2, 4]], np.float32))[0].tolist() == [[0, 1]]


@pytest.mark.parametrize(
    ("domain", "operator", "expected"), [("", "Abs", [2, 4]), ("com.microsoft", "Gelu", [-0.0455, 3.9999]), ("own", "Abs", [-4, 8])]
)  # fmt: skip
def test_a_function_with_the_name_of_an_operator(domain: str, operator: str, expected: list[float]) -> None:
    """ONNX Runtime 1.32 and OpenVINO 2026.4 compute the operator; functions of other domains are not operators."""
    call = f"{domain}.{operator}" if domain else operator
    text = f"""<ir_version: 10, opset_import: ["": 18, "own": 1, "com.microsoft": 1]> g (float[2] x) => (float[2] y) {{ y = {call} (x) }}
    <domain: "{domain}", opset_import: ["": 18]> {operator} (u) => (v) {{ v = Add (u, u) }}"""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = run(parser.parse_model(text), np.array([-2, 4], np.float32))[0]
    np.testing.assert_allclose(result, expected, atol=1e-4)
    assert [f"function {call!r} of the model is ignored" in str(each.message) for each in caught] == [True] * (
        domain != "own"
    )


def test_a_function_of_another_opset_is_inlined() -> None:
    """sklearn-onnx writes KNNImputer as functions of an older opset than that of the model."""
    text = """<ir_version: 9, opset_import: ["": 18, "local": 1]> g (float[2] x) => (float[2] y) { y = local.twice (x) }
    <domain: "local", opset_import: ["": 17]> twice (u) => (v) { v = Add (u, u) }"""
    model = converters.convert(parser.parse_model(text))
    assert [node.type for node in model.nodes] == ["Parameter", "Add", "Result"]


# Names: tensors keep theirs, layers are named after ONNX nodes, and outputs are found by their names.


def test_tensors_and_layers() -> None:
    model = converters.convert(
        model_of(
            "(float[2] in) => (float[2] out) { [first] t = Relu(in) [second] out = Mul(t, w) }",
            w=np.ones(2, np.float32),
        )
    )
    assert [(node.type, node.name, [value.names for value in node.outputs]) for node in model.nodes] == [
        ("Parameter", "in", [["in"]]), ("Relu", "first", [["t"]]), ("Constant", "w", [["w"]]),
        ("Multiply", "second", [["out"]]), ("Result", "out/sink_port_0", []),
    ]  # fmt: skip


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
    "an input twice": ("(float[2] a) => (float[2] y, float[2] z, float[2] a) { y = Identity(a) z = Identity(a) }", ["a"], ["y", "z", "a"]),
    "inputs exchanged": ("(float[2] a, float[2] b) => (float[2] c, float[2] d, float[2] a) { c = Identity(b) d = Identity(a) }", ["a", "b"], ["c", "d", "a"]),
    "a constant": ("(float[2] a) => (float[2] y, float[2] w) { y = Add(a, w) }", ["a"], ["y", "w"]),
    "a constant twice": ("(float[2] a) => (float[2] v, float[2] w, float[2] y) { v = Identity(w) y = Add(a, w) }", ["a"], ["v", "w", "y"]),
}  # fmt: skip


@pytest.mark.parametrize("case", PASSED_ON)
def test_inputs_and_constants_as_outputs_keep_their_names_both_ways(case: str) -> None:
    graph, inputs, outputs = PASSED_ON[case]
    constants = {"w": np.array([5, 6], np.float32)} if "w" in outputs else {}
    model = converters.convert(model_of(graph, **constants))
    given = {name: np.array([i + 1, -2], np.float32) for i, name in enumerate(inputs)}
    expected = {
        "a": given["a"], "r": [1, 0], "w": [5, 6], "v": [5, 6], "c": [2, -2], "d": [1, -2], "y": [6, 4],
        "z": given["a"],
    }  # fmt: skip
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


def test_layers_keep_the_module_that_torch_export_writes_down(tmp_path: Path) -> None:
    """All layers of a node, also in a file; the last entry of the list is the operation itself."""
    model = model_of("(float[2,3] x, float[3] s) => (float[2,3] y) { h = LayerNormalization (x, s) y = Relu (h) }", 21)
    model.graph.node[0].metadata_props.add(key="pkg.torch.onnx.name_scopes", value="['', 'a', 'a.0', 'layer_norm']")
    converted = converters.convert(model)
    converted.save(tmp_path / "m.xml")
    for one in (converted, irexec.read_model(tmp_path / "m.xml")):
        modules = {node.type: module_of(node) for node in one.nodes}
        assert modules["MVN"] == modules["Multiply"] == "a.0"
        assert modules["Relu"] == ""
