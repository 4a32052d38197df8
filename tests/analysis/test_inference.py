"""Inference of shapes and types: IR version 10, bodies, and models without their .bin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from lxml import etree

import irexec
from irexec import io
from irexec.analysis.shape_inference import MAX_INFERENCES, UNKNOWN, ShapeInference, infer_shapes
from irexec.dtypes.elements import F32
from irexec.ir.dims import ANY
from irexec.ir.facts import Fact
from irexec.ir.graph import Graph, Node
from tests.support.equality import differences
from tests.support.loops import growing_loops
from tests.support.markup import canonical

CONVERT = """<net name="n" version="{version}"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="4" element_type="{0}"/>
  <output><port id="0" names="t,u"><dim>4</dim></port></output></layer>
<layer id="1" name="c" type="Convert" version="opset1"><data destination_type="{1}"/>
  <input><port id="0"><dim>4</dim></port></input><output><port id="1"><dim>4</dim></port></output></layer>
<layer id="2" name="r" type="Result" version="opset1"><input><port id="0"><dim>4</dim></port></input></layer>
</layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/><edge from-layer="1" from-port="1" to-layer="2" to-port="0"/></edges></net>"""

# The Parameter's type, the Result's type, the input; the output.
TYPES = [
    ("f16", "f16", np.float32([1, -2.5, 1e-3, np.nan]), np.float32([1, -2.5, 1e-3, np.nan])),
    ("f32", "f16", np.float32([1, 2, 3, np.nan]), np.float32([1, 2, 3, np.nan])),
    ("i64", "i64", np.int64([1, -2, 2**31 + 5, -(2**40)]), np.int32([1, -2, -2147483643, 0])),
    ("u64", "u64", np.uint64([1, 2, 2**31 + 5, 2**63 + 7]), np.int32([1, 2, -2147483643, 7])),
    ("u32", "u32", np.uint32([1, 2, 2**31 + 5, 7]), np.int32([1, 2, -2147483643, 7])),
    ("u8", "u8", np.uint8([1, 2, 200, 7]), np.float32([1, 2, 200, 7])),
    ("boolean", "boolean", np.bool_([1, 0, 1, 0]), np.float32([1, 0, 1, 0])),
    ("i32", "i64", np.int32([1, -2, 3, 2**30]), np.int32([1, -2, 3, 2**30])),
    ("i32", "f64", np.int32([1, -2, 3, 2**30]), np.float32([1, -2, 3, 2**30])),
    ("i32", "i32", np.int32([1, -2, 3, 4]), np.int32([1, -2, 3, 4])),
    ("f32", "f32", np.float32([1, -2, 3, 4]), np.float32([1, -2, 3, 4])),
]


@pytest.mark.parametrize(("given", "result", "array", "expected"), TYPES, ids=[f"{a} to {b}" for a, b, *_ in TYPES])
def test_types_of_inputs_and_results(given: str, result: str, array: np.ndarray, expected: np.ndarray) -> None:
    model = irexec.Model.of(io.read_text(CONVERT.format(given, result, version=10)))
    compiled = irexec.compile_model(model)
    for made in (model, compiled):
        assert [str(port.element.carrier) for port in made.inputs if port.element] == [str(array.dtype)]
        assert [str(port.element.carrier) for port in made.outputs if port.element] == [str(expected.dtype)]
    got = compiled([array])[0]
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected)


def test_inputs_of_f16_are_rounded_only_as_written() -> None:
    model = irexec.Model.of(io.read_text(CONVERT.format("f16", "f16", version=10)))
    array = np.float32([1 / 3, 1e-3, 1, 2])
    np.testing.assert_array_equal(irexec.compile_model(model)([array])[0], array)
    np.testing.assert_array_equal(
        irexec.compile_model(model, precision="as-written")([array])[0], array.astype(np.float16)
    )


@pytest.mark.parametrize("name", ["x", "t", "u"])
def test_names_of_inputs(name: str) -> None:
    model = irexec.Model.of(io.read_text(CONVERT.format("f16", "i64", version=10)))
    outputs = irexec.compile_model(model)({name: np.ones(4, np.float32)})
    np.testing.assert_array_equal(outputs["c"], np.ones(4, np.int32))


def test_version_11_takes_and_gives_the_types_as_written() -> None:
    compiled = irexec.compile_model(io.read_text(CONVERT.format("f16", "i64", version=11)))
    assert (str(compiled.inputs[0].element), str(compiled.outputs[0].element)) == ("f16", "i64")
    assert compiled([np.ones(4, np.float16)])[0].dtype == np.int64


SPLIT = """<net name="n" version="10"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="2,4" element_type="f16"/>
  <output><port id="0" precision="FP16" names="a"><dim>2</dim><dim>4</dim></port></output></layer>
