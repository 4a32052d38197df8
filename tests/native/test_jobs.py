"""Jobs of the C library whose kernels are functions of these tests: which blocks run, when, and with which scratch."""

from __future__ import annotations

import ctypes
import shutil
import sys
import threading
import time
from collections.abc import Callable
from ctypes import c_int64, c_void_p

import numpy as np
import pytest

from irexec.backend.calls import Crew, crew
from irexec.native.library import library
from tests.native_sanitizers import harness
from tests.support.paths import ROOT
from tests.support.processes import said

pytestmark = pytest.mark.skipif(library() is None, reason="the C kernels were not built")

_KERNEL = ctypes.CFUNCTYPE(None, c_void_p, c_int64, c_void_p)
Record = Callable[[int, int, int], None]
"""Is called with the index of the call, the block, and the address of the scratch."""


class _Job:
    """Calls of ``blocks`` blocks each, which tell ``record`` what runs; threads have scratch at 1000, 1064, ..."""

    def __init__(self, blocks: list[int], record: Record, threads: int = 1) -> None:
        found = library()
        assert found is not None
        self.library, self.count = found, len(blocks)
        memory = np.zeros(len(blocks) * found.call_words + 8, np.int64)
        start = -memory.ctypes.data % 64 // 8
        table = memory[start : start + len(blocks) * found.call_words].reshape(-1, found.call_words)
        self.kernels = [
            _KERNEL(lambda _, block, scratch, call=call: record(call, block, scratch)) for call in range(len(blocks))
        ]
        for row, kernel, count in zip(table, self.kernels, blocks, strict=True):
            row[:5] = ctypes.cast(kernel, c_void_p).value, 0, count, 1000, 64
        self.memory, self.address = memory, table.ctypes.data
        found.reset(self.address, self.count, threads)

    def run(self, thread: int, nanoseconds: int = -1) -> None:
        """Take part to the end, leaving the library as often as its limit says."""
        position = (c_int64 * 2)()
        while not self.library.run(self.address, self.count, thread, ctypes.addressof(position), nanoseconds):
            pass

    def run_alone(self, nanoseconds: int = -1) -> int:
        """Run all; returns how often the library was left."""
        position, times = (c_int64 * 2)(), 0
        while not self.library.run_alone(self.address, self.count, ctypes.addressof(position), nanoseconds):
            times += 1
        return times


BLOCKS = [3, 50, 1, 17, 8]
EACH_ONCE = [(call, block) for call, count in enumerate(BLOCKS) for block in range(count)]


def test_a_thread_that_looks_at_limits_of_time_runs_each_block_once_in_order() -> None:
    ran: list[tuple[int, int]] = []
    job = _Job(BLOCKS, lambda call, block, scratch: ran.append((call, block)))
    assert job.run_alone(0) >= len(EACH_ONCE) // 8
    assert ran == EACH_ONCE
    ran.clear()
    job.run(0, 0)
    assert ran == EACH_ONCE


@pytest.mark.parametrize(
    "threads, thread, order",
    [
        (1, 0, [0, 1, 2, 3, 4, 5, 6, 7]), (2, 1, [4, 5, 6, 7, 0, 1, 2, 3]), (3, 1, [3, 4, 5, 6, 7, 0, 1, 2]),
        (3, 2, [6, 7, 0, 1, 2, 3, 4, 5]), (64, 9, [1, 2, 3, 4, 5, 6, 7, 0]),
    ],
)  # fmt: skip
def test_a_thread_begins_with_its_share_and_continues_with_what_others_have_left(
    threads: int, thread: int, order: list[int]
) -> None:
    ran: list[int] = []
    job = _Job([len(order)], lambda call, block, scratch: ran.append(block), threads)
    job.run(thread)
    assert ran == order


class _Recorder:
    """The blocks that ran, and the scratch of each thread."""

    def __init__(self) -> None:
        self.ran: list[tuple[int, int]] = []
        self.scratch: dict[int, set[int]] = {}

    def __call__(self, call: int, block: int, scratch: int) -> None:
        self.ran.append((call, block))
        self.scratch.setdefault(threading.get_ident(), set()).add(scratch)
        time.sleep(0.001)


