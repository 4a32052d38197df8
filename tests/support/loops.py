"""Models of loops in loops, and of a Loop without an end."""

from __future__ import annotations

import numpy as np

from irexec import io
from irexec.analysis.builder import Builder
from irexec.analysis.model import Model
from irexec.dtypes.elements import BOOLEAN, F32, I64
from irexec.ir.graph import BackEdge, Body, PortMap

_PORT = '<output><port id="{}" precision="FP32"/></output>'
_BODY = (
    '<body><layers><layer id="0" name="p" type="Parameter" version="opset1"><data shape="?" element_type="f32"/>{port0}</layer>'
    '<layer id="1" name="twice" type="Concat" version="opset1"><data axis="0"/><input><port id="0"/><port id="1"/></input>{port2}</layer>'
    '<layer id="2" name="r" type="Result" version="opset1"><input><port id="0"/></input></layer>{inner}</layers>'
    '<edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/><edge from-layer="0" from-port="0" to-layer="1" to-port="1"/>'
    '<edge from-layer="1" from-port="2" to-layer="2" to-port="0"/>{edges}</edges></body>'
)
_CONSTANT = '<layer id="9" name="c" type="Const" version="opset1"><data element_type="f32" shape="1" offset="0" size="4"/>{port0}</layer>'


def growing_loops(depth: int, *, of_constants: bool) -> Model:
    """``depth`` TensorIterators, each in the body of the one before, of one iteration that doubles the length of its state.

    Args:
        of_constants: whether an inner loop starts from a constant; otherwise it starts from the state of the one around it.
    """
    layers = (
        f'<layer id="0" name="x" type="Parameter" version="opset1"><data shape="1" element_type="f32"/>{_PORT.format(0)}</layer>'
        f'{_loop(depth, 1, 9 if of_constants else 0)}<layer id="2" name="y" type="Result" version="opset1"><input><port id="0"/></input></layer>'
    )
    edges = '<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/><edge from-layer="1" from-port="1" to-layer="2" to-port="0"/>'
    text = f'<net name="n" version="11"><layers>{layers}</layers><edges>{edges}</edges></net>'
    return Model.of(io.read_text(text, bytes(4)))


def _loop(depth: int, number: int, source: int) -> str:
    inner = _CONSTANT.format(port0=_PORT.format(0)) + _loop(depth - 1, 20, source) if depth > 1 else ""
    edges = f'<edge from-layer="{source}" from-port="0" to-layer="20" to-port="0"/>' if depth > 1 else ""
    body = _BODY.format(port0=_PORT.format(0), port2=_PORT.format(2), inner=inner, edges=edges)
    return (
        f'<layer id="{number}" name="loop{depth}" type="TensorIterator" version="opset1"><input><port id="0"/></input>{_PORT.format(1)}'
        '<port_map><input external_port_id="0" internal_layer_id="0"/><output external_port_id="1" internal_layer_id="2"/></port_map>'
        f'<back_edges><edge from-layer="2" to-layer="0"/></back_edges>{body}</layer>'
    )


# A model of a Loop without an end.


def endless_loop(length: int = 4, *, collected: bool = False, has_steps: bool = True) -> Model:
    """x f32[1, length]; each iteration adds 1 to it.

    Args:
        collected: also concatenate the values of all iterations.
        has_steps: without, the body gives its input as it is.
    """
    inner = Builder("body")
    state = inner.parameter(F32, (1, length), "state")
    value = inner.emit("Add", state, inner.constant(np.float32(1)), name="count") if has_steps else state
    result = inner.result(value, "next")
    condition = inner.result(inner.constant(np.array(True), BOOLEAN), "condition")
    graph = inner.graph
    outputs = [PortMap("output", 3, result.id)]
    if collected:
        slices = {"axis": "0", "start": "0", "end": "-1", "stride": "1", "part_size": "1"}
        outputs.append(PortMap("output", 4, result.id, slices))
    maps = [
        PortMap("input", 2, state.node.id),
        *outputs,
        PortMap("output", -1, condition.id, {"purpose": "execution_condition"}),
    ]
    body = Body(graph, maps, [BackEdge(result.id, state.node.id)])

    outer = Builder("endless")
    x = outer.parameter(F32, (1, length), "x")
    given = [outer.constant(np.array(-1), I64), outer.constant(np.array(True), BOOLEAN), x]
    results = outer.emit("Loop", *given, version=5, name="loop", bodies={"body": body})
    for i, one in enumerate(results if isinstance(results, tuple) else (results,)):
        outer.result(one, f"y{i}")
    return outer.model()
