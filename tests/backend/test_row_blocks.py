"""Kernels of MVN and Softmax in NumPy against the reference kernels in f64, and the axes that they sum over."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from irexec.backend import rows
from irexec.backend.rows import ByBlocks, groups_of
from irexec.testing.kernels import candidates, check_kernels, in_order, task_of
from tests.support.passes import run_kernel

KINDS: list[tuple[str, str, dict[str, Any]]] = [
    ("MVN", "opset6", {"normalize_variance": True, "eps": 1e-3, "eps_mode": "inside_sqrt"}),
    ("MVN", "opset6", {"normalize_variance": True, "eps": 1e-3, "eps_mode": "outside_sqrt"}),
    ("MVN", "opset6", {"normalize_variance": False, "eps": 1e-3, "eps_mode": "inside_sqrt"}),
    ("Softmax", "opset8", {"axis": 2}),
]


def random(*shape: int) -> np.ndarray:
    return 3 + 2 * np.random.default_rng(sum(shape)).standard_normal(shape)


@pytest.mark.parametrize("cached", [100, 1 << 18])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("type", "version", "attributes"), KINDS)
def test_blocks_in_numpy(
    type: str, version: str, attributes: dict[str, Any], dtype: type, cached: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Along an axis that is innermost in memory, or not, in one block and many."""
    monkeypatch.setattr(rows, "_CACHED", cached)
    inputs = [random(3, 13, 5000).astype(dtype), *([np.array([2])] if type == "MVN" else [])]
    if attributes.get("normalize_variance"):
        inputs[0][1] = 1e5 / 3  # The variance is rounding alone.
    task = task_of(type, version, inputs, attributes, constants=(1,) if type == "MVN" else ())
    expected = task.definition(*(x.astype(np.float64) if x.dtype == dtype else x for x in inputs), **task.attributes)
    for order in (None, (0, 2, 1), (2, 0, 1)):
        known = dataclasses.replace(task, input_orders=(order, *task.input_orders[1:]), output_orders=(order,))
        (kernel,) = (one for one in candidates(known) if isinstance(one, ByBlocks))
        assert kernel.overwrites == (0,)
        first = inputs[0] if order is None else in_order(inputs[0], order)
        (actual,) = run_kernel(kernel, known, [first, *inputs[1:]])
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("type", "version", "attributes"), KINDS)
def test_layouts_chains_and_threads(type: str, version: str, attributes: dict[str, Any]) -> None:
    """Axes of short and long rows, over the input too, before chains, in reversed orders, on one thread and two."""
    for shape, axis in (
        ((3, 7, 16), 2),
        ((3, 7, 160), 2),
        ((700, 3), 1),
        ((9, 5), 0),
        ((2, 40, 9), 1),
        ((2, 3, 4, 5), 2),
    ):
        data = random(*shape).astype(np.float32)
        if type == "MVN":
            check_kernels(type, version, [data, np.array([axis])], attributes, constants=(1,))
        else:
            check_kernels(type, version, [data], {"axis": axis})


@pytest.mark.parametrize(
    ("shape", "axes", "order", "expected"),
    [
        ((2, 3, 4), {2}, None, ((0, 1), (2,))),
        ((2, 3, 4), {2}, (0, 2, 1), ((0,), (2,), (1,))),
        ((2, 3, 4), {0}, None, ((), (0,), (1, 2))),
        ((1, 3, 4), {0, 2}, None, ((0, 1), (2,))),
        ((2, 3, 4, 5), {0, 2}, None, None),
        ((2, 3, 4, 5), {1, 3}, None, None),
        ((1, 3, 4), {0}, None, None),
    ],
)
def test_groups_of(shape: tuple[int, ...], axes: set[int], order: tuple[int, ...] | None, expected: object) -> None:
    """Axes of size 1 may lie anywhere."""
    assert groups_of(shape, order, axes) == expected
