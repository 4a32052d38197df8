"""Normalization: every candidate gives what the reference kernel gives."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from irexec.backend import normalization
from irexec.backend.chain import Chain, Instruction
from irexec.backend.constants import ConstantStore
from irexec.backend.kernel import Kernel, KernelContext, Task
from irexec.backend.normalization import ColumnNormalization, GroupRows, RowNormalization, groups_of
from irexec.testing.tasks import candidates, task_of

F32 = np.dtype(np.float32)

# Shape, axes, order in memory, and the kernel that takes it.
LAYOUTS = [
    ((2, 7, 11), [-1], None, RowNormalization),
    ((1, 1, 11), [2], None, RowNormalization),
    ((5, 300), [1], None, RowNormalization),
    ((2, 3, 4, 5), [1, 2, 3], None, RowNormalization),
    ((2, 3, 4, 5), [2, 3], None, RowNormalization),
    ((2, 3, 4, 5), [3, 1], (0, 2, 1, 3), RowNormalization),
    ((2, 7, 11), [1], None, ColumnNormalization),
    ((7, 11), [0], None, ColumnNormalization),
    ((2, 7, 11), [2], (0, 2, 1), ColumnNormalization),
    ((3, 300, 200), [2], (0, 2, 1), ColumnNormalization),
    ((2, 3, 4, 5), [2, 3], (0, 2, 3, 1), ColumnNormalization),
    ((2, 3, 4, 5), [1], (0, 2, 3, 1), RowNormalization),
    ((10, 9000), [1], None, RowNormalization),
    ((20000, 3), [0], None, ColumnNormalization),
]
FORMULAS: list[tuple[str, str, dict[str, Any]]] = [
    ("MVN", "opset6", {"normalize_variance": True, "eps": 1e-3, "eps_mode": "inside_sqrt"}),
    ("MVN", "opset6", {"normalize_variance": True, "eps": 1e-3, "eps_mode": "outside_sqrt"}),
    ("MVN", "opset6", {"normalize_variance": False, "eps": 1e-3, "eps_mode": "inside_sqrt"}),
    ("NormalizeL2", "opset1", {"eps": 1e-3, "eps_mode": "add"}),
    ("NormalizeL2", "opset1", {"eps": 200.0, "eps_mode": "max"}),
]


def random(*shape: int, dtype: np.dtype = F32) -> np.ndarray:
    return (3 + 2 * np.random.default_rng(sum(shape)).standard_normal(shape)).astype(dtype)


def in_order(x: np.ndarray, order: tuple[int, ...] | None) -> np.ndarray:
    return x if order is None else np.ascontiguousarray(x.transpose(order)).transpose(np.argsort(order))


SCALE_AND_SHIFT = Chain(
    3,
    F32,
    (
        Instruction("Multiply", lambda scratch, out, x, y: np.multiply(x, y, out=out), (0, 1), F32),
        Instruction("Add", lambda scratch, out, x, y: np.add(x, y, out=out), (3, 2), F32),
    ),
)


def run_in(
    kernel: Kernel, task: Task, inputs: list[np.ndarray], order: tuple[int, ...] | None, *, in_place: bool = False
) -> np.ndarray:
    """The result in an array of that order, which is the first input's memory if ``in_place``."""
    kernel.pack(ConstantStore())
    first = in_order(inputs[0], order)
    out = first.copy("K") if in_place else in_order(np.full(inputs[0].shape, np.nan, inputs[0].dtype), order)
    context = KernelContext.of(kernel, task.threads)
    with np.errstate(all="ignore"):
        kernel.run([out if in_place else first, *inputs[1:]], [out], context)
    return out


