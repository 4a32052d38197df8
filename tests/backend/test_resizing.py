"""Interpolate and AdaptiveAvgPool by the C library against the reference kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irexec.backend.native import resizing
from irexec.native.library import library
from irexec.testing.kernels import candidates, check_kernels, task_of

pytestmark = pytest.mark.skipif(library() is None, reason="the C library is not built")

MODES = ["nearest", "linear", "linear_onnx", "cubic", "bilinear_pillow", "bicubic_pillow"]
# Data, axes, sizes.
ROWS = [
    ((1, 3, 6, 7), (2, 3), (12, 14)),
    ((2, 3, 60, 13), (2, 3), (120, 39)),
    ((1, 3, 50, 9), (2, 3), (21, 9)),
    ((1, 5, 6, 4), (1, 2), (9, 6)),
    ((2, 40, 5, 5), (3, 2), (7, 10)),
    ((3, 9), (1,), (20,)),
]


def data(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    return (np.random.default_rng(0).standard_normal(shape) * 20).astype(dtype)


@pytest.mark.parametrize("block", [1, 1 << 18])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_sizes(monkeypatch: pytest.MonkeyPatch, row: tuple[Any, ...], mode: str, block: int) -> None:
    """Where the axes that are resized are neighbours in memory, for the orders that are tried."""
    monkeypatch.setattr(resizing, "_BLOCK", block)
    shape, axes, sizes = row
    inputs = [data(shape), np.array(sizes), np.array(axes)]
    attributes = {"mode": mode, "shape_calculation_mode": "sizes", "antialias": mode == "linear"}
    assert check_kernels("Interpolate", "opset11", inputs, attributes, constants=[1, 2], only=False)


@pytest.mark.parametrize(
    "transformation", ["half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners"]
)
@pytest.mark.parametrize("nearest", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple"])
@pytest.mark.parametrize("scales", [(2, 2), (1.5, 0.7), (3, 1)])
@pytest.mark.covering(2)
def test_scales(transformation: str, nearest: str, scales: tuple[float, float]) -> None:
    inputs = [data((1, 3, 9, 10)), np.array([1, 1]), np.array(scales, np.float32), np.array([2, 3])]
    attributes = {
        "shape_calculation_mode": "scales",
        "coordinate_transformation_mode": transformation,
        "nearest_mode": nearest,
    }
    for mode in ("nearest", "linear_onnx"):
        check_kernels("Interpolate", "opset4", inputs, attributes | {"mode": mode}, constants=[1, 2, 3])


def test_of_version_1() -> None:
    for mode in ("nearest", "linear", "cubic"):
        attributes = {"axes": (2, 3), "mode": mode, "align_corners": False}
        check_kernels("Interpolate", "opset1", [data((1, 3, 5, 6)), np.array([10, 9])], attributes, constants=[1])


def test_nearest_of_integers_and_linear_of_infinities() -> None:
    attributes = {"mode": "nearest", "shape_calculation_mode": "sizes"}
    check_kernels(
        "Interpolate",
        "opset11",
        [data((1, 3, 5, 6), np.int8), np.array([10, 9]), np.array([2, 3])],
        attributes,
        constants=[1, 2],
    )
    x = data((1, 3, 5, 6))
    x[0, 1, 2, 3], x[0, 0, 0, 0] = np.inf, np.nan
    check_kernels(
        "Interpolate",
        "opset11",
        [x, np.array([10, 9]), np.array([2, 3])],
        attributes | {"mode": "linear_onnx"},
        constants=[1, 2],
    )


@pytest.mark.parametrize(
    ("shape", "out"),
    [
        ((1, 3, 7, 7), (1, 1)),
        ((2, 5, 13, 9), (4, 3)),
        ((1, 70, 5, 6), (5, 6)),
        ((1, 3, 10), (3,)),
        ((1, 2, 4, 5, 6), (2, 7, 3)),
    ],
)
def test_adaptive_means(shape: tuple[int, ...], out: tuple[int, ...]) -> None:
    found = check_kernels("AdaptiveAvgPool", "opset8", [data(shape), np.array(out)], constants=[1], only=False)
    assert bool(found) == (len(shape) <= 4)


@pytest.mark.parametrize("type", ["Interpolate", "AdaptiveAvgPool"])
def test_axes_that_are_too_long_to_be_listed_are_left_to_the_reference(
    monkeypatch: pytest.MonkeyPatch, type: str
) -> None:
    interpolated = type == "Interpolate"
    inputs = [data((1, 1, 6, 7)), np.array([12, 14]), *([np.array([2, 3])] if interpolated else [])]
    attributes = {"mode": "nearest", "shape_calculation_mode": "sizes"} if interpolated else {}
    task = task_of(
        type, "opset11" if interpolated else "opset8", inputs, attributes, constants=range(1, len(inputs)), native=True
    )
    assert candidates(task)
    monkeypatch.setattr(resizing, "_LONGEST", 13)
    assert not candidates(task)
