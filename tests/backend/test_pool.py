"""The pool of threads: every block once, exceptions, nested jobs, forks, systems without threads, the end of the process."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from irexec.backend import pool as pools
from irexec.backend.kernel import KernelContext
from irexec.backend.pool import Pool
from irexec.backend.scratch import Scratch


@pytest.fixture
def fresh_workers() -> Iterator[None]:
    before = pools._workers
    pools._forget_workers()
    yield
    pools._workers = before


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 100])
def test_every_block_is_done_once(threads: int, count: int) -> None:
    done: list[tuple[int, int]] = []
    Pool(threads).run(count, lambda block, worker: done.append((block, worker)))
    assert sorted(block for block, _ in done) == list(range(count))
    assert {worker for _, worker in done} <= set(range(threads))


def test_threads_work_at_once_and_each_has_an_index_of_its_own() -> None:
    together = threading.Barrier(3, timeout=30)
    workers: list[int] = []

    def block(index: int, worker: int) -> None:
        together.wait()
        workers.append(worker)

    Pool(3).run(3, block)
    assert sorted(workers) == [0, 1, 2]


def test_the_first_exception_of_a_block_reaches_the_caller_and_no_block_is_begun_after_it() -> None:
    begun: list[int] = []

    def block(index: int, worker: int) -> None:
        begun.append(index)
        if index == 3:
            raise ValueError("block 3")
        time.sleep(0.001)

    with pytest.raises(ValueError, match="block 3"):
        Pool(2).run(1000, block)
    assert len(begun) < 100
    count = len(begun)
    time.sleep(0.01)
    assert len(begun) == count


def test_an_exception_keeps_no_arrays_alive() -> None:
    array = np.zeros(1000)
    watched = weakref.ref(array)

    def block(index: int, worker: int, held: np.ndarray = array) -> None:
        if index == 5:
            raise ValueError

    gc.disable()
    try:
        with pytest.raises(ValueError):
            Pool(2).run(50, block)
        del block, array
        time.sleep(0.01)
        Pool(2).run(2, lambda index, worker: time.sleep(0.01))
        assert watched() is None
    finally:
        gc.enable()


def test_an_interrupted_caller_returns_only_when_no_block_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    under_way = threading.Event()
    finished: list[int] = []

    def block(index: int, worker: int) -> None:
        if threading.current_thread() is threading.main_thread():
            under_way.wait(30)
            raise KeyboardInterrupt
        under_way.set()
        time.sleep(0.05)
        finished.append(index)

    with pytest.raises(KeyboardInterrupt):
        Pool(2).run(10, block)
    assert len(finished) == 1


def test_a_block_may_start_a_job() -> None:
    done: list[tuple[int, int]] = []

    def block(outer: int, worker: int) -> None:
        Pool(2).run(4, lambda inner, _: done.append((outer, inner)))

    Pool(2).run(6, block)
    assert sorted(done) == [(outer, inner) for outer in range(6) for inner in range(4)]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_block_of_a_context_may_start_blocks_in_what_is_left_of_its_scratch(threads: int) -> None:
    context = KernelContext(Pool(threads), [Scratch.of_size(4096) for _ in range(threads)])
    sums = np.zeros((8, 5))

    def outer(i: int, scratch: Scratch) -> None:
        own = scratch.take((16,), np.dtype(np.float64))
        own[:] = i

        def inner(j: int, scratch: Scratch) -> None:
            more = scratch.take((16,), np.dtype(np.float64))
            more[:] = j
            sums[i, j] = (own * 100 + more).sum()

        context.parallel(5, inner)
        assert (own == i).all()

    context.parallel(8, outer)
    np.testing.assert_array_equal(sums, 16 * (100 * np.arange(8.0)[:, None] + np.arange(5.0)))


def test_many_callers_at_once() -> None:
    def work(seed: int) -> float:
        values = np.zeros(50)

        def block(index: int, worker: int) -> None:
            values[index] = seed + index

        for _ in range(20):
            values[:] = 0
            Pool(2).run(50, block)
            assert (values == seed + np.arange(50)).all()
        return float(values.sum())

    with ThreadPoolExecutor(4) as callers:
        assert list(callers.map(work, range(8))) == [50.0 * seed + 1225 for seed in range(8)]


def test_a_block_on_another_thread_does_not_warn() -> None:
    """NumPy keeps for each thread what it does about overflow."""
    together = threading.Barrier(2, timeout=30)

    def block(index: int, worker: int) -> None:
        together.wait()
        np.exp(np.full(10, 1000, np.float32))

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("error")
        Pool(2).run(2, block)


@pytest.mark.parametrize("started", [0, 1])
@pytest.mark.usefixtures("fresh_workers")
def test_where_threads_cannot_be_started_the_caller_does_all(started: int, monkeypatch: pytest.MonkeyPatch) -> None:
    start, asked = threading.Thread.start, []

    def refuse(thread: threading.Thread) -> None:
        asked.append(thread)
        if len(asked) > started:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    done: list[int] = []
    for _ in range(3):
        Pool(4).run(10, lambda block, worker: done.append(block))
    assert sorted(done) == sorted(list(range(10)) * 3)
    # It is not tried again for every job.
    assert len(asked) == started + 1


@pytest.mark.usefixtures("fresh_workers")
def test_pools_share_their_threads() -> None:
    before = threading.active_count()
    for threads in (2, 3, 4, 3, 2):
        Pool(threads).run(8, lambda block, worker: None)
    assert threading.active_count() - before == 3


_FORK = """
import os, sys, warnings
warnings.simplefilter("ignore", DeprecationWarning)
import numpy as np
from irexec.backend.pool import Pool
pool, found = Pool(2), []
pool.run(10, lambda block, worker: found.append(block))
child = os.fork()
if not child:
    import threading
    together = threading.Barrier(2, timeout=30)
    pool.run(2, lambda block, worker: together.wait())
    found.clear()
    pool.run(10, lambda block, worker: found.append(block))
    os._exit(0 if sorted(found) == list(range(10)) else 1)
status = os.waitpid(child, 0)[1]
pool.run(10, lambda block, worker: found.append(block))
sys.exit(status or len(found) != 20)
"""

_EXIT = """
import threading, time
import numpy as np
from irexec.backend.pool import Pool
ready = threading.Event()
def forever():
    pool, x = Pool(2), np.ones(100_000)
    while True:
        pool.run(8, lambda block, worker: np.exp(x))
        ready.set()
threading.Thread(target=forever, daemon=True).start()
ready.wait()
"""

_AT_EXIT = """
import atexit, threading
from irexec.backend.pool import Pool
def late():
    done = []
    Pool(2).run(4, lambda block, worker: done.append(block))
    print(sorted(done))
atexit.register(late)
"""


def _script(text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)


def test_a_child_after_a_fork_has_threads_of_its_own() -> None:
    done = _script(_FORK)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_process_ends_while_a_job_runs() -> None:
    done = _script(_EXIT)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_job_at_the_end_of_the_process() -> None:
    done = _script(_AT_EXIT)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[0, 1, 2, 3]\n", "")
