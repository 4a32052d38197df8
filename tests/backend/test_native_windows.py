"""Pooling and Interpolate by the C library against the reference kernels."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from irexec.backend.native import resizing
from irexec.native.library import library
from irexec.testing.kernels import candidates, check_kernels, task_of
from tests.support.passes import run_kernel

pytestmark = pytest.mark.skipif(library() is None, reason="the C library is not built")

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


def data_of(row: tuple[Any, ...]) -> np.ndarray:
    return (np.random.default_rng(0).standard_normal(row[0]) * 50).astype(np.float32)


@pytest.mark.parametrize("row", [row for row in ROWS if set(row[6]) == {1}], ids=str)
def test_maximum(row: tuple[Any, ...]) -> None:
    check_kernels("MaxPool", "opset1", [data_of(row)], attributes_of(row))


@pytest.mark.parametrize("row", ROWS, ids=str)
@pytest.mark.parametrize("version", ["opset8", "opset14"])
def test_maximum_without_its_indices(row: tuple[Any, ...], version: str) -> None:
    attributes = attributes_of(row) | {"dilations": row[6]}
    check_kernels("MaxPool", version, [data_of(row)], attributes, wanted=(True, False))
    assert not check_kernels("MaxPool", version, [data_of(row)], attributes, only=False)


def test_maximum_of_infinities_and_nan() -> None:
    """NaN counts only where there is nothing else, padding neither."""
    x = np.random.default_rng(0).choice([np.nan, -np.inf, np.inf, 1], (1, 3, 9, 9)).astype(np.float32)
    check_kernels("MaxPool", "opset1", [x], attributes_of(ROWS[1]))


@pytest.mark.parametrize("exclude_pad", [False, True])
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_mean(row: tuple[Any, ...], exclude_pad: bool) -> None:
    attributes = attributes_of(row) | {"exclude_pad": exclude_pad, "dilations": row[6]}
    check_kernels("AvgPool", "opset16", [data_of(row)], attributes)


def test_mean_over_everything_is_a_reduction() -> None:
    kernels = check_kernels("AvgPool", "opset1", [data_of(ROWS[9])], attributes_of(ROWS[9]) | {"exclude_pad": True})
    assert {"reduction of rows", "reduction of columns"} <= {kernel.algorithm for kernel in kernels}


WINDOW = {"kernel": [3, 2], "strides": [2, 1], "pads_begin": [1, 1], "pads_end": [1, 0]}


def data(channels: int) -> np.ndarray:
    """Random elements, some of them infinite or NaN."""
    rng = np.random.default_rng(channels)
    x = rng.standard_normal((2, channels, 7, 9)).astype(np.float32)
    x[rng.random(x.shape) < 0.2] = np.nan
    x[rng.random(x.shape) < 0.05] = np.inf
    x[rng.random(x.shape) < 0.05] = -np.inf
    return x


@pytest.mark.parametrize("channels", [1, 2, 3, 5, 15, 16, 17, 31, 63, 64, 65, 130])
def test_numbers_of_channels(channels: int) -> None:
    x = data(channels)
    for kernels in (
        check_kernels("MaxPool", "opset1", [x], WINDOW),
        check_kernels("AvgPool", "opset1", [x], WINDOW | {"exclude_pad": True}),
        check_kernels("AvgPool", "opset1", [np.nan_to_num(x, posinf=2, neginf=1)], WINDOW | {"exclude_pad": False}),
    ):
        assert "C, pooling" in {kernel.algorithm for kernel in kernels}


@pytest.mark.parametrize("type", ["MaxPool", "AvgPool"])
def test_two_threads_compute_the_same_bits(type: str) -> None:
    x = np.random.default_rng(0).standard_normal((1, 37, 60, 50)).astype(np.float32)
    attributes = WINDOW | ({"exclude_pad": True} if type == "AvgPool" else {})
    task = task_of(type, "opset1", [x], attributes, native=True)
    results = []
    for threads in (1, 2):
        shared = dataclasses.replace(task, threads=threads)
        kernel = next(kernel for kernel in candidates(shared) if kernel.algorithm == "C, pooling")
        results.append(run_kernel(kernel, shared, [x])[0])
    np.testing.assert_array_equal(*results)


# Interpolate and AdaptiveAvgPool by the C library against the reference kernels.


MODES = ["nearest", "linear", "linear_onnx", "cubic", "bilinear_pillow", "bicubic_pillow"]
# Data, axes, sizes.
RESIZING_ROWS = [
    ((1, 3, 6, 7), (2, 3), (12, 14)),
    ((2, 3, 60, 13), (2, 3), (120, 39)),
    ((1, 3, 50, 9), (2, 3), (21, 9)),
    ((1, 5, 6, 4), (1, 2), (9, 6)),
    ((2, 40, 5, 5), (3, 2), (7, 10)),
    ((3, 9), (1,), (20,)),
]


def data_of_resizing(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    return (np.random.default_rng(0).standard_normal(shape) * 20).astype(dtype)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("block", [1, 1 << 18])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("row", RESIZING_ROWS, ids=str)
def test_sizes(monkeypatch: pytest.MonkeyPatch, row: tuple[Any, ...], mode: str, block: int) -> None:
    """Where the axes that are resized are neighbours in memory, for the orders that are tried."""
    monkeypatch.setattr(resizing, "_BLOCK", block)
    shape, axes, sizes = row
    inputs = [data_of_resizing(shape), np.array(sizes), np.array(axes)]
    attributes = {"mode": mode, "shape_calculation_mode": "sizes", "antialias": mode == "linear"}
    assert check_kernels("Interpolate", "opset11", inputs, attributes, constants=[1, 2], only=False)


@pytest.mark.parametrize(
    "transformation", ["half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners"]
)
@pytest.mark.parametrize("nearest", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple"])
@pytest.mark.parametrize("scales", [(2, 2), (1.5, 0.7), (3, 1)])
@pytest.mark.covering(2)
def test_scales(transformation: str, nearest: str, scales: tuple[float, float]) -> None:
    inputs = [data_of_resizing((1, 3, 9, 10)), np.array([1, 1]), np.array(scales, np.float32), np.array([2, 3])]
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
        check_kernels(
            "Interpolate", "opset1", [data_of_resizing((1, 3, 5, 6)), np.array([10, 9])], attributes, constants=[1]
        )


def test_nearest_of_integers_and_linear_of_infinities() -> None:
    attributes = {"mode": "nearest", "shape_calculation_mode": "sizes"}
    check_kernels(
        "Interpolate",
        "opset11",
        [data_of_resizing((1, 3, 5, 6), np.int8), np.array([10, 9]), np.array([2, 3])],
        attributes,
        constants=[1, 2],
    )
    x = data_of_resizing((1, 3, 5, 6))
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
        ((1, 3, 7, 7), (1, 1)), ((2, 5, 13, 9), (4, 3)), ((1, 70, 5, 6), (5, 6)), ((1, 3, 10), (3,)),
        ((1, 2, 4, 5, 6), (2, 7, 3)),
    ],
)  # fmt: skip
def test_adaptive_means(shape: tuple[int, ...], out: tuple[int, ...]) -> None:
    found = check_kernels(
        "AdaptiveAvgPool", "opset8", [data_of_resizing(shape), np.array(out)], constants=[1], only=False
    )
    assert bool(found) == (len(shape) <= 4)


@pytest.mark.parametrize("type", ["Interpolate", "AdaptiveAvgPool"])
def test_axes_that_are_too_long_to_be_listed_are_left_to_the_reference(
    monkeypatch: pytest.MonkeyPatch, type: str
) -> None:
    interpolated = type == "Interpolate"
    inputs = [data_of_resizing((1, 1, 6, 7)), np.array([12, 14]), *([np.array([2, 3])] if interpolated else [])]
    attributes = {"mode": "nearest", "shape_calculation_mode": "sizes"} if interpolated else {}
    task = task_of(
        type, "opset11" if interpolated else "opset8", inputs, attributes, constants=range(1, len(inputs)), native=True
    )
    assert candidates(task)
    monkeypatch.setattr(resizing, "_LONGEST", 13)
    assert not candidates(task)
