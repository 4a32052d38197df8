"""Fast reductions against the reference kernels."""

from __future__ import annotations

import numpy as np
import pytest

from irexec.backend import reduction
from irexec.testing.kernels import candidates, check_kernels, task_of
from tests.support.run_kernel import run_kernel

TYPES = [("ReduceSum", "opset1"), ("ReduceMean", "opset1"), ("ReduceMax", "opset1"), ("ReduceMin", "opset1"),
         ("ReduceProd", "opset1"), ("ReduceL1", "opset4"), ("ReduceL2", "opset4")]  # fmt: skip

# Shape, axes.
ROWS = [
    ((1, 6, 7, 7), (2, 3)),
    ((2, 40, 5, 9), (2, 3)),
    ((2, 3, 5, 70), (3,)),
    ((2, 3, 5, 70), (-1, 1)),
    ((3, 4, 5), (0,)),
    ((3, 4, 5), (1,)),
    ((3, 4, 5), (0, 1, 2)),
    ((1, 4, 1, 5), (1,)),
    ((300,), (0,)),
    ((1, 5, 9), (0,)),
]


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("row", ROWS, ids=str)
@pytest.mark.parametrize(("type", "version"), TYPES)
@pytest.mark.parametrize("cached", [1, 256 << 10])
@pytest.mark.covering(2)
def test_rows(monkeypatch: pytest.MonkeyPatch, type: str, version: str, row: tuple, keep: bool, cached: int) -> None:
    monkeypatch.setattr(reduction, "_CACHED", cached)
    shape, axes = row
    for dtype in (np.float32, np.float64, np.float16):
        x = np.random.default_rng(0).uniform(0.5, 1.5, shape).astype(dtype)
        inputs = [x, np.array(axes, np.int64)]
        check_kernels(type, version, inputs, {"keep_dims": keep}, constants=[1], only=False)
    task_has_one = check_kernels(
        type, version, [x.astype(np.float32), inputs[1]], {"keep_dims": keep}, constants=[1], only=False
    )
    assert task_has_one or row == ROWS[3]


@pytest.mark.parametrize(("shape", "axis"), [((2, 9001), 1), ((9001, 3), 0), ((1, 4097), 1)])
def test_long_sums(shape: tuple[int, int], axis: int) -> None:
    """They are added in parts, of which the last one may be short."""
    x = np.random.default_rng(0).uniform(0.5, 1.5, shape).astype(np.float32)
    task = task_of("ReduceSum", "opset1", [x, np.array([axis])], {"keep_dims": False}, constants=[1])
    for kernel in candidates(task):
        (result,) = run_kernel(kernel, task, [x, np.array([axis])])
        np.testing.assert_allclose(result, x.astype(np.float64).sum(axis), rtol=1e-6)


def test_nan_is_ignored_by_extremes() -> None:
    x = np.array([[np.nan, 1, 2], [np.nan, np.nan, np.nan]], np.float32)
    for type in ("ReduceMax", "ReduceMin"):
        check_kernels(type, "opset1", [x, np.array([1])], {"keep_dims": False}, constants=[1])
