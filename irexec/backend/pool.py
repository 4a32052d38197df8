"""A pool of threads that work on blocks.

The calling thread always takes part, so a job never waits for a worker that has no core: workers that are late find
fewer blocks left. Nothing spins: idle workers sleep on a lock. Where threads cannot be started (Pyodide), the caller
does all.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
from collections.abc import Callable

from irexec.backend.threads import current_core, leave_core, set_for_thread

Body = Callable[[int, int], object]


class _Job:
    """Blocks 0 .. count - 1, each done once by whoever comes first.

    Attributes:
        error: the first exception of a block; after it no further block is begun.
    """

    def __init__(self, count: int, body: Body) -> None:
        self._count, self._body = count, body
        self._next, self._active, self._workers = 0, 0, 0
        self._lock = threading.Lock()
        # Held while helpers are at work and the caller waits for them.
        self._busy = threading.Lock()
        self._busy.acquire()
        self.error: BaseException | None = None
        self._core = current_core()
        self._caller = 0 if self._core is None else threading.get_native_id()

    def help(self) -> None:
        """Take part from another thread, on another core than the caller's."""
        if self._core is not None and self._core == current_core():
            leave_core(self._core, self._caller)
        self.work()

    def work(self) -> None:
        """Take blocks until none is left, as the next worker of this job; the first one is worker 0."""
        with self._lock:
            if self._next >= self._count:
                return
            worker = self._workers
            self._workers += 1
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
                    self._busy.release()

    def _claim(self) -> int | None:
        with self._lock:
            if self._next >= self._count:
                return None
            self._next += 1
            return self._next - 1

    def finish(self) -> None:
        """Return once no block is under way and none will be begun, however often the wait is interrupted.

        Raises:
            BaseException: an interruption, such as KeyboardInterrupt.
        """
        interrupted: BaseException | None = None
        while True:
            try:
                with self._lock:
                    if self._next < self._count:
                        self._next = self._count
                    if self._active == 0:
                        break
                self._busy.acquire()
                break
            except BaseException as error:
                interrupted = error
        # A late helper holds the job until it has seen that nothing is left, but not what the blocks refer to.
        del self._body
        if interrupted is not None:
            raise interrupted


class _Workers:
    """The threads of this process that help with jobs; there are as many as the largest pool asks for."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._count = 0
        self._refused = False

    def offer(self, job: _Job, helpers: int) -> None:
        """Let up to ``helpers`` threads take part in the job when they are idle."""
        for _ in range(min(helpers, self._started(helpers))):
            self._jobs.put(job)

    def _started(self, wanted: int) -> int:
        """Number of threads that exist, once ``wanted`` were asked for."""
        if self._count < wanted and not self._refused:
            with self._lock, contextlib.suppress(RuntimeError):
                self._refused = True
                while self._count < wanted:
                    threading.Thread(target=self._serve, name=f"irexec-{self._count + 1}", daemon=True).start()
                    self._count += 1
                self._refused = False
        return self._count

    def _serve(self) -> None:
        set_for_thread()
        while True:
            self._jobs.get().help()


_workers = _Workers()


def _forget_workers() -> None:
    """In the child after a fork, which has only the thread that forked."""
    global _workers
    _workers = _Workers()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_workers)


class Pool:
    """A number of threads that work on one job. All pools share the threads of the process, started on demand.

    Args:
        threads: number of threads per job, the caller included.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def run(self, count: int, body: Body) -> None:
        """Call ``body(block, worker)`` for every block; ``worker`` < ``threads`` is unique among running threads.

        Raises:
            BaseException: the first exception of a block, or what interrupted the caller, once no block is under way.
        """
        helpers = min(self.threads, count) - 1
        if helpers <= 0:
            for index in range(count):
                body(index, 0)
            return
        job = _Job(count, body)
        try:
            _workers.offer(job, helpers)
            job.work()
        finally:
            job.finish()
        if job.error is not None:
            # The traceback refers to the job; without this, arrays would live until the garbage collector runs.
            error, job.error = job.error, None
            try:
                raise error
            finally:
                del error
