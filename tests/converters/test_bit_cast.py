"""BitCast by arithmetic, number by number; random numbers by what they have in common."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.support.onnx_models import model_of, run

_FLOATS = {"float16": "uint16", "float32": "int32", "float64": "int64", "float32 ": "uint32", "float64 ": "uint64", "float16 ": "int16"}
_NUMBERS = [0.0, -0.0, 1.0, -1.0, 0.1, -3.7e-5, 65504.0, 6e-8, -6e-8, 1e-3, np.inf, -np.inf]


def _cast(x: np.ndarray, kind: np.dtype) -> np.ndarray:
    to = helper.np_dtype_to_tensor_dtype(kind)
    text = TensorProto.DataType.Name(helper.np_dtype_to_tensor_dtype(x.dtype)).lower()
    return run(model_of(f"({text}[{x.size}] x) => (float y) {{ y = BitCast <to: int = {to}> (x) }}", 26), x)[0]


@pytest.mark.parametrize("name", _FLOATS)
def test_floats_to_bits_and_back(name: str) -> None:
    real, whole = np.dtype(name.strip()), np.dtype(_FLOATS[name])
    limits = np.finfo(real)
    edges = [limits.max, limits.min, limits.smallest_normal, limits.smallest_subnormal, -limits.smallest_subnormal, limits.eps]
    x = np.array([*_NUMBERS, *edges, *np.random.default_rng(0).normal(size=50)], np.float64).astype(real)
    bits = _cast(x, whole)
    np.testing.assert_array_equal(bits, x.view(whole))
    again = _cast(bits, real)
    np.testing.assert_array_equal(again.view(whole), x.view(whole))


def test_nan_stays_nan() -> None:
    x = np.array([np.nan], np.float32)
    assert _cast(x, np.dtype(np.int32)).tolist() == [0x7FC00000]
    assert np.isnan(_cast(x.view(np.int32), np.dtype(np.float32))).all()


def test_integers_wrap() -> None:
    x = np.array([-1, 127, -128], np.int8)
    np.testing.assert_array_equal(_cast(x, np.dtype(np.uint8)), x.view(np.uint8))


def test_uniform_numbers_lie_within() -> None:
    graph = "() => (float y) { y = RandomUniform <shape: ints = [1000], low: float = -2.0, high: float = 3.0, seed: float = 7.0> () }"
    y = run(model_of(graph))[0]
    assert y.dtype == np.float32
    assert y.min() >= -2
    assert y.max() < 3
    assert abs(y.mean() - 0.5) < 0.2
    np.testing.assert_array_equal(y, run(model_of(graph))[0])


def test_normal_numbers_are_normal() -> None:
    graph = "(double[2000] x) => (double y) { y = RandomNormalLike <mean: float = 1.0, scale: float = 2.0, seed: float = 3.0> (x) }"
    y = run(model_of(graph), np.zeros(2000))[0]
    assert y.dtype == np.float64
    assert abs(y.mean() - 1) < 0.2
    assert abs(y.std() - 2) < 0.2
    assert abs(np.mean(np.abs(y - 1) < 2) - 0.683) < 0.05


def test_bernoulli_by_its_probability() -> None:
    x = np.repeat(np.array([0.0, 0.25, 1.0], np.float32), 1000)
    y = run(model_of("(float[3000] x) => (int64 y) { y = Bernoulli <dtype: int = 7, seed: float = 1.0> (x) }", 22), x)[0]
    assert set(y.tolist()) == {0, 1}
    np.testing.assert_allclose(y.reshape(3, -1).mean(1), [0, 0.25, 1], atol=0.06)


def test_classes_by_their_logarithms() -> None:
    x = np.log(np.array([[1, 3], [8, 0.001]], np.float32))
    y = run(model_of("(float[2,2] x) => (int32 y) { y = Multinomial <sample_size: int = 1000, seed: float = 1.0> (x) }"), x)[0]
    assert y.dtype == np.int32
    np.testing.assert_allclose(y.mean(1), [0.75, 0], atol=0.06)


def test_products_by_an_axis_known_only_when_it_runs() -> None:
    x = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    for axis in (0, 1, -1, -2):
        y = run(model_of("(float[2,3] x, int64 axis) => (float y) { y = CumProd (x, axis) }", 26), x, np.int64(axis))[0]
        np.testing.assert_allclose(y, np.cumprod(x, axis))