def check(
    task: Task, inputs: list[np.ndarray], order: tuple[int, ...] | None, operands: tuple[np.ndarray, ...] = ()
) -> list[Kernel]:
    """Every candidate against the reference kernel: in the order that the task knows, in place, and with inputs in C order."""
    expected = task.definition(*inputs, **task.attributes)
    if operands:
        expected = expected * operands[0] + operands[1]
    known = dataclasses.replace(task, input_orders=(order, *task.input_orders[1:]), output_orders=(order,))
    found = candidates(known)
    scale = float(np.abs(expected).max())
    for kernel in found:
        assert kernel.runs_chain
        assert kernel.overwrites == (0,)
        for actual in (
            run_in(kernel, known, [*inputs, *operands], order),
            run_in(kernel, known, [*inputs, *operands], None),
            run_in(kernel, known, [*inputs, *operands], order, in_place=True),
        ):
            np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=4e-6 * scale, err_msg=kernel.algorithm)
    return found


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("type", "version", "attributes"), FORMULAS)
@pytest.mark.parametrize(("shape", "axes", "order", "kernel"), LAYOUTS)
def test_along_axes(
    type: str, version: str, attributes: dict[str, Any], shape: tuple[int, ...], axes: list[int], order: tuple[int, ...] | None,
    kernel: type[Kernel], threads: int,
) -> None:  # fmt: skip
    inputs = [random(*shape), np.array(axes)]
    found = check(task_of(type, version, inputs, attributes, constants=(1,), threads=threads), inputs, order)
    assert [one.__class__ for one in found] == [kernel]
    assert found[0].reads == (0,)


@pytest.mark.parametrize(("shape", "axes", "order", "kernel"), LAYOUTS)
def test_chain(shape: tuple[int, ...], axes: list[int], order: tuple[int, ...] | None, kernel: type[Kernel]) -> None:
    inputs = [random(*shape), np.array(axes)]
    for operands in ((random(shape[-1]), random(shape[-1])), (random(*shape), random(*(1,) * len(shape)))):
        task = task_of(
            "MVN", "opset6", inputs, FORMULAS[0][2], constants=(1,), chain=SCALE_AND_SHIFT, operands=operands
        )
        assert check(task, inputs, order, operands)


@pytest.mark.parametrize("cached", [1, 50, 1 << 16])
@pytest.mark.parametrize("long", [4, 8192])
def test_pieces(monkeypatch: pytest.MonkeyPatch, cached: int, long: int) -> None:
    monkeypatch.setattr(normalization, "_CACHED", cached)
    monkeypatch.setattr(normalization, "_LONG_SUM", long)
    for shape, axes, order, _ in LAYOUTS[:12]:
        inputs = [random(*shape), np.array(axes)]
        assert check(task_of("MVN", "opset6", inputs, FORMULAS[0][2], constants=(1,), threads=2), inputs, order)


@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize("variance", [False, True])
def test_mvn_of_images(across: bool, variance: bool) -> None:
    inputs = [random(2, 3, 4, 5)]
    attributes = {"across_channels": across, "normalize_variance": variance, "eps": 1e-3}
    for order in (None, (0, 2, 3, 1)):
        assert check(task_of("MVN", "opset2", inputs, attributes), inputs, order)


@pytest.mark.parametrize("shape", [(2, 6, 5), (1, 6, 4, 5), (3, 6, 30, 7), (2, 6), (1, 12, 2, 2, 2)])
@pytest.mark.parametrize("groups", [1, 2, 6])
@pytest.mark.parametrize("cached", [1, 100, 1 << 16])
@pytest.mark.parametrize("threads", [1, 2])
def test_groups(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...], groups: int, cached: int, threads: int
) -> None:
    monkeypatch.setattr(normalization, "_CACHED", cached)
    inputs = [random(*shape), random(shape[1]), random(shape[1])]
    task = task_of("GroupNormalization", "opset12", inputs, {"num_groups": groups, "epsilon": 1e-3}, threads=threads)
    (kernel,) = check(task, inputs, None)
    assert isinstance(kernel, GroupRows)
    if len(shape) > 2:
        (kernel,) = check(task, inputs, (0, *range(2, len(shape)), 1))
        assert isinstance(kernel, ColumnNormalization)


def test_double_precision() -> None:
    inputs = [random(2, 7, 11, dtype=np.dtype(np.float64)), np.array([-1])]
    assert check(task_of("MVN", "opset6", inputs, FORMULAS[0][2], constants=(1,)), inputs, None)


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


@pytest.mark.parametrize(("shape", "axes"), [((0, 3), [1]), ((3, 0), [1]), ((2, 3), []), ((2, 1), [1])])
def test_left_to_the_reference_kernel(shape: tuple[int, ...], axes: list[int]) -> None:
    inputs = [random(*shape), np.array(axes, np.int64)]
    for type, version, attributes in FORMULAS:
        assert not candidates(task_of(type, version, inputs, attributes, constants=(1,)))
        assert not candidates(task_of(type, version, [random(2, 3), np.array([1])], attributes))
