"""Fast pooling against the reference kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irexec.backend import pooling
from irexec.testing.kernels import check_kernels

# Data, kernel, strides, pads begin, pads end, rounding, dilations.
ROWS = [
    ((1, 4, 12, 12), (2, 2), (2, 2), (0, 0), (0, 0), "floor", (1, 1)),
    ((2, 3, 13, 12), (3, 3), (2, 2), (1, 1), (1, 1), "floor", (1, 1)),
    ((1, 3, 13, 12), (3, 3), (2, 2), (0, 0), (0, 0), "ceil", (1, 1)),
    ((1, 40, 9, 9), (5, 5), (1, 1), (2, 2), (2, 2), "floor", (1, 1)),
    ((1, 3, 9, 9), (7, 4), (3, 2), (3, 1), (2, 3), "ceil", (1, 1)),
    ((1, 3, 14, 15), (3, 2), (1, 2), (1, 0), (1, 0), "floor", (2, 3)),
    ((1, 3, 17), (3,), (2,), (1,), (0,), "ceil", (1,)),
    ((1, 2, 6, 7, 8), (2, 3, 2), (2, 1, 2), (0, 1, 1), (1, 1, 0), "floor", (1, 1, 1)),
    ((1, 2, 5, 5), (1, 1), (2, 2), (0, 0), (0, 0), "floor", (1, 1)),
    ((1, 3, 7, 7), (7, 7), (7, 7), (0, 0), (0, 0), "floor", (1, 1)),
    ((1, 2, 4, 4), (2, 2), (2, 2), (3, 3), (3, 3), "floor", (1, 1)),
]


def attributes_of(row: tuple[Any, ...]) -> dict[str, Any]:
    """The attributes of a row, without dilations."""
    _, kernel, strides, begins, ends, rounding, _ = row
    return {"kernel": kernel, "strides": strides, "pads_begin": begins, "pads_end": ends, "rounding_type": rounding}


def data_of(row: tuple[Any, ...], dtype: Any) -> np.ndarray:
    return (np.random.default_rng(0).standard_normal(row[0]) * 50).astype(dtype)


@pytest.mark.parametrize("cached", [1, 256 << 10])
@pytest.mark.parametrize("row", ROWS, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int8])
def test_maximum(monkeypatch: pytest.MonkeyPatch, row: tuple[Any, ...], dtype: Any, cached: int) -> None:
    monkeypatch.setattr(pooling, "_CACHED", cached)
    if set(row[6]) == {1}:
        check_kernels("MaxPool", "opset1", [data_of(row, dtype)], attributes_of(row))


@pytest.mark.parametrize("row", ROWS, ids=str)
@pytest.mark.parametrize("version", ["opset8", "opset14"])
def test_maximum_without_its_indices(row: tuple[Any, ...], version: str) -> None:
    attributes = attributes_of(row) | {"dilations": row[6]}
    check_kernels("MaxPool", version, [data_of(row, np.float32)], attributes, wanted=(True, False))
    assert not check_kernels("MaxPool", version, [data_of(row, np.float32)], attributes, only=False)


def test_maximum_of_infinities_and_nan() -> None:
    """NaN counts only where there is nothing else, padding neither."""
    x = np.random.default_rng(0).choice([np.nan, -np.inf, np.inf, 1], (1, 3, 9, 9)).astype(np.float32)
    check_kernels("MaxPool", "opset1", [x], attributes_of(ROWS[1]))


@pytest.mark.parametrize("exclude_pad", [False, True])
@pytest.mark.parametrize("row", ROWS, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_mean(row: tuple[Any, ...], dtype: Any, exclude_pad: bool) -> None:
    attributes = attributes_of(row) | {"exclude_pad": exclude_pad, "dilations": row[6]}
    check_kernels("AvgPool", "opset16", [data_of(row, dtype)], attributes)


def test_mean_over_everything_is_a_reduction() -> None:
    kernels = check_kernels(
        "AvgPool", "opset1", [data_of(ROWS[9], np.float32)], attributes_of(ROWS[9]) | {"exclude_pad": True}
    )
    assert {"reduction of rows", "reduction of columns"} <= {kernel.algorithm for kernel in kernels}
