"""Keys by which layers of two models are matched, and each side of the match."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from irexec.errors import IrexecError, OpError, UnsupportedError
from irexec.ir.constants import Constant
from irexec.ir.graph import Graph, Node
from irexec.ir.order import sort_by_producers
from irexec.schema.registry import resolve

_WHOLE, _SAMPLES, _SAMPLE = 1 << 14, 16, 256
"""Bytes of a constant up to which all of them identify it; beyond, how many samples of how many bytes do."""
_OF_FILE = ("element_type", "shape", "offset", "size")
"""Attributes of a Constant that say where its bytes are and what they are; the constant itself knows them."""

Source = tuple[int, int]
"""The index of a layer and of one of its outputs."""
Use = tuple[int, int, int]
"""An output of a layer, the input that reads it and the index of that input's layer."""


class Numbers:
    """Gives equal things equal numbers, and different things different ones: exact, and the same in every run."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}

    def __call__(self, thing: Hashable) -> int:
        return self._numbers.setdefault(thing, len(self._numbers))


@dataclass(eq=False)
class Side:
    """A graph with its layers as indices into ``nodes``.

    Attributes:
        nodes: the layers, in the order of the file.
        sources: for each layer where each input comes from; None where no edge of the graph arrives.
        uses: for each layer who reads its outputs.
        order: the indices in topological order, those on cycles last.
        rank: for each layer its position in ``order``.
    """

    nodes: list[Node]
    sources: list[list[Source | None]] = field(default_factory=list)
    uses: list[list[Use]] = field(default_factory=list)
    order: list[int] = field(default_factory=list)
    rank: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, graph: Graph) -> Side:
        """The layers of a graph, those of bodies not included."""
        side = cls(graph.nodes)
        position = {node: i for i, node in enumerate(graph.nodes)}
        side.uses = [[] for _ in graph.nodes]
        for i, node in enumerate(graph.nodes):
            sources: list[Source | None] = []
            for port, value in enumerate(node.inputs):
                source = None if value is None or value.node not in position else (position[value.node], value.index)
                sources.append(source)
                if source is not None:
                    side.uses[source[0]].append((source[1], port, i))
            side.sources.append(sources)
        order, stuck = sort_by_producers([{source[0] for source in sources if source} for sources in side.sources])
        side.order = order + stuck
        side.rank = [0] * len(side.order)
        for rank, i in enumerate(side.order):
            side.rank[i] = rank
        return side


class Identities:
    """Identity of a layer by itself: its type, its attributes and the contents of a constant."""

    def __init__(self, numbers: Numbers) -> None:
        self._numbers = numbers
        self._attributes: dict[Hashable, Hashable] = {}

    def definition(self, node: Node) -> int:
        """The number of its type and attributes; of a constant, its element type and shape; a Parameter has any
        shape."""
        return self._numbers(("definition", self._definition(node)))

    def contents(self, node: Node) -> int:
        """The number of its definition with the bytes of a constant and the layers of bodies."""
        if node.constant is not None:
            return self._numbers(("constant", self._definition(node), fingerprint(node.constant)))
        if not node.bodies:
            return self.definition(node)
        bodies = [
            (
                name,
                tuple(
                    sorted(
                        self._numbers(("inner", self._definition(inner), _bytes(inner))) for inner in body.graph.walk()
                    )
                ),
            )
            for name, body in sorted(node.bodies.items())
        ]
        return self._numbers(("bodies", self._definition(node), tuple(bodies)))

    def _definition(self, node: Node) -> Hashable:
        if node.constant is not None:
            return node.type, node.constant.element.name, node.constant.shape
        if node.type == "Parameter":
            return node.type, node.attributes.get("element_type")
        key = (node.type, node.version, tuple(node.attributes.items()))
        if key not in self._attributes:
            self._attributes[key] = (node.type, tuple(sorted(attribute_values(node).items())))
        return self._attributes[key]


def attribute_values(node: Node) -> Mapping[str, str]:
    """The attributes by name, each as the ``repr`` of its value, to be compared: ``1, 1`` is as ``1,1``, ``TRUE`` as
    ``true``, and an attribute that is left out as its default.

    Of a layer whose type is not known, the text without spaces around it. Those that a constant's bytes follow from are
    left out.
    """
    texts = {name: text.strip() for name, text in node.attributes.items()}
    if node.constant is not None:
        return {name: text for name, text in texts.items() if name not in _OF_FILE}
    try:
        definition = resolve(node.type, node.version)
    except UnsupportedError:
        return texts
    found = dict(texts)
    for attribute in definition.attributes:
        text = texts.get(attribute.name)
        if text is None and attribute.required:
            continue
        try:
            found[attribute.name] = repr(attribute.default if text is None else attribute.parse(text))
        except OpError:
            continue
    return {name: text for name, text in found.items() if name not in definition.ignores}


def fingerprint(constant: Constant) -> Hashable:
    """Identity of the bytes of a constant: all of them, or samples of a large one."""
    try:
        raw = constant.contents
    except IrexecError:
        return None
    digest = hashlib.blake2b(digest_size=16)
    if raw.size <= _WHOLE:
        digest.update(raw.tobytes())
    else:
        for i in range(_SAMPLES):
            start = (raw.size - _SAMPLE) * i // (_SAMPLES - 1)
            digest.update(raw[start : start + _SAMPLE].tobytes())
    return digest.digest()


def _bytes(node: Node) -> Hashable:
    return None if node.constant is None else fingerprint(node.constant)


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
