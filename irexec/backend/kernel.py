"""Fast kernels: the Task to be computed, the Kernel with its declarations, and the KernelContext in which it runs."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from irexec.backend.chain import Chain, Epilogue
from irexec.backend.constants import ConstantSource, ConstantStore, Holding
from irexec.backend.pool import Pool
from irexec.backend.recording import Recording, new_recording
from irexec.backend.scratch import Block, Scratch, Workspace
from irexec.backend.threads import ThreadTrials
from irexec.dtypes.elements import F16, F32, F64, Element
from irexec.ir.facts import Fact
from irexec.reference.limits import check_time
from irexec.schema.opdef import OpDef


class NanHasNoLevelError(Exception):
    """A NaN was to become a level. The run is repeated by a plan that computes in floating point."""


Order = tuple[int, ...]
"""The axes of a tensor from the outermost to the innermost in memory; (0, 1, 2, ...) is C order."""

SHARES = 4
"""Shares that kernels of NumPy cut a product into, on any number of threads.

BLAS adds in another order where a block has another size or begins elsewhere, so that blocks that followed the number
of threads would have other bits with each of them. Four equal shares suit two and four threads, and cost little on one.
"""


@dataclass(frozen=True)
class KernelOptions:
    """Options that the choice of kernels depends on, beside the operation.

    Attributes:
        threads: number of threads that work on blocks.
        holding: how compressed weights are held.
        native: whether kernels of the C library may be chosen, if there is one.
        integers: whether products of quantised tensors may be computed in integers.
        bf16: whether products of floats by constants may round both to bf16.
    """

    threads: int = 1
    holding: Holding = "unpacked"
    native: bool = False
    integers: bool = True
    bf16: bool = False


@dataclass(frozen=True, eq=False)
class Task:
    """One operation to be computed; element types and shapes are known, every size an int.

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
        threads, holding, native, integers, bf16: as for KernelOptions.
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
    holding: Holding = "unpacked"
    native: bool = False
    integers: bool = True
    bf16: bool = False

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
    def shares(self) -> int:
        """Shares of work whose bits do not depend on how it is cut: one for each thread, at most ``SHARES``."""
        return min(self.threads, SHARES)

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


def _run_in_order(count: int, block: Block, scratch: Scratch) -> None:
    """Run blocks one after another, checking the limit of time between them."""
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


