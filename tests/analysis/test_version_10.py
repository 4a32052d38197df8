"""IR version 10. The expected types, names and values are the answers of OpenVINO 2026.4.1 to the same files."""

from __future__ import annotations

import numpy as np
import pytest
from lxml import etree

import irexec
from irexec import io
from tests.support.equality import differences
from tests.support.xml import canonical

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
