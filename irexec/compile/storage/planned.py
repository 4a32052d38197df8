"""Operations with their kernels, the decided locations of their outputs, and the offsets of buffers in an arena.

Two buffers share bytes only if no step needs both.
"""

from __future__ import annotations

import bisect
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Literal

from irexec.backend.kernel import Kernel
from irexec.backend.scratch import aligned
from irexec.compile.graph import CompileValue, Operation
from irexec.compile.storage.views import View
from irexec.ir.order import grouped
from irexec.records import Record

EXTERNAL = "external"
"""Owner of memory that a run must neither return nor write to: inputs, constants and state."""

Owner = CompileValue | str
"""The value whose memory contains another value, or EXTERNAL."""


@dataclass(frozen=True)
class Interval(Record):
    """Bytes in use between two positions, both included.

    Attributes:
        bytes: the size; None if it is not known.
        first, last: the positions.
    """

    bytes: int | None
    first: int
    last: int


def in_use(intervals: Iterable[Interval], count: int) -> list[int]:
    """Bytes in use at each of ``count`` positions, as far as they are known."""
    changes = [0] * (count + 1)
    for interval in intervals:
        if interval.first < count:
            changes[interval.first] += interval.bytes or 0
            changes[min(interval.last, count - 1) + 1] -= interval.bytes or 0
    return list(accumulate(changes[:count]))


@dataclass(eq=False)
class Buffer:
    """Bytes in use from one step to another, both included.

    Attributes:
        offset: in the arena, once offsets are assigned.
        parent, inside: the buffer of which this one is a piece, and the offset in it; the parent is in use as long as
            its pieces.
    """

    size: int
    first: int
    last: int
    offset: int = 0
    parent: Buffer | None = None
    inside: int = 0

    @property
    def whole(self) -> Buffer:
        """The buffer of which this one is a piece of a piece; itself if it is not a piece."""
        return self if self.parent is None else self.parent.whole


def assign_offsets(buffers: Sequence[Buffer]) -> int:
    """Assign an offset to every buffer. Returns the size of the arena.

    Buffers are placed in the order of their first steps, the largest first, each in the smallest gap in which it fits.
    """
    gaps = _Gaps()
    ends: list[Buffer] = []
    for buffer in sorted(
        (buffer for buffer in buffers if buffer.parent is None), key=lambda buffer: (buffer.first, -buffer.size)
    ):
        while ends and ends[0].last < buffer.first:
            done = ends.pop(0)
            gaps.free(done.offset, aligned(max(done.size, 1)))
        buffer.offset = gaps.take(aligned(max(buffer.size, 1)))
        bisect.insort(ends, buffer, key=lambda other: other.last)
    for buffer in buffers:
        buffer.offset = _offset(buffer)
    return gaps.size


def _offset(buffer: Buffer) -> int:
    return buffer.offset if buffer.parent is None else _offset(buffer.parent) + buffer.inside


class _Gaps:
    """The gaps between buffers, as (offset, size) in order; ``size`` is the highest end that was ever in use."""

    def __init__(self) -> None:
        self.size = 0
        self._gaps: list[tuple[int, int]] = []

    def take(self, size: int) -> int:
        fitting = [(gap[1], i) for i, gap in enumerate(self._gaps) if gap[1] >= size]
        if fitting:
            _, i = min(fitting)
            offset, whole = self._gaps.pop(i)
            if whole > size:
                self._gaps.insert(i, (offset + size, whole - size))
            return offset
        offset = self.size
        if self._gaps and sum(self._gaps[-1]) == self.size:
            offset = self._gaps.pop()[0]
        self.size = offset + size
        return offset

    def free(self, offset: int, size: int) -> None:
        i = bisect.bisect(self._gaps, (offset, 0))
        if i < len(self._gaps) and self._gaps[i][0] == offset + size:
            size += self._gaps.pop(i)[1]
        if i and sum(self._gaps[i - 1]) == offset:
            offset, before = self._gaps.pop(i - 1)
            size += before
            i -= 1
        self._gaps.insert(i, (offset, size))


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


@dataclass(frozen=True)
class MemoryInterval(Interval):
    """Bytes in use from one step to another, both included.

    Attributes:
        layers: the layers whose results lie there; several where one is written over another, or is a part of another.
        kind: "arena" for a tensor in the arena, "workspace" of a kernel, in the arena too, "own" for a tensor with
            memory of its own, such as a result, "body" for the peak of the tensors of a body.
        offset: in the arena; None for memory of its own.
    """

    bytes: int
    layers: tuple[str, ...]
    kind: Literal["arena", "workspace", "own", "body"]
    offset: int | None = None


def memory_intervals(
    planned: Sequence[PlannedOperation], storage: Storage, targets: set[CompileValue]
) -> tuple[MemoryInterval, ...]:
    """All memory of a plan, without its bodies.

    Args:
        planned: all operations in order; views have no step.
        storage: where the outputs lie.
        targets: the values that are asked for, which stay when the run is over.
    """
    steps = [i for i, operation in enumerate(planned) if not storage.is_view(operation)]
    intervals = [*_in_arena(storage, steps), *_own(planned, storage, targets, steps)]
    for operation, buffer in storage.workspaces.items():
        first, last = _steps(buffer.first, buffer.last, steps)
        name = operation.operation.node.name
        intervals.append(MemoryInterval(buffer.size, first, last, (name,), "workspace", buffer.offset))
    return tuple(intervals)


def _in_arena(storage: Storage, steps: Sequence[int]) -> Iterator[MemoryInterval]:
    layers = grouped(
        (buffer.whole, value.producer.node.name if value.producer is not None else value.name)
        for value, buffer in storage.buffers.items()
    )
    for buffer, names in layers.items():
        first, last = _steps(buffer.first, buffer.last, steps)
        yield MemoryInterval(buffer.size, first, last, tuple(dict.fromkeys(names)), "arena", buffer.offset)


def _own(
    planned: Sequence[PlannedOperation], storage: Storage, targets: set[CompileValue], steps: Sequence[int]
) -> Iterator[MemoryInterval]:
    """Outputs that are neither in the arena nor views, if their size is known."""
    last: dict[Owner, int] = {}
    for i, operation in enumerate(planned):
        for value in operation.operation.inputs:
            for owner in storage.owners[value]:
                last[owner] = i
    outliving = {owner for value in targets for owner in storage.owners[value]}
    for i, operation in enumerate(planned):
        for value, wanted in zip(operation.operation.outputs, operation.wanted, strict=True):
            if wanted and not operation.returns_views and value not in storage.buffers and value not in storage.views:
                size = value.fact.known_nbytes
                end = len(planned) if value in outliving else last.get(value, i)
                if size:
                    name = operation.operation.node.name
                    yield MemoryInterval(size, *_steps(i, end, steps), (name,), "own")


def _steps(first: int, last: int, steps: Sequence[int]) -> tuple[int, int]:
    """The indices of the steps between two planned operations."""
    begin = bisect_left(steps, first)
    return begin, max(begin, bisect_right(steps, last) - 1)
