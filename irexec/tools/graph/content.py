"""The part of a graph that is drawn: its layers and edges, the surroundings of a layer, and the frames that fold.

Shape arithmetic: layers whose values depend on the shapes of tensors alone, such as ShapeOf, Gather, Concat before a
Reshape.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from irexec.analysis.cost import NO_COMPUTATION, Cost, LayerCosts
from irexec.analysis.shape_inference import Inference, infer_shapes
from irexec.errors import InputError, IrexecError
from irexec.ir.graph import Graph, Node
from irexec.ir.order import grouped, similar, sort_by_producers
from irexec.ir.process import collection_paused
from irexec.tools.graph.drawing import DrawnEdge, DrawnFrame, DrawnLayer, FrameKind, Link, around
from irexec.tools.graph.names import (
    SHAPE_ARITHMETIC,
    Group,
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

    @cached_property
    def drawn_in(self) -> dict[int, int]:
        """The layer that shows each constant, or layer that computes from constants alone, as one of its inputs.

        It is the first reader that is not a constant. A constant without such a reader has a box of its own.
        """
        producers: list[set[int]] = [set() for _ in self.nodes]
        for edge in self.edges:
            producers[edge.target].add(edge.source)
        order, _ = sort_by_producers(producers)
        constant: set[int] = set()
        for i in order:
            node = self.nodes[i]
            # A Result is not a constant.
            computes = node.outputs and not node.bodies and node.type not in ("Result", "Assign", "ReadValue")
            if node.constant is not None or (computes and producers[i] and producers[i] <= constant):
                constant.add(i)
        readers = grouped((edge.source, edge.target) for edge in self.edges)
        found: dict[int, int] = {}
        for i in reversed(order):
            into = [found.get(j, j) for j in readers.get(i, ()) if j not in constant or j in found]
            if i in constant and into:
                found[i] = min(into)
        return found

    @cached_property
    def neighbours(self) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
        """The layers before and after each layer with a box of its own, each once."""
        edges = dict.fromkeys((edge.source, edge.target) for edge in self.edges if edge.source not in self.drawn_in)
        return grouped((b, a) for a, b in edges), grouped(edges)


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


def find_layer(content: Content, key: str) -> int:
    """The layer of a key: a tensor, a name, a name with ``:N`` or ``.N`` for an output, or an id.

    A layer of a body may have the path of the body before its name: ``loop/body/add``. Layers outside of bodies come
    first.

    Raises:
        InputError: the layer does not exist; the message offers similar names.
    """
    names = _names(content)
    for layer, number in ((key, "0"), key.rpartition(":")[::2], key.rpartition(".")[::2]):
        found, is_number = names.get(layer), number.isascii() and number.isdigit()
        if found is not None and is_number and int(number) < max(1, len(content.nodes[found].outputs)):
            return found
    raise InputError(f"there is no tensor or layer {key!r}{similar(key[:200], list(names)[:50_000])}")


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


def select(
    content: Content, *, around_keys: Sequence[str], hops: int, from_keys: Sequence[str], to_keys: Sequence[str]
) -> set[int] | None:
    """The layers to draw, among those with a box of their own; None for all.

    ``around_keys`` selects layers at most ``hops`` edges away, ``from_keys`` dependents, ``to_keys`` dependencies; the
    last two together select layers on a path from one to the other. ``around_keys`` with another key selects the layers
    that both select. A layer in a body selects within its body alone.

    Raises:
        InputError: a layer does not exist, or no layer is left.
    """
    before, after = content.neighbours
    chosen: list[set[int]] = []
    for keys, directions, most in (
        (around_keys, (before, after), hops), (from_keys, (after,), math.inf), (to_keys, (before,), math.inf),
    ):  # fmt: skip
        if keys:
            # A constant that is drawn in a layer counts as that layer.
            layers = [content.drawn_in.get(i, i) for i in (find_layer(content, key) for key in keys)]
            chosen.append(reached(layers, *directions, hops=most))
    if not chosen:
        return None
    kept = set.intersection(*chosen)
    if not kept:
        if from_keys and to_keys and not around_keys:
            raise InputError(
                f"no path leads from {' or '.join(map(repr, from_keys))} to {' or '.join(map(repr, to_keys))}"
            )
        raise InputError("no layer is near the one and between the others")
    return kept


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
    place = {i: k for k, i in enumerate(order)}
    # The last position of a tensor whose shape each layer of shape arithmetic depends on.
    newest: dict[int, int] = {}
    for i in order:
        producers = before.get(i, ())
        if types[i] == "ShapeOf" or (types[i] not in _ENDS and producers and all(j in newest for j in producers)):
            newest[i] = max((newest.get(j, place[j]) for j in producers), default=-1)
    # The first position of another layer that depends on each.
    oldest = dict.fromkeys(newest, math.inf)
    for i in reversed(order):
        for j in before.get(i, ()):
            if j in oldest:
                oldest[j] = min(oldest[j], oldest.get(i, place[i]))
    # The newest tensor whose shape a layer of the block reads is older than the oldest layer that reads a result of the
    # block.
    current: dict[Scope, tuple[int, float]] = {}
    for i in sorted(newest, key=lambda i: (newest[i], place[i])):
        number, bound = current.get(scopes[i], (0, math.inf))
        if newest[i] >= bound:
            number, bound = number + 1, math.inf
        current[scopes[i]] = number, min(bound, oldest[i])
        scopes[i] = (*scopes[i], f"{SHAPE_ARITHMETIC} {number}")


_ENDS = ("Result", "Assign")


SHOWN = 60
"""Maximum number of boxes of a graph with folded blocks: blocks are unfolded, from the outermost on, up to this
number."""


def frames_of(
    layers: Sequence[DrawnLayer], edges: Iterable[DrawnEdge], owners: Mapping[int, tuple[int, str]],
    *, blocks: bool | None, bodies: bool,
) -> tuple[DrawnFrame, ...]:  # fmt: skip
    """The frames of a drawing.

    Args:
        layers: the drawn layers; ``drawn_in`` is set.
        edges: between them.
        owners: for a layer of a body the layer with the body, and the name of the body.
        blocks: True if layers of a common name make a block; None for a graph of more than ``SHOWN`` boxes.
        bodies: True if the frames of bodies are unfolded.
    """
    shown = [layer.index for layer in layers if layer.drawn_in is None]
    has_blocks = len(shown) > SHOWN if blocks is None else blocks
    drawn = [edge for edge in edges if layers[edge.source].drawn_in is None and layers[edge.target].drawn_in is None]
    # By body, None for the outermost graph.
    members = grouped((owners.get(i), i) for i in shown)
    pairs = grouped((owners.get(edge.source), (edge.source, edge.target)) for edge in drawn)
    names = grouped(body for body in members if body is not None)
    frames: list[DrawnFrame] = []
    items: list[list[int]] = []

    def new(kind: FrameKind, name: str, parent: int | None, layer: int | None = None) -> int:
        index, folded = len(frames), kind == "block" or (kind == "layer" and not bodies)
        frames.append(DrawnFrame(index, kind, name, parent, layer, (), (), folded))
        items.append([])
        if parent is not None:
            items[parent].append(~index)
        return index

    def fill(frame: int, body: tuple[int, str] | None) -> None:
        """Put the layers of a graph into a frame, in blocks; a layer with bodies becomes a frame of their content."""
        inside = members.get(body, [])
        waiting = [(frame, _in_blocks(layers, inside, pairs.get(body, [])) if has_blocks else Group("", inside))]
        while waiting:
            here, group = waiting.pop()
            waiting += [(new("block", inner.name, here), inner) for inner in group.groups]
            for i in sorted(group.layers):
                if i not in names:
                    items[here].append(i)
                    continue
                outer = new("layer", layers[i].line.name, here, i)
                for name in names[i]:
                    fill(outer if len(names[i]) == 1 else new("body", name, outer), (i, name))

    fill(new("graph", "", None), None)
    lines = _links(frames, items, drawn)
    return _unfolded([
        replace(frame, items=tuple(inside), links=tuple(links))
        for frame, inside, links in zip(frames, items, lines, strict=True)
    ])  # fmt: skip


def _in_blocks(layers: Sequence[DrawnLayer], members: list[int], pairs: list[tuple[int, int]]) -> Group:
    """The layers of a graph in groups that can be blocks."""
    before = grouped((b, a) for a, b in pairs)
    position = {i: k for k, i in enumerate(members)}
    order, stuck = sort_by_producers([{position[a] for a in before.get(i, ())} for i in members])
    ordered = [members[k] for k in [*order, *stuck]]
    names = {i: layers[i].line.name for i in members}
    types = {i: layers[i].line.type for i in members}
    by_scope = scopes(names, before, ordered)
    set_apart(by_scope, types, before, ordered)
    group = group_by_scope(by_scope)
    group_repeated(group, types, pairs)
    make_acyclic(group, pairs)
    group_cones(group, types, pairs, ordered)
    return group


def _links(
    frames: Sequence[DrawnFrame], items: Sequence[Sequence[int]], edges: Iterable[DrawnEdge]
) -> list[dict[Link, None]]:
    """The lines of each frame: an edge between layers of different frames is a line in each frame on its way."""
    found: list[dict[Link, None]] = [{} for _ in frames]
    box = {frame.layer: ~frame.index for frame in frames}
    home = {item: k for k, inside in enumerate(items) for item in inside}
    for edge in edges:
        tensor = (edge.source, edge.output)
        source, target = (box.get(i, i) for i in (edge.source, edge.target))
        up, down = (list(around(frames, home[item])) for item in (source, target))
        common = next(frame for frame in up if frame in set(down))
        for frame in up[: up.index(common)]:
            found[frame][Link(source, None, tensor)] = None
            source = ~frame
        for frame in down[: down.index(common)]:
            found[frame][Link(None, target, tensor)] = None
            target = ~frame
        found[common][Link(source, target, tensor)] = None
    return found


def _unfolded(frames: Sequence[DrawnFrame]) -> tuple[DrawnFrame, ...]:
    """The frames, with blocks unfolded until ``SHOWN`` boxes are in sight.

    The block of the most layers is unfolded first, with the blocks beside it that differ from it by a number, or have
    its name and size: they are often alike and should look alike. A block of more than half of all layers is always
    unfolded.
    """
    layers = [0] * len(frames)
    for frame in reversed(frames):
        layers[frame.index] += sum(1 for item in frame.items if item >= 0)
        if frame.parent is not None:
            layers[frame.parent] += layers[frame.index]
    folded = [frame.folded for frame in frames]
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
        is_in_sight = not any(folded[k] for k in around(frames, group[0].parent or 0))
        dominates = any(2 * layers[frame.index] > layers[0] for frame in group)
        if is_in_sight and (dominates or count + more <= SHOWN):
            count += more
            for frame in group:
                folded[frame.index] = False
    return tuple(replace(frame, folded=fold) for frame, fold in zip(frames, folded, strict=True))


_NUMBER = re.compile(r"\d+")