<layer id="1" name="axis" type="Const" version="opset1"><data element_type="i64" shape="" offset="0" size="8"/>
  <output><port id="0" precision="I64"/></output></layer>
<layer id="2" name="split" type="Split" version="opset1"><data num_splits="2"/>
  <input><port id="0"><dim>2</dim><dim>4</dim></port><port id="1"/></input>
  <output><port id="2" precision="FP16"><dim>1</dim><dim>4</dim></port><port id="3" precision="FP16" names="named"><dim>1</dim><dim>4</dim></port></output></layer>
<layer id="3" name="shape" type="ShapeOf" version="opset3"><data output_type="i64"/>
  <input><port id="0"><dim>2</dim><dim>4</dim></port></input><output><port id="1" precision="I64"><dim>2</dim></port></output></layer>
<layer id="4" name="r0" type="Result" version="opset1"><input><port id="0"><dim>1</dim><dim>4</dim></port></input></layer>
<layer id="5" name="r1" type="Result" version="opset1"><input><port id="0"><dim>1</dim><dim>4</dim></port></input></layer>
<layer id="6" name="r2" type="Result" version="opset1"><input><port id="0"><dim>2</dim></port></input></layer>
<layer id="7" name="r3" type="Result" version="opset1"><input><port id="0"><dim>2</dim></port></input></layer>
</layers><edges>
<edge from-layer="0" from-port="0" to-layer="2" to-port="0"/><edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
<edge from-layer="0" from-port="0" to-layer="3" to-port="0"/><edge from-layer="2" from-port="2" to-layer="4" to-port="0"/>
<edge from-layer="2" from-port="3" to-layer="5" to-port="0"/><edge from-layer="3" from-port="1" to-layer="6" to-port="0"/>
<edge from-layer="3" from-port="1" to-layer="7" to-port="0"/></edges></net>"""


def test_outputs_of_one_layer_have_names_with_a_number() -> None:
    model = irexec.read_model(SPLIT.encode(), bytes(8))
    assert irexec.validate(model) == []
    compiled = irexec.compile_model(model)
    array = np.arange(8, dtype=np.float32).reshape(2, 4) / 4
    outputs = compiled({"a": array})
    names = ["split.0", "split.1", "named", "shape"]
    for found in (outputs, compiled.run({"x": array}, names)):
        assert [found[name].dtype for name in names] == [np.float32, np.float32, np.float32, np.int32]
        np.testing.assert_array_equal(found["split.1"], array[1:])
        np.testing.assert_array_equal(found["named"], array[1:])
    np.testing.assert_array_equal(outputs[3], [2, 4])
    assert (
        [port.name for port in model.outputs]
        == [port.name for port in compiled.outputs]
        == ["split.0", "named", "shape", "r3"]
    )


@pytest.mark.parametrize("text", [SPLIT, CONVERT.format("f16", "i64", version=10)], ids=["split", "convert"])
def test_the_model_itself_stays_as_it_was_read(text: str) -> None:
    model = irexec.read_model(text.encode(), bytes(8))
    compiled = irexec.compile_model(model)
    compiled([np.ones(port.shape, np.float32) for port in compiled.inputs])
    assert differences(model, io.read_text(text, bytes(8)), ports=True) == []
    assert canonical(etree.fromstring(io.write_text(model)[0])) == canonical(etree.fromstring(text))


def test_a_parameter_that_is_also_an_output() -> None:
    text = CONVERT.format("i64", "f32", version=10).replace(
        'from-layer="1" from-port="1" to-layer="2"', 'from-layer="0" from-port="0" to-layer="2"'
    )
    compiled = irexec.compile_model(io.read_text(text))
    outputs = compiled({"x": np.int64([1, 2, 3, 2**32 + 1])})
    np.testing.assert_array_equal(outputs["x"], np.int32([1, 2, 3, 1]))


def test_a_port_before_a_result_may_declare_the_type_that_is_given_out() -> None:
    """As Model Optimizer wrote a DetectionOutput of f16 data."""
    text = CONVERT.format("f32", "f16", version=10).replace(
        '<output><port id="1">', '<output><port id="1" precision="{}">'
    )
    assert irexec.validate(io.read_text(text.format("FP32"))) == []
    assert [finding.code for finding in irexec.validate(io.read_text(text.format("I32")))] == ["IR202"]
    assert [finding.code for finding in irexec.validate(io.read_text(text.format("FP32").replace('"10"', '"11"')))] == [
        "IR202"
    ]


# Bodies are inferred once from the same facts, and from a bounded number of different ones.


@pytest.fixture
def inferences(monkeypatch: pytest.MonkeyPatch) -> Counter[Graph]:
    """How often each graph was inferred."""
    counted: Counter[Graph] = Counter()
    plain = ShapeInference.graph

    def count(self: ShapeInference, graph: Graph, given: Mapping[Node, Fact]) -> None:
        counted[graph] += 1
        plain(self, graph, given)

    monkeypatch.setattr(ShapeInference, "graph", count)
    return counted


@pytest.mark.parametrize("depth", [1, 2, 6])
def test_each_loop_in_a_loop_of_constants_is_inferred_as_often_as_one_alone(
    depth: int, inferences: Counter[Graph]
) -> None:
    model = growing_loops(depth, of_constants=True)
    irexec.validate(model)
    # From [1], then from [1..2], then from an unknown size.
    assert max(inferences.values()) == 3
    # Frozen axes are looked for in single layers.
    assert len([graph for graph in inferences if len(graph.nodes) > 1]) == 1 + depth


def test_loops_that_start_from_the_state_around_them_are_inferred_a_bounded_number_of_times(
    inferences: Counter[Graph],
) -> None:
    irexec.validate(growing_loops(6, of_constants=False))
    assert max(inferences.values()) <= 2 + 2 * 6


def test_the_facts_of_a_body_are_those_of_its_last_inference() -> None:
    model = growing_loops(2, of_constants=False)
    (outer,) = (node.bodies["body"].graph for node in model.nodes if node.bodies)
    (inner,) = (node.bodies["body"].graph for node in outer.nodes if node.bodies)
    walk = ShapeInference(tolerant=False)
    walk.graph(model, {})
    settled = {
        value: str(walk.inference[value]) for graph in (outer, inner) for node in graph.nodes for value in node.outputs
    }

    walk.body(outer, "loop2/body", [Fact(F32, (5,))])
    assert walk.inference[outer.parameters[0].outputs[0]].shape == (5,)
    assert {value: str(walk.inference[value]) for value in settled} != settled
    walk.body(outer, "loop2/body", [Fact(F32, (ANY,))])
    assert {value: str(walk.inference[value]) for value in settled} == settled


def test_after_many_different_facts_nothing_is_taken_to_be_known(inferences: Counter[Graph]) -> None:
    model = growing_loops(1, of_constants=True)
    (body,) = (node.bodies["body"].graph for node in model.nodes if node.bodies)
    walk = ShapeInference(tolerant=False)
    for length in range(2 * MAX_INFERENCES):
        walk.body(body, "loop1/body", [Fact(F32, (length,))])
    assert inferences[body] == MAX_INFERENCES + 1
    assert str(walk.inference[body.parameters[0].outputs[0]]) == str(UNKNOWN)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("of_constants", [True, False])
def test_the_deepest_loops_that_are_read_compile_and_run(of_constants: bool) -> None:
    model = growing_loops(60, of_constants=of_constants)
    source = model.results[0].inputs[0]
    assert source is not None
    (y,) = irexec.compile_model(model)([np.ones(1, np.float32)]).values()
    assert y.tolist() == [1, 1]
    assert infer_shapes(model).facts[source].shape == (ANY,)


# Without the .bin the XML is still checked: constants have their shapes and types, and what depends on their contents
# is unknown.


IRS = sorted((Path(__file__).parents[1] / "data" / "openvino").rglob("*.xml"))


@pytest.mark.parametrize("path", IRS, ids=lambda path: path.stem)
def test_nothing_else_is_found_than_that_the_bin_is_missing(path: Path) -> None:
    bare = irexec.validate(irexec.read_model(path.read_bytes()))
    complete = irexec.validate(irexec.read_model(path))
    missing = [finding for finding in bare if finding.code == "IR022"]
    assert len(missing) <= 1
    assert [finding for finding in bare if finding not in (*complete, *missing)] == []


MISSING_SPLIT = """<net name="n" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="2,6" element_type="f32"/><output><port id="0"><dim>2</dim><dim>6</dim></port></output></layer>
<layer id="1" name="axis" type="Const" version="opset1"><data element_type="i64" shape="" offset="0" size="8"/><output><port id="0"/></output></layer>
<layer id="2" name="lengths" type="Const" version="opset1"><data element_type="i64" shape="3" offset="8" size="24"/>
  <output><port id="0"><dim>3</dim></port></output></layer>
