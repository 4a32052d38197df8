"""MatMul: every candidate gives what the reference kernel gives."""

from __future__ import annotations

import dataclasses
from dataclasses import replace

import numpy as np
import pytest

from irexec.backend import matmul
from irexec.backend.chain import Chain, Instruction
from irexec.backend.constants import ConstantStore
from irexec.backend.kernel import Kernel, KernelContext, Task
from irexec.backend.linear import DirectLinear, NarrowLinear, TransposedLinear
from irexec.backend.matmul import MatrixProducts
from irexec.backend.scratch import Scratch
from irexec.testing.kernels import candidates, task_of
from tests.support.passes import run_kernel

F32 = np.dtype(np.float32)

# Shapes of the operands as products need them, before any transposition; and which of them is constant.
LINEAR = [
    ((5, 7), (7, 3), 1), ((2, 5, 7), (7, 3), 1), ((2, 3, 5, 7), (7, 33), 1), ((4, 128, 64), (64, 160), 1),
    ((1, 197, 96), (96, 300), 1), ((1, 700, 40), (40, 24), 1), ((1, 1, 64), (64, 1000), 1), ((3, 768), (768, 700), 1),
    ((7,), (7, 3), 1), ((2, 5, 7), (7,), 1), ((7,), (7,), 1), ((5, 7), (1, 1, 7, 3), 1), ((3, 7), (7, 5), 0),
    ((3, 7), (2, 4, 7, 5), 0), ((300, 64), (2, 64, 200), 0), ((7,), (2, 7, 5), 0), ((3, 7), (7,), 0),
]  # fmt: skip
ACTIVATIONS = [
    ((5, 7), (7, 3)), ((2, 5, 7), (2, 7, 3)), ((2, 12, 64, 32), (2, 12, 32, 64)), ((2, 1, 5, 7), (3, 7, 3)),
    ((1, 3, 300, 64), (1, 1, 64, 300)), ((400, 300), (300, 500)), ((7,), (2, 7, 3)), ((2, 5, 7), (7,)), ((7,), (7,)),
    ((2, 3, 1, 64), (2, 3, 64, 9)), ((700, 3, 2, 5), (5, 4)), ((5, 200, 3, 2, 7), (3, 7, 40)),
    ((40, 1, 64, 64), (1, 64, 64)), ((4, 6), (900, 2, 6, 3)), ((300, 1, 5, 7), (300, 3, 7, 4)),
]  # fmt: skip


def random(*shape: int, dtype: np.dtype = F32) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def transposed(x: np.ndarray, transpose: bool) -> np.ndarray:
    return np.ascontiguousarray(x.swapaxes(-1, -2)) if transpose and x.ndim > 1 else x


def chain_of(operands: int) -> Chain:
    """Adds each operand, then x * x."""
    steps = []
    for i in range(operands):
        register = 0 if i == 0 else operands + i
        steps.append(Instruction("Add", lambda scratch, out, x, y: np.add(x, y, out=out), (register, 1 + i), F32))
    steps.append(Instruction("Multiply", lambda scratch, out, x: np.multiply(x, x, out=out), (2 * operands,), F32))
    return Chain(1 + operands, F32, tuple(steps))


def check(task: Task, inputs: list[np.ndarray], operands: list[np.ndarray] | None = None) -> list[Kernel]:
    """Every candidate against the reference kernel."""
    expected = task.definition(*inputs, **task.attributes)
    for operand in operands or []:
        expected = expected + operand
    if task.chain is not None:
        expected = expected * expected
    found = candidates(task)
    assert found
    for kernel in found:
        assert kernel.runs_chain
        assert kernel.cost > 0
        (actual,) = run_kernel(kernel, task, inputs, operands or [])
        scale = float(np.abs(expected).max(initial=0))
        np.testing.assert_allclose(actual, expected, rtol=2e-5, atol=2e-5 * scale, err_msg=kernel.algorithm)
    return found


