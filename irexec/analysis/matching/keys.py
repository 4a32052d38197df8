"""Keys by which layers of two models are matched, each side of the match, pairs so far and scores of candidates."""

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
        bodies: list[Hashable] = []
        for name, body in sorted(node.bodies.items()):
            parts = ((self._definition(one), one.constant and fingerprint(one.constant)) for one in body.graph.walk())
            bodies.append((name, tuple(sorted(self._numbers(("inner", *part)) for part in parts))))
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


_NAME, _TENSORS, _ELSEWHERE = 4.0, 3.0, -1.5
_CONTENTS, _DEFINITION = 2.0, 1.5
_EDGES = 8.0
_ORDER = 0.5
"""Scores of a candidate: for an equal name, equal tensor names, an unpaired layer of its name on the other side,
equal contents or attributes, edges to pairs (each edge that leads elsewhere counts against the pair), and the same
position among Parameters or Results."""
_OTHER_PORT = 0.5
"""Score of an edge to a pair if it arrives at another input there; 1 at the same input."""
_MAX_USES = 32
"""Readers of a layer that are looked at for its score."""


class Assignment:
    """Pairs of layers by index.

    Attributes:
        a, b: the graphs.
        keys_a, keys_b: their keys.
        to_b, to_a: for each layer the index of its partner; -1 without one.
        reasons: for each layer of ``a`` why it is paired.
        fresh: the pairs that no neighbours were looked at from yet.
    """

    def __init__(self, a: Side, b: Side, keys_a: SideKeys, keys_b: SideKeys) -> None:
        self.a, self.b, self.keys_a, self.keys_b = a, b, keys_a, keys_b
        self.to_b, self.to_a = [-1] * len(a.nodes), [-1] * len(b.nodes)
        self.reasons = [""] * len(a.nodes)
        self.fresh: list[tuple[int, int]] = []
        self._named_a, self._named_b = _by_key(keys_a.name), _by_key(keys_b.name)
        self._position_a, self._position_b = _positions(a), _positions(b)

    def add(self, i: int, j: int, reason: str) -> None:
        """Pair layer ``i`` of ``a`` with layer ``j`` of ``b``."""
        self.to_b[i], self.to_a[j], self.reasons[i] = j, i, reason
        self.fresh.append((i, j))

    def is_open(self, i: int, j: int) -> bool:
        """Whether neither is paired and both have the same type."""
        return self.to_b[i] < 0 and self.to_a[j] < 0 and self.keys_a.type[i] == self.keys_b.type[j]

    def open_a(self) -> list[int]:
        """The unpaired layers of ``a`` in topological order."""
        return [i for i in self.a.order if self.to_b[i] < 0]

    def open_b(self) -> list[int]:
        """The unpaired layers of ``b`` in topological order."""
        return [j for j in self.b.order if self.to_a[j] < 0]

    def add_unique(
        self, keys_a: Sequence[int], keys_b: Sequence[int], reason: str, *, unless_named: bool = False
    ) -> None:
        """Pair the layers whose key no other unpaired layer of either side has.

        Args:
            keys_a, keys_b: of all layers of each side.
            reason: the reason of the pairs.
            unless_named: leave out those of which one has the name of another unpaired layer.
        """
        for i, j in self.unique_pairs(keys_a, keys_b):
            if self.is_open(i, j) and not (unless_named and self._elsewhere(i, j)):
                self.add(i, j, reason)

    def unique_pairs(self, keys_a: Sequence[int], keys_b: Sequence[int]) -> list[tuple[int, int]]:
        """The unpaired layers of each side whose key is equal, and that of no other unpaired layer."""
        only_a, only_b = _unique(keys_a, self.to_b), _unique(keys_b, self.to_a)
        return [(i, only_b[key]) for key, i in only_a.items() if i >= 0 and only_b.get(key, -1) >= 0]

    def score(self, i: int, j: int) -> float:
        """How well two layers of the same type go together; at 0 nothing speaks for them or against them."""
        return self._names(i, j) + self._definitions(i, j) + _EDGES * self.edges(i, j)

    def _names(self, i: int, j: int) -> float:
        a, b = self.keys_a, self.keys_b
        score = _TENSORS if a.tensors[i] == b.tensors[j] != NO_KEY else 0.0
        if a.name[i] == b.name[j]:
            return score + _NAME
        return score + _ELSEWHERE * self._elsewhere(i, j)

    def _elsewhere(self, i: int, j: int) -> int:
        """Number of the two whose name an unpaired layer of the other side has too; 0 if their names are equal."""
        mine, theirs = self.keys_a.name[i], self.keys_b.name[j]
        if mine == theirs:
            return 0
        in_b = any(self.to_a[other] < 0 for other in self._named_b.get(mine, ()))
        in_a = any(self.to_b[other] < 0 for other in self._named_a.get(theirs, ()))
        return in_a + in_b

    def _definitions(self, i: int, j: int) -> float:
        a, b = self.keys_a, self.keys_b
        order = _ORDER if i in self._position_a and self._position_a[i] == self._position_b.get(j) else 0.0
        if a.contents[i] == b.contents[j]:
            return _CONTENTS + order
        return order + (_DEFINITION if a.definition[i] == b.definition[j] else 0.0)

    def edges(self, i: int, j: int) -> float:
        """From -1 to 1: the part of all edges that lead to pairs, less the part that leads elsewhere; at other ports
        they count half."""
        agreed, total = self._source_edges(i, j)
        more_agreed, more = self._use_edges(i, j)
        return (agreed + more_agreed) / max(1, total + more)

    def _source_edges(self, i: int, j: int) -> tuple[float, int]:
        mine, theirs = self.a.sources[i], self.b.sources[j]
        agreed = 0.0
        for one, other in zip(mine, theirs, strict=False):
            if one is None or other is None:
                continue
            partner = self.to_b[one[0]]
            if partner == other[0] and one[1] == other[1]:
                agreed += 1
            elif partner >= 0 and (partner, one[1]) in theirs:
                agreed += _OTHER_PORT
            elif partner >= 0 or self.to_a[other[0]] >= 0:
                agreed -= 1
        return agreed, max(len(mine), len(theirs))

    def _use_edges(self, i: int, j: int) -> tuple[float, int]:
        mine, theirs = self.a.uses[i], self.b.uses[j]
        agreed = 0.0
        for output, port, user in mine[:_MAX_USES]:
            partner = self.to_b[user]
            if partner >= 0:
                sources = self.b.sources[partner]
                is_same = port < len(sources) and sources[port] == (j, output)
                agreed += 1 if is_same else _OTHER_PORT if (j, output) in sources else -1
        return agreed, min(_MAX_USES, max(len(mine), len(theirs)))


def _unique(keys: Sequence[int], partners: Sequence[int]) -> dict[int, int]:
    """By key the only unpaired layer that has it; -1 where several have."""
    found: dict[int, int] = {}
    for i, key in enumerate(keys):
        if partners[i] < 0 and key != NO_KEY:
            found[key] = -1 if key in found else i
    return found


def _by_key(keys: Sequence[int]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for i, key in enumerate(keys):
        positions = found.setdefault(key, [])
        # Many layers of one name say nothing; to look at a few is enough.
        if len(positions) < 4:
            positions.append(i)
    return found


def _positions(side: Side) -> dict[int, tuple[str, int]]:
    """For Parameters and Results their position among their like."""
    counts = {"Parameter": 0, "Result": 0}
    found = {}
    for i, node in enumerate(side.nodes):
        if node.type in counts:
            found[i] = (node.type, counts[node.type])
            counts[node.type] += 1
    return found
