"""Groups of layers: by their names, by repetition, and such that they can be drawn as one box."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

import numpy as np

from irexec.ir.order import grouped

_SEPARATOR = re.compile(r"[/.]+")
# Frameworks write it before every name.
_LEADING = frozenset({"__module", ""})
_DEEPEST, _LONGEST = 32, 2_000
SHAPE_ARITHMETIC = "shape arithmetic"
"""The name of a group of layers whose values depend on shapes alone."""
MINIMUM = 3
"""Layers of a group; fewer are not worth a fold."""
_MANY = 30
"""Layers outside of groups that are too many to look at."""
_ENDS = ("Parameter", "Result")
_LITTLE = 4
"""Largest group that is divided in place of the smallest of its cycle, in sizes of that."""


@dataclass
class Group:
    """Layers with a common name.

    Attributes:
        name: the part of the name that is its own.
        layers: layers directly in the group.
        groups: groups directly in the group.
    """

    name: str
    layers: list[int] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)

    @property
    def is_shape_arithmetic(self) -> bool:
        """True if its layers compute with shapes alone (content.py)."""
        return self.name == SHAPE_ARITHMETIC

    def all_layers(self) -> Iterator[int]:
        """The layers in it and in its groups."""
        return (i for group in self.walk() for i in group.layers)

    def walk(self) -> Iterator[Group]:
        """It and the groups in it, each before those that are in it by then."""
        waiting = [self]
        while waiting:
            yield (group := waiting.pop())
            waiting += group.groups

    @property
    def size(self) -> int:
        """Number of layers in it and in its groups."""
        return sum(1 for _ in self.all_layers())


def scope(name: str) -> tuple[str, ...]:
    """The groups of a layer with this name, the outermost first; the last part of a name belongs to the layer alone."""
    parts = _SEPARATOR.split(name[:_LONGEST])[:-1]
    # A part with "::", such as "aten::linear", is an operation of a framework, not a module.
    return tuple([part for part in parts if part not in _LEADING and "::" not in part][:_DEEPEST])


def scopes(
    names: Mapping[int, str], before: Mapping[int, Sequence[int]], order: Sequence[int]
) -> dict[int, tuple[str, ...]]:
    """The scope of each layer.

    Transformations of a model leave layers without a scope, such as "Multiply_8123" for a convolution that a
    normalization was fused into. Such a layer gets the common scope of its readers if each of them has a scope, else
    that of its producers. The module of a single layer, such as "bn1.act", is not shared. A module that is used in
    several places, such as one activation for all convolutions, has no layers of its own: each is in the scope of its
    producers.

    Args:
        names: of the layers.
        before: the producers of each layer.
        order: the layers, each after its producers except on cycles.
    """
    paths = {i: scope(name) for i, name in names.items()}
    groups = Counter(path[:depth] for path in paths.values() for depth in range(1, len(path) + 1))
    after = grouped((j, i) for i in names for j in before.get(i, ()))

    def shared(path: tuple[str, ...]) -> tuple[str, ...]:
        while path and groups[path] < 2 and not path[-1].isdigit():
            path = path[:-1]
        return path

    # Scopes without inner scopes whose layers are in several places: no edge leads from one place to another.
    outer = {path[:-1] for path in groups}
    first = [i for i, path in paths.items() if all(paths.get(j) != path for j in before.get(i, ()))]
    places = Counter(paths[i] for i in first if paths[i] and paths[i] not in outer)
    owned = {i: () if places[path] >= MINIMUM else path for i, path in paths.items()}
    found: dict[int, tuple[str, ...]] = {}
    for i in order:
        own = owned[i]
        arriving = [found[j] for j in before.get(i, ()) if j in found]
        if own != paths[i] and any(arriving):
            found[i] = _common([path for path in arriving if path])
            continue
        # "conv1" next to "conv1/WithoutBiases" is in the group "conv1".
        beside = (*own, _SEPARATOR.split(names[i][:_LONGEST])[-1])
        if groups[beside]:
            own = beside
        if not own and arriving:
            readers = [shared(owned[j]) for j in after.get(i, ())]
            own = _common(readers if readers and all(readers) else [shared(path) for path in arriving])
        found[i] = own
    return found


def _common(scopes: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """The longest common beginning of the scopes."""
    ends = zip(min(scopes), max(scopes), strict=False)
    return tuple(first for first, _ in takewhile(lambda parts: parts[0] == parts[1], ends))


def group_by_scope(scopes: Mapping[int, tuple[str, ...]]) -> Group:
    """The tree of groups, without groups of fewer than ``MINIMUM`` layers or all layers of the outer group."""
    by_scope: dict[tuple[str, ...], Group] = {(): Group("")}
    for i, path in scopes.items():
        for depth in range(1, len(path) + 1):
            own = path[:depth]
            if own not in by_scope:
                # A number keeps the part before it.
                name = ".".join(own[-2:]) if own[-1].isdigit() else own[-1]
                by_scope[own] = Group(SHAPE_ARITHMETIC if own[-1].startswith(SHAPE_ARITHMETIC) else name)
                by_scope[own[:-1]].groups.append(by_scope[own])
        by_scope[path].layers.append(i)
    return _simplified(by_scope[()], is_outermost=True)


def _joined(outer: str, inner: str) -> str:
    """The name of a group that is alone in another group."""
    last = outer.rpartition(".")[2]
    return f"{outer}{inner.removeprefix(last)}" if inner.startswith(f"{last}.") else f"{outer}.{inner}"


def _simplified(group: Group, is_outermost: bool = False) -> Group:
    """The group without inner groups that are too small or alone. The recursion is as deep as a scope."""
    kept: list[Group] = []
    layers = list(group.layers)
    for inner in group.groups:
        simple = _simplified(inner)
        if simple.size < MINIMUM:
            layers += simple.all_layers()
        else:
            kept.append(simple)
    if len(kept) == 1 and not layers and not (is_outermost and kept[0].is_shape_arithmetic):
        (only,) = kept
        # A group "model" of every layer is left out.
        name = "" if is_outermost else _joined(group.name, only.name)
        return only if only.is_shape_arithmetic else Group(name, only.layers, only.groups)
    return Group(group.name, layers, kept)


def dissolve(group: Group, inner: Group) -> None:
    """Replace an inner group of ``group`` by its content."""
    group.groups.remove(inner)
    group.layers += inner.layers
    for one in inner.groups:
        if not one.is_shape_arithmetic:
            one.name = _joined(inner.name, one.name)
    group.groups += inner.groups


_SHORTEST, _LONGEST_BLOCK = 2, 400
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
    # A repeated part may contain repetitions: blocks in the stages of a network, heads in its blocks.
    for one in group.walk():
        if not one.is_shape_arithmetic and len(one.layers) + len(one.groups) >= _ITEMS:
            _one_group(one, types, pairs)


Item = int | Group


def _one_group(group: Group, types: Mapping[int, str], pairs: Collection[tuple[int, int]]) -> None:
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
        crossing[low + 1] += 1
        crossing[high + 1] -= 1
    found = repetitions(labels, np.cumsum(crossing), np.array([len(layers) for _, layers in members]))
    items = [item for item, _ in members]
    made: list[Group] = []
    for one in found:
        for copy, start in enumerate(range(one.start, one.stop, one.period), 1):
            # Repeated layers have no common name: the name is that of the first item, and its position.
            first = items[start]
            name = first.name if isinstance(first, Group) else types[first]
            made.append(Group(f"{name} … {copy} of {one.copies}", *_divide(items[start : start + one.period])))
    taken = {k for one in found for k in range(one.start, one.stop)}
    rest = [item for k, item in enumerate(items) if k not in taken]
    if made and (rest or len(made) > 1):
        group.layers, groups = _divide(rest)
        group.groups = groups + made


def _divide(items: Iterable[Item]) -> tuple[list[int], list[Group]]:
    """The layers and the groups among items."""
    return [one for one in items if isinstance(one, int)], [one for one in items if isinstance(one, Group)]


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
    for period in range(_SHORTEST, min(_LONGEST_BLOCK, len(labels) // 2) + 1):
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


Pairs = Collection[tuple[int, int]]


def make_acyclic(group: Group, pairs: Pairs) -> None:
    """Change the groups of ``group``, at every level, until none is on a cycle.

    A group on a cycle with layers alone absorbs them, unless it is shape arithmetic. Of several groups on a cycle the
    smallest is divided into the layers that do not depend on the rest of the cycle, or do not lead to it, and its other
    layers. If it has none, one that is little larger is divided, or the smallest is dissolved.

    Args:
        group: the outermost group, with all layers.
        pairs: the edges between the layers; a cycle of layers stays.
    """
    _one_level(group, pairs)
    owner = {i: k for k, inner in enumerate(group.groups) for i in inner.all_layers()}
    inside = grouped((owner[a], (a, b)) for a, b in pairs if a in owner and owner[a] == owner.get(b))
    # The recursion is as deep as groups are in each other.
    for k, inner in enumerate(group.groups):
        make_acyclic(inner, inside.get(k, []))


def _one_level(outer: Group, pairs: Pairs) -> None:
    while outer.groups:
        box = {i: ~k for k, inner in enumerate(outer.groups) for i in inner.all_layers()}
        between = {(box.get(a, a), box.get(b, b)) for a, b in pairs}
        cycles = strong_components({(a, b) for a, b in between if a != b})
        wrong = [(members, [outer.groups[~i] for i in members if i < 0]) for members in cycles if min(members) < 0]
        if not wrong:
            break
        for members, chosen in wrong:
            if len(chosen) == 1 and not chosen[0].is_shape_arithmetic:
                taken = {i for i in members if i >= 0}
                chosen[0].layers += sorted(taken)
                outer.layers = [i for i in outer.layers if i not in taken]
                continue
            chosen.sort(key=lambda inner: inner.size)
            small = [inner for inner in chosen if inner.size <= _LITTLE * chosen[0].size]
            if not any(_divided(outer, inner, members, box, pairs) for inner in small):
                dissolve(outer, small[0])
    in_order = sorted(outer.groups, key=lambda one: min(one.all_layers()))
    for name, alike in grouped((inner.name, inner) for inner in in_order).items():
        if len(alike) > 1 and " … " not in name and name != SHAPE_ARITHMETIC:
            for number, inner in enumerate(alike, 1):
                inner.name = f"{name} … {number} of {len(alike)}"


def _divided(outer: Group, inner: Group, members: Sequence[int], box: Mapping[int, int], pairs: Pairs) -> bool:
    """Replace a group by its layers that do not depend on the other members, or do not lead to them, and the rest."""
    inside = set(inner.all_layers())
    others = {*members} - {box[i] for i in inside}
    ends = [(a if a in inside else box.get(a, a), b if b in inside else box.get(b, b)) for a, b in pairs]
    after, before = grouped(ends), grouped((b, a) for a, b in ends)
    apart = inside - reached(others, after) or inside - reached(others, before)
    if not apart:
        return False
    outer.groups.remove(inner)
    for part in (_simplified(_part(inner, kept)) for kept in (apart, inside - apart)):
        if part.size < MINIMUM:
            outer.layers += part.all_layers()
        else:
            outer.groups.append(part)
    return True


def _part(group: Group, kept: Collection[int]) -> Group:
    """A group with some of its layers alone."""
    return Group(group.name, [i for i in group.layers if i in kept], [_part(inner, kept) for inner in group.groups])


def reached(
    starts: Iterable[int],
    *directions: Mapping[int, Collection[int]],
    hops: float = math.inf,
    without: Collection[int] = frozenset(),
) -> set[int]:
    """The vertices and all that are reachable from them in any of the directions, over at most ``hops`` edges."""
    found = set(starts)
    edge: Collection[int] = found
    while edge and hops > 0:
        near = {j for i in edge for direction in directions for j in direction.get(i, ())}
        edge = near.difference(found, without)
        found |= edge
        hops -= 1
    return found


def group_cones(group: Group, types: Mapping[int, str], pairs: Pairs, order: Sequence[int]) -> None:
    """Put layers that lead to one layer alone into a group with it, wherever many layers are outside of groups.

    Args:
        group: the outermost group.
        types: of the layers; inputs and results of the graph stay outside.
        pairs: the edges between them.
        order: the layers, each after its producers except on cycles.
    """
    after = grouped(pairs)
    place = {i: k for k, i in enumerate(order)}
    for one in group.walk():
        if one.is_shape_arithmetic or len(one.layers) <= _MANY:
            continue
        root: dict[int, int] = {}
        cones: dict[int, list[int]] = {}
        inner = [i for i in one.layers if types[i] not in _ENDS]
        for i in sorted(inner, key=place.__getitem__, reverse=True):
            roots = {root.get(j, -1) for j in after.get(i, ())}
            only = roots.pop() if len(roots) == 1 else -1
            root[i] = only if only >= 0 and len(cones[only]) < _MANY else i
            cones.setdefault(root[i], []).append(i)
        folded = {i: layers for i, layers in cones.items() if len(layers) >= MINIMUM}
        one.groups += [Group(f"{types[layers[-1]]} … {types[i]}", sorted(layers)) for i, layers in folded.items()]
        one.layers = [j for j in one.layers if root.get(j) not in folded]


def strong_components(pairs: Pairs) -> list[list[int]]:
    """Sets of two and more vertices that lie on common cycles. Source: Sharir 1981, without recursion."""
    after, before = grouped(pairs), grouped((b, a) for a, b in pairs)
    entered: set[int] = set()
    finished: dict[int, None] = {}
    waiting = list(after)
    while waiting:
        vertex = waiting[-1]
        if vertex not in entered:
            entered.add(vertex)
            waiting += [other for other in after.get(vertex, ()) if other not in entered]
        else:
            finished[waiting.pop()] = None
    found: list[list[int]] = []
    taken: set[int] = set()
    for vertex in reversed(finished):
        members = set() if vertex in taken else reached([vertex], before, without=taken)
        taken |= members
        found += [sorted(members)] if len(members) > 1 else []
    return found
