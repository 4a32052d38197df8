"""The compile graph: operations with typed attributes, and values that know their uses.

It is lowered from a model and owned by the compiler, which rewrites it pass by pass. Nothing of the XML is left in it
but the layers that an operation was made of, for messages and reports.
"""

from __future__ import annotations

import functools
import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from irexec.analysis.evaluate import without_elements
from irexec.backend.chain import Chain
from irexec.backend.constants import ConstantSource
from irexec.backend.kernel import Order
from irexec.ir.facts import Fact
from irexec.ir.graph import Body, Node
from irexec.schema.opdef import OpDef

KNOWN_BYTES = 1 << 16
"""Constants up to this size have their value in their fact, where passes and kernels can read it."""


@dataclass(eq=False)
class CompileValue:
    """A tensor.

    Attributes:
        fact: the fact of the value.
        producer: the operation that gives it; None for an input of the graph and for a constant.
        index: index among the outputs of the producer.
        constant: for a constant, where its value comes from.
        order: how it lies in memory; None for C order.
        uses: each operation that reads it, with the index of the input; an operation may read it several times.
        name: for reports.
    """

    fact: Fact
    producer: Operation | None = None
    index: int = 0
    constant: ConstantSource | None = None
    order: Order | None = None
    uses: list[tuple[Operation, int]] = field(default_factory=list)
    name: str = ""

    def __repr__(self) -> str:
        return f"<CompileValue {self.name or 'unnamed'} {self.fact}>"

    @property
    def readers(self) -> list[Operation]:
        """The operations that read it, each once."""
        return list(dict.fromkeys(operation for operation, _ in self.uses))

    @property
    def known(self) -> np.ndarray | None:
        """The value itself, where it is a small constant."""
        return self.fact.known


@dataclass(eq=False)
class LoweredBody:
    """A body of an operation: how it is wired, and its own graph."""

    node: Node
    body: Body
    graph: CompileGraph

    @functools.cached_property
    def uses_variables(self) -> bool:
        """Whether an operation in it reads or writes variables, in a body too; known once for all levels of bodies."""
        return any(operation.uses_variables for operation in self.graph)


@dataclass(eq=False)
class Operation:
    """One operation, or a chain of element-wise ones.

    Attributes:
        definition: None for a chain that stands alone.
        attributes: typed, by the reference kernel's parameter.
        inputs: the operation's own inputs, then those of the chain after it.
        outputs: the values that it gives.
        node: the layer that messages name.
        origins: the layers that it computes.
        own: number of the operation's own inputs.
        chain: element-wise operations on the first output; for a chain that stands alone, all that it is.
        bodies: by the parameter that takes them.
        rank: where it stands among the operations that do not depend on it; -1 until it is inserted.
    """

    definition: OpDef | None
    attributes: dict[str, Any]
    inputs: list[CompileValue]
    outputs: list[CompileValue]
    node: Node
    origins: tuple[Node, ...]
    own: int
    chain: Chain | None = None
    bodies: dict[str, LoweredBody] = field(default_factory=dict)
    rank: float = -1

    @property
    def type(self) -> str:
        """The operation's type; "Chain" for a chain that stands alone."""
        return "Chain" if self.definition is None else self.definition.type

    @property
    def output(self) -> CompileValue:
        """The first output."""
        return self.outputs[0]

    @property
    def is_pure(self) -> bool:
        """True if the operation only produces outputs: it has no state and no bodies (which may have state)."""
        return not self.bodies and (self.definition is None or not self.definition.stateful)

    @property
    def uses_variables(self) -> bool:
        """Whether it reads or writes variables, or a body of it does."""
        is_stateful = self.definition is not None and self.definition.stateful
        return is_stateful or any(body.uses_variables for body in self.bodies.values())

    @property
    def empty_outputs(self) -> tuple[np.ndarray, ...] | None:
        """The outputs where it has nothing to compute: none has elements. Else None."""
        return without_elements([value.fact for value in self.outputs]) if self.is_pure else None

    def __repr__(self) -> str:
        return f"<{self.type} {self.node.name!r}>"


