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
    text = "the input of Assign-3 does not depend on the ReadValue of variable 'v'"
    assert [finding.message for finding in validate(model)] == [text] * refused
    try:
        import openvino as ov
    except ImportError:
        return
    text, weights = write_text(model)
    with pytest.raises(RuntimeError, match="Can't find variable") if refused else nullcontext():
        ov.Core().read_model(text, ov.Tensor(np.frombuffer(bytes(weights) or b"\0", np.uint8)))
