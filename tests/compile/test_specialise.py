"""Kernels for shapes that are known only when a step runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irexec
from irexec.analysis.evaluate import as_tuple
from irexec.analysis.shape_inference import infer_shapes
from irexec.backend.kernel import Task
from irexec.compile import specialise
from irexec.compile.plan import plan
from irexec.compile.specialise import COPIED, KEPT


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


def _softmax() -> Callable[..., Any]:
    """What computes a Softmax of rows of any length."""
    builder = irexec.Builder("m")
    builder.result(builder.emit("Softmax", builder.parameter("f32", "?,?", "x"), axis=1))
    model = builder.model()
    (step,) = plan(model, infer_shapes(model)).steps
    assert step.report.algorithm == "by shape"
    assert step.call is not None
    return step.call.function


def test_a_shape_that_comes_back_is_not_selected_for_again(selected: list[tuple[int, ...]]) -> None:
    call = _softmax()
    for _ in range(2):
        for size in (1, 2, 4):
            (result,) = call(np.zeros((3, size), np.float32))
            np.testing.assert_allclose(result, np.full((3, size), 1 / size), rtol=1e-6)
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
    call = _softmax()
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
