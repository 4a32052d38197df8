"""Types and shapes that a model declares of its values, compared with those that its nodes give.

Every contradiction here is one for ``onnx.checker.check_model(full_check=True)`` too, unless the row says otherwise.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import converters
import irexec
from tests.support.onnx_models import model_of


def _warnings(model: onnx.ModelProto, **options: Any) -> list[str]:
    found: list[str] = []
    converters.convert(model, warn=found.append, **options)
    return found


def _checker_accepts(model: onnx.ModelProto) -> bool:
    try:
        onnx.checker.check_model(model, full_check=True)
    except onnx.shape_inference.InferenceError:
        return False
    return True


RELU = "y = Relu (x)"
CONTRADICTIONS = {
    "a size": (
        "(float[2,4] x) => (float[2,7] y)",
        RELU,
        ["output 'y' is declared as f32[2,7], but its node produces f32[2,4]"],
    ),
    "a rank": (
        "(float[2,4] x) => (float[8] y)",
        RELU,
        ["output 'y' is declared as f32[8], but its node produces f32[2,4]"],
    ),
    "an element type": (
        "(float[2] x) => (int64[2] y)",
        RELU,
        ["output 'y' is declared as i64[2], but its node produces f32[2]"],
    ),
    "two outputs": (
        "(float[2] x) => (float[3] y, float[4] z)",
        "y = Relu (x) z = Neg (y)",
        [
            "output 'y' is declared as f32[3], but its node produces f32[2]",
            "output 'z' is declared as f32[4], but its node produces f32[2]",
        ],
    ),
    "a value between nodes": (
        "(float[2] x) => (float[2] y) <float[9] t>",
        "t = Neg (x) y = Relu (t)",
        ["value 't' is declared as f32[9], but its node produces f32[2]"],
    ),
}
AGREEMENTS = {
    "the same": ("(float[2,4] x) => (float[2,4] y)", RELU),
    "less is declared than is known": ("(float[2,4] x) => (float[n,m] y)", RELU),
    "more is declared than is known": ("(float[n,m] x) => (float[2,4] y)", RELU),
    "symbols have other names": ("(float[n,4] x) => (float[batch,4] y)", RELU),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_contradictions(name: str) -> None:
    signature, nodes, expected = CONTRADICTIONS[name]
    model = model_of(f"{signature} {{ {nodes} }}")
    assert not _checker_accepts(model)
    assert _warnings(model) == expected
    with pytest.raises(irexec.ConversionError) as caught:
        converters.convert(model, strict=True)
    assert str(caught.value) == f"the model contradicts itself: {'; '.join(expected)}"
    assert not caught.value.unsupported


@pytest.mark.parametrize("name", AGREEMENTS)
def test_agreements(name: str) -> None:
    signature, nodes = AGREEMENTS[name]
    model = model_of(f"{signature} {{ {nodes} }}")
    assert _checker_accepts(model)
    assert _warnings(model, strict=True) == []


def test_the_converted_shape_is_the_one_that_the_node_gives() -> None:
    model = model_of("(float[2,4] x) => (float[2,7] y) { y = Relu (x) }")
    with pytest.warns(UserWarning, match=r"output 'y' is declared as f32\[2,7\], but its node produces f32\[2,4\]"):
        converted = converters.convert(model)
    assert str(converted.outputs[0]) == "y: f32[2,4]"


def test_undeclared_type_or_shape_is_not_compared() -> None:
    model = model_of("(float[2] x) => (float[2] y) { y = Relu (x) }")
    for info in (helper.make_tensor_value_info("y", TensorProto.FLOAT, None), onnx.ValueInfoProto(name="y")):
        model.graph.output[0].CopyFrom(info)
        assert _warnings(model) == []
    model.graph.value_info.append(helper.make_tensor_value_info("unused", TensorProto.FLOAT, [7]))
    assert _warnings(model) == []


def test_shapes_given_for_inputs() -> None:
    """Other input shapes than declared make the declared shapes of the other values obsolete; more exact ones do not."""
    model = model_of("(float[1,4] x, float[n] z) => (float[1,5] y) { y = Relu (x) }")
    assert _warnings(model, inputs={"x": (2, 4)}) == []
    assert len(_warnings(model, inputs={"z": (3,)})) == 1


def test_expected_shape_of_a_constant_output() -> None:
    model = model_of("() => (float[3] y) { y = Identity (w) }", w=np.ones(2, np.float32))
    assert _warnings(model) == ["output 'y' is declared as f32[3], but its node produces f32[2]"]
