"""Groups of repeated layers: blocks of networks whose layer names do not show the repetition."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from irexec.tools.graph.names import Group

_SHORTEST, _LONGEST = 2, 400
"""Items of a block."""
_LAYERS, _ITEMS = 4, 10
"""Minimum number of layers in a block, and of items in all blocks of a kind."""


@dataclass(frozen=True)
class Repetition:
    """``copies`` blocks of ``period`` items each, from item ``start`` on."""

    start: int
    period: int
    copies: int

    @property
    def stop(self) -> int:
        """The item after the last one."""
        return self.start + self.period * self.copies


def group_repeated(group: Group, types: Mapping[int, str], pairs: Collection[tuple[int, int]]) -> None:
    """Put consecutive repetitions in each group, found by the types of layers, into one group per repetition.

    Args:
        group: the outermost group; its layers are numbered in an order of execution.
        types: of the layers.
        pairs: the edges between them.
    """
    waiting = [group]
    while waiting:
        one = waiting.pop()
        if one.is_shape_arithmetic:
            continue
        waiting += one.groups
        # A repeated part may contain repetitions: blocks in the stages of a network, heads in its blocks.
        waiting += _one_group(one, types, pairs)


Item = int | Group


def _one_group(group: Group, types: Mapping[int, str], pairs: Collection[tuple[int, int]]) -> list[Group]:
    """The new groups."""
    if len(group.layers) + len(group.groups) < _ITEMS:
        return []
    members: list[tuple[Item, list[int]]] = [(i, [i]) for i in group.layers]
    members += [(inner, sorted(inner.all_layers())) for inner in group.groups]
    members.sort(key=lambda member: member[1])
    kinds: dict[object, int] = {}
    labels = np.array([kinds.setdefault(tuple(types[i] for i in layers), len(kinds)) for _, layers in members])
    at = {i: k for k, (_, layers) in enumerate(members) for i in layers}
    # Number of lines that pass between each item and the item before it.
    crossing = np.zeros(len(members) + 1, np.int64)
    for a, b in {(a, at[b]) for a, b in pairs if a in at and b in at}:
        low, high = sorted((at[a], b))
        crossing[low + 1] += low < high
        crossing[high + 1 if low < high else low] -= low < high
    found = repetitions(labels, np.cumsum(crossing), np.array([len(layers) for _, layers in members]))
    made: list[Group] = []
    taken: set[int] = set()
    for repetition in found:
        for copy in range(repetition.copies):
            start = repetition.start + copy * repetition.period
            inside = range(start, start + repetition.period)
            taken.update(inside)
            made.append(_block([members[k] for k in inside], types, f"{copy + 1} of {repetition.copies}"))
    rest = [members[k][0] for k in range(len(members)) if k not in taken]
    if not made or (not rest and len(made) == 1):
        return []
    group.layers = [item for item in rest if isinstance(item, int)]
    group.groups = [item for item in rest if isinstance(item, Group)] + made
    return made


def _block(members: Sequence[tuple[Item, list[int]]], types: Mapping[int, str], which: str) -> Group:
    """A group of items. Repeated layers have no common name: the name is that of the first item, and its position."""
    layers = [item for item, _ in members if isinstance(item, int)]
    groups = [item for item, _ in members if isinstance(item, Group)]
    first, _ = members[0]
    return Group(f"{first.name if isinstance(first, Group) else types[first]} … {which}", layers, groups)


def repetitions(labels: np.ndarray, crossing: np.ndarray, sizes: np.ndarray) -> list[Repetition]:
    """The repetitions in a sequence, in its order; they do not overlap.

    Args:
        labels: labels of the items; items with equal labels are alike.
        crossing: number of lines that pass before each item, and after the last one; blocks begin at small numbers.
        sizes: number of layers in each item.
    """
    found: list[Repetition] = []
    waiting = [(0, len(labels))]
    while waiting:
        first, stop = waiting.pop()
        best = _largest(labels[first:stop])
        if best is None:
            continue
        best = _aligned(Repetition(best.start + first, best.period, best.copies), labels, crossing, stop)
        if sizes[best.start : best.start + best.period].sum() < _LAYERS:
            continue
        found.append(best)
        waiting += [(first, best.start), (best.stop, stop)]
    return sorted(found, key=lambda one: one.start)


def _largest(labels: np.ndarray) -> Repetition | None:
    """The repetition with the highest score, which grows with its size and its number of copies."""
    best, highest = None, 0
    for period in range(_SHORTEST, min(_LONGEST, len(labels) // 2) + 1):
        alike = np.flatnonzero(np.diff(np.concatenate(([0], labels[:-period] == labels[period:], [0]))))
        starts, lengths = alike[::2], alike[1::2] - alike[::2]
        if not len(lengths):
            continue
        k = int(np.argmax(lengths))
        one = Repetition(int(starts[k]), period, int(lengths[k]) // period + 1)
        says = one.period * (one.copies - 1) ** 2
        if (labels[one.start : one.start + period] == labels[one.start]).all():
            # All items are alike, such as blocks that have a name already.
            continue
        if one.period * one.copies >= _ITEMS and says > highest:
            best, highest = one, says
    return best


def _aligned(one: Repetition, labels: np.ndarray, crossing: np.ndarray, end: int) -> Repetition:
    """The repetition moved to where the fewest lines cross the ends of its blocks, perhaps with one block less."""
    whole = one.stop
    while whole < end and labels[whole] == labels[whole - one.period]:
        whole += 1
    choices = []
    for shift in range(one.period):
        copies = (whole - one.start - shift) // one.period
        if copies >= 2 or shift == 0:
            positions = one.start + shift + one.period * np.arange(copies + 1)
            choices.append((float(crossing[positions].mean()), -copies, shift))
    _, copies, shift = min(choices)
    return Repetition(one.start + shift, one.period, -copies)
