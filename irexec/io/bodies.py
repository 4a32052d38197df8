"""Bodies of Loop, TensorIterator and If, with their port maps and back edges."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lxml import etree

from irexec.io.xml import said_by_tag, texts
from irexec.ir import codes
from irexec.ir.graph import BackEdge, Body, Graph, Node, PortMap

if TYPE_CHECKING:
    from irexec.io.reader import Reader

_MAP_NUMBERS = ("external_port_id", "internal_layer_id")


def body_tags(name: str) -> tuple[str, str, str]:
    """The elements of a body: itself, its port map, its back edges ("then_body" has "then_port_map")."""
    prefix = name.removesuffix("body")
    return name, f"{prefix}port_map", f"{prefix}back_edges"


def read_bodies(reader: Reader, layer: etree._Element, node: Node, depth: int) -> set[str]:
    """Read the bodies of a layer into ``node.bodies``; returns the tags of the elements that were read."""
    names = [str(child.tag) for child in layer if isinstance(child.tag, str) and child.tag.endswith("body")]
    read: set[str] = set()
    for name in names:
        if name in read:
            reader.problem(codes.MISSING_BODY, f"the layer has two <{name}>", layer, node)
            continue
        tag, map_tag, back_tag = body_tags(name)
        read |= {tag, map_tag, back_tag}
        element = next(layer.iterchildren(tag))
        body = Body(reader.graph(element, Graph(element.get("name", "")), depth + 1))
        for part in layer.iterchildren(map_tag):
            body.port_maps += filter(None, (_port_map(reader, entry, node) for entry in part))
        for part in layer.iterchildren(back_tag):
            body.back_edges += filter(None, (_back_edge(reader, entry, node) for entry in part))
        body.graph.parts |= {"": texts(element, "name")} if texts(element, "name") else {}
        node.parts |= said_by_tag(layer, map_tag, back_tag)
        node.bodies[name] = body
    for child in layer:
        if isinstance(child.tag, str) and child.tag.endswith("port_map") and child.tag not in read:
            reader.problem(codes.MISSING_BODY, f"<{child.tag}> belongs to no body", child, node)
    return read


def _port_map(reader: Reader, entry: etree._Element, node: Node) -> PortMap | None:
    if entry.tag not in ("input", "output"):
        reader.problem(codes.BAD_PORT_MAP, f"<{entry.tag}> is no entry of a port map", entry, node)
        return None
    external, internal = (reader.number(entry, key, node, codes.BAD_PORT_MAP) for key in _MAP_NUMBERS)
    if external is None or internal is None:
        return None
    rest = texts(entry, *_MAP_NUMBERS)
    return PortMap(str(entry.tag), external, internal, rest, reader.document.line(entry))


def _back_edge(reader: Reader, entry: etree._Element, node: Node) -> BackEdge | None:
    source, target = (reader.number(entry, key, node, codes.BAD_BACK_EDGE) for key in ("from-layer", "to-layer"))
    if source is None or target is None:
        return None
    return BackEdge(source, target, reader.document.line(entry), texts(entry, "from-layer", "to-layer"))
