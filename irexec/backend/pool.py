"""A pool of threads that work on blocks.

The calling thread always takes part, so a job never waits for a worker that has no core: workers that are late find fewer
blocks left. Nothing spins: idle workers sleep on a lock. Where threads cannot be started (Pyodide), the caller does all.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable

Body = Callable[[int, int], object]


class _Job:
    """Blocks 0 .. count - 1, each done once by whoever comes first.

    Attributes:
        error: the first exception of a block; after it no further block is begun.
    """

    def __init__(self, count: int, body: Body) -> None:
        self._count, self._body = count, body
        self._next, self._active = 0, 0
        self._lock = threading.Lock()
        self._finished = threading.Event()
        self.error: BaseException | None = None

    def work(self, worker: int) -> None:
        """Take blocks until none is left."""
        with self._lock:
            if self._next >= self._count:
                return
            self._active += 1
        try:
            while (index := self._claim()) is not None:
                self._body(index, worker)
        except BaseException as error:
            with self._lock:
                self.error = self.error or error
                self._next = self._count
        finally:
            with self._lock:
                self._active -= 1
                if self._active == 0 and self._next >= self._count:
                    self._finished.set()

    def _claim(self) -> int | None:
        with self._lock:
            if self._next >= self._count:
                return None
            self._next += 1
            return self._next - 1

    def wait(self) -> None:
        """Until every block that was begun is done."""
        self._finished.wait()


class Pool:
    """Threads that are started when they are needed first, and again in the child after a fork.

    Args:
        threads: how many work on one job, the caller included.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._jobs: queue.SimpleQueue[_Job] | None = None
        self._lock = threading.Lock()
        self._process = 0

    def run(self, count: int, body: Body) -> None:
        """Call ``body(block, worker)`` for every block; worker 0 is the caller, and no two threads at once have one number.

        Raises:
            Exception: the first exception of a block, once no other block is under way.
        """
        helpers = min(self.threads, count) - 1
        jobs = self._started() if helpers > 0 else None
        if jobs is None:
            for index in range(count):
                body(index, 0)
            return
        job = _Job(count, body)
        for _ in range(helpers):
            jobs.put(job)
        job.work(0)
        job.wait()
        if job.error is not None:
            raise job.error

    def _started(self) -> queue.SimpleQueue[_Job] | None:
        """The queue of the workers, which are started if they are not running in this process; None if they cannot be."""
        if self._process == os.getpid():
            return self._jobs
        with self._lock:
            if self._process != os.getpid():
                self._jobs = _start(self.threads - 1)
                self._process = os.getpid()
        return self._jobs


def _start(workers: int) -> queue.SimpleQueue[_Job] | None:
    jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
    try:
        for number in range(1, workers + 1):
            threading.Thread(target=_serve, args=(jobs, number), name=f"irexec-{number}", daemon=True).start()
    except RuntimeError:
        return None
    return jobs


def _serve(jobs: queue.SimpleQueue[_Job], number: int) -> None:
    while True:
        jobs.get().work(number)


_POOLS: dict[int, Pool] = {}
_POOLS_LOCK = threading.Lock()


def pool_of(threads: int) -> Pool:
    """The process's pool of that many threads, shared by all sessions."""
    with _POOLS_LOCK:
        return _POOLS.setdefault(threads, Pool(threads))
