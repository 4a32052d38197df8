"""What laying out the memory of a plan starts from, and what it gives."""

from __future__ import annotations

from dataclasses import dataclass, field

from irexec.backend.kernel import Kernel
from irexec.compile.graph import Operation, Value
from irexec.compile.memory import Buffer
from irexec.compile.views import View

FIXED = "fixed"
"""The root of what a run must not give away or write to: inputs, constants and state."""


@dataclass(eq=False)
class Draft:
    """An operation with the kernel that was selected; None for the reference kernel."""

    operation: Operation
    kernel: Kernel | None
    wanted: tuple[bool, ...]

    @property
    def read(self) -> list[Value | None]:
        """The inputs, None where the kernel does not read one."""
        own, reads = self.operation.own, None if self.kernel is None else self.kernel.reads
        return [
            value if reads is None or i in reads or i >= own else None for i, value in enumerate(self.operation.inputs)
        ]

    @property
    def gives_views(self) -> bool:
        """Whether outputs may share memory with inputs."""
        definition = self.operation.definition
        return self.kernel is None and definition is not None and (definition.view or self.has_state)

    @property
    def has_state(self) -> bool:
        """Whether it reads or writes variables, or has bodies."""
        definition = self.operation.definition
        return definition is not None and (definition.stateful or bool(self.operation.bodies))


@dataclass(eq=False)
class Storage:
    """The memory of a plan.

    Attributes:
        buffers: values in the arena.
        views: values that are views of those: the value viewed, and how. They are made once for each arena.
        late: values that are views of an input of the graph, or of an output that has memory of its own: that value, and how.
            They are made in each run.
        fresh: values that a kernel writes into memory of their own, for each run anew.
        workspaces: the workspace of each draft that has one.
        joined: for a concatenation the inputs that are in their position in its output already.
        arena: bytes.
        roots: for each value those whose memory it may be, FIXED among them.
    """

    buffers: dict[Value, Buffer] = field(default_factory=dict)
    views: dict[Value, tuple[Value, View]] = field(default_factory=dict)
    late: dict[Value, tuple[Value, View]] = field(default_factory=dict)
    fresh: set[Value] = field(default_factory=set)
    workspaces: dict[Draft, Buffer] = field(default_factory=dict)
    joined: dict[Draft, frozenset[int]] = field(default_factory=dict)
    arena: int = 0
    roots: dict[Value, frozenset[Value | str]] = field(default_factory=dict)

    def is_view(self, draft: Draft) -> bool:
        """Whether an operation needs no step, since its outputs are views or the inputs are where they are to be."""
        joined = self.joined.get(draft)
        # An operation without inputs has nothing that could lie where it is to be.
        if joined and len(joined) == draft.operation.own:
            return True
        read = [value for value, wanted in zip(draft.operation.outputs, draft.wanted, strict=True) if wanted]
        return bool(read) and all(value in self.views or value in self.late for value in read)
