"""A result takes the memory of an input that is read for the last time."""

from __future__ import annotations

import numpy as np

import irexec
from irexec.analysis.builder import Builder, Operand

SIZE = 1200


def _product(builder: Builder, a: Operand, b: Operand) -> Operand:
    return builder.emit("MatMul", a, b, transpose_a=False, transpose_b=False)


def test_a_value_that_an_earlier_step_has_read_is_overwritten() -> None:
    """Its rows scaled by their means, as squeeze and excitation does."""
    builder = Builder("scaled rows")
    x = builder.parameter("f32", f"{SIZE},3", "x")
    a, b = np.ones((3, SIZE), np.float32), np.ones((SIZE, 1), np.float32)
    data = _product(builder, x, a)
    means = builder.emit("ReduceMean", data, np.array([1], np.int64), keep_dims=True)
    builder.result(_product(builder, builder.emit("Multiply", data, means), b))
    compiled = irexec.compile_model(builder.model(), threads=1)
    given = np.random.default_rng(0).normal(size=(SIZE, 3)).astype(np.float32)
    (result,) = compiled(given).values()
    np.testing.assert_allclose(result[:, 0], SIZE * given.sum(1) ** 2, rtol=1e-4, atol=1e-2)
    assert compiled.plan.arena < 1.6 * 4 * SIZE * SIZE


def test_a_value_that_the_same_step_reads_in_another_form_is_not() -> None:
    builder = Builder("symmetric")
    x = builder.parameter("f32", f"{SIZE},3", "x")
    a = np.random.default_rng(1).normal(size=(3, SIZE)).astype(np.float32)
    data = _product(builder, x, a)
    transposed = builder.emit("Transpose", data, np.array([1, 0], np.int64))
    # A chain of several operations is computed block by block, and a later block reads what an earlier one would have overwritten.
    builder.result(
        _product(
            builder, builder.emit("Tanh", builder.emit("Subtract", data, transposed)), np.ones((SIZE, 1), np.float32)
        )
    )
    given = np.random.default_rng(0).normal(size=(SIZE, 3)).astype(np.float32)
    (result,) = irexec.compile_model(builder.model(), threads=1)(given).values()
    product = given.astype(np.float64) @ a.astype(np.float64)
    np.testing.assert_allclose(result[:, 0], np.tanh(product - product.T).sum(1), rtol=1e-4, atol=1e-2)
