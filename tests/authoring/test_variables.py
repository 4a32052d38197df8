"""Variables of a model that is edited."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from irexec import Model, opset, validate
from irexec.io import write_text


@pytest.mark.parametrize(("batch", "declared"), [("?", "?,2"), ("1..8", "1..8,2")])
def test_a_variable_admits_the_shapes_that_an_edit_gives_it(batch: str, declared: str, tmp_path: Path) -> None:
    """OpenVINO refuses a declared shape that the initial value may not have."""
    x = opset.parameter([1, 2], "f32", "x")
    state = opset.read_value(x, variable_id="v", variable_shape=[1, 2], variable_type="f32", name="state")
    model = Model([state], [x], sinks=[opset.assign(state, variable_id="v")])
    with model.edit() as g:
        g.set_batch(batch)
    assert model["state"].attributes["variable_shape"] == declared
    assert validate(model) == []
    try:
        import openvino as ov
    except ImportError:
        return
    model.save(tmp_path / "m.xml")
    assert len(ov.Core().read_model(tmp_path / "m.xml").get_sinks()) == 1


@pytest.mark.parametrize("step", ["fold", "optimize"])
def test_a_variable_without_initial_value_keeps_its_shape(step: str) -> None:
    """It begins with zeros of the declared shape, and what is assigned later may have any."""
    x = opset.parameter("?", "f32", "x")
    state = opset.read_value(variable_id="v", variable_shape=[1], variable_type="f32", name="state")
    y = opset.maximum(state, opset.multiply(x, opset.add(opset.constant([1.0]), opset.constant([2.0]))))
    model = Model([y], [x], sinks=[opset.assign(y, variable_id="v")])
    with model.edit() as g:
        getattr(g, step)()
    assert model["state"].attributes["variable_shape"] == "1"


@pytest.mark.parametrize("version", [3, 6])
@pytest.mark.parametrize("depends", [True, False])
def test_assign_3_needs_the_read_value_before_it(version: int, depends: bool, tmp_path: Path) -> None:
    """OpenVINO refuses the same models."""
    x = opset.parameter([2], "f32", "x")
    if version == 6:
        state = opset.opset6.read_value(x, variable_id="v", variable_shape=[2], variable_type="f32")
        assign = opset.opset6.assign(opset.relu(state if depends else x), variable_id="v")
    else:
        state = opset.opset3.read_value(x, variable_id="v")
        assign = opset.opset3.assign(opset.relu(state if depends else x), variable_id="v")
    model = Model([state], [x], sinks=[assign])
    refused = version == 3 and not depends
    text = "the input of Assign-3 does not depend on the ReadValue-3 of variable 'v'"
    assert [finding.message for finding in validate(model)] == [text] * refused
    try:
        import openvino as ov
    except ImportError:
        return
    text, weights = write_text(model)
    with pytest.raises(RuntimeError, match="Can't find variable") if refused else nullcontext():
        ov.Core().read_model(text, ov.Tensor(np.frombuffer(bytes(weights) or b"\0", np.uint8)))


@pytest.mark.parametrize(
    ("version", "start", "declared", "value", "message"),
    [
        (3, "1,2", "", "f32 1,2", None),
        (3, "1,2", "", "f32 ?,2", None),
        (3, "?,2", "", "f32 1,2,1", None),
        (3, "1,2", "", "f32 2,2", "f32[2,2] is assigned to variable 'v', which is f32[1,2]"),
        (3, "?,2", "", "f16 ?,2", "f16[?,2] is assigned to variable 'v', which is f32[?,2]"),
        (6, "1,2", "?,2", "f32 2,2", None),
        (6, "1,2", "1,2", "f32 ...", None),
        (6, "1,2", "?,2", "f16 2,2", "f16[2,2] is assigned to variable 'v', which is f32[?,2]"),
        (6, "1,2", "?,2", "f32 1,2,1", "f32[1,2,1] is assigned to variable 'v', which is f32[?,2]"),
        (6, "?,2", "1,2", "f32 1,2", "init_value may have the shape [?,2], variable_shape is [1,2]"),
    ],
)
def test_values_that_do_not_fit_a_variable_are_findings(
    version: int, start: str, declared: str, value: str, message: str | None
) -> None:
    """OpenVINO refuses the same models."""
    element, shape = value.split()
    first, second = opset.parameter(start, "f32", "first"), opset.parameter(shape, element, "second")
    versions = opset.opset3 if version == 3 else opset.opset6
    options = {} if version == 3 else {"variable_shape": declared, "variable_type": "f32"}
    state = versions.read_value(first, variable_id="v", **options)
    # The value has the shape of the second input, and depends on the state.
    new = opset.prelu(second, opset.convert_like(state, second))
    model = Model([state, new], [first, second], sinks=[versions.assign(new, variable_id="v")])
    wrong = [finding.message for finding in validate(model) if finding.severity != "info"]
    assert wrong == [message] * (message is not None)
    ov = pytest.importorskip("openvino")
    text, weights = write_text(model)
    with pytest.raises(RuntimeError, match="Variable") if message else nullcontext():
        ov.Core().read_model(text, ov.Tensor(np.frombuffer(bytes(weights) or b"\0", np.uint8)))
