"""Fast kernels that move elements against the reference kernels."""

from __future__ import annotations

import numpy as np
import pytest

from irexec.backend import movement
from irexec.testing.kernels import check_kernels

TYPES = [np.float32, np.float16, np.int64, np.bool_]


def data(shape: tuple[int, ...], dtype: type) -> np.ndarray:
    """Random elements."""
    return np.asarray(np.random.default_rng(0).standard_normal(shape) * 9).astype(dtype)


@pytest.fixture(params=[1, 1 << 17], autouse=True)
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many blocks, or one."""
    monkeypatch.setattr(movement, "_BLOCK", request.param)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    ("shapes", "axis"),
    [([(2, 3, 4), (2, 5, 4)], 1), ([(1, 3), (2, 3), (3, 3)], 0), ([(2, 3, 4, 5)] * 2, -1), ([(3,)], 0)],
)
def test_concat(dtype: type, shapes: list[tuple[int, ...]], axis: int) -> None:
    check_kernels("Concat", "opset1", [data(shape, dtype) for shape in shapes], {"axis": axis})


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric"])
@pytest.mark.parametrize(
    ("begin", "end"),
    [((0, 0, 1, 2), (0, 0, 2, 3)), ((1, 0, 0, 0), (0, 1, 0, 1)), ((0, 0, 0, 0), (0, 0, 0, 0)), ((1, 1, 1, 1),) * 2],
)
def test_pad(dtype: type, mode: str, begin: tuple[int, ...], end: tuple[int, ...]) -> None:
    inputs = [data((2, 3, 4, 5), dtype), np.array(begin), np.array(end)]
    check_kernels("Pad", "opset1", inputs, {"pad_mode": mode}, constants=[1, 2])
    check_kernels("Pad", "opset12", [*inputs, data((), dtype)], {"pad_mode": mode}, constants=[1, 2])


@pytest.mark.parametrize(("begin", "end"), [((1, 2, 3), (2, 0, 1)), ((-1, 2, -2), (3, -1, 1)), ((0, 9, 0), (0, 9, 0))])
@pytest.mark.parametrize("shape", [(2, 3, 4), (7, 2, 4)])
def test_large_pads_are_cut_along_axes_with_pads(
    begin: tuple[int, ...], end: tuple[int, ...], shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(movement, "_LONG", 1)
    inputs = [data(shape, np.float32), np.array(begin), np.array(end), np.array(7, np.float32)]
    check_kernels("Pad", "opset12", inputs, {"pad_mode": "constant"}, constants=[1, 2])


def test_pads_that_remove_elements() -> None:
    inputs = [
        data((2, 3, 4, 5), np.float32),
        np.array([0, -1, 2, -2]),
        np.array([0, 0, -3, 1]),
        np.array(7, np.float32),
    ]
    check_kernels("Pad", "opset12", inputs, {"pad_mode": "constant"}, constants=[1, 2])
    assert not check_kernels("Pad", "opset12", inputs, {"pad_mode": "edge"}, constants=[1, 2], only=False)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("indices", "axis"), [([0, 2, -1], 1), ([[3, 0], [-4, 1]], 0), (1, 2), ([2], -1)])
def test_gather(dtype: type, indices: list, axis: int) -> None:
    inputs = [data((4, 3, 5), dtype), np.array(indices, np.int32), np.array(axis)]
    check_kernels("Gather", "opset8", inputs, constants=[1, 2])


def test_indices_out_of_range_are_left_to_the_reference_kernel() -> None:
    inputs = [data((4, 3), np.float32), np.array([0, 4]), np.array(0)]
    assert not check_kernels("Gather", "opset8", inputs, constants=[1, 2], only=False)
