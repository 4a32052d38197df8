"""C kernels along rows and columns: normalization, softmax, reductions, against the reference kernels at sizes around
those of vectors and tiles."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from irexec.backend.calls import NativeKernel
from irexec.backend.kernel import Order, Task
from irexec.native.library import library
from irexec.testing.kernels import candidates, check_kernels, in_order, task_of
from tests.support.passes import run_kernel

pytestmark = pytest.mark.skipif(library() is None, reason="the C library is not built")

WIDTHS = [1, 3, 4, 7, 15, 31, 33, 64, 130, 511, 513, 1100]
"""Around the sizes of vectors of 4, 8 and 16 floats, and of tiles of 512."""

Case = tuple[str, str, dict[str, Any]]
NORMALIZATIONS: list[Case] = [
    ("MVN", "opset6", {"normalize_variance": True, "eps": 1e-3, "eps_mode": "inside_sqrt"}),
    ("MVN", "opset6", {"normalize_variance": True, "eps": 1e-3, "eps_mode": "outside_sqrt"}),
    ("MVN", "opset6", {"normalize_variance": False, "eps": 1e-3, "eps_mode": "inside_sqrt"}),
    ("NormalizeL2", "opset1", {"eps": 1e-3, "eps_mode": "add"}),
    ("NormalizeL2", "opset1", {"eps": 200.0, "eps_mode": "max"}),
]


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return (3 + 2 * np.random.default_rng(seed + sum(shape)).standard_normal(shape)).astype(np.float32)


def natives(task: Task) -> list[NativeKernel]:
    """The C kernels that can compute a task."""
    return [kernel for kernel in candidates(task) if isinstance(kernel, NativeKernel)]


def check(type: str, version: str, inputs: Sequence[np.ndarray], attributes: dict[str, Any], constants: Sequence[int]) -> None:  # fmt: skip
    """All kernels against the reference kernel; at least one of them is in C."""
    kernels = check_kernels(type, version, inputs, attributes, constants=constants)
    assert any(isinstance(kernel, NativeKernel) for kernel in kernels)


def native_result(task: Task, inputs: list[np.ndarray], orders: tuple[Order | None, Order | None] = (None, None)) -> np.ndarray:  # fmt: skip
    """The result of the only C kernel for these orders of input 0 and the output."""
    known = dataclasses.replace(
        task, input_orders=(orders[0], *task.input_orders[1:]), output_orders=(orders[1],), native=True
    )
    (kernel,) = natives(known)
    first = inputs[0] if orders[0] is None else in_order(inputs[0], orders[0])
    return run_kernel(kernel, known, [first, *inputs[1:]])[0]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("type", "version", "attributes"), NORMALIZATIONS)
@pytest.mark.covering(1)
def test_normalization(type: str, version: str, attributes: dict[str, Any], width: int) -> None:
    for shape, axes in (
        ((2, 19, width + 1), [2]),
        ((2, 5, width), [1]),
        ((width + 1, 3), [0]),
        ((3, width, 2, 5), [-1, 2]),
    ):
        check(type, version, [random(*shape), np.array(axes)], attributes, (1,))


@pytest.mark.parametrize(("shape", "axes"), [((0, 3), [1]), ((3, 0), [1]), ((2, 3), []), ((2, 1), [1])])
def test_normalizations_that_are_left_to_the_reference_kernel(shape: tuple[int, ...], axes: list[int]) -> None:
    for type, version, attributes in NORMALIZATIONS:
        inputs = [random(*shape), np.array(axes, np.int64)]
        assert not candidates(task_of(type, version, inputs, attributes, constants=(1,), native=True))
        inputs = [random(2, 3), np.array([1])]
        assert not candidates(task_of(type, version, inputs, attributes, native=True))


@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize("variance", [False, True])
def test_mvn_of_images(across: bool, variance: bool) -> None:
    attributes = {"across_channels": across, "normalize_variance": variance, "eps": 1e-3}
    check("MVN", "opset2", [random(2, 3, 4, 5)], attributes, ())


@pytest.mark.parametrize("channels", [1, 4, 6, 48, 640])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.sampled(8)
def test_groups(channels: int, groups: int) -> None:
    channels *= groups
    for spatial in ((7, 5), (1, 1), (40, 21), (3,)):
        inputs = [random(2, channels, *spatial), random(channels), random(channels, seed=1)]
        attributes = {"num_groups": groups, "epsilon": 1e-5}
        check("GroupNormalization", "opset12", inputs, attributes, ())


@pytest.mark.parametrize("size", [70, 5000, 70_000])
def test_equal_values_have_no_variance(size: int) -> None:
    """The remainder of rounding is small even beside this epsilon."""
    attributes = {"normalize_variance": True, "eps": 1e-12, "eps_mode": "inside_sqrt"}
    values = (np.float32([[16777.215], [-3e5], [1 / 3]]) * np.ones((3, size), np.float32)).astype(np.float32)
    for data, axes in ((values, 1), (np.ascontiguousarray(values.T), 0)):
        inputs = [data, np.array([axes])]
        result = native_result(task_of("MVN", "opset6", inputs, attributes, constants=(1,)), inputs)
        assert np.abs(result).max() == 0


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e30, 1e-30])
@pytest.mark.parametrize(("type", "version", "attributes"), NORMALIZATIONS)
@pytest.mark.parametrize("axis", [1, 2])
@pytest.mark.covering(2)
def test_normalization_of_extremes(type: str, version: str, attributes: dict[str, Any], axis: int, bad: float) -> None:
    inputs = [random(2, 33, 40), np.array([axis])]
    inputs[0][0, 3, 5] = bad
    task = task_of(type, version, inputs, attributes, constants=(1,))
    with np.errstate(all="ignore"):
        expected = task.definition(*inputs, **task.attributes)
    np.testing.assert_allclose(native_result(task, inputs), expected, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("orders", [(None, (0, 2, 3, 1)), ((0, 2, 3, 1), None), ((0, 2, 3, 1), (0, 2, 3, 1))])
@pytest.mark.parametrize("axes", [[1], [2, 3], [1, 2, 3]])
def test_normalization_to_another_order(orders: tuple[Order | None, Order | None], axes: list[int]) -> None:
    inputs = [random(2, 37, 6, 7), np.array(axes)]
    task = task_of("MVN", "opset6", inputs, NORMALIZATIONS[0][2], constants=(1,))
    expected = task.definition(*inputs, **task.attributes)
    np.testing.assert_allclose(native_result(task, inputs, orders), expected, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("shape", [(1, 2000, 70), (3, 300, 20)])
@pytest.mark.parametrize("axis", [1, 2])
def test_two_threads_compute_the_same_bits(shape: tuple[int, ...], axis: int) -> None:
    inputs = [random(*shape), np.array([axis])]
    task = task_of("MVN", "opset6", inputs, NORMALIZATIONS[0][2], constants=(1,))
    alone = native_result(task, inputs)
    assert np.array_equal(alone, native_result(dataclasses.replace(task, threads=2), inputs))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("type", "version"), [("Softmax", "opset8"), ("Softmax", "opset1"), ("LogSoftmax", "opset5")])
@pytest.mark.covering(1)
def test_softmax(type: str, version: str, width: int) -> None:
    for shape, axis in (((2, 19, width), 2), ((2, 5, width), 1), ((width, 3), 0), ((3, 2, width, 2), 2), ((700, 3), 1)):
        check(type, version, [2 * random(*shape)], {"axis": axis}, ())


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e30, -1e30])
@pytest.mark.parametrize("type", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("axis", [1, 2])
@pytest.mark.covering(2)
def test_softmax_of_extremes(type: str, axis: int, bad: float) -> None:
    inputs = [random(3, 19, 21)]
    inputs[0][0, 3, 5] = bad
    inputs[0][1] = bad
    task = task_of(type, "opset8" if type == "Softmax" else "opset5", inputs, {"axis": axis})
    with np.errstate(all="ignore"):
        expected = task.definition(*inputs, **task.attributes)
    np.testing.assert_allclose(native_result(task, inputs), expected, rtol=1e-5, atol=1e-6)


def test_softmax_of_many_values_is_accurate() -> None:
    """The sum of a hundred thousand exponentials is as accurate as that of a few."""
    for shape, axis in (((2, 100_000), 1), ((100_000, 2), 0)):
        inputs = [random(*shape)]
        result = native_result(task_of("Softmax", "opset8", inputs, {"axis": axis}), inputs)
        np.testing.assert_allclose(result.sum(axis, dtype=np.float64), 1, rtol=1e-6)


REDUCTIONS = ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2"]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("type", REDUCTIONS)
@pytest.mark.covering(1)
@pytest.mark.sampled(8)
def test_reduction(type: str, width: int) -> None:
    version = "opset4" if type in ("ReduceL1", "ReduceL2") else "opset1"
    scale = np.float32(0.3 if type == "ReduceProd" else 1)
    for shape, axes in (
        ((2, 19, width), [2]), ((2, 5, width), [1]), ((width, 3), [0]), ((2, 3, width, 2), [-1, 2]),
        ((2, width, 3, 5), [2, 3]), ((3, width), [0, 1]), ((1, width, 1), [0]), ((600, 2, 5), [-1]),
    ):  # fmt: skip
        for keep in (True, False):
            check(type, version, [scale * random(*shape), np.array(axes)], {"keep_dims": keep}, (1,))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("type", REDUCTIONS)
@pytest.mark.parametrize("axis", [1, 2])
@pytest.mark.covering(2)
def test_reduction_of_extremes(type: str, axis: int, bad: float) -> None:
    inputs = [random(3, 19, 21), np.array([axis])]
    inputs[0][0, 3, 5] = bad
    inputs[0][1] = bad
    inputs[0][2, 18, 20] = bad
    version = "opset4" if type in ("ReduceL1", "ReduceL2") else "opset1"
    task = task_of(type, version, inputs, {"keep_dims": False}, constants=(1,))
    with np.errstate(all="ignore"):
        expected = task.definition(*inputs, **task.attributes)
    np.testing.assert_allclose(native_result(task, inputs), expected, rtol=1e-5)


@pytest.mark.parametrize("type", ["ReduceSum", "ReduceMean", "ReduceL1"])
def test_long_sums_are_accurate(type: str) -> None:
    for shape, axis in (((2, 1_000_000), 1), ((1_000_000, 2), 0)):
        inputs = [random(*shape), np.array([axis])]
        version = "opset4" if type == "ReduceL1" else "opset1"
        result = native_result(task_of(type, version, inputs, {"keep_dims": False}, constants=(1,)), inputs)
        wide = np.abs(inputs[0].astype(np.float64)) if type == "ReduceL1" else inputs[0].astype(np.float64)
        expected = wide.mean(axis) if type == "ReduceMean" else wide.sum(axis)
        np.testing.assert_allclose(result, expected, rtol=3e-7)
