"""Constants of a builder in an element type that their values do not have."""

from __future__ import annotations

import numpy as np
import pytest

import irexec


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