<layer id="3" name="split" type="{type}" version="opset1"><data num_splits="3"/>
  <input><port id="0"><dim>2</dim><dim>6</dim></port><port id="1"/>{lengths}</input>
  <output><port id="3"><dim>2</dim><dim>-1</dim></port><port id="4"><dim>2</dim><dim>-1</dim></port><port id="5"><dim>2</dim><dim>-1</dim></port></output></layer>
<layer id="4" name="r" type="Result" version="opset1"><input><port id="0"><dim>2</dim><dim>-1</dim></port></input></layer>
</layers><edges><edge from-layer="0" from-port="0" to-layer="3" to-port="0"/><edge from-layer="1" from-port="0" to-layer="3" to-port="1"/>
{edge}<edge from-layer="3" from-port="5" to-layer="4" to-port="0"/></edges></net>"""
VARIADIC = {
    "type": "VariadicSplit",
    "lengths": '<port id="2"><dim>3</dim></port>',
    "edge": '<edge from-layer="2" from-port="0" to-layer="3" to-port="2"/>',
}


@pytest.mark.parametrize(
    "texts", [{"type": "Split", "lengths": "", "edge": ""}, VARIADIC], ids=lambda texts: texts["type"]
)
def test_the_number_of_outputs_is_that_of_the_layer(texts: dict[str, str]) -> None:
    model = io.read_text(MISSING_SPLIT.format(**texts))
    split = model.nodes[3]
    facts = infer_shapes(model).facts
    assert [facts[value].rank for value in split.outputs] == [2, 2, 2]
    assert [str(facts[value].element) for value in split.outputs] == ["f32"] * 3


def test_the_number_of_outputs_is_that_of_the_layer_where_even_the_lengths_are_unknown() -> None:
    text = MISSING_SPLIT.format(**VARIADIC).replace(
        'type="Const" version="opset1"><data element_type="i64" shape="3"',
        'type="Parameter" version="opset1"><data element_type="i64" shape="?"',
    )
    model = io.read_text(text.replace('offset="8" size="24"', ""))
    facts = infer_shapes(model).facts
    assert [str(facts[value].element) for value in model.nodes[3].outputs] == ["f32"] * 3


EXTENSION = """<net name="n" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="2,6" element_type="f32"/><output><port id="0" precision="FP32"><dim>2</dim><dim>6</dim></port></output></layer>
<layer id="1" name="a" type="MyAct" version="extension"><input><port id="0"><dim>2</dim><dim>6</dim></port></input>
  <output><port id="1" precision="FP32"><dim>2</dim><dim>6</dim></port></output></layer>
