"""Fast depthwise convolution against the reference kernel."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from irexec.backend.calls import NativeKernel
from irexec.backend.convolution import depthwise
from irexec.backend.convolution.depthwise import DepthwiseProducts
from irexec.testing.kernels import candidates, check_kernels, task_of

NOT_CENTRAL: tuple[Any, ...] = ((1, 3, 9, 9), (4, 4), (3, 3), (2, 2), (5, 5), (5, 5), 1)
# Data (N, C, spatial...), kernel, strides, dilations, pads begin, pads end, output channels for each group.
ROWS = [
    ((1, 8, 14, 14), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 1),
    ((2, 5, 13, 9), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 1),
    ((1, 6, 14, 14), (3, 3), (2, 2), (1, 1), (1, 1), (1, 1), 1),
    ((1, 6, 15, 15), (3, 3), (2, 2), (1, 1), (0, 0), (1, 1), 1),
    ((1, 4, 28, 28), (5, 5), (1, 1), (1, 1), (2, 2), (2, 2), 1),
    ((1, 4, 28, 28), (5, 5), (2, 2), (1, 1), (2, 2), (2, 2), 1),
    ((1, 4, 17, 19), (3, 5), (2, 1), (1, 2), (1, 4), (1, 4), 1),
    ((1, 3, 9, 9), (3, 3), (1, 1), (1, 1), (0, 0), (0, 0), 1),
    # No column of the kernel is inside the data at every position.
    NOT_CENTRAL,
    ((1, 3, 40, 7), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 1),
    ((1, 3, 7, 40), (1, 7), (1, 2), (1, 1), (0, 3), (0, 3), 1),
    ((1, 3, 12, 12), (1, 1), (1, 1), (1, 1), (0, 0), (0, 0), 1),
    ((1, 3, 12, 12), (1, 1), (2, 2), (1, 1), (0, 0), (0, 0), 1),
    ((1, 4, 11, 10), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 2),
    ((2, 3, 11, 10), (3, 3), (2, 2), (1, 1), (1, 1), (1, 1), 3),
    ((1, 5, 20), (5,), (1,), (1,), (2,), (2,), 1),
    ((1, 5, 20), (3,), (2,), (2,), (0,), (4,), 1),
    ((1, 3, 5, 6, 7), (3, 3, 3), (1, 2, 1), (1, 1, 2), (1, 1, 2), (1, 1, 2), 1),
    # Channels that fill vectors, and some that fill none.
    ((1, 20, 9, 11), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 1),
    ((2, 33, 8, 13), (5, 5), (2, 2), (1, 1), (2, 2), (1, 2), 1),
    ((1, 136, 7, 7), (5, 5), (1, 1), (1, 1), (2, 2), (2, 2), 1),
    ((1, 131, 7, 5), (3, 3), (2, 2), (1, 1), (0, 1), (1, 0), 1),
    ((1, 40, 9, 17), (3, 3), (1, 1), (2, 2), (2, 2), (2, 2), 1),
    ((1, 17, 6, 30), (7, 7), (1, 1), (1, 1), (3, 3), (3, 3), 1),
    ((1, 24, 1, 5), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 1),
    ((1, 19, 5, 6, 7), (3, 3, 3), (1, 2, 1), (1, 1, 2), (1, 1, 2), (1, 1, 2), 1),
]


def weights_and_data(row: tuple[Any, ...], dtype: type[np.floating]) -> tuple[list[np.ndarray], dict[str, Any]]:
    """The inputs and attributes of a row."""
    shape, kernel, strides, dilations, begins, ends, outputs = row
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape).astype(dtype)
    weights = rng.standard_normal((shape[1], outputs, 1, *kernel)).astype(dtype)
    return [x, weights], {"strides": strides, "dilations": dilations, "pads_begin": begins, "pads_end": ends}


@pytest.mark.parametrize("row", ROWS, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_rows(row: tuple[Any, ...], dtype: type[np.floating]) -> None:
    inputs, attributes = weights_and_data(row, dtype)
    check_kernels(
        "GroupConvolution",
        "opset1",
        inputs,
        attributes,
        constants=[1],
        only=len(row[1]) == 2 and row is not NOT_CENTRAL,
    )


@pytest.mark.parametrize("row", ROWS[:8], ids=str)
@pytest.mark.parametrize("cached", [1, 4000])
def test_small_blocks(monkeypatch: pytest.MonkeyPatch, row: tuple[Any, ...], cached: int) -> None:
    """Images of several blocks."""
    monkeypatch.setattr(depthwise, "_CACHED", cached)
    inputs, attributes = weights_and_data(row, np.float32)
    kernels = check_kernels("GroupConvolution", "opset1", inputs, attributes, constants=[1])
    types = {type(kernel) for kernel in kernels if not isinstance(kernel, NativeKernel)}
    assert types == {DepthwiseProducts}
    assert cached > 1 or all(kernel.splits for kernel in kernels)


def test_random_geometry() -> None:
    """Sizes, kernels, strides, dilations and pads of every kind, also where nothing of the data is read."""
    rng = np.random.default_rng(0)
    for _ in range(120):
        rank = int(rng.integers(1, 4))
        sizes, kernel, strides, dilations = (tuple(rng.integers(1, maximum, rank).tolist()) for maximum in (9, 5, 4, 4))
        begins, ends = (tuple(rng.integers(0, 6, rank).tolist()) for _ in range(2))
        spans = zip(sizes, begins, ends, kernel, dilations, strict=True)
        if any(size + begin + end < (taps - 1) * gap + 1 for size, begin, end, taps, gap in spans):
            continue
        shape = (int(rng.integers(1, 3)), int(rng.integers(2, 5)), *sizes)
        inputs, attributes = weights_and_data((shape, kernel, strides, dilations, begins, ends, 1), np.float32)
        check_kernels("GroupConvolution", "opset1", inputs, attributes, constants=[1], only=False)


def test_cost_follows_the_orders_in_memory() -> None:
    """Products are cheaper for images in C order than for channels last."""
    inputs, attributes = weights_and_data(((1, 96, 56, 56), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 1), np.float32)
    task = task_of("GroupConvolution", "opset1", inputs, attributes, constants=[1])
    last = dataclasses.replace(task, input_orders=((0, 2, 3, 1), None), output_orders=((0, 2, 3, 1),))
    costs, costs_last = ({type(kernel): kernel.cost for kernel in candidates(t)} for t in (task, last))
    assert costs_last[DepthwiseProducts] > costs[DepthwiseProducts]


def test_cost_does_not_depend_on_the_number_of_threads() -> None:
    """Or else results would differ in their last bits."""
    inputs, attributes = weights_and_data(((1, 576, 14, 14), (3, 3), (2, 2), (1, 1), (1, 1), (1, 1), 1), np.float32)
    task = task_of("GroupConvolution", "opset1", inputs, attributes, constants=[1])
    shared = dataclasses.replace(task, threads=4)
    assert [kernel.cost for kernel in candidates(task)] == [kernel.cost for kernel in candidates(shared)]
