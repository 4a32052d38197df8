"""The part of a graph that is drawn: its layers and edges, the surroundings of a layer."""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from irexec.analysis.cost import NO_COMPUTATION, Cost, LayerCosts
from irexec.analysis.shape_inference import Inference, infer_shapes
from irexec.errors import InputError, IrexecError
from irexec.ir.garbage import collection_paused
from irexec.ir.graph import Graph, Node
from irexec.ir.order import sort_by_producers
from irexec.tools.graph.drawing import DrawnEdge
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
        layer, dot, number = key.rpartition(mark)
        if found is None and dot and number.isascii() and number.isdigit():
            found = names.get(layer)
            if found is not None and int(number) >= max(1, len(content.nodes[found].outputs)):
                found = None
    if found is None and key.isascii() and key.isdigit():
        found = next(
            (i for i, node in enumerate(content.nodes) if content.owners[i] is None and str(node.id) == key), None
        )
    if found is not None:
        return found
    similar = difflib.get_close_matches(key[:200], list(names)[:50_000], 3)
    offer = f"; similar names are {', '.join(map(repr, similar))}" if similar else ""
    raise InputError(f"there is no tensor or layer {key!r}{offer}")


def _names(content: Content) -> dict[str, int]:
    """Every layer by its names: tensor names precede layer names, and outer layers precede layers of bodies."""
    found: dict[str, int] = {}
    order = sorted(range(len(content.nodes)), key=lambda i: content.owners[i] is not None)
    for i in order:
        for value in content.nodes[i].outputs:
            for name in value.names:
                found.setdefault(name, i)
    for i in order:
        found.setdefault(content.nodes[i].name, i)
    for i in order:
        found.setdefault(f"{content.lines[i].path}{content.nodes[i].name}", i)
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


def around(starts: Iterable[int], hops: int, *directions: Neighbours) -> set[int]:
    """The layers at most ``hops`` edges away from one of ``starts``, in any of the directions."""
    found = set(starts)
    edge = list(found)
    for _ in range(hops):
        edge = list(
            dict.fromkeys(j for i in edge for direction in directions for j in direction.get(i, ()) if j not in found)
        )
        if not edge:
            break
        found.update(edge)
    return found


def reached(starts: Iterable[int], direction: Neighbours) -> set[int]:
    """The layers and all layers that are reachable from them."""
    found = set(starts)
    waiting = list(found)
    while waiting:
        for j in direction.get(waiting.pop(), ()):
            if j not in found:
                found.add(j)
                waiting.append(j)
    return found


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
        chosen.append(around(_layers(content, into, around_keys), hops, before, after))
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