<layer id="2" name="b" type="MyAct" version="extension"><input><port id="0"><dim>2</dim><dim>6</dim></port></input>
  <output><port id="1" precision="FP32"><dim>2</dim><dim>6</dim></port></output></layer>
<layer id="3" name="m" type="MatMul" version="opset1"><input><port id="0"><dim>2</dim><dim>6</dim></port><port id="1"><dim>2</dim><dim>6</dim></port></input>
  <output><port id="2" precision="FP32"><dim>2</dim><dim>6</dim></port></output></layer>
<layer id="4" name="r" type="Result" version="opset1"><input><port id="0"><dim>2</dim><dim>6</dim></port></input></layer>
</layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/><edge from-layer="1" from-port="1" to-layer="2" to-port="0"/>
<edge from-layer="2" from-port="1" to-layer="3" to-port="0"/><edge from-layer="0" from-port="0" to-layer="3" to-port="1"/>
<edge from-layer="3" from-port="2" to-layer="4" to-port="0"/></edges></net>"""


def test_layers_of_an_extension_are_reported_once_and_the_rest_is_checked() -> None:
    extension, product = irexec.validate(io.read_text(EXTENSION))
    assert (extension.code, extension.layer_name) == ("IR101", "a")
    assert extension.message == (
        "MyAct is an operation of the extension 'extension', which irexec does not have; "
        "its outputs are taken as declared; so it is in 1 more layer"
    )
    assert (product.code, product.layer_name) == ("IR107", "m")


def test_what_many_layers_have_in_common_is_reported_once() -> None:
    text = EXTENSION.replace(
        'type="MyAct" version="extension">', 'type="ReLU" version="opset1"><data odd="1"/>'
    ).replace("MatMul", "Add")
    (finding,) = irexec.validate(io.read_text(text))
    assert (finding.code, finding.message) == (
        "IR106",
        "attribute 'odd' is not known to Relu; so it is in 1 more layer",
    )


def test_tensor_names_that_occur_twice_are_one_finding() -> None:
    text = (
        EXTENSION.replace("MyAct", "Relu")
        .replace("extension", "opset1")
        .replace("MatMul", "Add")
        .replace('<port id="1" precision', '<port id="1" names="s,t" precision')
    )
    (finding,) = irexec.validate(io.read_text(text))
    assert (finding.code, finding.layer_name) == ("IR304", "b")
    assert finding.message == "tensor name 's' is also that of layer 1 'a'; 1 more names occur twice"


def test_what_model_optimizer_wrote_is_not_a_finding() -> None:
    """output_padding of convolutions, no auto_broadcast, elements after the edges, the type of indices that nobody uses."""
    text = """<net name="n" version="10"><layers>
    <layer id="0" name="x" type="Parameter" version="opset1"><data shape="1,2,4,4" element_type="f16"/>
      <output><port id="0" precision="FP16"><dim>1</dim><dim>2</dim><dim>4</dim><dim>4</dim></port></output></layer>
    <layer id="1" name="w" type="Const" version="opset1"><data element_type="f16" shape="2,2,1,1" offset="0" size="8"/>
      <output><port id="0" precision="FP16"><dim>2</dim><dim>2</dim><dim>1</dim><dim>1</dim></port></output></layer>
    <layer id="2" name="conv" type="Convolution" version="opset1">
      <data auto_pad="explicit" dilations="1,1" output_padding="0,0" pads_begin="0,0" pads_end="0,0" strides="1,1"/>
      <input><port id="0"><dim>1</dim><dim>2</dim><dim>4</dim><dim>4</dim></port><port id="1"><dim>2</dim><dim>2</dim><dim>1</dim><dim>1</dim></port></input>
      <output><port id="2" precision="FP16"><dim>1</dim><dim>2</dim><dim>4</dim><dim>4</dim></port></output></layer>
    <layer id="3" name="add" type="Add" version="opset1">
      <input><port id="0"><dim>1</dim><dim>2</dim><dim>4</dim><dim>4</dim></port><port id="1"><dim>1</dim><dim>2</dim><dim>4</dim><dim>4</dim></port></input>
      <output><port id="2" precision="FP16"><dim>1</dim><dim>2</dim><dim>4</dim><dim>4</dim></port></output></layer>
    <layer id="4" name="pool" type="MaxPool" version="opset8"><data auto_pad="explicit" axis="0" dilations="1,1" index_element_type="i64" kernel="2,2"
      pads_begin="0,0" pads_end="0,0" rounding_type="floor" strides="2,2"/>
      <input><port id="0"><dim>1</dim><dim>2</dim><dim>4</dim><dim>4</dim></port></input>
      <output><port id="1" precision="FP16"><dim>1</dim><dim>2</dim><dim>2</dim><dim>2</dim></port>
        <port id="2" precision="FP32"><dim>1</dim><dim>2</dim><dim>2</dim><dim>2</dim></port></output></layer>
    <layer id="5" name="r" type="Result" version="opset1"><input><port id="0"><dim>1</dim><dim>2</dim><dim>2</dim><dim>2</dim></port></input></layer>
    </layers><edges><edge from-layer="0" from-port="0" to-layer="2" to-port="0"/><edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
    <edge from-layer="2" from-port="2" to-layer="3" to-port="0"/><edge from-layer="2" from-port="2" to-layer="3" to-port="1"/>
    <edge from-layer="3" from-port="2" to-layer="4" to-port="0"/><edge from-layer="4" from-port="1" to-layer="5" to-port="0"/></edges>
    <meta_data><MO_version value="2020.4"/></meta_data><cli_parameters><input_model value="DIR"/></cli_parameters>
    <quantization_parameters><config/></quantization_parameters></net>"""
    assert irexec.validate(io.read_text(text, bytes(8)), weights=True) == []
