"""Operations with their kernels, and the decided locations of their outputs."""

from __future__ import annotations

from dataclasses import dataclass, field

from irexec.backend.kernel import Kernel
from irexec.compile.graph import CompileValue, Operation
from irexec.compile.storage.arena import Buffer
from irexec.compile.storage.views import View

EXTERNAL = "external"
"""Owner of memory that a run must neither return nor write to: inputs, constants and state."""

Owner = CompileValue | str
"""The value whose memory contains another value, or EXTERNAL."""


@dataclass(eq=False)
class PlannedOperation:
    """An operation and the selected kernel; None for the reference kernel.

    Attributes:
        wanted: for each output whether it is read.
    """

    operation: Operation
    kernel: Kernel | None
    wanted: tuple[bool, ...]

    @property
    def read(self) -> list[CompileValue | None]:
        """The inputs, with None for each that the kernel does not read."""
        own, reads = self.operation.own, None if self.kernel is None else self.kernel.reads
        return [
            value if reads is None or i in reads or i >= own else None for i, value in enumerate(self.operation.inputs)
        ]

    @property
    def returns_views(self) -> bool:
        """Whether outputs may share memory with inputs."""
        definition = self.operation.definition
        return self.kernel is None and definition is not None and (definition.view or self.has_state)

    @property
    def has_state(self) -> bool:
        """Whether its reference kernel reads or writes variables or runs bodies. A fast kernel copies to variables."""
        definition = self.operation.definition
        if self.kernel is not None or definition is None:
            return False
        return definition.stateful or bool(self.operation.bodies)

    @property
    def keeps_inputs(self) -> bool:
        """Whether its reference kernel may store an input in a variable, in a body too."""
        return self.kernel is None and self.operation.uses_variables


@dataclass(eq=False)
class Storage:
    """The memory of a plan.

    Attributes:
        buffers: values in the arena.
        views: for each view of a buffer the value viewed and the function that makes the view, once for each arena.
        run_views: the same for views of inputs of the graph and of fresh memory, made in each run.
        fresh: outputs of kernels that each run allocates.
        workspaces: the workspace of each operation that has one.
        in_position: for each Concat the inputs that are computed at their position in the output.
        arena: bytes.
        owners: for each value the values in whose memory it may lie, or EXTERNAL.
    """

    buffers: dict[CompileValue, Buffer] = field(default_factory=dict)
    views: dict[CompileValue, tuple[CompileValue, View]] = field(default_factory=dict)
    run_views: dict[CompileValue, tuple[CompileValue, View]] = field(default_factory=dict)
    fresh: set[CompileValue] = field(default_factory=set)
    workspaces: dict[PlannedOperation, Buffer] = field(default_factory=dict)
    in_position: dict[PlannedOperation, frozenset[int]] = field(default_factory=dict)
    arena: int = 0
    owners: dict[CompileValue, frozenset[Owner]] = field(default_factory=dict)

    def is_view(self, planned: PlannedOperation) -> bool:
        """Whether an operation needs no step: its outputs are views, or all its inputs are computed in position."""
        in_position = self.in_position.get(planned)
        # An operation without inputs has none in position, and still needs a step.
        if in_position and len(in_position) == planned.operation.own:
            return True
        read = [value for value, wanted in zip(planned.operation.outputs, planned.wanted, strict=True) if wanted]
        return bool(read) and all(value in self.views or value in self.run_views for value in read)
