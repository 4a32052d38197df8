"""Mode area of Interpolate-1: its shape is inferred, its values are computed by no implementation."""

import numpy as np
import pytest

import irexec
from irexec.errors import NodeError


def test_mode_area_has_a_shape_but_no_values() -> None:
    builder = irexec.Builder("area")
    x = builder.parameter(irexec.f32, (1, 2, 4, 5), "x")
    builder.result(builder.emit("Interpolate", x, [8, 9], version=1, axes=(2, 3), mode="area"))
    model = builder.model()
    assert [str(finding) for finding in irexec.validate(model) if finding.severity == "error"] == []
    assert str(model.outputs[0].shape) == "(1, 2, 8, 9)"
    with pytest.raises(NodeError, match="mode area is not computed by any implementation"):
        irexec.compile_model(model)([np.zeros((1, 2, 4, 5), np.float32)])
