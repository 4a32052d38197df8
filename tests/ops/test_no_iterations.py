"""Loop without an iteration: its outputs have the shapes that are inferred, whatever its ports declare. OpenVINO gives the same ones."""

from __future__ import annotations

import numpy as np
import pytest

import irexec
from irexec import io
from irexec.analysis.model import Model

MODEL = """<net name="m" version="11"><layers>
<layer id="0" name="n" type="Parameter" version="opset1"><data shape="" element_type="i64"/><output><port id="0" precision="I64"/></output></layer>
<layer id="1" name="x" type="Parameter" version="opset1"><data shape="3" element_type="f32"/>
<output><port id="0" precision="FP32"><dim>3</dim></port></output></layer>
<layer id="2" name="go" type="Const" version="opset1"><data element_type="boolean" shape="" offset="0" size="1"/>
<output><port id="0" precision="BOOL"/></output></layer>
<layer id="3" name="loop" type="Loop" version="opset5"><input><port id="0"/><port id="1"/><port id="2"><dim>3</dim></port></input>
<output><port id="3" precision="FP32"><dim>-1</dim><dim>-1</dim></port></output>
<port_map><input external_port_id="2" internal_layer_id="0"/><output external_port_id="3" internal_layer_id="4" axis="0"/>
<output external_port_id="-1" internal_layer_id="5" purpose="execution_condition"/></port_map>
<back_edges/>
<body><layers>
<layer id="0" name="v" type="Parameter" version="opset1"><data shape="?" element_type="f32"/>
<output><port id="0" precision="FP32"><dim>-1</dim></port></output></layer>
<layer id="1" name="axis" type="Const" version="opset1"><data element_type="i64" shape="" offset="1" size="8"/>
<output><port id="0" precision="I64"/></output></layer>
<layer id="2" name="row" type="Unsqueeze" version="opset1"><input><port id="0"><dim>-1</dim></port><port id="1"/></input>
<output><port id="2" precision="FP32"><dim>1</dim><dim>-1</dim></port></output></layer>
<layer id="3" name="more" type="Const" version="opset1"><data element_type="boolean" shape="" offset="0" size="1"/>
<output><port id="0" precision="BOOL"/></output></layer>
<layer id="4" name="rows" type="Result" version="opset1"><input><port id="0"><dim>1</dim><dim>-1</dim></port></input></layer>
<layer id="5" name="condition" type="Result" version="opset1"><input><port id="0"/></input></layer>
</layers><edges>
<edge from-layer="0" from-port="0" to-layer="2" to-port="0"/><edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
<edge from-layer="2" from-port="2" to-layer="4" to-port="0"/><edge from-layer="3" from-port="0" to-layer="5" to-port="0"/>
</edges></body></layer>
<layer id="4" name="y" type="Result" version="opset1"><input><port id="0"><dim>-1</dim><dim>-1</dim></port></input></layer>
</layers><edges>
<edge from-layer="0" from-port="0" to-layer="3" to-port="0"/><edge from-layer="2" from-port="0" to-layer="3" to-port="1"/>
<edge from-layer="1" from-port="0" to-layer="3" to-port="2"/><edge from-layer="3" from-port="3" to-layer="4" to-port="0"/>
</edges></net>"""


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("trips", [0, 2])
def test_shape_is_inferred(trips: int, optimize: bool) -> None:
    model = Model.of(io.read_text(MODEL, b"\x01" + bytes(8)))
    x = np.arange(3, dtype=np.float32)
    result = irexec.compile_model(model, optimize=optimize)([np.array(trips), x])[0]
    np.testing.assert_array_equal(result, np.tile(x, (trips, 1)))