def _run_on_threads(job: _Job, count: int, nanoseconds: int = -1) -> None:
    threads = [threading.Thread(target=job.run, args=(i, nanoseconds)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("nanoseconds", [-1, 0])
def test_threads_run_each_block_once_with_scratch_of_their_own(nanoseconds: int) -> None:
    recorder = _Recorder()
    _run_on_threads(_Job(BLOCKS, recorder, 3), 3, nanoseconds)
    assert sorted(recorder.ran) == EACH_ONCE
    found = [scratch for one in recorder.scratch.values() for scratch in one]
    assert all(len(one) == 1 for one in recorder.scratch.values())
    assert len(set(found)) == len(found) and set(found) <= {1000, 1064, 1128}


def test_a_call_begins_when_all_blocks_of_the_call_before_are_done() -> None:
    done: list[int] = []
    late: list[tuple[int, int]] = []

    def record(call: int, block: int, scratch: int) -> None:
        if call and len(done) < 2 * call:
            late.append((call, block))
        time.sleep(0.02 if block else 0.001)
        done.append(call)

    _run_on_threads(_Job([2, 2, 2], record, 2), 2)
    assert not late and sorted(done) == [0, 0, 1, 1, 2, 2]


def test_a_stopped_job_begins_no_further_block() -> None:
    ran: list[tuple[int, int]] = []

    def record(call: int, block: int, scratch: int) -> None:
        ran.append((call, block))
        if (call, block) == (1, 5):
            job.library.stop(job.address, job.count)

    job = _Job(BLOCKS, record)
    job.run(0)
    assert ran == EACH_ONCE[: EACH_ONCE.index((1, 5)) + 1]
    job.library.reset(job.address, job.count, 1)
    ran.clear()
    job.run_alone()
    assert ran == EACH_ONCE


def _run_hired(job: _Job, helpers: int, helps: Crew) -> int:
    """A run with helpers; returns how many were given the job."""
    hired = np.zeros(1 + 2 * job.library.seats, np.int64)
    helps.hire(job.address, job.count, helpers, hired.ctypes.data)
    count = int(hired[0])
    job.run(0, 1_000_000)
    job.library.dismiss(hired.ctypes.data)
    assert hired[0] == 0
    return count


def test_helpers_run_each_block_once_with_scratch_of_their_own() -> None:
    recorder = _Recorder()
    job, helped = _Job(BLOCKS, recorder), 0
    for _ in range(5):
        recorder.ran.clear()
        helped += _run_hired(job, 2, crew())
        assert sorted(recorder.ran) == EACH_ONCE
    assert helped and len(recorder.scratch) == 3
    assert set().union(*recorder.scratch.values()) == {1000, 1064, 1128}


def test_a_job_that_is_over_does_not_wait_for_helpers_that_have_not_come() -> None:
    """The only helper is at work on another job."""
    begun, ends = threading.Event(), threading.Event()

    def record(call: int, block: int, scratch: int) -> None:
        if scratch != 1000:
            begun.set()
            ends.wait(60)
        elif block == 0:
            begun.wait(60)

    long, short = _Job([2], record), _Job(BLOCKS, lambda call, block, scratch: None)
    other = threading.Thread(target=_run_hired, args=(long, 1, crew()))
    other.start()
    assert begun.wait(60)
    before = len(crew()._called)
    assert _run_hired(short, before, crew()) < before
    ends.set()
    other.join()


def test_helpers_that_sleep_in_python_come_as_well() -> None:
    """As on systems without futexes."""
    code = """
from irexec.backend import calls
calls.STAYS = False
from tests.native import test_jobs
test_jobs.test_helpers_run_each_block_once_with_scratch_of_their_own()
"""
    said(ROOT, "-c", code)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="pthreads and a C compiler")
@pytest.mark.parametrize("helpers", [1, 3])
@pytest.mark.sampled(2)
def test_jobs_that_are_stopped_by_several_callers_end_and_run_one_call_at_a_time(helpers: int) -> None:
    """A caller that waits for its helper is woken although others wait for it; see tests/data/native/ends.c."""
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    source = ROOT / "tests" / "data" / "native" / "ends.c"
    assert harness(source, "-O2", "-std=gnu11", "-pthread", "-DSOURCES_HASH=0", f"-DHELPERS={helpers}") == 0
