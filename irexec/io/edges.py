"""Reading edges: ports are connected by layer and port id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from irexec.io.context import ReadContext
from irexec.io.elements import XmlElement
from irexec.io.payload import InputPayload
from irexec.ir import codes
from irexec.ir.findings import Finding, in_model
from irexec.ir.graph import Graph, Input, Node, Value

EDGE_ATTRIBUTES = ("from-layer", "from-port", "to-layer", "to-port")
_KNOWN = frozenset(EDGE_ATTRIBUTES)
_NONE: Mapping[str, str] = {}


class Edge(NamedTuple):
    """An edge as it is written; ``attributes`` are its further ones."""

    from_layer: int
    from_port: int
    to_layer: int
    to_port: int
    position: int
    line: int | None
    attributes: Mapping[str, str]


class _Ports(NamedTuple):
    """The ports of a graph by layer and port id: one layer may have as many as there are edges."""

    nodes: dict[int, Node]
    outputs: dict[tuple[int, int | None], Value]
    inputs: dict[tuple[int, int | None], Input]


def read_edge(context: ReadContext, element: XmlElement, position: int) -> Edge | None:
    """The edge of an element, the one at ``position``; None, and a problem, where it does not say from where to
    where."""
    ids = context.integers(element, EDGE_ATTRIBUTES)
    if ids is None:
        return None
    others = element.without(_KNOWN) or _NONE
    from_layer, from_port, to_layer, to_port = ids
    return Edge(from_layer, from_port, to_layer, to_port, position, element.line, others)


def connect(context: ReadContext, graph: Graph, edges: list[Edge]) -> None:
    """Connect the ports of a graph; what cannot be connected becomes a problem."""
    ports = _Ports(_by_id(context, graph), {}, {})
    for node in ports.nodes.values():
        for output in node.outputs:
            ports.outputs.setdefault((node.id, output.port), output)
        for port in node.ports:
            ports.inputs.setdefault((node.id, port.port), port)
    for edge in edges:
        value, target = ports.outputs.get(edge[:2]), ports.inputs.get(edge[2:4])
        if value is None or target is None:
            _report(context, ports.nodes, edge, value, target)
        elif target.source is not None:
            text = f"a second edge arrives at input port {edge.to_port}, from layer {edge.from_layer}"
            node = ports.nodes[edge.to_layer]
            context.problems.append(node.finding(codes.DUPLICATE_EDGE, text, port=edge.to_port, line=edge.line))
        else:
            target.source = value
            payload: InputPayload = target.payload
            target.payload = InputPayload(payload.attributes, payload.elements, edge.position, edge.attributes)
    for node in graph.nodes:
        for port in node.ports:
            if port.source is None:
                text = f"no edge arrives at input port {port.port}"
                context.problems.append(node.finding(codes.MISSING_EDGE, text, port=port.port, line=port.line))


def _by_id(context: ReadContext, graph: Graph) -> dict[int, Node]:
    found: dict[int, Node] = {}
    for node in graph.nodes:
        first = found.setdefault(node.id, node)
        if first is not node and node.id >= 0:
            text = f"id {node.id} is also that of {first.name!r} in line {first.line}"
            context.problems.append(node.finding(codes.DUPLICATE_LAYER, text))
    found.pop(-1, None)
    return found


def _report(
    context: ReadContext, nodes: dict[int, Node], edge: Edge, value: Value | None, target: Input | None
) -> None:
    """Add what is wrong with an edge of which a port does not exist, or both."""
    if value is None:
        layer = f"an edge to layer {edge.to_layer} comes from layer {edge.from_layer}"
        port = f"an edge comes from output port {edge.from_port}"
        context.problems.append(
            _missing_end(codes.EDGE_FROM_NOTHING, nodes.get(edge.from_layer), layer, port, edge.from_port, edge.line)
        )
    if target is None:
        layer = f"an edge from layer {edge.from_layer} goes to layer {edge.to_layer}"
        port = f"an edge goes to input port {edge.to_port}"
        context.problems.append(
            _missing_end(codes.EDGE_TO_NOTHING, nodes.get(edge.to_layer), layer, port, edge.to_port, edge.line)
        )


def _missing_end(code: str, node: Node | None, layer: str, port: str, number: int, line: int | None) -> Finding:
    """The finding that the layer of one end of an edge does not exist, or, if there is a ``node``, that its port does
    not.
    """
    if node is None:
        return in_model(code, f"{layer}, which does not exist", line=line)
    return node.finding(code, f"{port}, which the layer does not have", port=number, line=line)