@pytest.mark.sampled(2)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("transposes", [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize(("a", "b", "constant"), LINEAR)
def test_constant_weights(
    a: tuple[int, ...], b: tuple[int, ...], constant: int, transposes: tuple[bool, bool], threads: int
) -> None:
    inputs = [transposed(random(*a), transposes[0]), transposed(random(*b), transposes[1])]
    attributes = {"transpose_a": transposes[0], "transpose_b": transposes[1]}
    task = task_of("MatMul", "opset1", inputs, attributes, constants=[constant], threads=threads)
    check(replace(task, native=True), inputs)
    found = check(task, inputs)
    assert {type(kernel) for kernel in found} <= {DirectLinear, TransposedLinear, NarrowLinear}
    assert all(kernel.reads == (1 - constant,) for kernel in found)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("transposes", [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize(("a", "b"), ACTIVATIONS)
def test_two_activations(a: tuple[int, ...], b: tuple[int, ...], transposes: tuple[bool, bool], threads: int) -> None:
    inputs = [transposed(random(*a), transposes[0]), transposed(random(*b), transposes[1])]
    attributes = {"transpose_a": transposes[0], "transpose_b": transposes[1]}
    task = task_of("MatMul", "opset1", inputs, attributes, threads=threads)
    check(replace(task, native=True), inputs)
    found = check(task, inputs)
    assert [type(kernel) for kernel in found] == [MatrixProducts]


@pytest.mark.parametrize(
    "shapes", [((20_000, 3, 4, 2), (2, 3)), ((4, 2), (20_000, 3, 2, 3)), ((20_000, 3, 4, 2), (20_000, 3, 2, 3))]
)
@pytest.mark.parametrize("constants", [(), (0,), (1,)])
def test_many_small_products_are_few_blocks(
    shapes: tuple[tuple[int, ...], tuple[int, ...]], constants: tuple[int, ...]
) -> None:
    inputs = [random(*shape) for shape in shapes]
    task = task_of("MatMul", "opset1", inputs, constants=constants)
    for kernel in check(task, inputs):
        assert len(kernel.blocks) < 10


@pytest.mark.parametrize(("right", "expected"), [((2, 3), 2), ((3, 2, 3), 4)])
def test_matrices_with_a_shared_right_operand_are_one(
    monkeypatch: pytest.MonkeyPatch, right: tuple[int, ...], expected: int
) -> None:
    multiply, ranks = matmul.multiply_into, set()

    def noted(scratch: Scratch, left: np.ndarray, right: np.ndarray, out: np.ndarray) -> None:
        ranks.add(left.ndim)
        multiply(scratch, left, right, out)

    monkeypatch.setattr(matmul, "multiply_into", noted)
    inputs = [random(50, 3, 4, 2), random(*right)]
    check(task_of("MatMul", "opset1", inputs), inputs)
    assert ranks == {expected}


@pytest.mark.parametrize(("shape", "expected"), [((40_000, 4_000), 16), ((100, 1_000_000), 1)])
def test_a_long_product_is_cut(shape: tuple[int, int], expected: int) -> None:
    """So that the run's time is looked at in it."""
    rows, inner = shape
    x, y = (np.broadcast_to(np.float32(1), size) for size in ((rows, inner), (inner, 1000)))
    task = task_of("MatMul", "opset1", [x, y])
    (kernel,) = candidates(task)
    assert len(kernel.blocks) == expected
    linear = [
        kernel
        for kernel in candidates(task_of("MatMul", "opset1", [x, y], constants=[1]))
        if isinstance(kernel, DirectLinear)
    ]
    assert [len(kernel.blocks) for kernel in linear] == [16 if expected > 1 else 9]


@pytest.mark.parametrize("operands", [[(33,)], [(1, 1)], [(2, 40, 33), (33,)], [(2, 1, 33), (40, 1)]])
@pytest.mark.parametrize("constants", [(1,), ()])
@pytest.mark.parametrize("threads", [1, 2])
def test_chain(operands: list[tuple[int, ...]], constants: tuple[int, ...], threads: int) -> None:
    inputs, given = [random(2, 40, 24), random(24, 33)], [random(*shape) for shape in operands]
    task = task_of(
        "MatMul", "opset1", inputs, constants=constants, chain=chain_of(len(given)), operands=given, threads=threads
    )
    check(task, inputs, given)


def test_chain_of_many_blocks() -> None:
    """Blocks of features and of tokens, several pieces in each."""
    for tokens, features in ((150, 3000), (2000, 500)):
        inputs, given = [random(1, tokens, 32), random(32, features)], [random(features), random(1, tokens, features)]
        for threads in (1, 2):
            task = task_of(
                "MatMul", "opset1", inputs, constants=(1,), chain=chain_of(2), operands=given, threads=threads
            )
            check(task, inputs, given)


@pytest.mark.parametrize(
    "orders", [((0, 2, 1), None), (None, (0, 2, 1)), ((0, 2, 1), (0, 2, 1)), ((1, 0, 2), (1, 2, 0)), (None, (2, 1, 0))]
)
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("constants", [(1,), ()])
def test_orders(orders: tuple[tuple[int, ...] | None, ...], batch: int, constants: tuple[int, ...]) -> None:
    """Features first and other orders, of which the task knows or not."""
    inputs, operand = [random(batch, 40, 24), random(24, 33)], random(batch, 40, 33)
    known = task_of("MatMul", "opset1", inputs, constants=constants, chain=chain_of(1), operands=[operand])
    expected = (inputs[0] @ inputs[1] + operand) ** 2
    x = in_order(inputs[0], orders[0])
    for task in (dataclasses.replace(known, input_orders=(orders[0], None, None), output_orders=(orders[1],)), known):
        for kernel in candidates(task):
            out = in_order(np.full(expected.shape, np.nan, np.float32), orders[1])
            run_into(kernel, task, [x, inputs[1], operand], out)
            np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-3, err_msg=kernel.algorithm)


def in_order(x: np.ndarray, order: tuple[int, ...] | None) -> np.ndarray:
    if order is None:
        return x
    return np.ascontiguousarray(x.transpose(order)).transpose(np.argsort(order))


def run_into(kernel: Kernel, task: Task, inputs: list[np.ndarray], out: np.ndarray) -> None:
    kernel.pack(ConstantStore())
    kernel.run(inputs, [out], KernelContext.of(kernel, 1))


@pytest.mark.parametrize("constants", [(1,), ()])
def test_strided_inputs(constants: tuple[int, ...]) -> None:
    """Where BLAS takes neither axis as it is, NumPy's own slow product is not used, but a copy."""
    wide = random(2, 80, 72)
    row = np.broadcast_to(wide[:, :1, :24], (2, 40, 24))
    for x in (wide[:, ::2, ::3], row):
        inputs = [x, random(24, 33)]
        check(task_of("MatMul", "opset1", inputs, constants=constants), inputs)


def test_double_precision() -> None:
    inputs = [random(2, 40, 24, dtype=np.dtype(np.float64)), random(24, 33, dtype=np.dtype(np.float64))]
    for constants in ((1,), ()):
        check(task_of("MatMul", "opset1", inputs, constants=constants), inputs)


@pytest.mark.parametrize(("a", "b"), [((0, 7), (7, 3)), ((5, 0), (0, 3)), ((5, 7), (7, 0)), ((0, 5, 7), (7, 3))])
def test_nothing_to_multiply(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    for constants in ((1,), (0,), ()):
        assert not candidates(task_of("MatMul", "opset1", [random(*a), random(*b)], constants=constants))


@pytest.mark.parametrize(
    ("tokens", "inner", "features", "expected"),
    [
        (4, 768, 768, NarrowLinear),
        (64, 768, 768, TransposedLinear),
        (32, 3072, 768, TransposedLinear),
        (1500, 384, 1536, DirectLinear),
    ],
)
def test_selected_by_cost(tokens: int, inner: int, features: int, expected: type[Kernel]) -> None:
    inputs = [np.broadcast_to(np.float32(0), (1, tokens, inner)), np.broadcast_to(np.float32(0), (features, inner))]
    found = candidates(task_of("MatMul", "opset1", inputs, {"transpose_b": True}, constants=(1,)))
    assert type(min(found, key=lambda kernel: kernel.cost)) is expected


def test_stored_weights_are_not_copied() -> None:
    """Weights whose features are contiguous are used as they are stored."""
    inputs = [random(1, 40, 24), random(33, 24)]
    task = task_of("MatMul", "opset1", inputs, {"transpose_b": True}, constants=(1,))
    for kernel in candidates(task):
        store = ConstantStore()
        kernel.pack(store)
        assert all(np.may_share_memory(made, inputs[1]) for _, made in store.made())
