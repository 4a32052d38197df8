"""Builder.clone_node: a model copied node by node is the same model, and the original is untouched."""

from __future__ import annotations

import numpy as np
import pytest

import irexec
from irexec.ir.graph import Value
from irexec.tools.run.input_sources import random_array
from tests.support.paths import IRS


@pytest.mark.parametrize("name", ["convolutions", "loop"])
def test_a_model_cloned_node_by_node_computes_the_same(name: str) -> None:
    model = irexec.read_model(IRS / f"{name}.xml")
    inputs = {port.name: random_array(port, i) for i, port in enumerate(model.inputs)}
    expected = irexec.compile_model(model)(inputs)

    builder = irexec.Builder(model.name)
    clones: dict[Value, Value] = {}
    for node in model.nodes:
        arguments = [clones[value] for value in node.inputs if value is not None]
        if node.type == "Result":
            builder.result(arguments[0])
        else:
            clones.update(zip(node.outputs, builder.clone_node(node, *arguments), strict=True))

    cloned = builder.model()
    assert [port.name for port in cloned.inputs] == list(inputs)
    for a, b in zip(irexec.compile_model(cloned)(inputs).values(), expected.values(), strict=True):
        np.testing.assert_array_equal(a, b)
    bodies = [body for node in model.nodes for body in node.bodies.values()]
    assert not {id(body) for body in bodies} & {id(body) for node in cloned.nodes for body in node.bodies.values()}
    assert len(bodies) == (name == "loop")


def test_inputs_that_do_not_fit_are_refused() -> None:
    builder = irexec.Builder()
    x = builder.parameter("f32", (1, 2), "x")
    y = builder.emit("Add", x, np.zeros((1, 2), np.float32), name="sum")
    with pytest.raises(irexec.NodeError, match="'sum_1'"):
        builder.clone_node(y.node, x, builder.parameter("f32", (1, 3), "z"))
