"""Differences of graphs, of their edges and of their bodies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, zip_longest
from types import MappingProxyType

from irexec.analysis.matching import Matching, Pair
from irexec.ir.facts import Fact
from irexec.ir.graph import Graph, Node, PortMap, Value
from irexec.ir.order import grouped
from irexec.tools.diff.changes import (
    ReadAs,
    constant_changes,
    fact_text,
    facts_differ,
    is_damaged,
    output_changes,
    own_changes,
    same_bytes,
    value_change,
)
from irexec.tools.diff.result import Change, Following, LayerDiff, LayerRef

_Entry = tuple[str, str]
"""Ends of an entry of a port map or of a back edge, and its attributes."""


def body_changes(pair: Pair, name: str, matching: Matching) -> list[Change]:
    """Entries of the port map and back edges that only one of two bodies has, or that differ in their attributes."""
    # Layers are named as in A; their ids and names in B do not count.
    names_b = {node.id: (matching.in_a(node) or node).name for node in matching.b.nodes}
    sides = (pair.a, {node.id: node.name for node in matching.a.nodes}), (pair.b, names_b)
    maps = ([_port_map(node, entry, names) for entry in node.bodies[name].port_maps] for node, names in sides)
    edges = (
        [
            (f"{names.get(edge.source, edge.source)} to {names.get(edge.target, edge.target)}", "there")
            for edge in node.bodies[name].back_edges
        ]
        for node, names in sides
    )
    return [*_differing(f"{name} port map", *maps), *_differing(f"{name} back edge", *edges)]


def _by_id(graph: Graph) -> dict[int, Node]:
    return {node.id: node for node in graph.nodes}


def _port_map(node: Node, entry: PortMap, names: dict[int, str]) -> _Entry:
    """An entry by the index of the layer's port; ids of ports depend on the number of ports."""
    is_input = entry.kind == "input"
    if entry.external < 0:
        port = f"no {entry.kind}"
    else:
        index = node.input_index(entry.external) if is_input else node.output_index(entry.external)
        port = f"{entry.kind} {'?' if index is None else index}"
    attributes = " ".join(f'{name}="{text}"' for name, text in sorted(entry.attributes.items()))
    ends = f"{port} {'to' if is_input else 'from'} {names.get(entry.internal, entry.internal)}"
    return ends, attributes or "there"


def _differing(what: str, a: list[_Entry], b: list[_Entry]) -> Iterator[Change]:
    mine, theirs = Counter(a), Counter(b)
    only_a, only_b = list((mine - theirs).elements()), list((theirs - mine).elements())
    texts_a, texts_b = dict(only_a), dict(only_b)
    for connects in dict.fromkeys([*texts_a, *texts_b]):
        yield Change("bodies", f"{what}: {connects}", texts_a.get(connects), texts_b.get(connects))


def outer_inputs(
    pair: Pair, name: str, matching: Matching, differ: Callable[[Fact | None, Fact | None], bool]
) -> dict[Node, list[Value]]:
    """The Parameters of a body in B whose outer input has another shape or type than in A, with these inputs of B.

    A Parameter that an iteration sets for the next may follow from any of these inputs.
    """
    body, ids = pair.b.bodies[name], _by_id(matching.b)
    differing: list[Value] = []
    found: dict[Node, list[Value]] = {}
    for entry in body.port_maps:
        index = pair.b.input_index(entry.external) if entry.kind == "input" else None
        if index is None or index >= len(pair.a.inputs) or entry.internal not in ids:
            continue
        one, other = pair.a.inputs[index], pair.b.inputs[index]
        if one is not None and other is not None and differ(one.fact, other.fact):
            found[ids[entry.internal]] = [other]
            differing.append(other)
    if differing:
        for edge in body.back_edges:
            if edge.target in ids:
                found.setdefault(ids[edge.target], differing)
    return found


def carried_parameters(pair: Pair, name: str, matching: Matching) -> set[Node]:
    """The Parameters of a body in B that an iteration sets for the next."""
    ids = _by_id(matching.b)
    return {ids[edge.target] for edge in pair.b.bodies[name].back_edges if edge.target in ids}


_LOOKED_AT = 64
"""Maximum number of values examined for the source of an edge, through layers of one model alone."""


