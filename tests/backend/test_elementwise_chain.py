"""Chains of element-wise operations on whole tensors, of any shapes and strides."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from irexec.backend import elementwise_chain
from irexec.backend.chain import Chain, Epilogue, Instruction
from irexec.backend.elementwise_chain import ChainKernel, run_chain
from irexec.backend.kernel import KernelContext, Order
from irexec.backend.pool import Pool
from irexec.backend.registry import find_block_operation
from irexec.backend.scratch import Scratch
from irexec.dtypes.elements import element_of
from irexec.ir.facts import Fact
from irexec.testing.kernels import in_order, task_of

F32 = np.dtype(np.float32)
X = np.zeros((2, 2), np.float32)


def _instruction(type: str, version: str, sources: tuple[int, ...], **attributes: object) -> Instruction:
    operation = find_block_operation(task_of(type, version, [X] * len(sources), attributes))
    assert operation is not None
    return Instruction(
        type, operation.function, sources, F32, operation.in_place, operation.temporaries, operation.passes
    )


def bias_residual_gelu() -> Chain:
    """gelu(x + bias) * residual + x."""
    return Chain(
        3,
        F32,
        (
            _instruction("Add", "opset1", (0, 1)),
            _instruction("Gelu", "opset2", (3,)),
            _instruction("Multiply", "opset1", (4, 2)),
            _instruction("Add", "opset1", (5, 0)),
        ),
    )


def _expected(x: np.ndarray, bias: np.ndarray, residual: np.ndarray) -> np.ndarray:
    gelu = task_of("Gelu", "opset2", [X]).definition
    return np.asarray(gelu(np.asarray(x + bias)) * residual + x)


def _run(arrays: Sequence[np.ndarray], out: np.ndarray, threads: int = 1, order: Order | None = None) -> ChainKernel:
    facts = [Fact(element_of(a.dtype), a.shape) for a in arrays]
    kernel = ChainKernel(
        bias_residual_gelu(), facts, Fact(element_of(out.dtype), out.shape), threads, [order] * 3, order
    )
    with np.errstate(all="ignore"):
        for _ in range(2):
            out[...] = np.nan if not any(np.may_share_memory(a, out) for a in arrays) else out
            kernel.run(arrays, [out], KernelContext.of(kernel, threads))
            if any(np.may_share_memory(a, out) for a in arrays):
                break
    return kernel


SHAPES = [
    ((), (), ()),
    ((5,), (1,), (5,)),
    ((0, 3), (3,), (0, 3)),
    ((1, 1, 1), (1,), (1, 1, 1)),
    ((2, 3, 5, 7), (1, 3, 1, 1), (2, 3, 5, 7)),
    ((2, 3, 5, 7), (7,), (2, 1, 5, 7)),
    ((4, 16, 33, 20), (16, 1, 1), (4, 16, 1, 20)),
    ((3, 50_001), (1,), (50_001,)),
    ((1001, 32), (32,), (1001, 32)),
    ((1001, 33), (1, 33), (1001, 1)),
    ((70, 40, 30), (40, 30), (70, 1, 1)),
    ((2, 100_000), (2, 1), (2, 100_000)),
]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_any_shapes(shapes: tuple[tuple[int, ...], ...], threads: int) -> None:
    rng = np.random.default_rng(0)
    x, bias, residual = (np.asarray(rng.normal(size=shape), np.float32) for shape in shapes)
    expected = _expected(x, bias, residual)
    out = np.empty(x.shape, np.float32)
    _run([x, bias, residual], out, threads)
    np.testing.assert_allclose(out, expected, rtol=4e-6, atol=4e-6)


@pytest.mark.parametrize("which", [0, 2])
@pytest.mark.parametrize("shapes", SHAPES[4:5] + SHAPES[7:9], ids=str)
def test_over_the_memory_of_an_input(shapes: tuple[tuple[int, ...], ...], which: int) -> None:
    rng = np.random.default_rng(0)
    arrays = [np.asarray(rng.normal(size=shape), np.float32) for shape in (shapes[0], shapes[1], shapes[0])]
    expected = _expected(*arrays)
    kernel = _run(arrays, arrays[which])
    assert kernel.overwrites == (0, 2)
    np.testing.assert_allclose(arrays[which], expected, rtol=4e-6, atol=4e-6)


def test_over_the_memory_of_two_inputs() -> None:
    x, bias = np.random.default_rng(0).normal(size=(2, 60, 50)).astype(np.float32), np.ones(1, np.float32)
    expected = _expected(x, bias, x)
    _run([x, bias, x], x)
    np.testing.assert_allclose(x, expected, rtol=4e-6, atol=4e-6)


@pytest.mark.parametrize("order", [(0, 2, 3, 1), (0, 1, 2, 3), (3, 2, 1, 0)], ids=str)
@pytest.mark.parametrize("other", [(0, 2, 3, 1), (0, 1, 2, 3)], ids=str)
@pytest.mark.parametrize("shape", [(2, 24, 31, 17), (1, 16, 3, 2)], ids=str)
def test_any_orders(order: Order, other: Order, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)

    x, bias, residual = (np.asarray(rng.normal(size=size), np.float32) for size in (shape, (shape[1], 1, 1), shape))
    out = in_order(np.empty(shape, np.float32), order)
    kernel = _run([in_order(x, order), bias, in_order(residual, other)], out, order=order)
    np.testing.assert_allclose(out, _expected(x, bias, residual), rtol=4e-6, atol=4e-6)
    assert kernel.overwrites == (0, 2)


def test_strided_and_reversed_inputs() -> None:
    rng = np.random.default_rng(0)
    x = np.asarray(rng.normal(size=(3, 40, 90)), np.float32)[:, ::2, ::-1]
    residual = np.broadcast_to(np.asarray(rng.normal(size=(1, 20, 1)), np.float32), (3, 20, 90))
    out = np.empty((3, 20, 200), np.float32)[:, :, 5:95]
    _run([x, np.float32([0.5]), residual], out)
    np.testing.assert_allclose(out, _expected(x, np.float32([0.5]), residual), rtol=4e-6, atol=4e-6)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("rows", [900, 1000, 1100])
def test_many_blocks_of_cheap_operations(rows: int, threads: int) -> None:
    """A thread takes several blocks at once, the last one what is left."""
    x, y = (np.random.default_rng(i).normal(size=(rows, 601)).astype(np.float32) for i in range(2))
    chain = Chain(2, F32, (_instruction("Add", "opset1", (0, 1)), _instruction("Subtract", "opset1", (2, 0))))
    fact = Fact(element_of(F32), x.shape)
    kernel, out = ChainKernel(chain, [fact, fact], fact, threads), np.full(x.shape, np.nan, np.float32)
    kernel.run([x, y], [out], KernelContext.of(kernel, threads))
    np.testing.assert_array_equal(out, x + y - x)


def test_threads_do_not_change_the_result() -> None:
    rng = np.random.default_rng(0)
    arrays = [np.asarray(rng.normal(size=shape), np.float32) for shape in ((7, 96, 1009), (96, 1), (7, 96, 1009))]
    one, two = np.empty((7, 96, 1009), np.float32), np.empty((7, 96, 1009), np.float32)
    kernel = _run(arrays, one, 1)
    _run(arrays, two, 2)
    assert kernel.splits
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("shape", [(5,), (4, 300, 257), (64, 2000, 3)], ids=str)
def test_in_place_after_a_kernel(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    x, bias, residual = (np.asarray(rng.normal(size=size), np.float32) for size in (shape, shape[-1:], shape))
    expected = _expected(x, bias, residual)
    with np.errstate(all="ignore"):
        context = KernelContext(Pool(2), [Scratch.of_size(0), Scratch.of_size(0)])
        run_chain(bias_residual_gelu(), x, x, [bias, residual], context)
    np.testing.assert_allclose(x, expected, rtol=4e-6, atol=4e-6)


@pytest.mark.parametrize("width", [3, 32, 200])
def test_an_epilogue_on_short_rows(width: int) -> None:
    """Blocks of a kernel that works on rows of channels: a bias of the channels, a residual, a factor for each row."""
    rng = np.random.default_rng(0)
    x = np.asarray(rng.normal(size=(2, width, 5, 201)), np.float32)
    bias, residual = (
        np.asarray(rng.normal(size=(width, 1, 1)), np.float32),
        np.asarray(rng.normal(size=x.shape), np.float32),
    )
    channels_last = (0, 2, 3, 1)
    out = np.ascontiguousarray(x.transpose(channels_last))
    chain = bias_residual_gelu()
    epilogue = Epilogue(chain, x.shape, ((0, 2, 3), (1,)))
    bound = epilogue.bind([bias, residual])
    scratch = Scratch.of_size(epilogue.workspace(700 * width))
    rows = out.reshape(-1, width)
    for start in range(0, len(rows), 700):
        part = slice(start, min(start + 700, len(rows)))
        epilogue.run(scratch, rows[part], bound, (part, slice(0, width)))
    np.testing.assert_allclose(out, _expected(x, bias, residual).transpose(channels_last), rtol=4e-6, atol=4e-6)
    assert scratch.mark() == 0


def test_a_thousand_shapes_keep_a_bounded_number_of_layouts() -> None:
    for size in range(1, 1001):
        out = np.empty(size, np.float32)
        chain = Chain(1, F32, (_instruction("Relu", "opset1", (0,)),))
        run_chain(chain, out, out, [], KernelContext(Pool(1), [Scratch.of_size(0)]))
    info = elementwise_chain._layout.cache_info()
    assert info.currsize <= (info.maxsize or 0) <= 1000
