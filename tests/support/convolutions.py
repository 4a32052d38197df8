"""Candidates for convolutions checked one by one: layouts, chains, threads, strides and workspace."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from irexec.backend.chain import Chain, Formula, Instruction
from irexec.backend.kernel import Kernel, Order, Task
from irexec.backend.numpy_ufuncs import clip
from irexec.schema.registry import resolve
from irexec.testing.kernels import candidates, in_order, task_of
from tests.support.passes import run_kernel

FLOAT = np.dtype(np.float32)

# More than that no kernel should ask for, for any thread.
WORKSPACE = 8 << 20


def bias_residual_relu(dtype: np.dtype = FLOAT) -> Chain:
    """max(result + operand 1 + operand 2, 0)."""

    def add(_, out, a, b):
        return np.add(a, b, out=out)

    def relu(_, out, a):
        return clip(a, 0, np.inf, out=out)

    return Chain(
        3,
        dtype,
        (
            Instruction("Add", add, (0, 1), dtype, formula=Formula("Add")),
            Instruction("Add", add, (3, 2), dtype, formula=Formula("Add")),
            Instruction("Relu", relu, (4,), dtype, formula=Formula("MaximumP", 0.0)),
        ),
    )


def operands_of(shape: Sequence[int], dtype: np.dtype, rng: np.random.Generator) -> list[np.ndarray]:
    """A bias for each channel, and a residual."""
    bias = rng.standard_normal((1, shape[1], *(1,) * (len(shape) - 2)))
    return [bias.astype(dtype), rng.standard_normal(shape).astype(dtype)]


def orders_of(rank: int) -> list[Order]:
    return [tuple(range(rank)), (0, *range(2, rank), 1)]


def variants(task: Task) -> Iterator[Task]:
    """The task with each order of data and result."""
    rank = len(task.output_shape())
    for data, result in product(orders_of(rank), repeat=2):
        orders = (data, *task.input_orders[1:])
        yield dataclasses.replace(task, input_orders=orders, output_orders=(result,))


def names(kernels: Sequence[Kernel]) -> list[str]:
    return [kernel.algorithm for kernel in kernels]


def check_candidates(
    task: Task,
    inputs: Sequence[np.ndarray | None],
    expected: np.ndarray,
    operands: Sequence[np.ndarray] = (),
    tolerance: float = 2e-5,
) -> set[str]:
    """Every candidate of every order gives ``expected`` within ``tolerance`` of its largest value; returns their algorithms."""
    data = inputs[0]
    assert data is not None
    seen = set()
    for variant in variants(task):
        found = candidates(variant)
        given = [in_order(data, variant.input_orders[0]), *inputs[1:]]
        for kernel in found:
            seen.add(kernel.algorithm)
            assert kernel.workspace <= WORKSPACE, (kernel.algorithm, kernel.workspace)
            assert kernel.cost > 0
            (result,) = run_kernel(kernel, variant, given, operands)
            assert result.dtype == expected.dtype
            wide, limit = expected.astype(np.float64), tolerance * max(1e-30, float(np.abs(expected).max()))
            difference = float(np.abs(result.astype(np.float64) - wide).max())
            assert difference <= limit, (
                f"{kernel.algorithm}, orders {variant.input_orders[0]} to {variant.output_orders[0]}: {difference} > {limit}"
            )
    return seen


def random_arrays(
    data: Sequence[int], filter: Sequence[int], dtype: DTypeLike = FLOAT
) -> tuple[np.ndarray, np.ndarray, np.random.Generator]:
    """Data and a filter, and the generator that they are from."""
    rng = np.random.default_rng(0)
    return rng.standard_normal(data).astype(dtype), rng.standard_normal(filter).astype(dtype), rng


def check_with_chain(
    type: str, data: Sequence[int], filter: Sequence[int], attributes: dict[str, Any], constants: Collection[int]
) -> set[str]:
    """Check the candidates alone and with a chain; returns the algorithms of the first."""
    x, weights, rng = random_arrays(data, filter)
    definition = resolve(type, "opset1")
    expected = definition(x, weights, **definition.arguments(attributes))
    seen = check_candidates(
        task_of(type, "opset1", [x, weights], attributes, constants=constants), [x, weights], expected
    )
    operands = operands_of(expected.shape, x.dtype, rng)
    chained = task_of(
        type,
        "opset1",
        [x, weights],
        attributes,
        constants=constants,
        chain=bias_residual_relu(),
        operands=operands,
        threads=2,
        native=True,
    )
    check_candidates(chained, [x, weights], np.maximum(expected + operands[0] + operands[1], 0), operands)
    return seen
