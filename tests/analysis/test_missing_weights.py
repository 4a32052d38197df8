"""Without the .bin the XML is still checked: constants have their shapes and types, and what depends on their contents is unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

import irexec
from irexec import io
from irexec.analysis.shape_inference import infer_shapes

IRS = sorted((Path(__file__).parents[1] / "data" / "openvino").rglob("*.xml"))


@pytest.mark.parametrize("path", IRS, ids=lambda path: path.stem)
def test_nothing_else_is_found_than_that_the_bin_is_missing(path: Path) -> None:
    bare = irexec.validate(irexec.read_model(path.read_bytes()))
    complete = irexec.validate(irexec.read_model(path))
    missing = [finding for finding in bare if finding.code == "IR022"]
    assert len(missing) <= 1
    assert [finding for finding in bare if finding not in (*complete, *missing)] == []


SPLIT = """<net name="n" version="11"><layers>
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
    model = io.read_text(SPLIT.format(**texts))
    split = model.nodes[3]
    facts = infer_shapes(model).facts
    assert [facts[value].rank for value in split.outputs] == [2, 2, 2]
    assert [str(facts[value].element) for value in split.outputs] == ["f32"] * 3


def test_the_number_of_outputs_is_that_of_the_layer_where_even_the_lengths_are_unknown() -> None:
    text = SPLIT.format(**VARIADIC).replace(
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


def test_what_model_optimizer_wrote_is_no_finding() -> None:
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
