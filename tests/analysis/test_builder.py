"""Builders and edited graphs: what is refused, what validate finds, and that refusals leave nothing behind."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import irexec
from irexec.errors import ModelError, OpError
from irexec.ir.constants import BytesInMemory, Constant
from irexec.ir.graph import ModelGraph, Node, Value
from irexec.tools.inspect.cost import cost
from irexec.tools.run.input_sources import random_array
from tests.support.paths import IRS

Nodes = dict[str, Any]


def _model() -> ModelGraph:
    builder = irexec.Builder("m")
    x = builder.parameter("f32", (2, 3), "x")
    relu = builder.emit("Softmax", x, axis=1, name="softmax")
    builder.result(builder.emit("Add", relu, builder.constant(np.ones(3, np.float32), name="ones"), name="add"))
    return builder.model()


def _constant(node: Node, **changes: Any) -> None:
    constant = node.constant
    assert constant is not None
    given = {"element": constant.element, "shape": constant.shape, "fetch": constant.fetch, "size": constant.size}
    node.constant = Constant(**(given | changes))


class Row(NamedTuple):
    """An edit of the model, its finding, and the layer that it is at."""

    edit: Callable[[ModelGraph, Nodes], object]
    code: str
    says: str
    layer: str | None = "softmax"


ROWS = {
    "an attribute that is a number": Row(lambda m, n: n["softmax"].attributes.update(axis=1), "IR305", "attribute 'axis' is 1 of type int, expected text"),
    "another attribute": Row(lambda m, n: n["softmax"].attributes.update(x=3), "IR305", "attribute 'x' is 3 of type int, expected text"),
    "no text at all": Row(lambda m, n: n["softmax"].attributes.update(x=None), "IR305", "'x' is None of type NoneType, expected text"),
    "an attribute with a NUL": Row(
        lambda m, n: n["softmax"].attributes.update(x="\0"),
        "IR306",
        r"attribute 'x', '\\x00', has characters that XML cannot contain",
    ),
    "the name of an attribute": Row(
        lambda m, n: n["softmax"].attributes.update({"a b": "1"}),
        "IR306",
        "the name of an attribute, 'a b', has characters that XML",
    ),
    "the name of an attribute, a number": Row(lambda m, n: n["softmax"].attributes.update({5: "1"}), "IR305", "the name of an attribute is 5 of type int"),
    "a name": Row(lambda m, n: setattr(n["softmax"], "name", "a\x1b"), "IR306", "the name, 'a", "a\x1b"),
    "half a pair": Row(lambda m, n: setattr(n["softmax"], "name", "\udcff"), "IR306", "the name, '", "\udcff"),
    "a name that is a number": Row(lambda m, n: setattr(n["softmax"], "name", 5), "IR305", "the name is 5 of type int", 5),
    "a type": Row(lambda m, n: setattr(n["softmax"], "type", "a\x01"), "IR306", "the type, 'a"),
    "no type": Row(lambda m, n: setattr(n["softmax"], "type", None), "IR305", "the type is None"),
    "a version that is a number": Row(lambda m, n: setattr(n["softmax"], "version", 8), "IR305", "the version is 8 of type int"),
    "the name of the model": Row(lambda m, n: setattr(m, "name", "\x02"), "IR306", "the name of the model, '", None),
    "a tensor name": Row(lambda m, n: n["softmax"].outputs[0].names.append("\x03"), "IR306", "a tensor name, '"),
    "a tensor name that is a number": Row(lambda m, n: n["softmax"].outputs[0].names.append(3), "IR305", "a tensor name is 3"),
    "an id that is text": Row(lambda m, n: setattr(n["softmax"], "id", "a"), "IR006", "the id is 'a', expected an integer"),
    "a negative id": Row(lambda m, n: setattr(n["softmax"], "id", -4), "IR006", "the id is -4, expected an integer"),
    "an id of more than 64 bits": Row(lambda m, n: setattr(n["softmax"], "id", 1 << 63), "IR006", "expected an integer from 0 to"),
    "an id twice": Row(lambda m, n: setattr(n["softmax"], "id", 0), "IR002", "layer 'x' has the id 0, too"),
    "a layer that was removed": Row(lambda m, n: m.nodes.remove(n["softmax"]), "IR010", "input 0 comes from 'softmax', which is not in the graph", "add"),
    "an output that was removed": Row(lambda m, n: n["softmax"].outputs.clear(), "IR010", "input 0 comes from 'softmax', which has no such output", "add"),
    "an input without a source": Row(lambda m, n: setattr(n["softmax"].ports[0], "source", None), "IR013", "no edge arrives at input port 0"),
    "two input ports of one id": Row(lambda m, n: [setattr(port, "port", 7) for port in n["add"].ports], "IR003", "two ports have the id 7", "add"),
    "a constant of too few bytes": Row(
        lambda m, n: _constant(n["ones"], fetch=BytesInMemory(np.zeros(3, np.uint8))),
        "IR401",
        "the constant has 3 bytes, expected 12",
        "ones",
    ),
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_what_cannot_be_saved_is_found(row: Row, tmp_path: Path) -> None:
    model = _model()
    row.edit(model, {node.name: node for node in model.nodes})
    found = [finding for finding in irexec.validate(model) if finding.code == row.code]
    assert [(one.layer_name, one.severity) for one in found] == [(row.layer, "error")]
    assert re.search(row.says, found[0].message)
    with pytest.raises(ModelError, match=row.says):
        irexec.save_model(model, tmp_path / "edited.xml")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("changes", [{"shape": (4,)}, {"size": 5}])
def test_a_constant_of_another_size_is_found_before_and_after_it_is_saved(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    model = _model()
    _constant(next(node for node in model.nodes if node.name == "ones"), **changes)
    irexec.save_model(model, tmp_path / "edited.xml")
    for each in (model, tmp_path / "edited.xml"):
        assert "IR401" in {finding.code for finding in irexec.validate(each)}


@pytest.mark.parametrize("what", ["name", "attribute", "port map", "edge"])
def test_bodies_are_looked_at_too(what: str, tmp_path: Path) -> None:
    model = irexec.read_model(IRS / "tensor_iterator.xml")
    body = next(body for node in model.nodes for body in node.bodies.values())
    node = next(node for node in body.graph.nodes if node.type == "Tanh")
    if what == "name":
        body.graph.name = "\0"
    elif what == "attribute":
        node.attributes["x"] = 3
    elif what == "port map":
        body.port_maps[0].attributes["axis"] = 1
    else:
        node.ports[0].source = None
    assert [finding.code for finding in irexec.validate(model) if finding.severity == "error"] == [
        {"edge": "IR013", "name": "IR306"}.get(what, "IR305")
    ]
    with pytest.raises(ModelError, match="the model cannot be written"):
        irexec.save_model(model, tmp_path / "edited.xml")


@given(st.data())
def test_what_is_refused_has_an_error_and_what_is_saved_is_read_again(data: Any) -> None:
    """Any text, number or None as any of the texts and numbers of a model."""
    model = _model()
    node = data.draw(st.sampled_from(model.nodes))
    value = data.draw(st.one_of(st.text(max_size=3), st.characters(exclude_categories=()), st.integers(), st.none()))
    where = data.draw(st.sampled_from(["name", "type", "version", "id", "attribute", "key", "names", "model"]))
    if where in ("name", "type", "version", "id"):
        setattr(node, where, value)
    elif where == "names" and node.outputs:
        node.outputs[0].names.append(value)
    elif where == "model":
        model.name = value
    else:
        node.attributes |= {"x": value} if where == "attribute" else {value: "1"}
    errors = [finding for finding in irexec.validate(model) if finding.severity == "error"]
    try:
        text, binary = irexec.io.write_text(model)
    except ModelError:
        assert errors
        return
    assert irexec.io.read_text(text, binary).problems == []


def test_what_is_not_a_graph_is_not_run() -> None:
    for name in ("a layer that was removed", "an output that was removed", "an input without a source"):
        model = _model()
        ROWS[name].edit(model, {node.name: node for node in model.nodes})
        with pytest.raises(ModelError, match=ROWS[name].says):
            irexec.compile_model(model)
    model = _model()
    model.nodes[1].attributes["axis"] = 1
    with pytest.raises(irexec.NodeError, match="attribute 'axis' is 1 of type int, expected text"):
        irexec.compile_model(model)
    assert cost(model).layers


def test_inputs_cannot_be_assigned_to_in_vain() -> None:
    model = _model()
    with pytest.raises(TypeError):
        model.nodes[1].inputs[0] = model.nodes[0].outputs[0]
    model.nodes[1].ports[0].source = model.nodes[0].outputs[0]
    assert model.nodes[1].inputs == (model.nodes[0].outputs[0],)


# What a builder refuses, and that nothing is left of what it has refused.


def test_a_value_of_another_builder() -> None:
    builder, other = irexec.Builder("one"), irexec.Builder("two")
    foreign = other.parameter("f32", (2,), "x")
    for use in (
        lambda: builder.emit("Relu", foreign),
        lambda: builder.result(foreign),
        lambda: builder.clone_node(foreign.node, foreign),
    ):
        with pytest.raises(OpError, match=r"^<Value 'x'.*> is a value of another builder than <Builder 'one'"):
            use()
    assert builder.graph.nodes == []


def test_a_body_has_no_values_of_the_graph_around_it() -> None:
    """IR gives them to a body through its Parameters."""
    around = irexec.Builder("around")
    x = around.parameter("f32", (2,), "x")
    with pytest.raises(OpError, match=r"^<Value 'x'.*> is a value of another builder"):
        irexec.Builder("body", inside=around).emit("Relu", x)


def test_a_value_that_was_dropped() -> None:
    builder = irexec.Builder("dropped")
    x = builder.parameter("f32", (2,), "x")
    builder.result(builder.emit("Relu", x))
    unused = builder.emit("Exp", x)
    builder.drop_unused()
    with pytest.raises(OpError, match="is a value of another builder"):
        builder.result(unused)


def test_nothing_is_left_of_an_operation_that_is_refused() -> None:
    builder = irexec.Builder("undone")
    x = builder.parameter("f32", (2, 3), "x")
    with pytest.raises(irexec.NodeError, match="'sum'"):
        builder.emit("Add", x, np.zeros((5, 5), np.float32), name="sum")
    builder.result(builder.emit("Add", x, np.float32(1), name="sum"))
    assert [node.name for node in builder.graph.nodes if node.type != "Constant"] == ["x", "sum", "sum/sink_port_0"]
    assert irexec.validate(builder.model()) == []


@pytest.mark.parametrize("array", [[[1], [1, 2]], [np.zeros(2), np.zeros(3)]])
def test_a_constant_that_is_not_an_array(array: list[object]) -> None:
    with pytest.raises(OpError, match="a constant is not an array"):
        irexec.Builder().constant(array)


# Constants of a builder in an element type that their values do not have.


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -3.4e38])
@pytest.mark.parametrize("element", ["i32", "i64"])
def test_floats_that_no_integer_stands_for(value: float, element: str) -> None:
    with pytest.raises(irexec.OpError, match=f"out of range cannot be a constant of type {element}"):
        irexec.Builder().constant(value, element)


def test_floats_beyond_the_range_of_a_float_type_are_infinite() -> None:
    builder = irexec.Builder()
    array = builder.constant_array(builder.constant(np.float32(3e38), "f16"))
    assert array is not None
    assert array == np.inf


def test_a_list_of_tensors_is_not_a_constant() -> None:
    x = irexec.opset.parameter([2], "f32", name="x")
    with pytest.raises(irexec.OpError, match=r"a constant has <Tensor.*, expected numbers or texts"):
        irexec.opset.concat([x, x], axis=0)


# Builder.clone_node: a model copied node by node is the same model, and the original is untouched.


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
