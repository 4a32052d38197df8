"""Calls of the C library: what a native kernel is bound to, and a job of several calls.

A native kernel runs nothing itself. It binds its arrays: that gives calls, each a function of the library with a
structure of parameters and a number of blocks. The calls of consecutive steps are one job, which runs without Python in
between; irexec/native/source/run.c has the other side.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import sys
import threading
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from irexec.backend.copies import Copy, bind_copies
from irexec.backend.kernel import Kernel, KernelContext, NanHasNoLevelError, Order, Task
from irexec.backend.pool import Pool
from irexec.dtypes.elements import F32
from irexec.native.library import Library, library
from irexec.reference.limits import check_time

CACHE_LINE = 64

LOOK = 50_000_000
"""Nanoseconds after which the calling thread leaves the library, for interruptions and limits of time.

Often enough for people, and seldom enough where many threads of Python must wait for the interpreter's lock.
"""

COPIED = 1 << 16
"""Bytes of an array up to which a binding keeps a copy of it, which a call makes in each run; larger ones are copied by
NumPy, and the step is bound in each run."""

_Position = ctypes.c_int64 * 2


def loaded() -> Library:
    """The library; only kernels that were offered because there is one ask for it."""
    found = library()
    assert found is not None, "a native kernel was offered without the library"
    return found


@dataclass(eq=False)
class Call:
    """One function of the library.

    Attributes:
        function: its name.
        parameters: its structure, whose addresses are of arrays that ``Binding.kept`` holds.
        blocks: the number of blocks, on any thread and in any order.
        scratch: the address of the first thread's scratch, and the bytes from there to that of the next thread.
    """

    function: str
    parameters: ctypes.Structure
    blocks: int
    scratch: tuple[int, int]


@dataclass(eq=False)
class Binding:
    """The calls of one step for certain arrays.

    Attributes:
        scratch: as for Call.
        shared: the address of the scratch that all threads share.
        calls: in order; each is done before the next one begins.
        kept: the objects whose memory the parameters point to.
        repeatable: whether the calls compute the same from the arrays' next values: False after a copy.
        late: functions that complete the parameters for a run, given the inputs of the step and the variables.
        copies: arrays that the calls cannot write, each with the one that they write instead.
        results: the same for small arrays, to which a call copies.
        unknown: one integer, which a call sets to 1 where it should make a level of a NaN.
    """

    scratch: tuple[int, int] = (0, 0)
    shared: int = 0
    calls: list[Call] = field(default_factory=list)
    kept: list[Any] = field(default_factory=list)
    repeatable: bool = True
    late: list[Callable[[Sequence[Any]], None]] = field(default_factory=list)
    copies: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    results: list[Copy] = field(default_factory=list)
    unknown: np.ndarray = field(default_factory=lambda: np.zeros(1, np.int32))

    def call(self, function: str, parameters: ctypes.Structure, blocks: int) -> None:
        """Add a call."""
        if blocks:
            self.calls.append(Call(function, parameters, blocks, self.scratch))

    def address(self, array: np.ndarray) -> int:
        """The address of an array, which is kept alive."""
        self.kept.append(array)
        return array.ctypes.data

    def pointer(self, structure: ctypes.Structure | ctypes.Array) -> int:
        """The address of a structure, which is kept alive."""
        self.kept.append(structure)
        return ctypes.addressof(structure)

    def check(self) -> None:
        """Raise NanHasNoLevelError if a call met a NaN that it should make a level of."""
        if self.unknown[0]:
            self.unknown[0] = 0
            raise NanHasNoLevelError

    def in_order(self, array: np.ndarray, order: Order | None = None) -> np.ndarray:
        """The array if its memory is contiguous in an order of axes (None: C order), else a copy that is."""
        lying = array if order is None else array.transpose(order)
        return array if lying.flags.c_contiguous else self.copied(array, order)

    def copied(self, array: np.ndarray, order: Sequence[int] | None = None) -> np.ndarray:
        """A copy whose memory is contiguous in an order of axes, for the calls that are added from now on."""
        made = _in_order_of(array, order)
        if array.nbytes <= COPIED:
            bind_copies([Copy(array, made)], self)
        else:
            self.repeatable = False
            np.copyto(made, array)
        return made

    def result(self, array: np.ndarray, order: Sequence[int] | None = None) -> np.ndarray:
        """An array to write instead of an output, contiguous in an order of axes."""
        made = _in_order_of(array, order)
        if array.nbytes <= COPIED:
            self.results.append(Copy(made, array))
        else:
            self.repeatable = False
            self.copies.append((array, made))
        return made

    def aligned(self, array: np.ndarray | None) -> np.ndarray | None:
        """The array if its address and strides are multiples of its elements' alignment, else a copy."""
        if array is None or array.flags.aligned:
            return array
        self.repeatable = False
        return array.copy()

    def with_stride(self, array: np.ndarray, axis: int) -> np.ndarray:
        """The array if its elements along an axis follow each other in memory, else a copy in which they do."""
        if array.strides[axis] == array.itemsize or array.shape[axis] == 1:
            return array
        last = axis % array.ndim
        return self.copied(array, [*(other for other in range(array.ndim) if other != last), last])

    def read(
        self, array: np.ndarray, axes: Sequence[Sequence[int]], run: Sequence[int] = ()
    ) -> tuple[np.ndarray, tuple[int, ...]]:
        """An array and the stride of each group of its axes; a copy where a group has no single stride, or the elements
        along the axes of ``run`` do not follow each other in memory."""
        strides = merged_strides(array, axes)
        if strides is None or not is_run(array, run):
            array = self.copied(array, grouped_order(array.ndim, axes))
            strides = merged_strides(array, axes)
            assert strides is not None, "a group of axes is in order"
        return array, strides

    def written(
        self, array: np.ndarray, axes: Sequence[Sequence[int]], innermost: int | None = None
    ) -> tuple[np.ndarray, tuple[int, ...]]:
        """An output and the stride of each group of its axes; another array where a group has no single stride.

        Args:
            innermost: the axis whose elements must follow each other in memory, if there is one.
        """
        strides = merged_strides(array, axes)
        if strides is not None and (
            innermost is None or array.shape[innermost] == 1 or array.strides[innermost] == array.itemsize
        ):
            return array, strides
        order = grouped_order(array.ndim, axes)
        if innermost is not None:
            order = [*(axis for axis in order if axis != innermost), innermost]
        other = self.result(array, order)
        strides = merged_strides(other, axes)
        assert strides is not None, "a group of axes is in order"
        return other, strides


