"""IREXEC_CHECK_RECORDS: kernels that break the contract of recorded calls are caught, others are not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import irexec
from irexec.backend.kernel import Kernel, KernelContext
from irexec.backend.pool import Pool
from irexec.backend.recording import CHECK_RECORDS
from irexec.backend.reduction import Reduction
from irexec.backend.scratch import Scratch
from irexec.dtypes.elements import F32
from irexec.errors import InputError

Run = Callable[[np.ndarray, np.ndarray, KernelContext], None]


class OneOf(Kernel):
    """A kernel that computes ``run`` of its input and output."""

    def __init__(self, run: Run, *, joins: bool = False) -> None:
        super().__init__("under test", records=True, joins=joins)
        self._function = run

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], context: KernelContext) -> None:
        self._function(inputs[0], outputs[0], context)


def _double_in_blocks(x: np.ndarray, out: np.ndarray, context: KernelContext) -> None:
    def block(index: int, scratch: Scratch) -> None:
        copy = scratch.take(x[index].shape, x.dtype)
        scratch.do(np.copyto, copy, x[index])
        scratch.work(lambda scratch, row: np.add(row, row, out=out[index]), copy)

    context.parallel(len(x), block)


def _write_beside_the_scratch(x: np.ndarray, out: np.ndarray, context: KernelContext) -> None:
    context.parallel(len(x), lambda index, scratch: np.add(x[index], x[index], out=out[index]))


def _copy_beside_the_scratch(x: np.ndarray, out: np.ndarray, context: KernelContext) -> None:
    def block(index: int, scratch: Scratch) -> None:
        copy = scratch.take(x[index].shape, x.dtype)
        copy[...] = x[index]
        scratch.do(np.add, copy, copy, out=out[index])

    context.parallel(len(x), block)


def _finish_after_the_blocks(x: np.ndarray, out: np.ndarray, context: KernelContext) -> None:
    context.parallel(len(x), lambda index, scratch: scratch.do(np.copyto, out[index], x[index]))
    np.add(out, out, out=out)


def _ask_for_values(x: np.ndarray, out: np.ndarray, context: KernelContext) -> None:
    factor = 2 if x[0, 0] > 1 else 3
    context.parallel(len(x), lambda index, scratch: scratch.do(np.multiply, x[index], factor, out=out[index]))


def _finish_and_say_so(x: np.ndarray, out: np.ndarray, context: KernelContext) -> None:
    context.not_repeatable()
    _finish_after_the_blocks(x, out, context)


def _context(threads: int = 1) -> KernelContext:
    return KernelContext(Pool(threads), [Scratch.of_size(1024) for _ in range(threads)], fixed=True)


@pytest.fixture(autouse=True)
def _checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CHECK_RECORDS, "1")


@pytest.mark.parametrize(
    ("run", "good_runs"),
    [
        (_write_beside_the_scratch, 0),
        (_copy_beside_the_scratch, 0),
        (_finish_after_the_blocks, 0),
        (_ask_for_values, 1),
    ],
)
def test_a_kernel_that_breaks_the_contract_is_caught(run: Run, good_runs: int) -> None:
    kernel, context, x, out = OneOf(run), _context(), np.ones((3, 4), np.float32), np.empty((3, 4), np.float32)
    for number in range(good_runs):
        x[...] = number
        context.run(kernel, [x], [out])
    x[...] = 5
    with pytest.raises(
        AssertionError, match=r"^kernel 'under test': its recorded calls compute another output 0 than its run does$"
    ):
        context.run(kernel, [x], [out])


@pytest.mark.parametrize("run", [_double_in_blocks, _finish_and_say_so])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_kernel_that_keeps_the_contract_passes(run: Run, threads: int) -> None:
    kernel, context, x, out = OneOf(run), _context(threads), np.empty((3, 4), np.float32), np.empty((3, 4), np.float32)
    for number in range(3):
        x[...] = number
        context.run(kernel, [x], [out])
        assert (out == 2 * number).all()


def test_an_input_that_is_overwritten() -> None:
    kernel, context, x = OneOf(_double_in_blocks), _context(), np.empty((3, 4), np.float32)
    for number in range(3):
        x[...] = number
        context.run(kernel, [x], [x])
        assert (x == 2 * number).all()


def test_parts_of_an_output_that_are_in_position_stay() -> None:
    def second_half(x: np.ndarray, out: np.ndarray, context: KernelContext) -> None:
        context.parallel(1, lambda index, scratch: scratch.do(np.copyto, out[3:], x))

    kernel, context, x = OneOf(second_half, joins=True), _context(), np.ones((3, 4), np.float32)
    out = np.full((6, 4), 7, np.float32)
    for _ in range(3):
        context.run(kernel, [x], [out])
        assert (out[:3] == 7).all()
        assert (out[3:] == 1).all()


def test_models_run_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable counts when a plan is set up, and the error names the layer."""
    builder = irexec.Builder("m")
    x = builder.parameter(F32, (4, 4), "x")
    for axis, name in enumerate(("first", "middle")):
        x = builder.emit("ReduceSum", x, [axis], keep_dims=True, name=name)
    builder.result(x)
    model, feeds = irexec.compile_model(builder.model(), threads=1, native=False), [np.ones((4, 4), np.float32)]
    for _ in range(3):
        np.testing.assert_array_equal(model(feeds)[0], [[16]])
    original = Reduction.run

    def broken(self: Reduction, inputs: Any, outputs: Any, context: KernelContext) -> None:
        original(self, inputs, outputs, context)
        outputs[0][...] = 0

    monkeypatch.setattr(Reduction, "run", broken)
    with pytest.raises(AssertionError, match="recorded calls compute another output") as raised:
        irexec.compile_model(builder.model(), threads=1, native=False)(feeds)
    assert "'first'" in raised.value.__notes__[0]


def test_other_values_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CHECK_RECORDS, "on")
    with pytest.raises(InputError, match=r"^IREXEC_CHECK_RECORDS is 'on', expected 0 or 1$"):
        _context()
