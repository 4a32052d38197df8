"""Fast Softmax and LogSoftmax against the reference kernels."""

from __future__ import annotations

import numpy as np
import pytest

from irexec.backend import softmax
from irexec.testing.kernels import check_kernels


@pytest.mark.parametrize(("type", "version"), [("Softmax", "opset1"), ("Softmax", "opset8"), ("LogSoftmax", "opset5")])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((3, 50), 1), ((2, 5, 6, 7), 1), ((2, 5, 6, 7), 3), ((2, 5, 6, 7), 0), ((9,), 0), ((2, 3, 200), 1)],
)
@pytest.mark.parametrize("cached", [1, 5000, 128 << 10])
def test_rows(
    monkeypatch: pytest.MonkeyPatch, type: str, version: str, shape: tuple[int, ...], axis: int, cached: int
) -> None:
    monkeypatch.setattr(softmax, "_CACHED", cached)
    for dtype in (np.float32, np.float64, np.float16):
        x = (np.random.default_rng(0).standard_normal(shape) * 30).astype(dtype)
        check_kernels(type, version, [x], {"axis": axis})


def test_infinities() -> None:
    x = np.array([[-np.inf, 1, 2], [-np.inf, -np.inf, -np.inf], [np.inf, 0, 0]], np.float32)
    check_kernels("Softmax", "opset8", [x], {"axis": -1})
