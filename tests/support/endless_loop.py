"""A model of a Loop without an end."""

from __future__ import annotations

import numpy as np

from irexec.analysis.builder import Builder
from irexec.analysis.model import Model
from irexec.dtypes.elements import BOOLEAN, F32, I64
from irexec.ir.graph import BackEdge, Body, PortMap


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
