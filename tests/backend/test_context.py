"""A step runs on one thread where several do not pay, and the blocks are the same."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from irexec.backend.kernel import Kernel, KernelContext
from irexec.backend.pool import Pool
from irexec.backend.recording import CHECK_RECORDS
from irexec.backend.scratch import Scratch
from irexec.backend.threads import FIRST_RUNS, RUNS_UNTIL_RETRIED, TRIAL_RUNS


class Timed(Kernel):
    """A run takes 2 s by the clock, and ``seconds`` on one thread; ``alone`` says for each run whether it was on one."""

    def __init__(self, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__("takes time", splits=True)
        self._seconds, self._now = seconds, 0.0
        self.alone: list[bool] = []
        monkeypatch.setattr("irexec.backend.threads.time", SimpleNamespace(perf_counter=lambda: self._now))

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], context: KernelContext) -> None:
        self.alone.append(context.alone)
        self._now += self._seconds if context.alone else 2.0


def _two_threads() -> KernelContext:
    return KernelContext(Pool(2), [Scratch.of_size(64) for _ in range(2)])


def _run(context: KernelContext, kernel: Kernel, times: int) -> None:
    for _ in range(times):
        context.run(kernel, [], [])


@pytest.mark.parametrize(
    ("seconds", "alone"), [(1.5, True), (1.9, False), (2.5, False)], ids=["helpers hinder", "in doubt", "helpers help"]
)
def test_the_faster_way_stays(seconds: float, alone: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    context = _two_threads()
    kernel = Timed(seconds, monkeypatch)
    trials = TRIAL_RUNS if alone else FIRST_RUNS
    _run(context, kernel, trials + 3)
    assert kernel.alone == [False, True] * (trials // 2) + [alone] * 3


def test_both_ways_are_tried_again_after_many_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cores of the machine were busy during the first trials."""
    context = _two_threads()
    kernel = Timed(1.5, monkeypatch)
    _run(context, kernel, RUNS_UNTIL_RETRIED + 1)
    assert kernel.alone[TRIAL_RUNS:] == [True] * (RUNS_UNTIL_RETRIED + 1 - TRIAL_RUNS)
    kernel.alone.clear()
    kernel._seconds = 2.5
    _run(context, kernel, FIRST_RUNS + 3)
    assert kernel.alone == [False, True] * (FIRST_RUNS // 2) + [False] * 3


def test_a_step_on_one_thread_has_no_helpers(monkeypatch: pytest.MonkeyPatch) -> None:
    context = _two_threads()
    kernel = Timed(1.5, monkeypatch)
    _run(context, kernel, TRIAL_RUNS)
    threads: list[threading.Thread] = []
    context.parallel(100, lambda index, scratch: threads.append(threading.current_thread()))
    assert threads == [threading.main_thread()] * 100


class Doubling(Kernel):
    """Each block doubles a row; ``blocks`` counts how often the interpreter went through one."""

    def __init__(self, rows: int, repeatable: bool = True) -> None:
        super().__init__("doubles", records=True)
        self._rows, self._repeatable, self.blocks = rows, repeatable, 0

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], context: KernelContext) -> None:
        if not self._repeatable:
            context.not_repeatable()

        def block(index: int, scratch: Scratch) -> None:
            self.blocks += 1
            copy = scratch.take(inputs[0][index].shape, inputs[0].dtype)
            scratch.do(np.copyto, copy, inputs[0][index])
            scratch.work(lambda scratch, row: np.add(row, copy, out=outputs[0][index]), copy)

        context.parallel(self._rows, block)


@pytest.mark.parametrize(
    ("rows", "fixed", "repeatable", "calls"),
    [(3, True, True, 3), (3, False, True, 9), (3, True, False, 9), (17, True, True, 51)],
    ids=["recorded", "arrays change", "copies", "many blocks"],
)
def test_calls_of_blocks_are_recorded(
    rows: int, fixed: bool, repeatable: bool, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A checked record runs the kernel every time.
    monkeypatch.delenv(CHECK_RECORDS, raising=False)
    context = KernelContext(Pool(1), [Scratch.of_size(1024)], fixed=fixed)
    kernel, data, out = Doubling(rows, repeatable), np.zeros((rows, 2), np.float32), np.empty((rows, 2), np.float32)
    for number in range(3):
        data[...] = number
        context.run(kernel, [data], [out])
        assert (out == 2 * number).all()
    assert kernel.blocks == calls


def test_a_run_that_fails_records_nothing() -> None:
    context = KernelContext(Pool(1), [Scratch.of_size(1024)], fixed=True)
    kernel, data, out = Doubling(2), np.ones((1, 2), np.float32), np.empty((2, 2), np.float32)
    for _ in range(2):
        with pytest.raises(IndexError):
            context.run(kernel, [data], [out])
    assert kernel.blocks == 4


def test_the_scratch_of_a_kernel_in_a_block_is_that_of_the_block() -> None:
    """Another thread may be working on the first one."""
    own = [Scratch.of_size(64) for _ in range(2)]
    context = KernelContext(Pool(2), own)
    both, taken, given = threading.Barrier(2, timeout=30), [0, 0], list[Scratch]()

    def block(index: int, scratch: Scratch) -> None:
        both.wait()
        scratch.take((16,), np.dtype(np.uint8))
        assert context.scratch() is scratch
        taken[index] = scratch.mark()
        given.append(scratch)

    context.parallel(2, block)
    assert taken == [64, 64]
    assert {id(scratch) for scratch in given} == {id(scratch) for scratch in own}
    assert context.scratch() is own[0]
    assert own[0].mark() == 0
