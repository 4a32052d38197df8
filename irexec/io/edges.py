"""Reading edges: ports are connected by layer and port id."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from lxml import etree

from irexec.io.context import ReadContext
from irexec.io.xml import attributes_of
from irexec.ir import codes
from irexec.ir.graph import Graph, Input, Node, Value

EDGE_ATTRIBUTES = ("from-layer", "from-port", "to-layer", "to-port")


class _Ports(NamedTuple):
    """The ports of a graph by layer and port id: one layer may have as many as there are edges."""

    nodes: dict[int, Node]
    outputs: dict[tuple[int, int | None], Value]
    inputs: dict[tuple[int, int | None], Input]


def connect(context: ReadContext, graph: Graph, edges: list[etree._Element]) -> None:
    """Connect the ports of a graph; what cannot be connected becomes a problem."""
    ports = _Ports(_by_id(context, graph), {}, {})
    for node in ports.nodes.values():
        for value in node.outputs:
            ports.outputs.setdefault((node.id, value.port), value)
        for port in node.ports:
            ports.inputs.setdefault((node.id, port.port), port)
    for index, edge in enumerate(edges):
        ids = [context.integer(edge, key) for key in EDGE_ATTRIBUTES]
        if None not in ids:
            _connect_one(context, ports, edge, index, [number or 0 for number in ids])
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


def _connect_one(context: ReadContext, ports: _Ports, edge: etree._Element, index: int, ids: list[int]) -> None:
    from_layer, from_port, to_layer, to_port = ids
    source, target = ports.nodes.get(from_layer), ports.nodes.get(to_layer)
    value, port = ports.outputs.get((from_layer, from_port)), ports.inputs.get((to_layer, to_port))
    if source is None:
        context.problem(codes.EDGE_FROM_NOTHING, f"an edge to layer {to_layer} comes from layer {from_layer}, which does not exist", edge)
    elif value is None:
        text = f"an edge comes from output port {from_port}, which the layer does not have"
        context.problem(codes.EDGE_FROM_NOTHING, text, edge, source, from_port)
    if target is None:
        context.problem(codes.EDGE_TO_NOTHING, f"an edge from layer {from_layer} goes to layer {to_layer}, which does not exist", edge)
    elif port is None:
        text = f"an edge goes to input port {to_port}, which the layer does not have"
        context.problem(codes.EDGE_TO_NOTHING, text, edge, target, to_port)
    if value is None or port is None:
        return
    if port.source is not None:
        text = f"a second edge arrives at input port {to_port}, from layer {from_layer}"
        context.problem(codes.DUPLICATE_EDGE, text, edge, target, to_port)
        return
    port.source = value
    port.payload = replace(port.payload, edge=index, edge_attributes=attributes_of(edge, *EDGE_ATTRIBUTES))