def edge_changes(matching: Matching, pair: Pair) -> tuple[list[Change], list[tuple[Node, Value]]]:
    """Changes of the edges to one layer.

    Returns:
        The inputs with another source; and layers of one model alone that lie on an edge, each with the source of the
        edge, a value of A.
    """
    through: list[tuple[Node, Value]] = []
    other: list[tuple[int, Value | None, Value | None]] = []
    for port, (one, two) in enumerate(zip_longest(pair.a.inputs, pair.b.inputs)):
        if not _same(matching, one, two):
            between = [] if one is None or two is None else _between(matching, one, two)
            through += between
            if not between:
                other.append((port, one, two))
    return list(_listed(matching, other)), through


def _same(matching: Matching, a: Value | None, b: Value | None) -> bool:
    if a is None or b is None:
        return a is b
    if a.index == b.index and matching.in_b(a.node) is b.node:
        return True
    # One constant with several readers may be several equal constants in the other model.
    return a.node.constant is not None and b.node.constant is not None and same_bytes(a.node.constant, b.node.constant)


def _listed(matching: Matching, changes: Sequence[tuple[int, Value | None, Value | None]]) -> Iterator[Change]:
    """Inputs with another source; the same sources in another order are one change."""
    partners = [None if a is None else (matching.in_b(a.node), a.index) for _, a, _ in changes]
    theirs = [None if b is None else (b.node, b.index) for _, _, b in changes]
    if len(changes) > 1 and all(theirs.count(each) == partners.count(each) for each in theirs):
        ports = ", ".join(str(port) for port, _, _ in changes)
        yield Change("wiring", f"inputs {ports}", _texts(a for _, a, _ in changes), _texts(b for _, _, b in changes))
        return
    for port, a, b in changes:
        yield Change("wiring", f"input {port}", source_text(a), source_text(b))


def _texts(values: Iterator[Value | None]) -> str:
    return ", ".join(source_text(value) or "nothing" for value in values)


def source_text(value: Value | None) -> str | None:
    """A value by its layer, with the index of the output where there are several."""
    if value is None:
        return None
    name = f"{value.node.id} {value.node.name}"
    return name if len(value.node.outputs) == 1 else f"{name}:{value.index}"


def _between(matching: Matching, a: Value, b: Value) -> list[tuple[Node, Value]]:
    """Layers without a partner between two values and their common source, each with that source in A.

    Empty without a common source.
    """
    mine, theirs = _reached(matching, a, in_a=True), _reached(matching, b, in_a=False)
    partners = {(matching.in_b(value.node), value.index): (value, path) for value, path in mine.items()}
    found: list[list[tuple[Node, Value]]] = []
    for value, path in theirs.items():
        start, before = partners.get((value.node, value.index), (None, []))
        if start is not None and (before or path):
            found.append([(node, start) for node in (*before, *path)])
    return min(found, key=len, default=[])


def _reached(matching: Matching, start: Value, *, in_a: bool) -> dict[Value, list[Node]]:
    """Values of paired layers from which layers without a partner compute ``start``, with the latter layers."""
    partner = matching.in_b if in_a else matching.in_a
    found: dict[Value, list[Node]] = {}
    waiting: list[tuple[Value, list[Node]]] = [(start, [])]
    seen = {start}
    while waiting and len(seen) < _LOOKED_AT:
        value, path = waiting.pop(0)
        if partner(value.node) is not None:
            found[value] = path
            continue
        for source in value.node.inputs:
            if source is not None and source not in seen:
                seen.add(source)
                waiting.append((source, [*path, value.node]))
    return found


_ROOTS = 4
_PASSED = 8
"""Maximum number of unmatched layers between a constant and the matched layer that reads their result."""
_BEHIND = 1e-3
"""Distance of an added layer from the layer that it reads; positions of layers of A are whole numbers."""
_FACTS = ("shapes", "types")
_ANY_INSIDE = -1
"""Placeholder of the changes of a body until all of them are known."""
_CAUSES = ("type", "versions", "attributes", "types", "shapes", "wiring", "values", "bodies")
"""Kinds of changes that may cause downstream shape or type changes."""

