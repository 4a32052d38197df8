"""Kernels for shapes that are known only when a step runs."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import irexec
from irexec.analysis.evaluate import as_tuple
from irexec.analysis.shape_inference import infer_shapes
from irexec.backend.calls import NativeKernel
from irexec.backend.kernel import KernelOptions, Task
from irexec.compile import specialise
from irexec.compile.plan import Compilation, plan
from irexec.compile.specialise import COPIED, KEPT
from irexec.native.library import library


@pytest.fixture
def selected(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The shapes for which a kernel was selected."""
    shapes: list[tuple[int, ...]] = []
    original = specialise.offers

    def recorded(task: Task) -> Any:
        shapes.append(task.shape(0))
        return original(task)

    monkeypatch.setattr(specialise, "offers", recorded)
    return shapes


def _sums_of_rows() -> Callable[..., Any]:
    """What computes the sums of rows of any length."""
    builder = irexec.Builder("m")
    builder.result(builder.emit("ReduceSum", builder.parameter("f32", "?,?", "x"), [1]))
    model = builder.model()
    (step,) = plan(model, infer_shapes(model)).steps
    assert step.report.algorithm == "by shape"
    assert step.call is not None
    # As in a run: what BLAS reads beside the data may raise flags.
    run = np.errstate(all="ignore")(step.call.function.__call__)
    return lambda x: run(x, None)


def test_a_shape_that_comes_back_is_not_selected_for_again(selected: list[tuple[int, ...]]) -> None:
    call = _sums_of_rows()
    for _ in range(2):
        for size in (1, 2, 4):
            (result,) = call(np.ones((3, size), np.float32))
            np.testing.assert_array_equal(result, [size] * 3)
    assert selected == [(3, 1), (3, 2), (3, 4)]


def test_sizes_that_are_inputs_select_a_kernel_of_their_own() -> None:
    """The shapes of all inputs are the same in each run."""
    builder = irexec.Builder("m")
    x, sizes = builder.parameter("f32", "?,2", "x"), builder.parameter("i64", (1,), "sizes")
    attributes = {
        "mode": "nearest",
        "shape_calculation_mode": "sizes",
        "coordinate_transformation_mode": "asymmetric",
        "nearest_mode": "floor",
    }
    builder.result(builder.emit("Interpolate", x, sizes, np.float32([1]), np.array([1]), version=4, **attributes))
    compiled, data = irexec.compile_model(builder.model()), np.float32([[1, 2], [3, 4], [5, 6]])
    for factor in (2, 3, 2, 5):
        np.testing.assert_array_equal(compiled([data, np.array([2 * factor])])[0], data.repeat(factor, axis=1))


def test_the_least_recently_used_kernel_is_dropped(selected: list[tuple[int, ...]]) -> None:
    """A shape that is used between others stays, however many those are."""
    call = _sums_of_rows()
    for size in range(1, 3 * KEPT):
        call(np.zeros((7, 3), np.float32))
        call(np.zeros((size, 5), np.float32))
    assert selected.count((7, 3)) == 1
    call(np.zeros((3 * KEPT - 1, 5), np.float32))
    assert selected.count((3 * KEPT - 1, 5)) == 1
    call(np.zeros((1, 5), np.float32))
    assert selected.count((1, 5)) == 2


def test_small_arrays_are_moved_by_the_reference_and_large_ones_by_a_kernel(selected: list[tuple[int, ...]]) -> None:
    """A state that grows has another shape in every run: selecting a kernel takes longer than moving it."""
    builder = irexec.Builder("m")
    x, y = builder.parameter("f32", "1,?,8", "x"), builder.parameter("f32", "1,3,8", "y")
    builder.result(builder.emit("Concat", x, y, axis=1))
    model = builder.model()
    (step,) = plan(model, infer_shapes(model)).steps
    assert step.report.algorithm == "by shape" and step.call is not None
    end, long = np.ones((1, 3, 8), np.float32), COPIED // 32
    for length in (2, 5, long):
        start = np.arange(8 * length, dtype=np.float32).reshape(1, length, 8)
        (found,) = as_tuple(step.call.function(start, end))
        np.testing.assert_array_equal(found, np.concatenate([start, end], 1))
    assert selected == [(1, long, 8)]


