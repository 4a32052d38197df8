"""The layers and edges of a model that can be drawn, and the constants that are drawn within their readers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from irexec.analysis.cost import NO_COMPUTATION, Cost, LayerCosts
from irexec.analysis.shape_inference import Inference, infer_shapes
from irexec.errors import IrexecError
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