Roots = tuple[int, ...]
SortKey = tuple[float, ...]
_Readers = dict[Node, list[tuple[Node, int]]]


@dataclass
class FoundChanges:
    """Changes found so far.

    Attributes:
        advance: called with the bytes of constants that were compared.
        model, layers, following, unread: as in Diff.
        sort_keys: the sort key of each entry of ``layers``; entries of a body sort after the layer that owns it.
    """

    advance: Callable[[int], None]
    model: list[Change] = field(default_factory=list)
    layers: list[LayerDiff] = field(default_factory=list)
    following: list[Following] = field(default_factory=list)
    sort_keys: list[SortKey] = field(default_factory=list)
    unread: int = 0

    def add(self, layer: LayerDiff, sort_key: SortKey) -> int:
        """Add a layer. Returns its index."""
        self.layers.append(layer)
        self.sort_keys.append(sort_key)
        return len(self.layers) - 1

    def sort(self) -> None:
        """Sort the layers by the order of A."""
        order = sorted(range(len(self.layers)), key=lambda k: self.sort_keys[k])
        position = {old: new for new, old in enumerate(order)}
        self.layers = [self.layers[k] for k in order]
        self.sort_keys = [self.sort_keys[k] for k in order]
        self.following = [replace(each, roots=tuple(position[root] for root in each.roots)) for each in self.following]