def _sums(threads: int) -> Callable[..., Any]:
    """The sum of rows of any length with other ones."""
    builder = irexec.Builder("m")
    x, y = (builder.parameter("f32", "?,?", name) for name in "xy")
    builder.result(builder.emit("Add", x, y))
    model = builder.model()
    compilation = Compilation(options=KernelOptions(threads, native=True))
    (step,) = plan(model, infer_shapes(model), None, compilation).steps
    assert step.call is not None
    return step.call.function


def _product() -> Callable[..., Any]:
    """The product of rows of any number with one matrix, in C where there is a library."""
    builder = irexec.Builder("m")
    weights = np.arange(12, dtype=np.float32).reshape(4, 3)
    builder.result(builder.emit("MatMul", builder.parameter("f32", "?,4", "x"), weights))
    model = builder.model()
    (step,) = plan(model, infer_shapes(model), None, Compilation(options=KernelOptions(1, native=True))).steps
    assert step.call is not None
    return lambda x: step.call.function(x, None)  # type: ignore[union-attr]


def test_small_arrays_of_a_shape_that_comes_back() -> None:
    """A kernel runs on arrays of its own from the second run on: results are copies, strides are any."""
    sums, rng, given = _sums(2), np.random.default_rng(0), []
    for run in range(5):
        x, y = rng.standard_normal((2, 6, 4)).astype(np.float32)
        if run % 2:
            x, y = x.T.copy().T, np.repeat(y, 2, 1)[:, ::2]
        given.append((sums(x, y)[0], x + y))
    for found, expected in given:
        np.testing.assert_array_equal(found, expected)
    assert not any(np.may_share_memory(one, other) for (one, _), (other, _) in itertools.combinations(given, 2))


def test_every_run_of_small_arrays_gives_the_same_bits() -> None:
    """Sums of a transposed array, whose bits would be others than those of its copy."""
    builder = irexec.Builder("m")
    builder.result(builder.emit("ReduceSum", builder.parameter("f32", "?,?", "x"), np.array([1]), keep_dims=True))
    model = builder.model()
    (step,) = plan(model, infer_shapes(model)).steps
    assert step.report.algorithm == "by shape" and step.call is not None
    x = np.random.default_rng(0).standard_normal((20, 4)).astype(np.float32).T
    first, *others = (step.call.function(x, None)[0].tobytes() for _ in range(4))
    assert others == [first] * 3


def test_a_small_product_binds_its_arrays_once(monkeypatch: pytest.MonkeyPatch) -> None:
    if library() is None:
        pytest.skip("there is no library")
    bound: list[object] = []
    original = NativeKernel.bound

    def counted(self: NativeKernel, *arguments: Any) -> Any:
        bound.append(self)
        return original(self, *arguments)

    monkeypatch.setattr(NativeKernel, "bound", counted)
    product, weights = _product(), np.arange(12, dtype=np.float32).reshape(4, 3)
    for run in range(6):
        x = np.full((5, 4), run, np.float32)
        np.testing.assert_array_equal(product(x)[0], x @ weights)
    assert len(bound) == 2  # the first run, and the arrays of its own


def test_threads_share_a_small_kernel() -> None:
    """One of them runs on the arrays of the kernel, the others on their own."""
    product, weights = _product(), np.arange(12, dtype=np.float32).reshape(4, 3)

    def are_equal(value: int) -> bool:
        x = np.full((5, 4), value, np.float32)
        return all(np.array_equal(product(x)[0], x @ weights) for _ in range(200))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(are_equal, range(8)))
