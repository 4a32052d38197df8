"""What holds memory while a plan runs, and from which step to which."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from irexec.compile.graph import Value
from irexec.compile.memory import Buffer
from irexec.compile.storage_types import Draft, Storage


@dataclass(frozen=True)
class Held:
    """Bytes that are held from one step to another, both included.

    Attributes:
        layers: whose results they are; several where one is written over another, or lies in a part of another.
        kind: "arena" for a tensor in the arena, "workspace" of a kernel, which is in it too, "own" for a tensor with memory of its
            own, as results have, "body" for the peak of the tensors of a body.
        offset: in the arena; None for memory of its own.
        bytes: how many.
        first, last: the indices of the steps.
    """

    layers: tuple[str, ...]
    kind: Literal["arena", "workspace", "own", "body"]
    offset: int | None
    bytes: int
    first: int
    last: int


def held(drafts: Sequence[Draft], storage: Storage, targets: set[Value]) -> tuple[Held, ...]:
    """Everything that is held in a plan, bodies apart.

    Args:
        drafts: all operations in order; those that are views have no step.
        storage: where their outputs are.
        targets: the values that are asked for, which stay when the run is over.
    """
    steps = [i for i, draft in enumerate(drafts) if not storage.is_view(draft)]
    found = [*_in_arena(storage, steps), *_own(drafts, storage, targets, steps)]
    for draft, buffer in storage.workspaces.items():
        first, last = _steps(buffer.first, buffer.last, steps)
        found.append(Held((draft.operation.node.name,), "workspace", buffer.offset, buffer.size, first, last))
    return tuple(found)


def in_use(every: Iterable[Held], steps: int) -> list[int]:
    """Bytes that are held during each of the steps."""
    changes = [0] * (steps + 1)
    for one in every:
        if one.first < steps:
            changes[one.first] += one.bytes
            changes[min(one.last, steps - 1) + 1] -= one.bytes
    return list(accumulate(changes[:steps]))


def _in_arena(storage: Storage, steps: Sequence[int]) -> Iterator[Held]:
    layers: dict[Buffer, list[str]] = {}
    for value, buffer in storage.buffers.items():
        whole = buffer
        while whole.parent is not None:
            whole = whole.parent
        layers.setdefault(whole, []).append(value.producer.node.name if value.producer is not None else value.name)
    for buffer, names in layers.items():
        yield Held(
            tuple(dict.fromkeys(names)), "arena", buffer.offset, buffer.size, *_steps(buffer.first, buffer.last, steps)
        )


def _own(drafts: Sequence[Draft], storage: Storage, targets: set[Value], steps: Sequence[int]) -> Iterator[Held]:
    """Outputs that are neither in the arena nor views, as far as their size is known."""
    last: dict[Value | str, int] = {}
    for i, draft in enumerate(drafts):
        for value in draft.operation.inputs:
            for root in storage.roots[value]:
                last[root] = i
    kept = {root for value in targets for root in storage.roots[value]}
    for i, draft in enumerate(drafts):
        for value, wanted in zip(draft.operation.outputs, draft.wanted, strict=True):
            if wanted and not draft.gives_views and value not in storage.buffers and value not in storage.views:
                size = value.fact.known_nbytes
                end = len(drafts) if value in kept else last.get(value, i)
                if size:
                    yield Held((draft.operation.node.name,), "own", None, size, *_steps(i, end, steps))


def _steps(first: int, last: int, steps: Sequence[int]) -> tuple[int, int]:
    """The indices of the steps between two drafts."""
    begin = bisect_left(steps, first)
    return begin, max(begin, bisect_right(steps, last) - 1)