def _in_order_of(array: np.ndarray, order: Sequence[int] | None) -> np.ndarray:
    """An array of the same shape and type, not set, contiguous in an order of axes; None stands for C order."""
    if order is None:
        return np.empty(array.shape, array.dtype)
    return np.empty([array.shape[axis] for axis in order], array.dtype).transpose(np.argsort(order))


def grouped_order(rank: int, axes: Sequence[Sequence[int]]) -> list[int]:
    """The axes group by group; in front those that are in no group, of size 1."""
    grouped = [axis for group in axes for axis in group]
    return [*(axis for axis in range(rank) if axis not in grouped), *grouped]


def merged_strides(array: np.ndarray, axes: Sequence[Sequence[int]]) -> tuple[int, ...] | None:
    """The stride of each group of axes, in elements, as if it were one axis; 0 for one of size 1. None where a group is
    not one run."""
    found = []
    for group in axes:
        step, expected = 0, None
        for axis in reversed(group):
            if array.shape[axis] == 1:
                continue
            stride = array.strides[axis] // array.itemsize
            if expected is None:
                step = stride
            elif stride != expected:
                return None
            expected = stride * array.shape[axis]
        found.append(step)
    return tuple(found)


def is_run(array: np.ndarray, axes: Sequence[int]) -> bool:
    """Whether the elements along these axes, the last of them fastest, follow each other in memory.

    They may lie backwards, or be one that is repeated: a stride of 0, -1 or more is none of 1.
    """
    sizes = [array.shape[axis] for axis in axes]
    return math.prod(sizes) == 1 or merged_strides(array, (axes,)) == (1,)


def element_strides(array: np.ndarray) -> list[int]:
    """The strides of an array in elements."""
    return [stride // array.itemsize for stride in array.strides]


class NativeKernel(Kernel):
    """A kernel that binds its arrays to calls of the library."""

    splits = True

    @abstractmethod
    def bind(self, inputs: Sequence[Any], outputs: Sequence[Any], binding: Binding) -> None:
        """Add the calls that write the outputs; arrays are as for ``run``."""

    def bound(
        self, inputs: Sequence[Any], outputs: Sequence[Any], context: KernelContext, unknown: np.ndarray | None = None
    ) -> Binding:
        """The calls for these arrays; ``unknown`` is that of the binding, which several may share."""
        first, *others = (scratch.address for scratch in context.scratches)
        each = others[0] - first if others else 0
        assert others == [first + i * each for i in range(1, len(others) + 1)], "scratches are at equal distances"
        assert context.shared is not None, "a plan gives native kernels both kinds of scratch"
        binding = Binding((first, each), context.shared.address)
        if unknown is not None:
            binding.unknown = unknown
        self.bind([binding.aligned(x) for x in inputs], outputs, binding)
        if binding.results:
            bind_copies(binding.results, binding)
        binding.kept += (*inputs, *outputs)
        return binding

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], context: KernelContext) -> None:
        given = inputs[:-1] if self.reads_state else inputs
        binding = self.bound(given, outputs, context)
        for complete in binding.late:
            complete(inputs)
        Job([binding]).run(context.pool, alone=context.alone)
        binding.check()
        for output, computed in binding.copies:
            np.copyto(output, computed)


