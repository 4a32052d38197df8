"""What a fast kernel is asked (Task), what it declares (Kernel), and what it is given when it runs (Context)."""

from __future__ import annotations

import math
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from irexec.backend.chain import Chain, Epilogue
from irexec.backend.constants import ConstantSource, ConstantStore
from irexec.backend.pool import Pool
from irexec.backend.scratch import Call, Scratch
from irexec.ir.facts import Fact
from irexec.reference.limits import check_time
from irexec.schema.opdef import OpDef

Order = tuple[int, ...]
"""The axes of a tensor from the outermost to the innermost in memory; (0, 1, 2, ...) is C order."""

Block = Callable[[int, Scratch], object]


@dataclass(frozen=True, eq=False)
class Task:
    """One operation to be computed, with all that is known of it. Element types and shapes are known, every size an int.

    Attributes:
        definition: the operation.
        attributes: typed, by the reference kernel's parameter.
        inputs: facts of the operation's own inputs; an input that is left out has Fact(None, None).
        constants: for each of them the constant that it is, or None.
        outputs: the facts of the outputs; with a chain, the first one is what the chain gives.
        wanted: for each output whether it is read.
        chain: element-wise operations on the first output (its register 0), or None.
        operands: facts of the chain's further inputs; they follow ``inputs`` when a kernel runs.
        input_orders, output_orders: how inputs and outputs lie in memory.
        threads: how many threads work on blocks.
        unpack: whether compressed weights may be held unpacked.
    """

    definition: OpDef
    attributes: Mapping[str, Any]
    inputs: tuple[Fact, ...]
    constants: tuple[ConstantSource | None, ...]
    outputs: tuple[Fact, ...]
    wanted: tuple[bool, ...]
    chain: Chain | None = None
    operands: tuple[Fact, ...] = ()
    input_orders: tuple[Order | None, ...] = ()
    output_orders: tuple[Order | None, ...] = ()
    threads: int = 1
    unpack: bool = True

    def shape(self, index: int) -> tuple[int, ...]:
        """The shape of an own input."""
        return self.inputs[index].static_shape

    def output_shape(self, index: int = 0) -> tuple[int, ...]:
        """The shape of an output."""
        return self.outputs[index].static_shape

    def dtype(self, index: int) -> np.dtype | None:
        """The type of an own input's arrays; None for an input that is left out."""
        element = self.inputs[index].element
        return None if element is None else np.dtype(element.carrier)

    @property
    def kind(self) -> str:
        """NumPy's letter for the kind of type of input 0: "f", "i", "u" or "b"."""
        return self.inputs[0].dtype.kind

    @property
    def output_bytes(self) -> int:
        """Bytes of all outputs whose shapes and types are known."""
        return sum(fact.known_nbytes for fact in self.outputs)

    def has_input(self, index: int) -> bool:
        """Whether the input is present."""
        return index < len(self.inputs) and self.inputs[index].element is not None


class _Running(threading.local):
    """The scratch of the block that this thread is working on."""

    scratch: Scratch | None = None


_running = _Running()

TRIALS = 4
"""Runs of a step on all threads and on one, in turns, before one of them is settled on."""

SETTLED = 200
"""Runs after which they are tried again: what else the machine did may have decided the first time."""

_SLOWER = 0.93
"""One thread is chosen if its time is at most this fraction of that of all: a core that was busy during the trials has the same effect."""


def _in_turn(count: int, block: Block, scratch: Scratch) -> None:
    """Blocks one after another; the run's time is looked at between them."""
    outer, mark = _running.scratch, scratch.mark()
    _running.scratch = scratch
    try:
        for index in range(count):
            if index:
                check_time()
            block(index, scratch)
            scratch.release(mark)
    finally:
        _running.scratch = outer


_RECORDED = 16
"""Blocks of a step up to which their calls are recorded: what the interpreter does counts where there are few, and a record of many
takes memory."""


