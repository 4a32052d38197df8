"""The bytes that a plan has in use from step to step, for reports."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from irexec.analysis.constant_layers import Interval
from irexec.compile.graph import CompileValue
from irexec.compile.storage.arena import Buffer
from irexec.compile.storage.planned import Owner, PlannedOperation, Storage


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
    layers: dict[Buffer, list[str]] = {}
    for value, buffer in storage.buffers.items():
        name = value.producer.node.name if value.producer is not None else value.name
        layers.setdefault(buffer.whole, []).append(name)
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