STAYS = sys.platform == "linux"
"""Whether helpers sleep in C, where the system can wake them; elsewhere they sleep in Python."""


class Crew:
    """Threads that help with jobs, started on demand and shared by all models of the process.

    They wait for jobs in C, without the interpreter's lock; irexec/native/source/run.c has the other side. A helper
    that comes late finds fewer blocks left, and nobody waits for one that has not come.
    """

    def __init__(self, library: Library) -> None:
        self._library = library
        self._called: list[threading.Event] = []
        self._lock = threading.Lock()
        self._refused = False
        library.clear_seats()

    def hire(self, job: int, calls: int, helpers: int, hired: int) -> None:
        """Make the calls of a job ready, and let up to ``helpers`` idle helpers work on them, as its threads 1, 2, ...

        Args:
            job: the address of the calls.
            hired: the address of words that irx_dismiss reads, one and two for each seat; the first one is 0.
        """
        served = len(self._called)
        if served < helpers and not self._refused:
            served = self._start(helpers)
        self._library.hire(job, calls, helpers, served, hired)
        if not STAYS:
            for called in self._called:
                called.set()

    def _start(self, helpers: int) -> int:
        """The number of helpers, after others were started if there are fewer."""
        with self._lock, contextlib.suppress(RuntimeError):
            self._refused = True
            while (seat := len(self._called)) < min(helpers, self._library.seats):
                called = threading.Event()
                name = f"irexec-c-{seat + 1}"
                threading.Thread(target=self._serve, args=(seat, called), name=name, daemon=True).start()
                self._called.append(called)
            self._refused = False
        return len(self._called)

    def _serve(self, seat: int, called: threading.Event) -> None:
        while True:
            self._library.serve(seat, STAYS)
            called.wait()
            called.clear()


_crew: Crew | None = None
_lock = threading.Lock()


def crew() -> Crew:
    """The helpers of this process."""
    global _crew
    if _crew is None:
        with _lock:
            _crew = _crew or Crew(loaded())
    return _crew


def _forget() -> None:
    """In the child after a fork, which has only the thread that forked."""
    global _crew, _lock
    _crew, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


class Job:
    """Calls of several steps, which one call of the library runs.

    Attributes:
        reached: the index of the binding that an exception of ``run`` ended, or of an earlier one.
    """

    def __init__(self, bindings: Sequence[Binding]) -> None:
        calls = [call for binding in bindings for call in binding.calls]
        self._owners = [i for i, binding in enumerate(bindings) for _ in binding.calls]
        self._library, self._bindings, self._count = loaded(), bindings, len(calls)
        words = self._library.call_words
        memory = np.zeros(len(calls) * words + CACHE_LINE // 8, np.int64)
        start = -memory.ctypes.data % CACHE_LINE // 8
        self._table = memory[start : start + len(calls) * words].reshape(-1, words)
        for row, call in zip(self._table, calls, strict=True):
            address = self._library.address(call.function)
            row[:5] = address, ctypes.addressof(call.parameters), call.blocks, *call.scratch
        self._address = self._table.ctypes.data
        self._hired = np.zeros(1 + 2 * self._library.seats, np.int64)
        self._hired_at = self._hired.ctypes.data
        self.reached = 0

    def run(self, pool: Pool, *, alone: bool = False) -> None:
        """Run all calls, on the threads of a pool or on the calling thread alone.

        Raises:
            RunTimeoutError: the run takes too long, which is looked at every LOOK nanoseconds.
        """
        self.reached = 0
        if alone or pool.threads == 1:
            position = _Position()
            while not self._library.run_alone(self._address, self._count, ctypes.addressof(position), LOOK):
                self._look(position)
        else:
            self._run_on(pool.threads)

    def _run_on(self, threads: int) -> None:
        library, position = self._library, _Position()
        try:
            crew().hire(self._address, self._count, threads - 1, self._hired_at)
            while not library.run(self._address, self._count, 0, ctypes.addressof(position), LOOK):
                self._look(position)
        except BaseException:
            library.stop(self._address, self._count)
            raise
        finally:
            library.dismiss(self._hired_at)

    def _look(self, position: ctypes.Array) -> None:
        self.reached = self._owners[position[0]]
        check_time()


def copied(copies: Sequence[Copy]) -> None:
    """Make copies whose results do not meet, at once and on the calling thread."""
    binding = Binding()
    bind_copies(copies, binding)
    Job([binding]).run(Pool(1))


def is_available(task: Task) -> bool:
    """Whether native kernels may compute the task: they are asked for, there is a library, and all floats are f32."""
    if not task.native or library() is None:
        return False
    return all(fact.element is F32 for fact in (*task.outputs, *task.operands))