class GraphDiff:
    """Changes between two graphs.

    Args:
        found: receives the changes.
        matching: the matched layers of the graphs.
        path: the layers and bodies that contain the graphs.
        sort_key: the sort key of the layer that owns the graphs.
        outer: for graphs of bodies the causes of another shape or type of the outer input, by Parameter of B.
        carried: Parameters of B that receive a value of the previous iteration.
        outside: all changes that reach the layer of the body.
    """

    def __init__(
        self, found: FoundChanges, matching: Matching, path: str = "", sort_key: SortKey = (),
        outer: Mapping[Node, Roots] = MappingProxyType({}), carried: Collection[Node] = (), outside: Roots = (),
    ) -> None:  # fmt: skip
        self._found, self._matching, self._path, self._sort_key = found, matching, path, sort_key
        self._outer, self._carried, self._outside = outer, carried, outside
        self._positions = _positions(matching)
        self._roots: dict[Node, Roots] = {}
        """Possible causes of the changes of outputs, for each layer of B and each layer of A alone."""
        self._single: dict[Node, int] = {}
        self._changed_at: dict[Node, int] = {}
        self._readers = _readers(matching.a), _readers(matching.b)

    def run(self) -> list[int]:
        """Find all changes. Returns the indices of those that may cause downstream shape or type changes."""
        for node in self._matching.only_a:
            self._add_single(node, LayerRef.of(node, self._path), None)
        for node in self._matching.only_b:
            self._add_single(node, None, LayerRef.of(node, self._path))
        first, first_following = len(self._found.layers), len(self._found.following)
        for pair in self._matching.pairs:
            self._pair(pair)
        self._order()
        changed = [k for k in range(first, len(self._found.layers)) if _is_cause(self._found.layers[k].changes)]
        causes = [*self._single.values(), *changed]
        for k, each in enumerate(self._found.following[first_following:], first_following):
            if _ANY_INSIDE in each.roots:
                others = [root for root in each.roots if root != _ANY_INSIDE]
                self._found.following[k] = replace(each, roots=_merged([others, causes]))
        return causes

    def _add_single(self, node: Node, a: LayerRef | None, b: LayerRef | None) -> None:
        readers = self._readers[0 if b is None else 1].get(node, [])
        attributes = {} if node.constant is not None else dict(node.attributes)
        inputs = tuple(
            f"{fact_text(value.fact)} from {source_text(value)}" if value else "nothing" for value in node.inputs
        )
        outputs = tuple(fact_text(value.fact) for value in node.outputs)
        names = tuple(dict.fromkeys(f"{reader.id} {reader.name}" for reader, _ in readers))
        layer = LayerDiff(a, b, None, (), attributes, inputs, outputs, names)
        self._single[node] = self._found.add(layer, (*self._sort_key, self._positions[node]))
        self._roots[node] = (self._single[node],)

    def _pair(self, pair: Pair) -> None:
        wiring, between = edge_changes(self._matching, pair)
        for node, start in between:
            index = self._single[node]
            layer = self._found.layers[index]
            edge = (source_text(start) or "nothing", f"{pair.a.id} {pair.a.name}")
            if edge not in layer.between:
                self._found.layers[index] = replace(layer, between=(*layer.between, edge))
        own_ones, connections = own_changes(pair.a, pair.b), _connections(pair, self._matching)
        changes = [*own_ones, *self._constant(pair), *wiring, *connections]
        before = self._given(pair)
        # The attributes of Constants and Parameters declare their outputs.
        following = [] if any(change.kind in _FACTS for change in changes) else output_changes(pair)
        if before and pair.b in self._outer:
            # The attributes of a Parameter of a body say what its layer is given.
            following += [change for change in changes if change.kind in _FACTS]
            changes = [change for change in changes if change.kind not in _FACTS]
        own = self._changed(pair, changes)
        through = _merged(self._roots[node] for node, _ in between)
        # All changes before the layer.
        passed = _merged([through, *(self._roots.get(value.node, ()) for value in pair.b.inputs if value is not None)])
        inside = self._bodies(pair, _merged([own, passed]))
        before = _merged([through, inside, before, self._input_roots(pair)])
        if following and not (own or before or self._depends_on_values(pair)):
            own, following = self._changed(pair, [*changes, *following]), []
        self._roots[pair.b] = _merged([own, before, passed])
        causes = own or before or passed
        self._found.following += [Following(*self._refs(pair), change, causes) for change in following]

    def _given(self, pair: Pair) -> Roots:
        """Changes to the inputs that feed a body's Parameter."""
        if pair.b.type != "Parameter" or not self._path:
            return ()
        return self._outer.get(pair.b) or (
            (_ANY_INSIDE, *self._outside)[:_ROOTS] if pair.b in self._carried else self._outside
        )

    def _changed(self, pair: Pair, changes: Sequence[Change]) -> Roots:
        """Store the changes of a pair, replacing earlier ones. Returns the index of the layer if others may follow."""
        index = self._changed_at.get(pair.a)
        layer = LayerDiff(*self._refs(pair), pair.reason, tuple(changes))
        if not changes:
            return ()
        if index is None:
            index = self._changed_at[pair.a] = self._found.add(layer, (*self._sort_key, self._positions[pair.a]))
        else:
            self._found.layers[index] = layer
        return (index,) if _is_cause(changes) else ()

    def _refs(self, pair: Pair) -> tuple[LayerRef, LayerRef]:
        return LayerRef.of(pair.a, self._path), LayerRef.of(pair.b, self._path)

    def _constant(self, pair: Pair) -> Iterator[Change]:
        if pair.a.constant is None or pair.b.constant is None:
            return
        yield from constant_changes(pair.a.constant, pair.b.constant)
        self._found.unread += is_damaged(pair.a.constant) or is_damaged(pair.b.constant)
        values = value_change(pair.a, pair.b, self._read_as(pair), self._found.advance)
        if values is not None:
            yield Change("values", "values", None, None, values)

    def _read_as(self, pair: Pair) -> ReadAs | None:
        """Values read by one input of a layer, if only one model has layers between the input and the constants."""
        if pair.reason != "through":
            return None
        readers = set(_reading(pair.b, self._readers[1], self._matching.in_a))
        for reader, port in _reading(pair.a, self._readers[0], self._matching.in_b):
            other = self._matching.in_b(reader)
            if other is not None and (other, port) in readers:
                mine, theirs = reader.inputs[port], other.inputs[port]
                return None if mine is None or theirs is None else (mine, theirs)
        return None

    def _bodies(self, pair: Pair, outside: Roots) -> Roots:
        """Compare the bodies of a layer; ``outside`` has the changes of the layer and before it. Returns the changes
        inside that may cause those of the layer's outputs."""
        inside: list[int] = []
        for name in pair.a.bodies:
            inner = self._matching.bodies.get((pair.a, name))
            if inner is not None:
                outer = {
                    node: _merged(self._roots.get(source.node, ()) for source in sources)
                    for node, sources in outer_inputs(pair, name, inner, facts_differ).items()
                }
                inside += GraphDiff(
                    self._found, inner, f"{self._path}{pair.a.name}/{name}/",
                    (*self._sort_key, self._positions[pair.a]), outer, carried_parameters(pair, name, inner), outside,
                ).run()  # fmt: skip
        return tuple(inside[:_ROOTS])

    def _input_roots(self, pair: Pair) -> Roots:
        """Changes that cause the differing shapes and types of inputs."""
        found: list[Roots] = []
        for one, other in zip(pair.a.inputs, pair.b.inputs, strict=False):
            if one is not None and other is not None and facts_differ(one.fact, other.fact):
                nodes = [other.node] if self._matching.in_b(one.node) else [other.node, one.node]
                found += (self._roots.get(node, ()) for node in nodes)
        return _merged(found)

    def _depends_on_values(self, pair: Pair) -> bool:
        """True if a change reaches the layer as integers (maybe sizes) or as a scalar (maybe a limit of Range)."""
        for value in pair.b.inputs:
            if value is not None and self._roots.get(value.node) and value.fact is not None:
                element = value.fact.element
                if element is None or element.kind in ("signed", "unsigned") or not value.fact.shape:
                    return True
        return False

    def _order(self) -> None:
        """The order of Parameters and of Results."""
        graphs = self._matching
        for what, type in (("inputs", "Parameter"), ("outputs", "Result")):
            mine = [node for node in graphs.a.nodes if node.type == type and graphs.in_b(node) is not None]
            theirs = [node for node in graphs.b.nodes if node.type == type and graphs.in_a(node) is not None]
            if [graphs.in_b(node) for node in mine] != theirs:
                where = f" of {self._path[:-1]}" if self._path else ""
                texts = (", ".join(node.name for node in mine), ", ".join(node.name for node in theirs))
                self._found.model.append(Change("order", f"order of the {what}{where}", *texts))


