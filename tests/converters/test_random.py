"""Random operators: element type, range and distribution of their results, and the same results for the same seed."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from irexec import ConversionError
from tests.support.onnx_models import model_of, run


def test_uniform_range_and_seed() -> None:
    graph = "() => (float y) { y = RandomUniform <shape: ints = [1000], low: float = -2.0, high: float = 3.0, seed: float = 7.0> () }"
    y = run(model_of(graph))[0]
    assert y.dtype == np.float32
    assert y.min() >= -2
    assert y.max() < 3
    assert abs(y.mean() - 0.5) < 0.2
    np.testing.assert_array_equal(y, run(model_of(graph))[0])


def test_normal_distribution() -> None:
    graph = "(double[2000] x) => (double y) { y = RandomNormalLike <mean: float = 1.0, scale: float = 2.0, seed: float = 3.0> (x) }"
    y = run(model_of(graph), np.zeros(2000))[0]
    assert y.dtype == np.float64
    assert abs(y.mean() - 1) < 0.2
    assert abs(y.std() - 2) < 0.2
    assert abs(np.mean(np.abs(y - 1) < 2) - 0.683) < 0.05


def test_bernoulli_probability() -> None:
    x = np.repeat(np.array([0.0, 0.25, 1.0], np.float32), 1000)
    y = run(model_of("(float[3000] x) => (int64 y) { y = Bernoulli <dtype: int = 7, seed: float = 1.0> (x) }", 22), x)[
        0
    ]
    assert set(y.tolist()) == {0, 1}
    np.testing.assert_allclose(y.reshape(3, -1).mean(1), [0, 0.25, 1], atol=0.06)


def test_multinomial_probabilities() -> None:
    x = np.log(np.array([[1, 3], [8, 0.001]], np.float32))
    y = run(
        model_of("(float[2,2] x) => (int32 y) { y = Multinomial <sample_size: int = 1000, seed: float = 1.0> (x) }"), x
    )[0]
    assert y.dtype == np.int32
    np.testing.assert_allclose(y.mean(1), [0.75, 0], atol=0.06)


@pytest.mark.parametrize("operator", ["RandomUniform", "RandomNormal"])
def test_any_finite_seed(operator: str) -> None:
    for seed in (-7.5, 3e38):
        assert run(_seeded(operator, seed))[0].shape == (3,)
    for seed in (float("inf"), float("-inf"), float("nan")):
        with pytest.raises(ConversionError, match=r"the seed is (-?inf|nan), expected a finite value"):
            run(_seeded(operator, seed))


def _seeded(operator: str, seed: float) -> onnx.ModelProto:
    node = helper.make_node(operator, [], ["y"], shape=[3], seed=seed)
    graph = helper.make_graph([node], "g", [], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def test_a_product_of_integers_times_infinity() -> None:
    """Gemm of integers with a factor that is none converts the product; what infinity makes of it is for Convert to say."""
    node = helper.make_node("Gemm", ["a", "a"], ["y"], alpha=float("inf"))
    shaped = [helper.make_tensor_value_info(name, TensorProto.INT32, [2, 2]) for name in "ay"]
    model = helper.make_model(
        helper.make_graph([node], "g", shaped[:1], shaped[1:]), opset_imports=[helper.make_opsetid("", 17)]
    )
    assert run(model, np.ones((2, 2), np.int32))[0].shape == (2, 2)
