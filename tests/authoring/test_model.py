"""Models from the tensors of their results: what they collect, in which order, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec import Model, Tensor, opset
from irexec.errors import OpError


def test_a_model_has_what_its_results_need() -> None:
    x, y, unused = (opset.parameter([2], "f32", name) for name in ("x", "y", "unused"))
    opset.exp(x)
    total = (x + y) * 2
    model = Model([total], [y, x, unused])
    assert [node.type for node in model.nodes] == [
        "Parameter",
        "Parameter",
        "Parameter",
        "Add",
        "Constant",
        "Multiply",
        "Result",
    ]
    assert [port.name for port in model.inputs] == ["y", "x", "unused"]
    assert irexec.compile_model(model)([[1, 2], [10, 20], [0, 0]])[0].tolist() == [22, 44]


def test_the_order_in_which_tensors_were_made_is_kept() -> None:
    a, b = opset.parameter([2], "f32", "a"), opset.parameter([2], "f32", "b")
    first, second = opset.relu(b, name="first"), opset.relu(a, name="second")
    model = Model([second - first], [a, b])
    assert [node.name for node in model.nodes] == ["a", "b", "first", "second", "Subtract", "Subtract/sink_port_0"]


def test_models_of_the_same_tensors_are_independent() -> None:
    x = opset.parameter([2], "f32", "x")
    y = opset.relu(x)
    one, other = Model([y], [x]), Model([y, x], [x])
    one.nodes[0].name = "changed"
    one.reshape([5])
    assert other.nodes[0].name == "x"
    assert [port.shape for port in other.outputs] == [(2,), (2,)]
    assert y.names == ()


def test_a_part_of_a_model_that_was_read() -> None:
    """A tensor may be one of a model: what its results need is copied."""
    x = opset.parameter([2], "f32", "x")
    model = Model([opset.exp(opset.relu(x, name="middle"))], [x])
    middle = Tensor(model["middle"].outputs[0], irexec.Fact(irexec.f32, (2,)))
    source = Tensor(model["x"].outputs[0], irexec.Fact(irexec.f32, (2,)))
    part = Model([middle * 3], [source])
    assert [node.name for node in part.nodes] == ["x", "middle", "Constant", "Multiply", "Multiply/sink_port_0"]
    assert irexec.compile_model(part)([[-1, 2]])[0].tolist() == [0, 6]
    assert len(model.nodes) == 4


def test_a_parameter_that_is_not_listed() -> None:
    x, y = opset.parameter([2], "f32", "x"), opset.parameter([2], "f32", "y")
    with pytest.raises(irexec.InputError, match=r"^the results depend on 'y', which the inputs do not list$"):
        Model([x + y], [x])


def test_wrong_inputs_and_results() -> None:
    x = opset.parameter([2], "f32", "x")
    with pytest.raises(irexec.InputError, match=r"^input 1 is 'Relu' \(Relu\), expected a Parameter$"):
        Model([x], [x, opset.relu(x)])
    with pytest.raises(irexec.InputError, match=r"^input 'x' is given twice$"):
        Model([x], [x, x])
    result = opset.result(x, name="r")
    with pytest.raises(irexec.InputError, match=r"^result 'r' is given twice$"):
        Model([result, result], [x])
    with pytest.raises(OpError, match=r"^'r' is a Result, which has no output$"):
        opset.relu(result)


def test_results_with_names_of_their_own() -> None:
    x = opset.parameter([2], "f32", "x", names=())
    model = Model([opset.result(opset.relu(x, name="y"), name="last"), x, x], [x])
    assert [node.name for node in model.results] == ["last", "x/sink_port_0", "x/sink_port_0_1"]
    assert [port.name for port in model.outputs] == ["y", "x", "x/sink_port_0_1"]
    assert model["y"].outputs[0].names == []


def test_variables_are_kept_as_sinks(tmp_path: Path) -> None:
    x = opset.parameter([2], "f32", "x")
    total = opset.read_value(np.zeros(2, np.float32), variable_id="sum") + x
    model = Model([total], [x], sinks=[opset.assign(total, variable_id="sum")])
    model.save(tmp_path / "m.xml")
    session = irexec.compile_model(tmp_path / "m.xml").session()
    assert [session([[1, 2]])[0].tolist() for _ in range(3)] == [[1, 2], [2, 4], [3, 6]]


def test_a_long_chain() -> None:
    x = y = opset.parameter([2], "f32", "x")
    for _ in range(3000):
        y = opset.relu(y)
    assert len(Model([y], [x]).nodes) == 3002
