"""Requests that come at about the same time, run together."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import Executor
from typing import Any

from irexec.errors import IrexecError
from irexec.tools.serving.served_model import Arrays, ServedModel

Results = dict[str, Any]


class TooManyRequestsError(IrexecError):
    """More requests wait than the server holds."""


class Batcher:
    """Runs the requests of one model.

    A request waits until ``max_batch`` items of the same shapes and types have arrived or ``max_delay`` has passed, and
    for a free process; other requests join it until then. A batcher belongs to one event loop.

    Args:
        model: the model to run.
        executor: where it runs.
        slots: maximum number of simultaneous runs of all models.
        max_batch: items of a run; a request of more runs by itself.
        max_delay: seconds.
        max_waiting: requests.
        ran: called with the requests, items and seconds of each run.
    """

    def __init__(
        self, model: ServedModel, executor: Executor, slots: asyncio.Semaphore, *, max_batch: int, max_delay: float,
        max_waiting: int = 4096, ran: Callable[[int, int, float], None] = lambda requests, items, seconds: None,
    ) -> None:  # fmt: skip
        self._model, self._executor, self._slots, self._ran = model, executor, slots, ran
        self._max_batch, self._max_delay, self._max_waiting = max_batch, max_delay, max_waiting
        self._queues: dict[Hashable, _Queue] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.waiting = 0

    async def submit(self, inputs: Arrays) -> Results:
        """The results of a request.

        Args:
            inputs: as ``ServedModel.bound`` gives them.

        Raises:
            NodeError: the model refuses the values.
            TooManyRequestsError: too many requests wait.
        """
        if self.waiting >= self._max_waiting:
            raise TooManyRequestsError(f"the queue of model {self._model.name!r} is full ({self.waiting} requests)")
        request = _Request(inputs, self._model.items(inputs), asyncio.get_running_loop().create_future())
        key = self._model.key(inputs) if self._max_batch > 1 else None
        self.waiting += 1
        try:
            if key is None:
                self._start(self._run([request]))
            else:
                self._join(key, request)
            return await request.future
        finally:
            self.waiting -= 1

    def _join(self, key: Hashable, request: _Request) -> None:
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = _Queue()
            self._start(self._collect(key, queue))
        queue.requests.append(request)
        queue.items += request.items
        if queue.items >= self._max_batch:
            queue.full.set()

    async def _collect(self, key: Hashable, queue: _Queue) -> None:
        """Wait for enough requests of a key, and run them; as long as more come."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(queue.full.wait(), self._max_delay)
        while queue.requests:
            async with self._slots:
                await self._run_in_slot(queue.take(self._max_batch))
        del self._queues[key]

    async def _run(self, requests: list[_Request]) -> None:
        async with self._slots:
            await self._run_in_slot(requests)

    async def _run_in_slot(self, requests: list[_Request]) -> None:
        wanted = [request for request in requests if not request.future.cancelled()]
        if not wanted:
            return
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            results = await loop.run_in_executor(
                self._executor, self._model.run, [request.inputs for request in wanted]
            )
        except Exception as error:
            if len(wanted) == 1:
                wanted[0].fail(error)
                return
            # Each request runs by itself, so that only the faulty one fails.
            for request in wanted:
                await self._run_in_slot([request])
            return
        self._ran(len(wanted), sum(request.items for request in wanted), loop.time() - began)
        for request, result in zip(wanted, results, strict=True):
            request.succeed(result)

    def _start(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        # Else it may be collected while it waits.
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class _Request:
    def __init__(self, inputs: Arrays, items: int, future: asyncio.Future[Results]) -> None:
        self.inputs, self.items, self.future = inputs, items, future

    def succeed(self, results: Results) -> None:
        if not self.future.done():
            self.future.set_result(results)

    def fail(self, error: Exception) -> None:
        if not self.future.done():
            self.future.set_exception(error)


class _Queue:
    """Requests of one key, and whether there are enough for a run."""

    def __init__(self) -> None:
        self.requests: deque[_Request] = deque()
        self.items = 0
        self.full = asyncio.Event()

    def take(self, limit: int) -> list[_Request]:
        """The first requests, of at most so many items together, but at least one."""
        taken = [self.requests.popleft()]
        items = taken[0].items
        while self.requests and items + self.requests[0].items <= limit:
            items += self.requests[0].items
            taken.append(self.requests.popleft())
        self.items -= items
        return taken