@dataclass(eq=False)
class Context:
    """What a kernel works with during a run: threads and workspace. A step of a plan on an arena has its own.

    Whether threads pay depends on how a kernel spends its time: a product of a millisecond runs beside another one, but where
    two threads call many short NumPy functions, they wait for each other's interpreter lock. So the first runs of a step
    try both, and the faster way stays. Results are the same: the blocks are.

    Attributes:
        pool: the threads.
        scratches: one for each thread.
        fixed: whether every run has the same arrays, so that calls can be recorded.
    """

    pool: Pool
    scratches: Sequence[Scratch]
    fixed: bool = False
    _alone: bool = False
    _trials: int = 0
    _fastest: list[float] = field(default_factory=lambda: [math.inf, math.inf])
    _sections: list[_Section] = field(default_factory=list)
    _is_recording: bool = False
    _is_recorded: bool = False

    def run(self, kernel: Kernel, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Run a kernel, and learn from its time whether several threads pay."""
        if len(self.scratches) == 1 or not kernel.splits:
            self._run(kernel, inputs, outputs)
            return
        if self._trials >= TRIALS:
            self._trials += 1
            if self._trials > SETTLED:
                self._trials, self._fastest = 0, [math.inf, math.inf]
            self._run(kernel, inputs, outputs)
            return
        self._alone = self._trials % 2 == 1
        start = time.perf_counter()
        self._run(kernel, inputs, outputs)
        self._fastest[self._alone] = min(self._fastest[self._alone], time.perf_counter() - start)
        self._trials += 1
        if self._trials == TRIALS:
            self._alone = self._fastest[True] < _SLOWER * self._fastest[False]

    def _run(self, kernel: Kernel, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        if self._is_recorded:
            for section in self._sections:
                self._work(section.count, section.run)
            return
        if not (self.fixed and kernel.records) or _running.scratch is not None:
            kernel.run(inputs, outputs, self)
            return
        self._is_recording = True
        try:
            kernel.run(inputs, outputs, self)
            self._is_recorded = self._is_recording
        finally:
            self._is_recording = False
            if not self._is_recorded:
                self._sections.clear()

    def not_repeatable(self) -> None:
        """What a kernel does in this run is more than its blocks, so that they are not recorded."""
        self._is_recording = self.fixed = False

    def bind(self, epilogue: Epilogue, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The operands of an epilogue with the axes of its blocks; see ``Epilogue.bind``."""
        return self.views(operands, epilogue.bind(operands))

    def views(self, arrays: Sequence[np.ndarray], made: list[np.ndarray]) -> list[np.ndarray]:
        """``made``, one for each of the arrays; if one of them is a copy instead of a view, the blocks are not recorded."""
        if not all(map(np.may_share_memory, arrays, made)):
            self.not_repeatable()
        return made

    def view(self, array: np.ndarray, made: np.ndarray) -> np.ndarray:
        """``made``; if it is a copy of the array instead of a view, the blocks are not recorded."""
        return self.views([array], [made])[0]

    def parallel(self, count: int, block: Block) -> None:
        """Call ``block(index, scratch)`` for every index below ``count``, on any thread, in any order.

        The scratch is empty at the beginning of a block. A block that calls this itself computes the blocks in it one after another,
        in what is left of its own scratch. Raises the first exception of a block.
        """
        outer = _running.scratch
        if outer is not None:
            _in_turn(count, block, outer)
            return
        if self._is_recording:
            if count <= _RECORDED:
                section = _Section(count, block)
                self._sections.append(section)
                block = section.run
            else:
                self.not_repeatable()
        self._work(count, block)

    def _work(self, count: int, block: Block) -> None:
        if count == 1 or len(self.scratches) == 1 or self._alone:
            self.scratches[0].clear()
            _in_turn(count, block, self.scratches[0])
        else:

            def work(index: int, worker: int) -> None:
                # Of the thread that called, which always takes part; the others know no limit.
                check_time()
                scratch = self.scratches[worker]
                scratch.clear()
                _in_turn(1, lambda _, scratch: block(index, scratch), scratch)

            self.pool.run(count, work)

    def scratch(self) -> Scratch:
        """The calling thread's scratch: for a kernel that works in one piece. In a block it is what is left of that of the block."""
        outer = _running.scratch
        if outer is not None:
            return outer
        self.scratches[0].clear()
        return self.scratches[0]


class _Section:
    """The blocks of one ``parallel`` of a kernel, with their calls as recorded on each thread's scratch."""

    def __init__(self, count: int, block: Block) -> None:
        self.count, self._block = count, block
        self._calls: dict[tuple[int, int], list[Call]] = {}

    def run(self, index: int, scratch: Scratch) -> None:
        """Run a block."""
        calls = self._calls.get((index, id(scratch)))
        if calls is None:
            self._calls[index, id(scratch)] = scratch.record(lambda scratch: self._block(index, scratch))
        else:
            for call in calls:
                call()


class Candidate(Protocol):
    """A kernel that could compute a task, as the selector compares it with others; only the cheapest one is constructed.

    A kernel whose estimate needs all that its constructor does is its own candidate; others have an Estimate.
    """

    @property
    def cost(self) -> float:
        """Estimated nanoseconds on one thread."""

    @property
    def runs_chain(self) -> bool:
        """Whether the kernel also computes the task's chain."""

    @property
    def joins(self) -> bool:
        """See Kernel."""

    def construct(self) -> Kernel:
        """The kernel."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """The cost of a kernel that is not constructed yet, and that runs chains."""

    cost: float
    make: Callable[[], Kernel]
    runs_chain: bool = True
    joins: bool = False

    def construct(self) -> Kernel:
        """The kernel."""
        return self.make()


@dataclass(eq=False)
class Kernel(ABC):
    """One way to compute a task. A subclass sets the fields in its constructor, and computes in ``run``.

    Attributes:
        algorithm: for ``inspect --plan``, such as "Winograd F(4x4, 3x3)".
        cost: estimated nanoseconds on one thread; the selector takes the cheapest candidate.
        reads: the indexes of the own inputs that ``run`` reads; None for all. Others may be None when it runs, and a constant
            that no kernel reads is released. The operands of the chain are always read.
        runs_chain: whether ``run`` also computes the task's chain. Otherwise the chain is computed in a step of its own.
        overwrites: own inputs (or operands, counted on) whose memory the first output may take, if they have its shape, type
            and order.
        joins: whether the output is the inputs side by side, of which one may be None: it is in its position already.
        workspace: bytes of scratch that a thread needs.
        splits: whether the work is cut into blocks for the pool.
        records: whether its blocks touch arrays only by the functions that they give to ``Scratch.do`` and ``Scratch.work``, and
            ``run`` does nothing else to them (or says so by ``Context.not_repeatable``).
    """

    algorithm: str = ""
    cost: float = 0.0
    reads: tuple[int, ...] | None = None
    runs_chain: bool = False
    overwrites: tuple[int, ...] = ()
    joins: bool = False
    workspace: int = 0
    splits: bool = False
    records: bool = False

    def construct(self) -> Kernel:
        """The kernel itself."""
        return self

    def pack(self, store: ConstantStore) -> None:  # noqa: B027  a kernel without constants has nothing to pack
        """Make what is needed of the constants, once for each compiled model. Called after the kernel was chosen, before it runs."""

    @abstractmethod
    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], context: Context) -> None:
        """Write the outputs.

        Args:
            inputs: an array for each own input and operand, None where it is left out or not read. Strides are any.
            outputs: an array for each output, to be written; None where nobody reads it. They have the orders of the task.
        """
