"""Reading bodies of Loop, TensorIterator and If, with their port maps and back edges."""

from __future__ import annotations

from collections.abc import Callable

from lxml import etree

from irexec.io.context import ReadContext
from irexec.io.names import body_tags
from irexec.io.payload import BackEdgePayload
from irexec.io.xml import attributes_of
from irexec.ir import codes
from irexec.ir.graph import BackEdge, Body, Graph, Node, PortMap

_MAP_IDS = ("external_port_id", "internal_layer_id")
_EDGE_IDS = ("from-layer", "to-layer")


def read_bodies(context: ReadContext, layer: etree._Element, node: Node, read_graph: Callable[[etree._Element], Graph]) -> set[str]:
    """Read the bodies of a layer into ``node.bodies``.

    Args:
        context: the document.
        layer: the layer element.
        node: what has been read of it.
        read_graph: reads the graph of a body from its element.

    Returns:
        The tags of the child elements that were read.
    """
    read: set[str] = set()
    for name in [str(child.tag) for child in layer if isinstance(child.tag, str) and child.tag.endswith("body")]:
        if name in read:
            context.problem(codes.MISSING_BODY, f"the layer has two <{name}>", layer, node)
            continue
        tag, map_tag, back_tag = body_tags(name)
        read |= {tag, map_tag, back_tag}
        body = Body(read_graph(next(layer.iterchildren(tag))))
        for part in layer.iterchildren(map_tag):
            body.port_maps += filter(None, (_port_map(context, entry, node) for entry in part))
        for part in layer.iterchildren(back_tag):
            body.back_edges += filter(None, (_back_edge(context, entry, node) for entry in part))
        node.bodies[name] = body
    for child in layer:
        if isinstance(child.tag, str) and child.tag.endswith("port_map") and child.tag not in read:
            context.problem(codes.MISSING_BODY, f"<{child.tag}> belongs to no body", child, node)
    return read


def _port_map(context: ReadContext, entry: etree._Element, node: Node) -> PortMap | None:
    if entry.tag not in ("input", "output"):
        context.problem(codes.BAD_PORT_MAP, f"<{entry.tag}> is not an entry of a port map", entry, node)
        return None
    external, internal = (context.integer(entry, key, node, codes.BAD_PORT_MAP) for key in _MAP_IDS)
    if external is None or internal is None:
        return None
    return PortMap(str(entry.tag), external, internal, attributes_of(entry, *_MAP_IDS), context.line(entry))


def _back_edge(context: ReadContext, entry: etree._Element, node: Node) -> BackEdge | None:
    source, target = (context.integer(entry, key, node, codes.BAD_BACK_EDGE) for key in _EDGE_IDS)
    if source is None or target is None:
        return None
    return BackEdge(source, target, context.line(entry), BackEdgePayload(attributes_of(entry, *_EDGE_IDS)))
