"""Tolerant compilation: a layer that cannot be run is an error only for what depends on it."""

from __future__ import annotations

import numpy as np
import pytest

import irexec
from irexec import io
from irexec.errors import UnsupportedError
from irexec.ir.order import find_value
from irexec.runtime.compiled_model import CompiledModel

# x -> Relu a -> MyAct b -> Relu c -> Result, and a state that MyAct feeds.
UNKNOWN = """<net name="n" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="?,2" element_type="f32"/>
 <output><port id="0" precision="FP32" names="x"><dim>-1</dim><dim>2</dim></port></output></layer>
<layer id="1" name="a" type="ReLU" version="opset1"><input><port id="0"/></input>
 <output><port id="1" precision="FP32"><dim>-1</dim><dim>2</dim></port></output></layer>
<layer id="2" name="b" type="MyAct" version="extension"><input><port id="0"/></input>
 <output><port id="1" precision="FP32"><dim>-1</dim><dim>2</dim></port></output></layer>
<layer id="3" name="c" type="ReLU" version="opset1"><input><port id="0"/></input>
 <output><port id="1" precision="FP32"><dim>-1</dim><dim>2</dim></port></output></layer>
<layer id="4" name="y" type="Result" version="opset1"><input><port id="0"/></input></layer>
<layer id="5" name="read" type="ReadValue" version="opset6"><data variable_id="v" variable_type="f32" variable_shape="?,2"/>
 <input><port id="0"/></input><output><port id="1" precision="FP32"><dim>-1</dim><dim>2</dim></port></output></layer>
<layer id="6" name="write" type="Assign" version="opset6"><data variable_id="v" variable_type="f32" variable_shape="?,2"/>
 <input><port id="0"/></input></layer>
<layer id="7" name="z" type="Result" version="opset1"><input><port id="0"/></input></layer>
</layers><edges>
<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/><edge from-layer="1" from-port="1" to-layer="2" to-port="0"/>
<edge from-layer="2" from-port="1" to-layer="3" to-port="0"/><edge from-layer="3" from-port="1" to-layer="4" to-port="0"/>
<edge from-layer="1" from-port="1" to-layer="5" to-port="0"/><edge from-layer="2" from-port="1" to-layer="6" to-port="0"/>
<edge from-layer="5" from-port="1" to-layer="7" to-port="0"/>
</edges></net>"""

X = np.float32([[-1, 2]])


def _model() -> irexec.Model:
    return irexec.Model.of(io.read_text(UNKNOWN))


def test_what_comes_before_can_be_run_and_the_rest_says_why_not() -> None:
    compiled = CompiledModel(_model(), tolerant=True)
    assert compiled.run(X, "a")["a"].tolist() == [[0, 2]]
    assert compiled.run(X, "read")["read"].tolist() == [[0, 2]]
    for name in ("b", "c", "y"):
        with pytest.raises(UnsupportedError, match=r"layer 2 'b' .*MyAct of extension"):
            compiled.run(X, name)
    with pytest.raises(UnsupportedError, match="MyAct"):
        compiled(X)


def test_require_says_so_before_a_run() -> None:
    compiled = CompiledModel(_model(), tolerant=True)
    compiled.require([find_value(compiled.model, "a"), find_value(compiled.model, "read")])
    with pytest.raises(UnsupportedError, match="layer 2 'b'"):
        compiled.require([find_value(compiled.model, "a"), find_value(compiled.model, "c")])


def test_a_variable_whose_new_value_cannot_be_computed_keeps_its_state() -> None:
    compiled = CompiledModel(_model(), tolerant=True)
    compiled.run(X, "read")
    assert dict(compiled.variables) == {}


def test_without_tolerance_the_model_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="layer 2 'b'"):
        CompiledModel(_model())


BODY = """<net name="n" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="2" element_type="f32"/>
 <output><port id="0" precision="FP32"><dim>2</dim></port></output></layer>
<layer id="1" name="a" type="ReLU" version="opset1"><input><port id="0"/></input>
 <output><port id="1" precision="FP32"><dim>2</dim></port></output></layer>
<layer id="2" name="loop" type="TensorIterator" version="opset1"><input><port id="0"/></input>
 <output><port id="1" precision="FP32"><dim>2</dim></port></output>
 <port_map><input axis="0" external_port_id="0" internal_layer_id="0"/><output axis="0" external_port_id="1" internal_layer_id="2"/></port_map>
 <body><layers>
 <layer id="0" name="slice" type="Parameter" version="opset1"><data shape="1" element_type="f32"/>
  <output><port id="0" precision="FP32"><dim>1</dim></port></output></layer>
 <layer id="1" name="inner" type="MyAct" version="extension"><input><port id="0"/></input>
  <output><port id="1" precision="FP32"><dim>1</dim></port></output></layer>
 <layer id="2" name="r" type="Result" version="opset1"><input><port id="0"/></input></layer>
 </layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/><edge from-layer="1" from-port="1" to-layer="2" to-port="0"/></edges></body></layer>
<layer id="3" name="y" type="Result" version="opset1"><input><port id="0"/></input></layer>
</layers><edges>
<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/><edge from-layer="1" from-port="1" to-layer="2" to-port="0"/>
<edge from-layer="2" from-port="1" to-layer="3" to-port="0"/>
</edges></net>"""


def test_an_unknown_layer_in_a_body_blocks_the_layer_that_has_the_body() -> None:
    compiled = CompiledModel(irexec.Model.of(io.read_text(BODY)), tolerant=True)
    assert compiled.run(np.float32([-1, 2]), "a")["a"].tolist() == [0, 2]
    with pytest.raises(UnsupportedError, match=r"loop/body > 'inner'"):
        compiled.run(np.float32([-1, 2]), "loop")


@pytest.mark.parametrize("tolerant", [True, False])
def test_f16_after_an_unknown_layer_is_not_blamed(tolerant: bool) -> None:
    """Its declared type is f16, where a known layer would give f32 to the Add."""
    text = UNKNOWN.replace("f32", "f16").replace("FP32", "FP16").replace('name="c" type="ReLU"', 'name="c" type="Add"')
    text = text.replace(
        '<edge from-layer="3"', '<edge from-layer="1" from-port="1" to-layer="3" to-port="2"/><edge from-layer="3"'
    ).replace(
        'type="Add" version="opset1"><input><port id="0"/>',
        'type="Add" version="opset1"><input><port id="0"/><port id="2"/>',
    )
    with pytest.raises(UnsupportedError, match=r"layer 2 'b' .*MyAct of extension"):
        CompiledModel(irexec.Model.of(io.read_text(text)), tolerant=tolerant)(np.float16(X))
