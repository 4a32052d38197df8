"""MVN of equal values, of which exact arithmetic leaves 0."""

import numpy as np
import pytest

import irexec
from irexec.schema.registry import resolve


@pytest.mark.parametrize("value", [0.1, 3.3, 123.4])
@pytest.mark.parametrize(("shape", "axis"), [((1024, 3), 0), ((3, 1024), 1), ((100_003, 2), 0)])
def test_equal_values_have_no_deviation(shape: tuple[int, int], axis: int, value: float) -> None:
    data, axes = np.full(shape, value, np.float32), np.array([axis])
    definition = resolve("MVN", "opset6")
    result = definition(data, axes, normalize_variance=True, eps=1e-6, eps_mode="inside_sqrt")
    assert result.dtype == np.float32 and not result.any()


@pytest.mark.parametrize(("shape", "axis"), [((1024, 3), 0), ((3, 1024), 1), ((20_000, 2), 0), ((2, 20_000), 1)])
def test_fast_kernels_center_equal_values_too(shape: tuple[int, int], axis: int) -> None:
    """123.4 less a mean that is off by rounding is 1e-3, which the root of a small epsilon makes 0.7."""
    builder = irexec.Builder("m")
    axes = builder.constant([axis])
    options = {"normalize_variance": True, "eps": 1e-6, "eps_mode": "inside_sqrt"}
    builder.result(builder.emit("MVN", builder.parameter("f32", shape, "x"), axes, **options), "y")
    result = irexec.compile_model(builder.model())([np.full(shape, 123.4, np.float32)])["y"]
    assert np.abs(result).max() < 1e-4
