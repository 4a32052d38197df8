"""The part of a graph that is drawn: its layers and edges, the surroundings of a layer, and the frames that fold.

Shape arithmetic: layers whose values depend on the shapes of tensors alone, such as ShapeOf, Gather, Concat before a
Reshape.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from irexec.analysis.cost import NO_COMPUTATION, Cost, LayerCosts
from irexec.analysis.shape_inference import Inference, infer_shapes
from irexec.errors import InputError, IrexecError
from irexec.ir.graph import Graph, Node
from irexec.ir.order import similar, sort_by_producers
from irexec.ir.process import collection_paused
from irexec.tools.graph.drawing import DrawnEdge, DrawnFrame, DrawnLayer, FrameKind, Link
from irexec.tools.graph.names import (
    SHAPE_ARITHMETIC,
    Group,
    adjacent,
    group_by_scope,
    group_cones,
    group_repeated,
    make_acyclic,
    reached,
    scopes,
)  # fmt: skip
from irexec.tools.inspect.summary import LayerLine, layer_lines


@dataclass(frozen=True)
class Content:
    """Every layer and edge of a model and its bodies.

    Attributes:
        nodes: in the order of ``Graph.walk``; layers are named by their positions in it.
        lines: the entry of each layer in the file.
        costs: the cost of each layer; None for a layer that computes nothing.
        edges: between layers of the same graph.
        owners: the layer whose body each layer is in, and the name of the body; None outside of bodies.
    """

    nodes: tuple[Node, ...]
    lines: tuple[LayerLine, ...]
    costs: tuple[Cost | None, ...]
    edges: tuple[DrawnEdge, ...]
    owners: tuple[tuple[int, str] | None, ...]


@collection_paused()
def content_of(model: Graph, inference: Inference | None = None) -> Content:
    """The layers and edges of a model, however damaged; nothing is run or unpacked.

    Args:
        model: any model.
        inference: facts of its values; inferred unless given.
    """
    facts = (inference or infer_shapes(model, tolerant=True)).facts
    nodes = tuple(model.walk())
    index = {node: i for i, node in enumerate(nodes)}
    costs = LayerCosts(model, facts)
    owners: list[tuple[int, str] | None] = [None] * len(nodes)
    for i, node in enumerate(nodes):
        for name, body in node.bodies.items():
            for inner in body.graph.nodes:
                owners[index[inner]] = (i, name)
    edges = tuple(
        DrawnEdge(index[value.node], value.index, i, j)
        for i, node in enumerate(nodes)
        for j, value in enumerate(node.inputs)
        if value is not None and value.node in index and owners[index[value.node]] == owners[i]
    )
    return Content(
        nodes, tuple(layer_lines(model, facts)), tuple(_cost(costs, node) for node in nodes), edges, tuple(owners)
    )


def _cost(costs: LayerCosts, node: Node) -> Cost | None:
    if node.type in NO_COMPUTATION:
        return None
    try:
        return costs.of([node])
    except (IrexecError, ValueError, LookupError):
        # A damaged layer, which validate reports.
        return None


def drawn_in(content: Content) -> dict[int, int]:
    """The layer that shows each constant, or layer that computes from constants alone, as one of its inputs.

    It is the first reader that is not a constant. A constant without such a reader has a box of its own.
    """
    producers: list[set[int]] = [set() for _ in content.nodes]
    readers: dict[int, list[int]] = defaultdict(list)
    for edge in content.edges:
        producers[edge.target].add(edge.source)
        readers[edge.source].append(edge.target)
    order, _ = sort_by_producers(producers)
    constant = _constants(content, producers, order)
    found: dict[int, int] = {}
    for i in reversed(order):
        if i in constant:
            into = [found.get(reader, reader) for reader in readers[i] if reader not in constant or reader in found]
            if into:
                found[i] = min(into)
    return found


def _constants(content: Content, producers: Sequence[Collection[int]], order: Iterable[int]) -> set[int]:
    """Constants, and layers without bodies that read constants alone. A Result is not a constant."""
    found: set[int] = set()
    for i in order:
        node = content.nodes[i]
        computed = (
            bool(producers[i]) and not node.bodies and node.outputs and all(source in found for source in producers[i])
        )
        if node.constant is not None or (computed and node.type not in ("Result", "Assign", "ReadValue")):
            found.add(i)
    return found


def find_layer(content: Content, key: str) -> int:
    """The layer of a key: a tensor, a name, a name with ``:N`` or ``.N`` for an output, or an id.

    A layer of a body may have the path of the body before its name: ``loop/body/add``. Layers outside of bodies come
    first.

    Raises:
        InputError: the layer does not exist; the message offers similar names.
    """
    names = _names(content)
    found = names.get(key)
    for mark in (":", "."):
        layer, _, number = key.rpartition(mark)
        owner = names.get(layer)
        if found is None and owner is not None and number.isascii() and number.isdigit():
            found = owner if int(number) < max(1, len(content.nodes[owner].outputs)) else None
    if found is None:
        raise InputError(f"there is no tensor or layer {key!r}{similar(key[:200], list(names)[:50_000])}")
    return found


def _names(content: Content) -> dict[str, int]:
    """Every layer by its names: of tensors, then its own, then with its path, then its id outside of bodies.

    Names of outer layers precede those of layers of bodies.
    """
    nodes, owners = content.nodes, content.owners
    order = sorted(range(len(nodes)), key=lambda i: owners[i] is not None)
    named = chain(
        ((name, i) for i in order for value in nodes[i].outputs for name in value.names),
        ((nodes[i].name, i) for i in order),
        ((f"{content.lines[i].path}{nodes[i].name}", i) for i in order),
        ((str(nodes[i].id), i) for i in order if owners[i] is None),
    )
    found: dict[str, int] = {}
    for name, i in named:
        found.setdefault(name, i)
    return found


Neighbours = Mapping[int, Collection[int]]


def neighbours(content: Content, into: Mapping[int, int]) -> tuple[Neighbours, Neighbours]:
    """The layers before and after each layer with a box of its own.

    Args:
        into: the layer that represents each constant (irexec.tools.graph.content.drawn_in).
    """
    before: dict[int, dict[int, None]] = defaultdict(dict)
    after: dict[int, dict[int, None]] = defaultdict(dict)
    for edge in content.edges:
        if edge.source not in into:
            before[edge.target][edge.source] = None
            after[edge.source][edge.target] = None
    return before, after


def select(
    content: Content,
    into: Mapping[int, int],
    *,
    around_keys: Sequence[str],
    hops: int,
    from_keys: Sequence[str],
    to_keys: Sequence[str],
) -> set[int] | None:
    """The layers to draw, among those with a box of their own; None for all.

    ``around_keys`` selects layers at most ``hops`` edges away, ``from_keys`` dependents, ``to_keys`` dependencies; the
    last two together select layers on a path from one to the other. ``around_keys`` with another key selects the layers
    that both select. A layer in a body selects within its body alone.

    Raises:
        InputError: a layer does not exist, or no layer is left.
    """
    if not (around_keys or from_keys or to_keys):
        return None
    before, after = neighbours(content, into)
    chosen: list[set[int]] = []
    if around_keys:
        chosen.append(reached(_layers(content, into, around_keys), before, after, hops=hops))
    if from_keys:
        chosen.append(reached(_layers(content, into, from_keys), after))
    if to_keys:
        chosen.append(reached(_layers(content, into, to_keys), before))
    kept = set.intersection(*chosen)
    if not kept:
        if from_keys and to_keys and not around_keys:
            raise InputError(
                f"no path leads from {' or '.join(map(repr, from_keys))} to {' or '.join(map(repr, to_keys))}"
            )
        raise InputError("no layer is near the one and between the others")
    return kept


def _layers(content: Content, into: Mapping[int, int], keys: Sequence[str]) -> list[int]:
    """The layers of the keys; a constant that is drawn in a layer counts as that layer."""
    found = [find_layer(content, key) for key in keys]
    return [into.get(i, i) for i in found]


Scope = tuple[str, ...]


def set_apart(
    scopes: dict[int, Scope], types: Mapping[int, str], before: Mapping[int, Sequence[int]], order: Sequence[int]
) -> None:
    """Move the layers of shape arithmetic to a scope of their own within their scope.

    One scope may need several: a layer that reads the shape of a tensor cannot share a block with a layer that the
    tensor depends on.

    Args:
        scopes: the scope of each layer; changed in place.
        types: the type of each layer.
        before: the producers of each layer, constants left out.
        order: the layers, each after its producers.
    """
    members: dict[int, None] = {}
    for i in order:
        producers = before.get(i, ())
        if types[i] == "ShapeOf" or (types[i] not in _ENDS and producers and all(j in members for j in producers)):
            members[i] = None
    place = {i: k for k, i in enumerate(order)}
    newest, oldest = _newest_before(members, before, place), _oldest_after(members, before, place)
    # The newest tensor whose shape a layer of the block reads is older than the oldest layer that reads a result of the
    # block.
    current: dict[Scope, tuple[int, float]] = {}
    for i in sorted(members, key=lambda i: (newest[i], place[i])):
        number, bound = current.get(scopes[i], (0, float("inf")))
        if newest[i] >= bound:
            number, bound = number + 1, float("inf")
        current[scopes[i]] = number, min(bound, oldest[i])
        scopes[i] = (*scopes[i], f"{SHAPE_ARITHMETIC} {number}")


_ENDS = ("Result", "Assign")


def _newest_before(
    members: Mapping[int, None], before: Mapping[int, Sequence[int]], place: Mapping[int, int]
) -> dict[int, int]:
    """The last position of a tensor whose shape each member depends on; ``members`` are in order."""
    found: dict[int, int] = {}
    for i in members:
        found[i] = max((found[j] if j in members else place[j] for j in before.get(i, ())), default=-1)
    return found


def _oldest_after(
    members: Mapping[int, None], before: Mapping[int, Sequence[int]], place: Mapping[int, int]
) -> dict[int, float]:
    """The first position of a layer outside of ``members`` that depends on each member."""
    found = dict.fromkeys(members, float("inf"))
    for i in reversed(list(place)):
        at = found[i] if i in members else float(place[i])
        for j in before.get(i, ()):
            if j in found:
                found[j] = min(found[j], at)
    return found


SHOWN = 60
"""Maximum number of boxes of a graph with folded blocks: blocks are unfolded, from the outermost on, up to this
number."""


class FrameBuilder:
    """Makes the frames of a drawing.

    Args:
        layers: the drawn layers; ``drawn_in`` is set.
        edges: between them.
        owners: for a layer of a body the layer with the body, and the name of the body.
        blocks: True if layers of a common name make a block; None for a graph of more than ``SHOWN`` boxes.
    """

    def __init__(
        self,
        layers: Sequence[DrawnLayer],
        edges: Iterable[DrawnEdge],
        owners: Mapping[int, tuple[int, str]],
        *,
        blocks: bool | None,
    ) -> None:
        self._layers = layers
        self._frames: list[DrawnFrame] = []
        self._items: list[list[int]] = []
        self._frame_of: dict[int, int] = {}
        self._box: dict[int, int] = {}
        shown = [layer.index for layer in layers if layer.drawn_in is None]
        self._blocks = len(shown) > SHOWN if blocks is None else blocks
        self._edges = [
            edge for edge in edges if layers[edge.source].drawn_in is None and layers[edge.target].drawn_in is None
        ]
        self._inside: dict[int, dict[str, list[int]]] = defaultdict(dict)
        for i in shown:
            if i in owners:
                owner, body = owners[i]
                self._inside[owner].setdefault(body, []).append(i)
        self._graph_pairs: dict[tuple[int, str] | None, list[tuple[int, int]]] = defaultdict(list)
        for edge in self._edges:
            self._graph_pairs[owners.get(edge.source)].append((edge.source, edge.target))
        self._owners = owners
        self._fill(self._new("graph", "", None, None), [i for i in shown if i not in owners], None)

    def frames(self, *, bodies: bool) -> tuple[DrawnFrame, ...]:
        """The frames; those of bodies are unfolded if ``bodies``."""
        made = [
            replace(frame, items=tuple(items), links=tuple(links))
            for frame, items, links in zip(self._frames, self._items, self._links(), strict=True)
        ]
        return _unfolded(made, bodies)

    def _new(self, kind: FrameKind, name: str, parent: int | None, layer: int | None) -> int:
        index = len(self._frames)
        self._frames.append(DrawnFrame(index, kind, name, parent, layer, (), (), folded=kind in ("block", "layer")))
        self._items.append([])
        if parent is not None:
            self._items[parent].append(~index)
        return index

    def _fill(self, frame: int, members: list[int], body: tuple[int, str] | None) -> None:
        """Put the layers of a graph into a frame, in blocks; a layer with bodies becomes a frame of their content."""
        waiting = [(frame, self._grouped(members, self._graph_pairs[body]))]
        while waiting:
            here, group = waiting.pop()
            for inner in group.groups:
                waiting.append((self._new("block", inner.name, here, None), inner))
            for i in sorted(group.layers):
                self._add(here, i)

    def _grouped(self, members: list[int], pairs: list[tuple[int, int]]) -> Group:
        if not self._blocks:
            return Group("", members)
        before = adjacent((b, a) for a, b in pairs)
        position = {i: k for k, i in enumerate(members)}
        order, stuck = sort_by_producers([{position[a] for a in before.get(i, ()) if a in position} for i in members])
        names = {i: self._layers[i].line.name for i in members}
        ordered = [members[k] for k in [*order, *stuck]]
        types = {i: self._layers[i].line.type for i in members}
        by_scope = scopes(names, before, ordered)
        set_apart(by_scope, types, before, ordered)
        group = group_by_scope(by_scope)
        group_repeated(group, types, pairs)
        make_acyclic(group, pairs)
        group_cones(group, types, pairs, ordered)
        return group

    def _add(self, frame: int, i: int) -> None:
        bodies = self._inside.get(i)
        self._frame_of[i] = frame
        if not bodies:
            self._items[frame].append(i)
            self._box[i] = i
            return
        outer = self._new("layer", self._layers[i].line.name, frame, i)
        self._box[i] = ~outer
        for name, members in bodies.items():
            inner = outer if len(bodies) == 1 else self._new("body", name, outer, None)
            self._fill(inner, members, (i, name))

    def _links(self) -> list[dict[Link, None]]:
        """The lines of each frame: an edge between layers of different frames is a line in each frame on its way."""
        found: list[dict[Link, None]] = [{} for _ in self._frames]
        for edge in self._edges:
            tensor = (edge.source, edge.output)
            source, target = self._box[edge.source], self._box[edge.target]
            up, down = (list(_path(self._frames, self._frame_of[i])) for i in (edge.source, edge.target))
            common = next(frame for frame in up if frame in set(down))
            for frame in up[: up.index(common)]:
                found[frame][Link(source, None, tensor)] = None
                source = ~frame
            for frame in down[: down.index(common)]:
                found[frame][Link(None, target, tensor)] = None
                target = ~frame
            found[common][Link(source, target, tensor)] = None
        return found


def _unfolded(frames: list[DrawnFrame], bodies: bool) -> tuple[DrawnFrame, ...]:
    """The frames, with those of bodies unfolded if ``bodies``, and blocks unfolded until ``SHOWN`` boxes are in sight.

    The block of the most layers is unfolded first, with the blocks beside it that differ from it by a number, or have
    its name and size: they are often alike and should look alike. A block of more than half of all layers is always
    unfolded.
    """
    layers = [0] * len(frames)
    for frame in reversed(frames):
        layers[frame.index] += sum(1 for item in frame.items if item >= 0)
        if frame.parent is not None:
            layers[frame.parent] += layers[frame.index]
    folded = [frame.folded and (frame.kind == "block" or not bodies) for frame in frames]
    alike: dict[tuple[int, str, int], list[DrawnFrame]] = defaultdict(list)
    for frame in frames:
        if frame.kind == "block" and frame.parent is not None and not frame.is_dimmed:
            name, numbers = _NUMBER.subn("#", frame.name)
            alike[frame.parent, name, 0 if numbers else layers[frame.index]].append(frame)
    # Each after the block that it is in, which has more layers or comes first.
    largest = sorted(alike.values(), key=lambda group: -max(layers[frame.index] for frame in group))
    count = len(frames[0].items)
    for group in largest:
        more = sum(len(frame.items) - 1 for frame in group)
        is_in_sight = not any(folded[k] for k in _path(frames, group[0].parent or 0))
        dominates = any(2 * layers[frame.index] > layers[0] for frame in group)
        if is_in_sight and (dominates or count + more <= SHOWN):
            count += more
            for frame in group:
                folded[frame.index] = False
    return tuple(replace(frame, folded=fold) for frame, fold in zip(frames, folded, strict=True))


_NUMBER = re.compile(r"\d+")


def _path(frames: Sequence[DrawnFrame], index: int) -> Iterator[int]:
    """A frame and those around it."""
    here: int | None = index
    while here is not None:
        yield here
        here = frames[here].parent
