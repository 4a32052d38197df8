"""ReadValue-3: the variable has the shape of the initial value, which a dynamic model may change from run to run; values by hand."""

from __future__ import annotations

import numpy as np
import pytest

import irexec
from irexec.errors import NodeError


@pytest.mark.parametrize("optimize", [True, False])
def test_a_value_of_another_shape_than_that_of_the_run_is_refused(optimize: bool) -> None:
    builder = irexec.Builder()
    x = builder.parameter("f32", (None, 2), "x")
    past = builder.emit("ReadValue", x, version=3, variable_id="v")
    total = builder.emit("Tanh", builder.emit("Subtract", past, x))
    builder.emit("Assign", x, version=3, variable_id="v")
    builder.result(total)
    compiled = irexec.compile_model(builder.model(), optimize=optimize)
    first, other = np.ones((2, 2), np.float32), np.ones((3, 2), np.float32)
    np.testing.assert_array_equal(compiled(first)[0], np.zeros((2, 2), np.float32))
    with pytest.raises(
        NodeError, match=r"variable 'v' holds a value of shape \[2,2\], init_value has shape \[3,2\]; reset the state"
    ):
        compiled(other)
    # A run that is refused leaves the variable as it was.
    np.testing.assert_allclose(compiled(-first)[0], np.full((2, 2), np.tanh(2), np.float32), rtol=1e-6)
    compiled.reset()
    np.testing.assert_array_equal(compiled(other)[0], np.zeros((3, 2), np.float32))
