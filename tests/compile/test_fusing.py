"""Which element-wise operations join the operation before them. What is expected is computed by NumPy in float64."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import irexec
from irexec.analysis.builder import Builder
from irexec.ir.graph import Value

X = np.random.default_rng(0).uniform(-1, 1, (1, 4, 6)).astype(np.float32)
WEIGHTS = np.random.default_rng(1).uniform(-1, 1, (6, 5)).astype(np.float32)
ROWS = np.random.default_rng(2).uniform(-1, 1, (3, 4, 5)).astype(np.float32)
PRODUCT = X.astype(np.float64) @ WEIGHTS

Make = Callable[[Builder, Value], list[Value]]

CASES: dict[str, tuple[Make, list[np.ndarray], list[str]]] = {
    "one that broadcasts the product": (lambda b, y: [b.emit("Add", y, ROWS)], [PRODUCT + ROWS], ["MatMul", "Add"]),
    "after one that keeps the shape": (
        lambda b, y: [b.emit("Add", b.emit("Abs", y), ROWS)], [np.abs(PRODUCT) + ROWS], ["MatMul+Abs", "Add"],
    ),
    "of a product that is a result too": (lambda b, y: [b.emit("Abs", y), y], [np.abs(PRODUCT), PRODUCT], ["MatMul", "Abs"]),
    "before a value that is a result too": (
        lambda b, y: [(z := b.emit("Abs", y)), b.emit("Sqrt", z)], [np.abs(PRODUCT), np.sqrt(np.abs(PRODUCT))], ["MatMul+Abs", "Sqrt"],
    ),
    "two that meet again": (
        lambda b, y: [b.emit("Multiply", b.emit("Abs", y), b.emit("Exp", y))], [np.abs(PRODUCT) * np.exp(PRODUCT)], ["MatMul+Abs+Exp+Multiply"],
    ),
    "a reduction of one of two": (
        lambda b, y: [b.emit("Subtract", (z := b.emit("Exp", y)), b.emit("ReduceMax", z, np.array([2]), keep_dims=True))],
        [np.exp(PRODUCT) - np.exp(PRODUCT).max(2, keepdims=True)], ["MatMul+Exp", "ReduceMax", "Subtract"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_cases(name: str) -> None:
    make, expected, steps = CASES[name]
    builder = Builder("m")
    x = builder.parameter("f32", X.shape, "x")
    for value in make(builder, builder.emit("MatMul", x, WEIGHTS)):
        builder.result(value)
    compiled = irexec.compile_model(builder.model(), threads=1)
    assert [row.operation for row in compiled.plan.steps] == steps
    for actual, values in zip(compiled(X).values(), expected, strict=True):
        np.testing.assert_allclose(actual, values, rtol=1e-5, atol=1e-6)
