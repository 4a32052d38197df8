"""FakeQuantize by blocks: exact arithmetic, rounded once, for many ranges."""

from __future__ import annotations

import numpy as np
import pytest

import irexec
from irexec.analysis.builder import Builder
from irexec.backend.fake_quantize import _Levels
from irexec.dtypes.elements import element_of
from irexec.schema.registry import resolve
from tests.support.exact_levels import fake_quantize

_LEVELS = (2, 3, 16, 255, 256, 1024)
_KINDS = ("any", "zero is a level", "symmetric", "from zero", "signed")


def _range(kind: str, levels: int, rng: np.random.Generator) -> tuple[float, float]:
    """A range as training and calibration make them."""
    low, high = -rng.uniform(0.01, 50), rng.uniform(0.01, 50)
    if kind == "symmetric":
        return -high, high
    if kind == "from zero":
        return 0.0, high
    if kind == "signed" and levels > 2:
        return -high * (levels // 2) / (levels - 1 - levels // 2), high
    if kind == "zero is a level" and levels > 2:
        zero = min(max(round(-low / (high - low) * (levels - 1)), 1), levels - 2)
        return zero / (zero - (levels - 1)) * high, high
    return low, high


def _data(low: np.ndarray, high: np.ndarray, levels: int, rng: np.random.Generator) -> np.ndarray:
    """Values of a row for each range: on levels, on and next to the thresholds between them, anywhere, infinities."""
    index, dtype = rng.integers(0, levels - 1, (low.size, 30)), low.dtype
    step = (high.astype(float) - low) / (levels - 1)
    thresholds = (low + (index + 0.5) * step).astype(dtype)
    # Next to 0 exact arithmetic tells values apart that f64 does not once a bound is subtracted.
    thresholds[abs(thresholds) < 1e-12] = 0
    beside = [np.where(thresholds == 0, 0, np.nextafter(thresholds, dtype.type(to))) for to in (-np.inf, np.inf)]
    anywhere = rng.uniform(-55, 55, (low.size, 30)).astype(dtype)
    ends = np.broadcast_to(np.array([0, np.inf, -np.inf], dtype), (low.size, 3))
    return np.concatenate([thresholds, *beside, (low + index * step).astype(dtype), anywhere, ends], axis=1).astype(
        dtype
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("levels", _LEVELS)
@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("ranges", [1, 3])
def test_both_kernels_give_the_exact_levels(kind: str, levels: int, dtype: type, ranges: int) -> None:
    rng = np.random.default_rng([_KINDS.index(kind), levels, ranges])
    low, high = np.array([_range(kind, levels, rng) for _ in range(ranges)], dtype).T.reshape(2, ranges, 1)
    x = _data(low, high, levels, rng)
    for factor in (1.0, 0.37):
        bounds = low, high, low * dtype(factor), high * dtype(factor)
        expected = fake_quantize(np.clip(x, -6e4, 6e4), *bounds, levels=levels)
        reference = resolve("FakeQuantize", "opset1")(x, *bounds, levels=levels, auto_broadcast="numpy")
        np.testing.assert_array_equal(reference, expected)
        builder = Builder("m")
        data = builder.parameter(element_of(np.dtype(dtype)), x.shape, "x")
        builder.result(builder.emit("FakeQuantize", data, *bounds, levels=levels))
        compiled = irexec.compile_model(builder.model(), precision="as-written")
        assert "chain of element-wise operations" in str(compiled.plan)
        (result,) = compiled({"x": x}).values()
        np.testing.assert_array_equal(result, expected)


def test_levels_do_not_keep_the_memory_of_their_bounds() -> None:
    """Levels are cached for all threads, and the bounds of a block may lie in the scratch of one."""
    bounds = [np.full((1, 4), value, np.float32) for value in (-1, 1, -1, 1)]
    levels = _Levels.of(bounds, 255)
    assert levels is not None
    for values in (levels.low, levels.high):
        assert not any(np.shares_memory(values, bound) for bound in bounds)
