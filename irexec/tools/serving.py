"""Models that answer requests; requests of about the same time run as one batch.

No module of this package knows a protocol or a server; irexec.integrations has both.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from irexec.analysis.model import Port, expected, find_port
from irexec.errors import InputError, IrexecError
from irexec.messages import silent
from irexec.runtime.compiled_model import CompiledModel
from irexec.runtime.inputs import checked
from irexec.tools.batch.predictor import PredictorOptions, described


@dataclass
class _Duration:
    """A number of events and their nanoseconds."""

    count: int = 0
    ns: int = 0

    def add(self, ns: int, count: int = 1) -> None:
        self.count += count
        self.ns += ns

    def as_dict(self) -> dict[str, int]:
        return {"count": self.count, "ns": self.ns}


@dataclass
class ModelStatistics:
    """Counts and times of one model. All calls come from one event loop."""

    success: _Duration = field(default_factory=_Duration)
    fail: _Duration = field(default_factory=_Duration)
    compute: _Duration = field(default_factory=_Duration)
    items: int = 0
    runs: int = 0
    last: int = 0
    batches: dict[int, _Duration] = field(default_factory=dict)

    @contextmanager
    def request(self) -> Iterator[None]:
        """Count a request and the time from its arrival to its answer: a failure after an exception, else a success."""
        start = time.perf_counter_ns()
        self.last = time.time_ns() // 1_000_000
        try:
            yield
        except BaseException:
            self.fail.add(time.perf_counter_ns() - start)
            raise
        self.success.add(time.perf_counter_ns() - start)

    def ran(self, requests: int, items: int, seconds: float) -> None:
        """Counts a run of several requests, whose seconds are shared between them."""
        ns = round(seconds * 1e9)
        self.runs += 1
        self.items += items
        self.compute.add(ns, requests)
        self.batches.setdefault(items, _Duration()).add(ns)

    def as_dict(self, name: str, version: str) -> dict[str, Any]:
        """The statistics in the form of Triton's extension; queue time is the time of successes minus computing."""

        def computing(one: _Duration) -> dict[str, Any]:
            nothing = _Duration().as_dict()
            return {"compute_input": nothing, "compute_infer": one.as_dict(), "compute_output": nothing}

        queue = _Duration(self.success.count, max(0, self.success.ns - self.compute.ns))
        return {
            "name": name,
            "version": version,
            "last_inference": self.last,
            "inference_count": self.items,
            "execution_count": self.runs,
            "inference_stats": {
                "success": self.success.as_dict(),
                "fail": self.fail.as_dict(),
                "queue": queue.as_dict(),
                **computing(self.compute),
            },
            "batch_stats": [{"batch_size": size, **computing(one)} for size, one in sorted(self.batches.items())],
        }


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
        max_waiting: int = 4096, ran: Callable[[int, int, float], None] = silent,
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
            inputs = [request.inputs for request in wanted]
            results = await loop.run_in_executor(self._executor, self._model.run, inputs)
        except Exception as error:
            if len(wanted) == 1:
                if not wanted[0].future.done():
                    wanted[0].future.set_exception(error)
                return
            # Each request runs by itself, so that only the faulty one fails.
            for request in wanted:
                await self._run_in_slot([request])
            return
        self._ran(len(wanted), sum(request.items for request in wanted), loop.time() - began)
        for request, result in zip(wanted, results, strict=True):
            if not request.future.done():
                request.future.set_result(result)

    def _start(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        # Else it may be collected while it waits.
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


@dataclass(frozen=True, eq=False)
class _Request:
    inputs: Arrays
    items: int
    future: asyncio.Future[Results]


class _Queue:
    """Requests of one key, and whether there are enough for a run."""

    def __init__(self) -> None:
        self.requests: deque[_Request] = deque()
        self.items = 0
        self.full = asyncio.Event()

    def take(self, limit: int) -> list[_Request]:
        """The first requests, of at most ``limit`` items together, but at least one."""
        taken = [self.requests.popleft()]
        items = taken[0].items
        while self.requests and items + self.requests[0].items <= limit:
            items += self.requests[0].items
            taken.append(self.requests.popleft())
        self.items -= items
        return taken


Arrays = Mapping[str, np.ndarray]
Key = tuple[tuple[tuple[int, ...], str], ...]
"""Shapes without axis 0 and types of the inputs: requests of the same key can be put together."""


class ServedModel:
    """A compiled model under a name.

    Args:
        name: of the model in requests.
        path: an .xml or .onnx.
        options: how it is read and run.
        timeout: seconds that a run may take; None for any.

    Attributes:
        inputs, outputs: its ports.

    Raises:
        ModelError, NodeError, UnsupportedError: the model cannot be read or run.
        InputError: it has variables, whose state requests would share.
    """

    def __init__(self, name: str, path: str, options: PredictorOptions, timeout: float | None = None) -> None:
        self.name, self.path, self._timeout = name, path, timeout
        found = described(path, options)
        self._compiled = CompiledModel(
            found.model,
            threads=options.threads,
            weights=options.weights,
            precision=options.precision,
            max_memory=options.max_memory,
        )
        variables = [node.name for node in found.model.nodes if node.type == "Assign"]
        if variables:
            raise InputError(
                f"{path}: has variables, such as that of layer {variables[0]!r}, whose state requests would share"
            )
        self._batching = found.batching
        self.inputs: list[Port] = self._compiled.inputs
        self.outputs: list[Port] = self._compiled.outputs

    @property
    def takes_batches(self) -> bool:
        """Whether axis 0 of all inputs and results counts items, in any number."""
        return self._batching.has_axis and self._batching.fixed is None and self._batching.is_divisible

    def bound(self, inputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """The arrays of a request, checked, by the names of the model's inputs.

        Raises:
            InputError: a name, shape or type does not fit the model.
        """
        given = {find_port(self.inputs, name).name: array for name, array in inputs.items()}
        missing = [port.name for port in self.inputs if port.name not in given]
        if missing:
            raise InputError(
                f"no value is given for {', '.join(map(repr, missing))}: the model has {expected(self.inputs)}"
            )
        if len(given) < len(inputs):
            raise InputError(f"an input is given twice: {', '.join(inputs)}")
        arrays = {port.name: checked(port, given[port.name]) for port in self.inputs}
        sizes = {array.shape[0] for array in arrays.values() if array.ndim}
        if self.takes_batches and len(sizes) > 1:
            found = ", ".join(map(str, sorted(sizes)))
            raise InputError(f"axis 0 of the inputs is {found}, expected the same number of items in each")
        return arrays

    def key(self, inputs: Arrays) -> Key | None:
        """Shapes and types of the inputs; equal keys may run together. None for a request that runs by itself."""
        # A scalar is the same for all items of a run.
        if not self.takes_batches or any(array.ndim == 0 for array in inputs.values()):
            return None
        return tuple((inputs[port.name].shape[1:], inputs[port.name].dtype.str) for port in self.inputs)

    @staticmethod
    def items(inputs: Arrays) -> int:
        """The number of items of a request."""
        return next((array.shape[0] for array in inputs.values() if array.ndim), 1)

    def _results(self, inputs: Arrays) -> dict[str, np.ndarray]:
        return dict(self._compiled.session().run(inputs, timeout=self._timeout))

    def run(self, requests: Sequence[Arrays]) -> list[dict[str, np.ndarray]]:
        """The results of each request, by one run for all of them.

        Raises:
            NodeError: the model refuses the values.
            RunTimeoutError: the run takes too long.
        """
        if len(requests) == 1:
            return [self._results(requests[0])]
        joined = {port.name: np.concatenate([request[port.name] for request in requests]) for port in self.inputs}
        ends = np.cumsum([self.items(request) for request in requests])[:-1]
        results = {name: np.split(array, ends) for name, array in self._results(joined).items()}
        return [{name: parts[i] for name, parts in results.items()} for i in range(len(requests))]
