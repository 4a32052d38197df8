"""Variables of a model that is edited."""

from __future__ import annotations

from pathlib import Path

import pytest

from irexec import Model, opset, validate


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
