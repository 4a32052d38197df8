"""Moving a thread to another core."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable

import pytest

from irexec.backend import threads
from irexec.backend.pool import Pool
from irexec.backend.threads import current_core, leave_core

needs_two_cores = pytest.mark.skipif(
    sys.platform != "linux" or current_core() is None or len(os.sched_getaffinity(0)) < 2,
    reason="needs Linux and two cores",
)


def _in_thread(work: Callable[[], None]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


@needs_two_cores
def test_a_thread_leaves_a_core_and_stays_off_it() -> None:
    found: list[object] = []

    def work() -> None:
        before, caller = os.sched_getaffinity(0), threading.main_thread().native_id
        core = min(before)
        os.sched_setaffinity(0, {core})
        found.append(current_core() == core)
        leave_core(core, caller or 0)
        found.append(current_core() != core)
        found.append(os.sched_getaffinity(0) == before - {core})

    _in_thread(work)
    assert found == [True, True, True]


@needs_two_cores
def test_a_thread_stays_where_there_is_no_other_core() -> None:
    found: list[object] = []

    def work() -> None:
        core = min(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {core})
        leave_core(core, threading.get_native_id())
        found.append(os.sched_getaffinity(0) == {core})

    _in_thread(work)
    assert found == [True]


def test_a_pool_works_where_the_system_tells_no_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_sched_getcpu", None)
    assert current_core() is None
    done: list[int] = []
    Pool(2).run(5, lambda index, worker: done.append(index))
    assert sorted(done) == [0, 1, 2, 3, 4]
