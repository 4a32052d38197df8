"""Pooling by the C library at sizes that fill no vector, with values that are not finite, on two threads."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from irexec.native.library import library
from irexec.testing.kernels import check_kernels
from irexec.testing.tasks import candidates, task_of
from tests.support.run_kernel import run_kernel

pytestmark = pytest.mark.skipif(library() is None, reason="the C library is not built")

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
