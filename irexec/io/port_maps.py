"""Reading bodies of Loop, TensorIterator and If, with their port maps and back edges."""

from __future__ import annotations

from collections.abc import Callable

from irexec.io.context import ReadContext
from irexec.io.elements import XmlElement
from irexec.io.names import body_tags
from irexec.io.payload import BackEdgePayload
from irexec.ir import codes
from irexec.ir.graph import BackEdge, Body, Graph, Node, PortMap

_MAP_IDS = ("external_port_id", "internal_layer_id")
_EDGE_IDS = ("from-layer", "to-layer")


def read_bodies(
    context: ReadContext, layer: XmlElement, node: Node, read_graph: Callable[[XmlElement], Graph]
) -> set[str]:
    """Read the bodies of a layer into ``node.bodies``.

    Args:
        context: the document.
        layer: the layer element.
        node: the node as read so far.
        read_graph: reads the graph of a body from its element.

    Returns:
        The tags of the child elements that were read.
    """
    read: set[str] = set()
    for name in [child.tag for child in layer.children if child.tag.endswith("body")]:
        if name in read:
            context.problem(codes.MISSING_BODY, f"the layer has two <{name}>", layer, node)
            continue
        tag, map_tag, back_tag = body_tags(name)
        read |= {tag, map_tag, back_tag}
        body = Body(read_graph(layer.all(tag)[0]))
        for part in layer.all(map_tag):
            body.port_maps += filter(None, (_port_map(context, entry, node) for entry in part.children))
        for part in layer.all(back_tag):
            body.back_edges += filter(None, (_back_edge(context, entry, node) for entry in part.children))
        node.bodies[name] = body
    for child in layer.children:
        if child.tag.endswith("port_map") and child.tag not in read:
            context.problem(codes.MISSING_BODY, f"<{child.tag}> belongs to no body", child, node)
    return read


def _port_map(context: ReadContext, entry: XmlElement, node: Node) -> PortMap | None:
    if entry.tag not in ("input", "output"):
        context.problem(codes.BAD_PORT_MAP, f"<{entry.tag}> is not an entry of a port map", entry, node)
        return None
    ids = context.integers(entry, _MAP_IDS, node, codes.BAD_PORT_MAP)
    if ids is None:
        return None
    external, internal = ids
    return PortMap(entry.tag, external, internal, entry.without(frozenset(_MAP_IDS)), entry.line)


def _back_edge(context: ReadContext, entry: XmlElement, node: Node) -> BackEdge | None:
    ids = context.integers(entry, _EDGE_IDS, node, codes.BAD_BACK_EDGE)
    if ids is None:
        return None
    source, target = ids
    return BackEdge(source, target, entry.line, BackEdgePayload(entry.without(frozenset(_EDGE_IDS))))
