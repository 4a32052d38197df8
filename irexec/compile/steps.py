"""The parts of a plan: steps on numbered slots, and the memory that they share."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from irexec.backend.calls import NativeKernel
from irexec.backend.constants import ConstantSource
from irexec.backend.kernel import Kernel, Order
from irexec.backend.scratch import Workspace
from irexec.compile.rewriting import Refusal
from irexec.compile.storage.planned import MemoryInterval
from irexec.compile.storage.views import ordered
from irexec.dtypes.elements import Element
from irexec.ir.facts import Fact
from irexec.ir.graph import Body, Node


@dataclass(frozen=True, eq=False)
class SlotArray:
    """The array of a slot: its shape, type and order, and its offset in the arena; None for memory of its own."""

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
    """A slot that is a view of another slot, made once for each arena, or in each run for memory of its own."""

    slot: int
    source: int
    view: Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class Allocation:
    """The outputs that a call is going to allocate.

    Attributes:
        facts: of the outputs.
        size: bytes of all of them.
        is_empty: whether all are known and none has elements, so that nothing is to be computed.
    """

    facts: tuple[Fact, ...]
    size: int
    is_empty: bool


Check = Callable[[Sequence[np.ndarray | None]], Allocation | None]
"""A check of the inputs of a run; returns the outputs that are to be allocated, where they are known."""


@dataclass(frozen=True, eq=False)
class ReferenceCall:
    """The call of a reference kernel, or of another function that allocates the outputs.

    Attributes:
        function: arrays in, array or tuple of arrays out.
        elements: for each output the type to round to, None if NumPy has the type; None where nothing is rounded.
        check: checks the inputs of a run, if they or the shapes of the outputs were not known before.
        bodies: by the parameter to which they are injected.
        state: the parameter to which variables are injected, if there is one.
        caches: for one of the type Caches the variable that keeps each input, by the name of the input.
        views: whether the plan expects views of the inputs; other outputs are copied if they are views.
    """

    function: Callable[..., Any]
    elements: tuple[Element | None, ...] | None = None
    check: Check | None = None
    bodies: Mapping[str, BodyPlan] = field(default_factory=dict)
    state: str | None = None
    caches: Mapping[str, str] | None = None
    views: bool = True


@dataclass(frozen=True, eq=False)
class StepReport:
    """The computation of a step, for reports and messages.

    Attributes:
        type: the operation's type.
        origins: the layers that the step computes.
        algorithm: the kernel's algorithm, or "reference".
        facts: of the outputs, element types and shapes.
        orders: of the outputs, the axes in memory.
        chain: types of the element-wise operations that the kernel computes on its output.
    """

    type: str
    origins: tuple[Node, ...]
    algorithm: str
    facts: tuple[Fact, ...]
    orders: tuple[Order | None, ...]
    chain: tuple[str, ...]

    @property
    def operation(self) -> str:
        """The type and those of the chain: "Convolution+Add+Relu"."""
        return "+".join([self.type, *self.chain] if self.type != "Chain" else self.chain)


@dataclass(frozen=True, eq=False)
class Step:
    """One operation, ready to run: either a kernel or a reference call.

    Attributes:
        node: the layer that messages name.
        kernel: writes into arrays of the plan.
        call: allocates its outputs.
        inputs, outputs: slots; -1 for an input that is not read and an output that nothing reads.
        report: the computation, for reports.
        fresh: outputs that each run allocates for the kernel.
        aliases: views of outputs with memory of their own.
        frees: slots that no later step reads.
        workspace, offset: the scratch, and its offset in the arena.
        size: bytes that a run of the step allocates for its outputs, if their shapes are known.
    """

    node: Node
    kernel: Kernel | None
    call: ReferenceCall | None
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    report: StepReport
    fresh: tuple[SlotArray, ...] = ()
    aliases: tuple[Alias, ...] = ()
    frees: tuple[int, ...] = ()
    workspace: Workspace = field(default_factory=Workspace)
    offset: int = 0
    size: int = 0

    @property
    def bodies(self) -> Mapping[str, BodyPlan]:
        """The bodies of the operation."""
        return {} if self.call is None else self.call.bodies


@dataclass(frozen=True, eq=False)
class BodyPlan:
    """A body of a node and the plan that runs it.

    Attributes:
        connections: results of functions that read node and body, by the function; see ``Runner.connected``.
    """

    node: Node
    body: Body
    plan: Plan
    connections: dict[Callable[[Node, Body], Any], Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Plan:
    """The steps that a session runs. A plan refers to nothing of the compile graph, which is released after planning.

    Attributes:
        steps: in order.
        slots: their number.
        constants: the contents of slots at the start.
        parameters: the slot of each Parameter of the graph; -1 where nothing reads it.
        targets: the slot of each value asked for.
        copied: for each target whether it may be memory of an input, a constant or another target.
        arrays: the arrays in the arena.
        aliases: slots that are views of those.
        input_aliases: slots that are views of Parameters.
        arena: bytes of the arena.
        threads: number of threads of a step.
        sources: the constants that the plan keeps alive.
        passes: number of changes of each pass that changed something.
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

    @functools.cached_property
    def calls_numpy(self) -> bool:
        """Whether a step is not one of C kernels."""
        return not all(isinstance(step.kernel, NativeKernel) for step in self.steps)
