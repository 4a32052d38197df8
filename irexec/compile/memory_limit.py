"""Limits of the memory of tensors: addressable, available, and allowed by the caller.

Sizes are computed in Python's integers from shapes, before anything of the size is allocated.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from irexec.backend.system import Recent, available_memory, memory_in_use
from irexec.compile.errors import node_error
from irexec.compile.graph import CompileGraph, Operation
from irexec.compile.steps import Plan, Step
from irexec.compile.storage.planned import in_use
from irexec.errors import InputError, NodeError, OpError
from irexec.ir.facts import Fact
from irexec.messages import amount
from irexec.reference.limits import ADDRESSABLE, SMALL, check_address

_FAR = 64
"""A recent answer about available memory is reused for sizes smaller by this factor."""

_recently_available = Recent[Path, int](lambda root: available_memory(root))


class MemoryLimit:
    """The limit that a compiled model keeps.

    Args:
        maximum: bytes of memory that the process may hold, mapped files not counted; None for all that is available.
        root: where ``proc`` and ``sys`` are, for tests.

    Raises:
        InputError: ``maximum`` is not a positive integer.
    """

    def __init__(self, maximum: int | None = None, root: Path = Path("/")) -> None:
        if maximum is not None and (isinstance(maximum, bool) or not isinstance(maximum, int) or maximum < 1):
            raise InputError(f"max_memory is {maximum!r}, expected a number of bytes of at least 1")
        self.maximum, self._root = maximum, root

    def left(self, *, recently: bool = False) -> int:
        """Bytes that may be allocated now, or that were a moment ago."""
        available = _recently_available(self._root) if recently else available_memory(self._root)
        return available if self.maximum is None else min(available, self.maximum - memory_in_use(self._root))

    def check_time(self, layer: str = "") -> None:
        """Compiling has no limit of time."""

    def check_memory(self, size: int, what: str) -> None:
        """Raise OpError unless ``size`` bytes may be allocated; ``what`` says what takes them."""
        check_address(size, what)
        # Bytes that the system has for ``size`` more. Recent answers are reused for small sizes: asking takes longer
        # than decoding a small image.
        found = _recently_available(self._root)
        available = _recently_available(self._root, 0) if size >= min(SMALL, found // _FAR) else found
        if size > available:
            raise OpError(
                f"{what} takes {size} bytes ({amount(size)}), and {amount(available)} of memory are available"
            )
        if self.maximum is not None:
            used = memory_in_use(self._root)
            if size > self.maximum - used:
                limit = f"the limit of memory is {amount(self.maximum)}; the process already holds {amount(used)}"
                raise OpError(f"{what} takes {size} bytes ({amount(size)}), and {limit}")


def check_addresses(facts: Sequence[Fact]) -> None:
    """Raise OpError for outputs whose shape no NumPy array can have, even without elements."""
    for fact in facts:
        size = fact.addressed_bytes
        if size > ADDRESSABLE:
            zeros = "" if fact.known_nbytes else "with axes of size 0 taken as 1, "
            check_address(size, f"{zeros}its result {Fact(fact.element, fact.shape)}")


def refuse_too_large(graph: CompileGraph, memory: MemoryLimit) -> None:
    """Raise NodeError for the first tensor of known shape that takes more memory than available.

    An input may be in memory already; it is refused only if no memory could hold it.
    """
    for value in graph.inputs:
        try:
            check_address(value.fact.addressed_bytes, f"{value.name!r} {value.fact}")
        except OpError as error:
            raise NodeError(f"input {error}", node=value.name, reason=str(error)) from error
    for operation in graph.order():
        facts, size = [value.fact for value in operation.outputs], allocated_by(operation)
        try:
            check_addresses(facts)
            if size >= SMALL:
                memory.check_memory(size, results_text(facts))
        except OpError as error:
            raise node_error(operation.node, [], error) from error


def check_arena(plan: Plan, memory: MemoryLimit) -> None:
    """Raise NodeError, which names the layer with the largest tensor, unless a plan's arena may be allocated, and
    beside it all tensors with memory of their own that are held at once.

    A small one is looked at where there is a limit: the process may hold more than it already.
    """
    own = in_use([interval for interval in plan.intervals if interval.kind == "own"], len(plan.steps))
    size = plan.arena + max(own, default=0)
    if size < SMALL and memory.maximum is None:
        return
    try:
        memory.check_memory(
            size, f"what is held at once, {results_text(_largest(plan).report.facts)} and workspace included,"
        )
    except OpError as error:
        raise arena_error(plan, error) from error


def arena_error(plan: Plan, error: OpError) -> NodeError:
    """The error of a plan whose arena cannot be allocated, with the layer that has the largest tensor."""
    return node_error(_largest(plan).node, [], error)


def _largest(plan: Plan) -> Step:
    return max(
        plan.steps,
        key=lambda step: sum(fact.known_nbytes for fact in step.report.facts) + step.workspace.size(plan.threads),
    )


def allocated_by(operation: Operation) -> int:
    """Bytes that an operation allocates for its outputs of known shape, without those of its bodies.

    What may be a view of the inputs counts where it is larger than these.
    """
    if operation.bodies:
        return 0
    viewed = operation.inputs if operation.definition is not None and operation.definition.view else []
    return max(
        0,
        sum(value.fact.known_nbytes for value in operation.outputs) - sum(value.fact.known_nbytes for value in viewed),
    )


def results_text(facts: Sequence[Fact]) -> str:
    """The outputs of an operation in a message, with a verb in the singular: "its result f32[2,3]"."""
    known = [str(Fact(fact.element, fact.shape)) for fact in facts if fact.known_nbytes]
    return f"its result {' with '.join(known)}"