def _connections(pair: Pair, matching: Matching) -> Iterator[Change]:
    """Changes of the bodies of a layer, and of their connections to the layer."""
    for name in dict.fromkeys([*pair.a.bodies, *pair.b.bodies]):
        inner = matching.bodies.get((pair.a, name))
        if inner is not None:
            yield from body_changes(pair, name, inner)
        else:
            one, other = (name if name in node.bodies else None for node in (pair.a, pair.b))
            yield Change("bodies", "body", one, other)


def _reading(node: Node, readers: _Readers, partner: Callable[[Node], Node | None]) -> Iterator[tuple[Node, int]]:
    """Layers with a partner that read a layer, with their inputs.

    Layers without a partner are passed through their first reader.
    """
    for reader, port in readers.get(node, []):
        for _ in range(_PASSED):
            if partner(reader) is not None:
                yield reader, port
                break
            if not readers.get(reader):
                break
            reader, port = readers[reader][0]


def _positions(matching: Matching) -> dict[Node, float]:
    """Position of each layer in the order of A.

    A layer of B alone follows its inputs, or precedes its reader if it has no inputs.
    """
    found: dict[Node, float] = {node: position for position, node in enumerate(matching.a.nodes)}
    for pair in matching.pairs:
        found[pair.b] = found[pair.a]
    for node in matching.only_b:
        positions = [found[value.node] for value in node.inputs if value is not None and value.node in found]
        if positions:
            found[node] = max(positions) + _BEHIND
    for node in reversed(matching.b.nodes):
        for value in node.inputs:
            if value is not None and node in found:
                found.setdefault(value.node, found[node] - _BEHIND / 2)
    return {node: found.get(node, len(matching.a.nodes)) for node in (*matching.a.nodes, *matching.b.nodes)}


def _is_cause(changes: Iterable[Change]) -> bool:
    return any(change.kind in _CAUSES for change in changes)


def _merged(roots: Iterable[Iterable[int]]) -> Roots:
    return tuple(dict.fromkeys(chain.from_iterable(roots)))[:_ROOTS]


def _readers(graph: Graph) -> _Readers:
    return grouped(
        (value.node, (node, port))
        for node in graph.nodes
        for port, value in enumerate(node.inputs)
        if isinstance(value, Value)
    )
