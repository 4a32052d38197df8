"""A graph that was edited in Python: validate finds what save_model refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import irexec
from irexec.errors import ModelError
from irexec.ir.graph import Model


def _model() -> Model:
    builder = irexec.Builder()
    x = builder.parameter("f32", (2, 3), "x")
    builder.result(builder.emit("Sigmoid", builder.emit("Relu", x, name="relu"), name="sigmoid"))
    return builder.model()


def _remove(model: Model) -> None:
    model.nodes.remove(model.nodes[1])


def _take_the_id(model: Model) -> None:
    model.nodes[2].id = model.nodes[1].id


def _disconnect(model: Model) -> None:
    model.nodes[2].ports[0].source = None


@pytest.mark.parametrize(
    ("edit", "code", "says"),
    [
        (_remove, "IR010", "input 0 comes from 'relu', which is not in the graph"),
        (_take_the_id, "IR002", "layer 'relu' has the id 1, too"),
        (_disconnect, "IR013", "no edge arrives at input port 0"),
    ],
)
def test_what_cannot_be_saved_is_found(edit: Callable[[Model], None], code: str, says: str, tmp_path: Path) -> None:
    model = _model()
    edit(model)
    found = [finding for finding in irexec.validate(model) if finding.code == code]
    assert [(one.layer_name, one.message) for one in found] == [("sigmoid", says)]
    with pytest.raises(ModelError):
        irexec.save_model(model, tmp_path / "edited.xml")


def test_inputs_cannot_be_assigned_to_in_vain() -> None:
    model = _model()
    with pytest.raises(TypeError):
        model.nodes[2].inputs[0] = model.nodes[0].outputs[0]
    model.nodes[2].ports[0].source = model.nodes[0].outputs[0]
    assert model.nodes[2].inputs == (model.nodes[0].outputs[0],)