@dataclass(eq=False)
class KernelContext:
    """Threads and workspace of a kernel during a run. A step of a plan on an arena has its own.

    Attributes:
        pool: the threads.
        scratches: one for each thread.
        shared: scratch of all threads, for kernels of the C library.
        fixed: whether every run has the same arrays, so that calls can be recorded.
    """

    pool: Pool
    scratches: Sequence[Scratch]
    shared: Scratch | None = None
    fixed: bool = False
    _trials: ThreadTrials = field(default_factory=ThreadTrials)
    _record: Recording | None = None

    @staticmethod
    def of(kernel: Kernel, threads: int, *, fixed: bool = False) -> KernelContext:
        """A context with memory of its own for a kernel."""
        needed = kernel.needed
        shared, scratches = needed.cut(np.empty(needed.size(threads), np.uint8), threads)
        return KernelContext(Pool(threads), scratches, shared, fixed)

    def __post_init__(self) -> None:
        self._record = new_recording() if self.fixed else None

    @property
    def alone(self) -> bool:
        """Whether blocks run on one thread because several do not pay."""
        return self._trials.alone

    def run(self, kernel: Kernel, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Run a kernel, on one thread if several do not pay."""
        if len(self.scratches) == 1 or not kernel.splits:
            self._run(kernel, inputs, outputs)
        else:
            self._trials.run(lambda: self._run(kernel, inputs, outputs))

    def _run(self, kernel: Kernel, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        if self._record is None or not kernel.records or _running.scratch is not None:
            kernel.run(inputs, outputs, self)
        else:
            self._record.run(kernel, inputs, outputs, self)

    def not_repeatable(self) -> None:
        """Record no calls: the kernel does more in this run than its blocks do."""
        if self._record is not None:
            self._record.refuse()

    def bind(self, epilogue: Epilogue, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The operands of an epilogue with the axes of its blocks; see ``Epilogue.bind``."""
        return self.views(operands, epilogue.bind(operands))

    def views(self, arrays: Sequence[np.ndarray], made: list[np.ndarray]) -> list[np.ndarray]:
        """``made``, one view for each array. No calls are recorded if one of ``made`` is a copy."""
        if not all(map(np.may_share_memory, arrays, made)):
            self.not_repeatable()
        return made

    def view(self, array: np.ndarray, made: np.ndarray) -> np.ndarray:
        """``made``. No calls are recorded if ``made`` is a copy of the array instead of a view."""
        return self.views([array], [made])[0]

    def parallel(self, count: int, block: Block) -> None:
        """Call ``block(index, scratch)`` for every index below ``count``, on any thread, in any order.

        The scratch is empty at the beginning of a block. A block that calls this itself computes the inner blocks one
        after another, in the unused part of its own scratch. Raises the first exception of a block.
        """
        outer = _running.scratch
        if outer is not None:
            _run_in_order(count, block, outer)
        else:
            self.compute(count, block if self._record is None else self._record.recording(count, block))

    def compute(self, count: int, block: Block) -> None:
        """``parallel`` outside of a block, without recording."""
        if count == 1 or len(self.scratches) == 1 or self.alone:
            self.scratches[0].clear()
            _run_in_order(count, block, self.scratches[0])
        else:

            def work(index: int, worker: int) -> None:
                # Only the calling thread, which always takes part, has a limit of time.
                check_time()
                scratch = self.scratches[worker]
                scratch.clear()
                _run_in_order(1, lambda _, scratch: block(index, scratch), scratch)

            self.pool.run(count, work)

    def scratch(self) -> Scratch:
        """The calling thread's scratch, for a kernel without blocks; in a block, the unused part of its scratch."""
        outer = _running.scratch
        if outer is not None:
            return outer
        self.scratches[0].clear()
        return self.scratches[0]


@dataclass(eq=False)
class Candidate:
    """A kernel that could compute a task, and its estimated cost; the selector constructs the cheapest one alone.

    Attributes:
        cost: estimated nanoseconds on one thread.
        make: constructs the kernel.
        runs_chain, joins: see Kernel.
        native: whether the kernel is one of the C library.
    """

    cost: float
    make: Callable[[], Kernel]
    runs_chain: bool = True
    joins: bool = False
    native: bool = False

    def construct(self) -> Kernel:
        """The kernel, which has this cost."""
        kernel = self.make()
        kernel.cost, kernel.runs_chain, kernel.joins = self.cost, self.runs_chain, self.joins
        return kernel


@dataclass(eq=False)
class Kernel(ABC):
    """One way to compute a task. A subclass sets the fields in its constructor, and computes in ``run``.

    Attributes:
        algorithm: for ``inspect --plan``, such as "Winograd F(4x4, 3x3)".
        cost: estimated nanoseconds on one thread; that of its candidate.
        reads: the indexes of the own inputs that ``run`` reads; None for all. Others may be None when it runs, and a
            constant that no kernel reads is released. The operands of the chain are always read.
        runs_chain: whether ``run`` also computes the task's chain, as its candidate says. Otherwise the chain is
            computed in a step of its own.
        overwrites: own inputs (or operands, counted on) whose memory the first output may take, if they have its shape,
            type and order.
        joins: whether the output is the inputs side by side, of which one may be None: it is in its position already.
        workspace: bytes of scratch that a thread needs.
        shared_workspace: bytes of scratch that all threads share.
        splits: whether the work is cut into blocks for the pool.
        late: own inputs whose arrays may differ from run to run where those of the other inputs do not.
        reads_state: whether ``run`` is given the variables of the session after its inputs.
        records: whether its blocks touch arrays only by the functions that they give to ``Scratch.do`` and
            ``Scratch.work``, and ``run`` does nothing else to them (or says so by ``KernelContext.not_repeatable``).
    """

    algorithm: str = ""
    cost: float = 0.0
    reads: tuple[int, ...] | None = None
    runs_chain: bool = False
    overwrites: tuple[int, ...] = ()
    joins: bool = False
    workspace: int = 0
    shared_workspace: int = 0
    splits: bool = False
    late: tuple[int, ...] = ()
    reads_state: bool = False
    records: bool = False

    @property
    def needed(self) -> Workspace:
        """The scratch to be given to it."""
        return Workspace(self.shared_workspace, self.workspace)

    def pack(self, store: ConstantStore) -> None:  # noqa: B027  a kernel without constants has nothing to pack
        """Pack the constants, once for each compiled model. Called after selection and before the first run."""

    @abstractmethod
    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], context: KernelContext) -> None:
        """Write the outputs.

        Args:
            inputs: an array for each own input and operand, None where it is left out or not read. Strides are any.
            outputs: an array for each output, to be written; None where nobody reads it. They have the orders of the
                task.
        """


_WORKING: dict[Element, np.dtype] = {F32: np.dtype(np.float32), F64: np.dtype(np.float64), F16: np.dtype(np.float32)}


def working_type(task: Task) -> np.dtype | None:
    """The type in which a floating-point operation is computed; f16 is widened if the operation asks for it.

    None where the reference kernel has to run: for other element types, and for types that NumPy does not have.
    """
    element = task.inputs[0].element if task.has_input(0) else None
    if element is None or element not in _WORKING:
        return None
    return np.dtype(np.float16) if element is F16 and not task.definition.widen else _WORKING[element]


def chain_keeps_type(task: Task) -> bool:
    """Whether the chain, if there is one, can be computed in place on the first output."""
    return task.chain is None or task.chain.result == task.chain.dtype


def has_elements(task: Task) -> bool:
    """Whether the inputs and the first output have any elements; empty ones are left to the reference kernels."""
    shapes = [fact.shape for fact in task.inputs if fact.element is not None] + [task.outputs[0].shape]
    return all(shape is not None and 0 not in shape for shape in shapes)


def is_row_major(order: Order | None) -> bool:
    """Whether the order is C order, or not known."""
    return order is None or list(order) == sorted(order)
