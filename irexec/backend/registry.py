"""Fast kernels by operation.

    @kernels("MatMul", since=1)
    def matmul(task: Task) -> Iterator[Candidate]: ...

    @block_operation("Relu", since=1)
    def relu(task: Task) -> BlockOperation | None: ...

The first yields candidates for a task, each with its estimated cost; none where no kernel is faster than the reference
kernel for these types and shapes. The second returns how an element-wise operation runs on a block of a chain.

A plug-in knows less of the compiler than irexec's own kernels: its kernels run no chains, write contiguous arrays, and
their faults name the plug-in.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from irexec.backend.chain import BlockFunction, Formula
from irexec.backend.kernel import Candidate, Kernel, KernelContext, Task
from irexec.backend.system import available_memory
from irexec.errors import OpError
from irexec.native.library import library
from irexec.schema.opdef import OpDef
from irexec.schema.plugins import Loader, guarded

Candidates = Callable[[Task], Iterable[Candidate]]

LARGE = 256 << 20
"""Available memory is not checked for outputs of fewer bytes."""

_RECKONED = 1 << 57
"""Bytes of a tensor, some multiples of which can be addressed."""


@dataclass(frozen=True, eq=False)
class BlockOperation:
    """An element-wise operation as a chain runs it.

    Attributes:
        function: computes a block; see chain.BlockFunction.
        reads: the inputs that are the function's arguments, in that order; the others are part of the function.
        shapes: for each of these the shape that makes NumPy's broadcasting right, or None for its own; empty for
            their own.
        in_place, temporaries, passes, formula: see chain.Instruction.
    """

    function: BlockFunction
    reads: tuple[int, ...] = (0,)
    shapes: tuple[tuple[int, ...] | None, ...] = ()
    in_place: bool = True
    temporaries: int = 0
    passes: float = 1
    formula: Formula | None = None


MakeBlock = Callable[[Task], BlockOperation | None]

_NATIVE = "irexec.backend.native"
"""The package of the C library's kernels."""

_CANDIDATES: dict[tuple[str, int | str], list[Candidates]] = {}
_BLOCK_OPERATIONS: dict[tuple[str, int | str], MakeBlock] = {}

loader = Loader()


def kernels(type: str, since: int | str) -> Callable[[Candidates], Candidates]:
    """Decorator: the function yields candidates for the version of ``type`` that appeared in ``since``.

    The function reads facts and shapes alone: candidates are compared for many orders of axes, and only the selected
    kernel is constructed.
    """

    def register(function: Candidates) -> Candidates:
        _CANDIDATES.setdefault((type, since), []).append(function)
        return function

    return register


def offers(task: Task) -> list[Candidate]:
    """The fast kernels that can compute a task, compared by cost; none where its tensors do not fit in memory.

    Inputs may be larger than memory, as mapped files are, up to sizes that can be multiplied without overflow.
    """
    if any(fact.addressed_bytes > _RECKONED for fact in (*task.inputs, *task.outputs)):
        return []
    if task.output_bytes > LARGE and task.output_bytes > available_memory():
        return []
    if task.definition.plugin:
        # Not before: most models have none.

        return [candidate for function in task.definition.fast_kernels for candidate in of_plugin(function, task)]
    if task.native:
        add_native()
    loader.load_for(task.definition.type)
    found = _CANDIDATES.get((task.definition.type, task.definition.since), ())
    return [candidate for function in found for candidate in _offered(function, task)]


@functools.cache
def add_native() -> None:
    """Let the kernels of the C library register, if there is one."""
    if library() is not None:
        folder = Path(__file__).parent / "native"
        loader.add_package(_NATIVE, [str(folder)])


def has_library() -> bool:
    """Whether there is a C library."""
    return library() is not None


def _offered(function: Candidates, task: Task) -> list[Candidate]:
    """The candidates of one function; none for absurd attributes or sizes, which the reference kernel refuses."""
    try:
        found = list(function(task))
    except (OpError, OverflowError, MemoryError):
        return []
    for candidate in found:
        candidate.native = function.__module__.startswith(_NATIVE)
    return found


def has_candidates(definition: OpDef, *, native: bool) -> bool:
    """Whether any fast kernels are registered for the operation, of the C library too if ``native``."""
    if definition.plugin:
        return bool(definition.fast_kernels)
    if native:
        add_native()
    loader.load_for(definition.type)
    found = _CANDIDATES.get((definition.type, definition.since), ())
    return any(native or not function.__module__.startswith(_NATIVE) for function in found)


def block_operation(type: str, since: int | str) -> Callable[[MakeBlock], MakeBlock]:
    """Decorator of a function that returns how an operation runs on a block, or None where it cannot.

    Raises:
        ValueError: the version has one already.
    """

    def register(function: MakeBlock) -> MakeBlock:
        if (type, since) in _BLOCK_OPERATIONS:
            raise ValueError(f"{type} of {since} has two block operations")
        _BLOCK_OPERATIONS[type, since] = function
        return function

    return register


def find_block_operation(task: Task) -> BlockOperation | None:
    """How the task runs on a block of elements; None if it is not element-wise, or not for these types."""
    loader.load_for(task.definition.type)
    function = _BLOCK_OPERATIONS.get((task.definition.type, task.definition.since))
    return None if function is None else function(task)


def is_element_wise(definition: OpDef) -> bool:
    """Whether the operation can run on blocks, for some types at least."""
    loader.load_for(definition.type)
    return (definition.type, definition.since) in _BLOCK_OPERATIONS


def of_plugin(function: Callable[[Task], Iterable[Candidate]], task: Task) -> list[Candidate]:
    """The candidates of a function of a plug-in.

    Raises:
        OpError: it raises, or yields something else.
    """
    what = f"the fast kernel of {task.definition}"
    found = guarded(lambda: list(function(task)), what)()
    for candidate in found:
        if not isinstance(candidate, Candidate):
            raise OpError(f"{what}: {function.__name__} yields {type(candidate).__name__}, expected a Candidate")
    return [
        dataclasses.replace(candidate, make=functools.partial(_kernel, candidate.make, what), runs_chain=False)
        for candidate in found
    ]


def _kernel(make: Callable[[], Kernel], what: str) -> Kernel:
    """The kernel of a candidate; its calls raise OpError."""
    kernel = guarded(make, what)()
    if not isinstance(kernel, Kernel):
        raise OpError(f"{what}: a candidate makes {type(kernel).__name__}, expected a Kernel")
    # Calls that were recorded would be repeated without the guard.
    kernel.records = False
    run = functools.partial(_run_contiguous, guarded(kernel.run, what))
    vars(kernel).update(pack=guarded(kernel.pack, what), run=run)
    return kernel


def _run_contiguous(
    run: Callable[..., None], inputs: Sequence[Any], outputs: Sequence[Any], context: KernelContext
) -> None:
    """Run with contiguous outputs; one that is a part of another array, such as that of a Concat, is copied into it."""
    arrays = [x if x is None or x.flags.c_contiguous else np.empty(x.shape, x.dtype) for x in outputs]
    run(inputs, arrays, context)
    for output, array in zip(outputs, arrays, strict=True):
        if output is not array:
            np.copyto(output, array)
