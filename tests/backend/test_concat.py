"""Concat in NumPy against the reference kernel."""

from __future__ import annotations

import numpy as np
import pytest

from irexec.testing.kernels import check_kernels


@pytest.mark.parametrize("dtype", [np.float32, np.int16, np.int64, np.int8, np.float16, np.bool_])
@pytest.mark.parametrize(
    ("shapes", "axis"),
    [([(2, 3, 4), (2, 5, 4)], 1), ([(1, 3), (2, 3), (3, 3)], 0), ([(2, 3, 4, 5)] * 2, -1), ([(3,)], 0)],
)
def test_concat(dtype: type, shapes: list[tuple[int, ...]], axis: int) -> None:
    rng = np.random.default_rng(0)
    inputs: list[np.ndarray] = [(rng.standard_normal(shape) * 9).astype(dtype) for shape in shapes]
    found = check_kernels("Concat", "opset1", inputs, {"axis": axis})
    assert "copies side by side" in {kernel.algorithm for kernel in found}
