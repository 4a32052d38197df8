"""Keys of the layers of one graph: equal keys mean equal structure around a layer, as far as the key looks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from irexec.analysis.matching.side import Identities, Numbers, Side
from irexec.ir.graph import Node

Keys = list[int]
"""One number per layer."""
NO_KEY = -1
"""In place of a key of a layer that has nothing of the kind; it is equal to no other."""

_MANY_ELEMENTS = 8
"""Elements beyond which the contents of a constant identify it."""


@dataclass(frozen=True)
class SideKeys:
    """The keys of every layer of one graph; those of two graphs can be compared if the same ``Numbers`` made them.

    Attributes:
        type: the type.
        definition: type and attributes.
        contents: type, attributes, the bytes of a constant and the layers of bodies.
        up: everything that the layer is computed from.
        inner: 0; NO_KEY for Parameters and layers computed from constants alone, which ``up`` does not locate.
        read: 0; NO_KEY for a layer without readers, such as a Result, which ``down`` does not describe.
        down: everything that is computed from the layer.
        computed: 0; NO_KEY for a constant.
        weights: contents of a constant of many elements, or of a layer with the contents of such constants that it
            reads; NO_KEY for every other layer.
        around: every layer within two edges.
        name: type and name.
        tensors: type and tensor names; NO_KEY without tensor names.
        neighbours: the names of the layer and of all layers that an edge connects to it.
    """

    type: Keys
    definition: Keys
    contents: Keys
    up: Keys
    inner: Keys
    read: Keys
    down: Keys
    computed: Keys
    weights: Keys
    around: Keys
    name: Keys
    tensors: Keys
    neighbours: Keys


def keys_of(side: Side, numbers: Numbers, known: Mapping[int, int]) -> SideKeys:
    """The keys of a graph.

    Args:
        side: the graph.
        numbers: shared by both graphs.
        known: for layers that are paired beforehand the number of their pair, which stands for their contents.
    """
    identities = Identities(numbers)
    types = [numbers(("type", node.type)) for node in side.nodes]
    definition = [identities.definition(node) for node in side.nodes]
    contents = [
        numbers(("known", known[i])) if i in known else identities.contents(node) for i, node in enumerate(side.nodes)
    ]
    names = [numbers(("name", node.type, node.name)) for node in side.nodes]
    return SideKeys(
        type=types,
        definition=definition,
        contents=contents,
        up=_up(side, contents, numbers),
        inner=_inner(side),
        read=[0 if uses else NO_KEY for uses in side.uses],
        down=_down(side, types, definition, numbers),
        computed=[NO_KEY if node.constant is not None else 0 for node in side.nodes],
        weights=[_weights(side, i, contents, numbers) for i in range(len(side.nodes))],
        around=_around(side, _around(side, contents, numbers), numbers),
        name=names,
        tensors=[_tensors(node, numbers) for node in side.nodes],
        neighbours=_around(side, names, numbers),
    )


def _weights(side: Side, i: int, contents: Keys, numbers: Numbers) -> int:
    read = [
        source[0] for source in side.sources[i] if source is not None and side.nodes[source[0]].constant is not None
    ]
    counts = [constant.count for k in (i, *read) if (constant := side.nodes[k].constant) is not None]
    if max(counts, default=0) <= _MANY_ELEMENTS:
        return NO_KEY
    return numbers(("weights", contents[i], tuple(contents[k] for k in read)))


def _tensors(node: Node, numbers: Numbers) -> int:
    names = tuple(tuple(value.names) for value in node.outputs)
    return numbers(("tensors", node.type, names)) if any(names) else NO_KEY


def _inner(side: Side) -> Keys:
    found = [NO_KEY] * len(side.nodes)
    for i in side.order:
        read = [source[0] for source in side.sources[i] if source is not None]
        if any(found[k] != NO_KEY or side.nodes[k].type == "Parameter" for k in read):
            found[i] = 0
    return found


def _up(side: Side, contents: Keys, numbers: Numbers) -> Keys:
    found = [-1] * len(side.nodes)
    for i in side.order:
        sources = tuple(None if source is None else (found[source[0]], source[1]) for source in side.sources[i])
        found[i] = numbers(("up", contents[i], sources))
    return found


def _down(side: Side, types: Keys, definition: Keys, numbers: Numbers) -> Keys:
    """Sources count by their type alone: a constant is what it is used for, whatever its values."""
    found = [-1] * len(side.nodes)
    for i in reversed(side.order):
        own = definition[i] if side.sources[i] else types[i]
        uses = tuple(sorted((output, port, found[user]) for output, port, user in side.uses[i]))
        found[i] = numbers(("down", own, uses))
    return found


def _around(side: Side, keys: Keys, numbers: Numbers) -> Keys:
    """The keys of each layer and of those that an edge connects it to, as one key."""
    found = []
    for i, key in enumerate(keys):
        sources = tuple(None if source is None else (keys[source[0]], source[1]) for source in side.sources[i])
        uses = tuple(sorted((output, port, keys[user]) for output, port, user in side.uses[i]))
        found.append(numbers(("around", key, sources, uses)))
    return found


def joined(numbers: Numbers, *keys: Sequence[int]) -> Keys:
    """Several keys of each layer as one; NO_KEY where one of them is."""
    return [NO_KEY if NO_KEY in parts else numbers(("joined", parts)) for parts in zip(*keys, strict=True)]
