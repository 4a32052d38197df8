"""What a plan consists of: steps on numbered slots, and the memory that they share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from irexec.backend.constants import ConstantSource
from irexec.backend.kernel import Kernel, Order
from irexec.compile.rewriting import Refusal
from irexec.compile.storage.intervals import MemoryInterval
from irexec.compile.storage.views import ordered
from irexec.dtypes.elements import Element
from irexec.ir.facts import Fact
from irexec.ir.graph import Body, Node


@dataclass(frozen=True, eq=False)
class SlotArray:
    """An array that a slot holds: its shape, type and order, and its offset in the arena; None for memory of its own."""

    slot: int
    shape: tuple[int, ...]
    dtype: np.dtype
    order: Order | None
    offset: int | None

    @property
    def size(self) -> int:
        """Bytes."""
        return math.prod(self.shape) * self.dtype.itemsize

    def view(self, buffer: np.ndarray) -> np.ndarray:
        """The array on a buffer of bytes."""
        return ordered(self.shape, self.order, lambda shape: np.ndarray(shape, self.dtype, buffer, self.offset or 0))

    def allocated(self) -> np.ndarray:
        """A new array."""
        return ordered(self.shape, self.order, lambda shape: np.empty(shape, self.dtype))


@dataclass(frozen=True, eq=False)
class Alias:
    """A slot whose array is a view of another slot's, made once for each arena, or in a run if that is memory of its own."""

    slot: int
    source: int
    view: Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class Step:
    """One operation, ready to be computed.

    Attributes:
        node: the layer that messages name.
        type: of the operation.
        origins: the layers that it computes.
        kernel: writes into given outputs; None for a step that calls the reference kernel.
        call: arrays in, array or tuple of arrays out: what runs without a kernel.
        algorithm: for reports.
        inputs, outputs: slots; -1 for an input that is not read and an output that is not read.
        fresh: outputs that a kernel writes into memory of their own.
        aliases: views of outputs that have memory of their own.
        frees: slots whose last use this is.
        workspace: offset in the arena and bytes for each thread.
        elements: for each output the element type it is to be rounded to; None where NumPy has it.
        check: the shape rule to ask at run time, where shapes were not known before; it gives the facts of the outputs that the
            step allocates, or None.
        types: for ``check``, the element types of the inputs, and of constants all that is known.
        bodies: plans of the node's bodies, by the parameter that takes them.
        state: the parameter that takes the session's variables.
        facts, orders: of the outputs, for messages and reports: element type and shape, and how they lie in memory.
        size: bytes that a run of the step allocates for its outputs, as far as their shapes are known.
        chain: for reports, the types of the element-wise operations that the kernel computes on its output.
    """

    node: Node
    type: str
    origins: tuple[Node, ...]
    kernel: Kernel | None
    call: Callable[..., Any] | None
    algorithm: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    fresh: tuple[SlotArray, ...] = ()
    aliases: tuple[Alias, ...] = ()
    frees: tuple[int, ...] = ()
    workspace: tuple[int, int] = (0, 0)
    elements: tuple[Element | None, ...] | None = None
    check: Callable[..., Any] | None = None
    types: tuple[Element | Fact | None, ...] = ()
    bodies: Mapping[str, BodyPlan] = field(default_factory=dict)
    state: str | None = None
    facts: tuple[Fact, ...] = ()
    orders: tuple[Order | None, ...] = ()
    size: int = 0
    chain: tuple[str, ...] = ()

    @property
    def operation(self) -> str:
        """The type, and those of the chain that is computed with it: "Convolution+Add+Relu"."""
        return "+".join([self.type, *self.chain] if self.type != "Chain" else self.chain)


@dataclass(frozen=True, eq=False)
class BodyPlan:
    """A body of a node and the plan that runs it."""

    node: Node
    body: Body
    plan: Plan


@dataclass(frozen=True, eq=False)
class Plan:
    """What a session runs. It refers to nothing of the compile graph, which is released when planning is done.

    Attributes:
        steps: in order.
        slots: how many there are.
        constants: what stands in a slot from the start.
        parameters: the slot of each Parameter of the graph; -1 where nothing reads it.
        targets: the slot of each value asked for.
        copied: for each target whether it may be memory of an input, a constant or another target.
        arrays: the arrays in the arena.
        aliases: slots that are views of those.
        input_aliases: slots that are views of Parameters.
        arena: bytes of the arena.
        threads: how many threads work on a step.
        sources: the constants that the plan keeps alive.
        passes: how often each pass changed something, for those that did.
        intermediate: bytes of all tensors that are read or asked for together, for comparison with ``arena``.
        views: the layers that need no step, since their outputs are views of other tensors.
        refusals: why passes left operations of this graph as they are.
        intervals: the bytes in use from step to step, without those of bodies.
    """

    steps: tuple[Step, ...]
    slots: int
    constants: tuple[tuple[int, np.ndarray], ...]
    parameters: tuple[int, ...]
    targets: tuple[int, ...]
    copied: tuple[bool, ...]
    arrays: tuple[SlotArray, ...] = ()
    aliases: tuple[Alias, ...] = ()
    input_aliases: tuple[Alias, ...] = ()
    arena: int = 0
    threads: int = 1
    sources: tuple[ConstantSource, ...] = ()
    passes: Mapping[str, int] = field(default_factory=dict)
    intermediate: int = 0
    views: tuple[Node, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    intervals: tuple[MemoryInterval, ...] = ()
