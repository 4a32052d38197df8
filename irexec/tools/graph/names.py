"""Groups of layers by their names: "encoder/layer.3/attention/MatMul" is in encoder, layer.3 and attention."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

_SEPARATOR = re.compile(r"[/.]+")
# Frameworks write it before every name.
_LEADING = frozenset({"__module", ""})
_DEEPEST, _LONGEST = 32, 2_000
SHAPE_ARITHMETIC = "shape arithmetic"
"""The name of a group of layers whose values depend on shapes alone."""
MINIMUM = 3
"""Layers of a group; fewer are not worth a fold."""


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
        """True if its layers compute with shapes alone (shape_arithmetic.py)."""
        return self.name == SHAPE_ARITHMETIC

    def all_layers(self) -> Iterator[int]:
        """The layers in it and in its groups."""
        waiting = [self]
        while waiting:
            group = waiting.pop()
            yield from group.layers
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
    that of its producers. The module of a single layer, such as "bn1.act", is not shared.

    Args:
        names: of the layers.
        before: the producers of each layer.
        order: the layers, each after its producers except on cycles.
    """
    groups = Counter(scope(name)[:depth] for name in names.values() for depth in range(1, len(scope(name)) + 1))
    after: dict[int, list[int]] = {}
    for i in names:
        for j in before.get(i, ()):
            after.setdefault(j, []).append(i)

    def shared(path: tuple[str, ...]) -> tuple[str, ...]:
        while path and groups[path] < 2 and not path[-1].isdigit():
            path = path[:-1]
        return path

    found: dict[int, tuple[str, ...]] = {}
    for i in order:
        own = scope(names[i])
        # "conv1" next to "conv1/WithoutBiases" is in the group "conv1".
        beside = (*own, _SEPARATOR.split(names[i][:_LONGEST])[-1])
        if groups[beside]:
            own = beside
        if not own and (arriving := [shared(found[j]) for j in before.get(i, ()) if j in found]):
            readers = [shared(scope(names[j])) for j in after.get(i, ())]
            own = _common(readers if readers and all(readers) else arriving)
        found[i] = own
    return found


def _common(scopes: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """The longest common beginning of the scopes."""
    first, last = min(scopes), max(scopes)
    depth = 0
    while depth < min(len(first), len(last)) and first[depth] == last[depth]:
        depth += 1
    return first[:depth]


def group_by_scope(scopes: Mapping[int, tuple[str, ...]]) -> Group:
    """The tree of groups, without groups of fewer than ``MINIMUM`` layers or all layers of the outer group."""
    by_scope: dict[tuple[str, ...], Group] = {(): Group("")}
    for i, path in scopes.items():
        for depth in range(1, len(path) + 1):
            if path[:depth] not in by_scope:
                made = by_scope[path[:depth]] = Group(_name(path[:depth]))
                by_scope[path[: depth - 1]].groups.append(made)
        by_scope[path].layers.append(i)
    return _simplified(by_scope[()], is_outermost=True)


def _name(path: Sequence[str]) -> str:
    """The last part of a scope; a number keeps the part before it."""
    if path[-1].startswith(SHAPE_ARITHMETIC):
        return SHAPE_ARITHMETIC
    return ".".join(path[-2:]) if path[-1].isdigit() else path[-1]


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
        # There is no group "model" if every layer is in it.
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
