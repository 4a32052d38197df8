"""Operators without a translator that ONNX defines by a function body."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

import converters
import irexec
from converters.onnx import registry
from converters.onnx.registry import operators
from converters.onnx.translate import unsupported_nodes
from tests.support.onnx_models import model_of, run


def test_a_body_with_defaults() -> None:
    """The Hann window of size 4, periodic by default: sin(pi n / 4) squared."""
    result = run(model_of("(int64 n) => (float y) { y = HannWindow (n) }", 17), np.int64(4))[0]
    np.testing.assert_allclose(result, [0, 0.5, 1, 0.5], atol=1e-6)


def test_a_body_that_calls_another() -> None:
    """The loss of a sample with equal scores for 4 classes is log 4."""
    model = model_of("(float[1,4] x, int64[1] t) => (float y) { y = SoftmaxCrossEntropyLoss (x, t) }", 13)
    result = run(model, np.zeros((1, 4), np.float32), np.array([2]))[0]
    np.testing.assert_allclose(result, np.log(4), rtol=1e-6)


def test_a_body_by_the_types_of_the_inputs() -> None:
    """Padded with zeros, or cropped, at the centre."""
    model = model_of("(float[3] x, int64[1] s) => (float y) { y = CenterCropPad (x, s) }", 18)
    x = np.array([1, 2, 3], np.float32)
    np.testing.assert_array_equal(run(model, x, np.array([5]))[0], [0, 1, 2, 3, 0])
    np.testing.assert_array_equal(run(model, x, np.array([1]))[0], [2])


@pytest.mark.parametrize("inside", [False, True])
def test_a_body_whose_inputs_are_initializers(inside: bool) -> None:
    """Losses and shapes are most often called so; in a subgraph, the initializer is in the graph around it."""
    call = "y = CenterCropPad (x, s)"
    if inside:
        branches = ", ".join(
            f"{name}_branch = {name} () => (float[] {name}_y) {{ {call.replace('y', name + '_y', 1)} }}"
            for name in ("then", "else")
        )
        call = f"y = If <{branches}> (c)"
    model = model_of(f"(float[3] x, bool c) => (float[] y) <int64[1] s = {{5}}> {{ {call} }}", 18)
    np.testing.assert_array_equal(run(model, np.array([1, 2, 3], np.float32), np.array(True))[0], [0, 1, 2, 3, 0])
    loss = '(float[1,2] x) => (float[] y) <int64[1] t = {1}, float[2] w = {3.0, 2.0}> { y = SoftmaxCrossEntropyLoss <reduction: string = "sum"> (x, t, w) }'
    np.testing.assert_allclose(run(model_of(loss, 13), np.zeros((1, 2), np.float32))[0], 2 * np.log(2), rtol=1e-6)


def test_a_body_inside_a_function_of_the_model() -> None:
    text = """<ir_version: 10, opset_import: ["" : 18, "own" : 1]> outer (int64 n) => (float[length] y) { y = own.window (n) }
    <domain: "own", opset_import: ["" : 18]> window (m) => (w) { h = HannWindow (m) w = Neg (h) }"""
    result = run(parser.parse_model(text), np.int64(2))[0]
    np.testing.assert_allclose(result, [0, -1], atol=1e-6)


def test_other_tensors_keep_their_names() -> None:
    converted = converters.convert(model_of("(int64 n) => (float z) { y = HannWindow (n) z = Neg (y) }", 17))
    names = {name for node in converted.nodes for value in node.outputs for name in value.names}
    assert {"n", "y", "z"} <= names


def test_a_body_that_cannot_be_translated_is_named_by_its_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a translator of RandomUniformLike, which the body of Bernoulli uses."""
    operators()
    monkeypatch.setattr(
        registry,
        "_TRANSLATIONS",
        {k: v for k, v in registry._TRANSLATIONS.items() if k[1] not in ("Bernoulli", "RandomUniformLike")},
    )
    model = model_of("(float[2] x) => (float y) { [random] a = Bernoulli (x) y = Relu (a) }", 22)
    assert unsupported_nodes(model) == ["node 'random' (ai.onnx.Bernoulli of opset 22)"]
    with pytest.raises(
        irexec.ConversionError, match=r"1 node cannot be converted: node 'random' \(ai.onnx.Bernoulli of opset 22\)"
    ):
        converters.convert(model)


def test_the_model_is_not_changed() -> None:
    model = model_of("(int64 n) => (float y) { y = HannWindow (n) }", 17)
    before = model.SerializeToString()
    converters.convert(model)
    assert model.SerializeToString() == before


def test_a_function_of_another_opset_is_inlined() -> None:
    """sklearn-onnx writes KNNImputer as functions of an older opset than that of the model."""
    text = """<ir_version: 9, opset_import: ["": 18, "local": 1]> g (float[2] x) => (float[2] y) { y = local.twice (x) }
    <domain: "local", opset_import: ["": 17]> twice (u) => (v) { v = Add (u, u) }"""
    model = converters.convert(parser.parse_model(text))
    assert [node.type for node in model.nodes] == ["Parameter", "Add", "Result"]