class CompileGraph:
    """Operations and the values between them.

    Attributes:
        inputs: a value for each Parameter.
        targets: the values that are asked for; one may be asked for twice. They are assigned as a whole.
        is_body: whether it is a body of an operation.
    """

    def __init__(self, inputs: Sequence[CompileValue]) -> None:
        self.inputs, self.is_body = list(inputs), False
        self._targets: list[CompileValue] = []
        # Where each target is among them: all values are targets where a run is observed.
        self._target_indices: dict[CompileValue, list[int]] = {}
        self._operations: dict[Operation, None] = {}
        self._next_rank: float = 0

    @property
    def targets(self) -> Sequence[CompileValue]:
        return self._targets

    @targets.setter
    def targets(self, values: Sequence[CompileValue]) -> None:
        self._targets, self._target_indices = list(values), {}
        for index, value in enumerate(values):
            self._target_indices.setdefault(value, []).append(index)

    def __iter__(self) -> Iterator[Operation]:
        return iter(list(self._operations))

    def __len__(self) -> int:
        return len(self._operations)

    def __contains__(self, operation: object) -> bool:
        return operation in self._operations

    def order(self) -> list[Operation]:
        """The operations, each after those whose outputs it reads; otherwise by their ranks.

        Raises:
            ValueError: the graph has a cycle.
        """
        operations = sorted(self._operations, key=lambda operation: operation.rank)
        number = {operation: i for i, operation in enumerate(operations)}
        waiting = {op: len({v.producer for v in op.inputs if v.producer is not None}) for op in self._operations}
        ready = [number[operation] for operation, count in waiting.items() if count == 0]
        heapq.heapify(ready)
        order = list[Operation]()
        while ready:
            operation = operations[heapq.heappop(ready)]
            order.append(operation)
            for reader in dict.fromkeys(reader for value in operation.outputs for reader in value.readers):
                waiting[reader] -= 1
                if waiting[reader] == 0:
                    heapq.heappush(ready, number[reader])
        if len(order) != len(operations):
            raise ValueError("the compile graph has a cycle")
        return order

    def insert(self, operation: Operation) -> Operation:
        """Add an operation and register its outputs and its uses of values; without a rank it becomes the last."""
        if operation.rank < 0:
            operation.rank = self._next_rank
        self._next_rank = max(self._next_rank, operation.rank + 1)
        for index, value in enumerate(operation.outputs):
            value.producer, value.index = operation, index
        for index, value in enumerate(operation.inputs):
            value.uses.append((operation, index))
        self._operations[operation] = None
        return operation

    def remove(self, operation: Operation) -> None:
        """Remove an operation.

        Raises:
            ValueError: one of its outputs is still used.
        """
        if any(self.is_used(value) for value in operation.outputs):
            raise ValueError(f"{operation} is removed while its outputs are used")
        for index, value in enumerate(operation.inputs):
            value.uses.remove((operation, index))
        del self._operations[operation]

    def set_inputs(self, operation: Operation, inputs: Sequence[CompileValue]) -> None:
        """Replace all inputs of an operation."""
        for index, value in enumerate(operation.inputs):
            value.uses.remove((operation, index))
        operation.inputs = list(inputs)
        for index, value in enumerate(operation.inputs):
            value.uses.append((operation, index))

    def replace_all_uses_with(self, old: CompileValue, new: CompileValue) -> None:
        """Operations that read ``old`` read ``new``, and ``new`` replaces it as a target."""
        for operation, index in old.uses:
            operation.inputs[index] = new
            new.uses.append((operation, index))
        old.uses = []
        for index in (indices := self._target_indices.pop(old, [])):
            self._targets[index] = new
        if indices:
            self._target_indices.setdefault(new, []).extend(indices)

    def is_target(self, value: CompileValue) -> bool:
        """Whether the value is asked for."""
        return value in self._target_indices

    def is_used(self, value: CompileValue) -> bool:
        """Whether anything reads the value or asks for it."""
        return bool(value.uses) or self.is_target(value)

    def remove_unused(self) -> None:
        """Remove the operations whose outputs are not read and that have no effect."""
        waiting = list(self._operations)
        while waiting:
            operation = waiting.pop()
            if operation in self and operation.is_pure and not any(self.is_used(value) for value in operation.outputs):
                self.remove(operation)
                waiting.extend(value.producer for value in operation.inputs if value.producer is not None)

    def constants(self) -> list[CompileValue]:
        """The constants that operations read or that are asked for, each once."""
        read = (value for operation in self._operations for value in operation.inputs)
        return list(dict.fromkeys(value for value in (*read, *self.targets) if value.constant is not None))


def constant_value(source: ConstantSource, name: str = "") -> CompileValue:
    """A value for a constant; a small constant is computed at once, for the fact of the value."""
    known = source.small(KNOWN_BYTES)
    fact = source.fact if known is None else Fact(source.element, known.shape, known)
    return CompileValue(fact, constant=source, name=name)


def problems(graph: CompileGraph) -> list[str]:
    """The broken invariants of a graph; after every pass there must be none. See IREXEC_CHECK_PASSES."""
    found = []
    for operation in graph:
        for index, value in enumerate(operation.inputs):
            if (operation, index) not in value.uses:
                found.append(f"{operation} reads {value}, which does not count it among its uses")
            if value.producer is not None and value.producer not in graph:
                found.append(f"{operation} reads {value} of an operation that is not in the graph")
            if value.producer is None and value.constant is None and value not in graph.inputs:
                found.append(f"{operation} reads {value}, which nothing gives")
        for index, value in enumerate(operation.outputs):
            if value.producer is not operation or value.index != index:
                found.append(f"{value} does not name {operation} as its producer")
            found += [
                f"{value} is said to be used by {reader}" for reader, at in value.uses if reader.inputs[at] is not value
            ]
        if operation.chain is not None and operation.chain.inputs != len(operation.inputs) - (
            operation.own - 1 if operation.definition else 0
        ):
            found.append(f"{operation} has a chain of {operation.chain.inputs} inputs")
        found += [problem for body in operation.bodies.values() for problem in problems(body.graph)]
    for value in graph.targets:
        if value.producer is not None and value.producer not in graph:
            found.append(f"target {value} is of an operation that is not in the graph")
    try:
        graph.order()
    except ValueError as error:
        found.append(str(error))
    return found
