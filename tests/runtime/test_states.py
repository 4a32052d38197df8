"""ReadValue-3: the variable has the shape of the initial value, which a dynamic model may change from run to run; values by hand."""

from __future__ import annotations

import numpy as np
import pytest

import irexec
from irexec.errors import NodeError
from irexec.tools.trapping.trap import trap


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


# ReadValue without an initial value: the state begins as zeros, unknown sizes at their minimum; values by hand, and as
# OpenVINO gives.


def _cache(shape: str) -> irexec.Model:
    """Each run appends its input to what the runs before have given."""
    builder = irexec.Builder()
    x = builder.parameter("f32", (2, 3), "x")
    past = builder.emit("ReadValue", variable_id="v", variable_type="f32", variable_shape=shape, name="past")
    whole = builder.emit("Concat", past, x, axis=1, name="all")
    builder.emit("Assign", whole, variable_id="v")
    builder.result(whole)
    return builder.model()


@pytest.mark.parametrize("optimize", [True, False])
def test_the_state_grows_from_nothing(optimize: bool) -> None:
    compiled = irexec.compile_model(_cache("2,?"), optimize=optimize)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(compiled(x)[0], x)
    np.testing.assert_array_equal(compiled(-x)[0], np.concatenate([x, -x], 1))
    compiled.reset()
    np.testing.assert_array_equal(compiled(x)[0], x)


@pytest.mark.parametrize("optimize", [True, False])
def test_a_state_that_is_assigned_as_it_is(optimize: bool) -> None:
    builder = irexec.Builder()
    past = builder.emit("ReadValue", variable_id="v", variable_type="f32", variable_shape="2,4")
    builder.emit("Assign", past, variable_id="v")
    builder.result(past)
    compiled = irexec.compile_model(builder.model(), optimize=optimize)
    for _ in range(2):
        np.testing.assert_array_equal(compiled()[0], np.zeros((2, 4), np.float32))


@pytest.mark.parametrize("optimize", [True, False])
def test_another_shape_than_the_variable_has_is_refused(optimize: bool) -> None:
    """OpenVINO 2026.4: "Can not clone with new dims" in the Assign."""
    builder = irexec.Builder()
    x = builder.parameter("f32", (None, 3), "x")
    past = builder.emit("ReadValue", variable_id="v", variable_type="f32", variable_shape="1,3")
    after = builder.emit("Add", past, x)
    builder.emit("Assign", after, variable_id="v", name="keep")
    builder.result(after)
    compiled = irexec.compile_model(builder.model(), optimize=optimize)
    with pytest.raises(NodeError, match=r"'keep'.*variable 'v' of shape \[1,3\] is assigned a value of shape \[2,3\]"):
        compiled(np.ones((2, 3), np.float32))
    np.testing.assert_array_equal(compiled(np.ones((1, 3), np.float32))[0], np.ones((1, 3)))


def test_a_trap_runs_it() -> None:
    x = np.array([[1, 2, np.inf], [0, 0, 0]], np.float32)
    found = trap(_cache("2,?"), x, ("nan",))
    assert found.trap is None
    assert found.layers >= 2
