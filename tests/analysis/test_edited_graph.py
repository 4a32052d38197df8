"""A graph that was edited in Python: validate finds what save_model refuses, and what it does not refuse can be read again."""

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
from irexec.errors import ModelError
from irexec.ir.constants import BytesInMemory, Constant
from irexec.ir.graph import ModelGraph, Node
from irexec.tools.inspect.cost import cost
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
    "an attribute that is a number": Row(
        lambda m, n: n["softmax"].attributes.update(axis=1), "IR305", "attribute 'axis' is 1 of type int, expected text"
    ),
    "another attribute": Row(
        lambda m, n: n["softmax"].attributes.update(x=3), "IR305", "attribute 'x' is 3 of type int, expected text"
    ),
    "no text at all": Row(
        lambda m, n: n["softmax"].attributes.update(x=None), "IR305", "'x' is None of type NoneType, expected text"
    ),
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
    "the name of an attribute, a number": Row(
        lambda m, n: n["softmax"].attributes.update({5: "1"}), "IR305", "the name of an attribute is 5 of type int"
    ),
    "a name": Row(lambda m, n: setattr(n["softmax"], "name", "a\x1b"), "IR306", "the name, 'a", "a\x1b"),
    "half a pair": Row(lambda m, n: setattr(n["softmax"], "name", "\udcff"), "IR306", "the name, '", "\udcff"),
    "a name that is a number": Row(
        lambda m, n: setattr(n["softmax"], "name", 5), "IR305", "the name is 5 of type int", 5
    ),
    "a type": Row(lambda m, n: setattr(n["softmax"], "type", "a\x01"), "IR306", "the type, 'a"),
    "no type": Row(lambda m, n: setattr(n["softmax"], "type", None), "IR305", "the type is None"),
    "a version that is a number": Row(
        lambda m, n: setattr(n["softmax"], "version", 8), "IR305", "the version is 8 of type int"
    ),
    "the name of the model": Row(lambda m, n: setattr(m, "name", "\x02"), "IR306", "the name of the model, '", None),
    "a tensor name": Row(lambda m, n: n["softmax"].outputs[0].names.append("\x03"), "IR306", "a tensor name, '"),
    "a tensor name that is a number": Row(
        lambda m, n: n["softmax"].outputs[0].names.append(3), "IR305", "a tensor name is 3"
    ),
    "an id that is text": Row(
        lambda m, n: setattr(n["softmax"], "id", "a"), "IR006", "the id is 'a', expected an integer"
    ),
    "a negative id": Row(lambda m, n: setattr(n["softmax"], "id", -4), "IR006", "the id is -4, expected an integer"),
    "an id of more than 64 bits": Row(
        lambda m, n: setattr(n["softmax"], "id", 1 << 63), "IR006", "expected an integer from 0 to"
    ),
    "an id twice": Row(lambda m, n: setattr(n["softmax"], "id", 0), "IR002", "layer 'x' has the id 0, too"),
    "a layer that was removed": Row(
        lambda m, n: m.nodes.remove(n["softmax"]),
        "IR010",
        "input 0 comes from 'softmax', which is not in the graph",
        "add",
    ),
    "an output that was removed": Row(
        lambda m, n: n["softmax"].outputs.clear(),
        "IR010",
        "input 0 comes from 'softmax', which has no such output",
        "add",
    ),
    "an input without a source": Row(
        lambda m, n: setattr(n["softmax"].ports[0], "source", None), "IR013", "no edge arrives at input port 0"
    ),
    "two input ports of one id": Row(
        lambda m, n: [setattr(port, "port", 7) for port in n["add"].ports], "IR003", "two ports have the id 7", "add"
    ),
    "a constant of too few bytes": Row(
        lambda m, n: _constant(n["ones"], fetch=BytesInMemory(np.zeros(3, np.uint8))),
        "IR401",
        "the constant has 3 bytes, expected 12",
        "ones",
    ),
}


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


def test_what_is_no_graph_any_more_is_not_run() -> None:
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
