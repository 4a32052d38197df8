"""Writing IR version 11, as OpenVINO writes it: port numbers, aliases, separators, shared constants."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from lxml import etree

from irexec.dtypes.elements import Element
from irexec.errors import ModelError
from irexec.io.bodies import body_tags
from irexec.io.files import replacing
from irexec.io.names import NO_PRECISION, READ_TYPES, WRITTEN_TYPES, encode_names, named_element
from irexec.ir.constants import Constant
from irexec.ir.facts import Fact
from irexec.ir.graph import Body, Graph, Input, Model, Node, Value

_EDGE = ("from-layer", "from-port", "to-layer", "to-port")
_DEFAULT_LAYOUT = (
    "port_map", "back_edges", "else_port_map", "then_port_map", "data", "rt_info", "input", "output", "body", "then_body", "else_body",
)  # fmt: skip


def write(model: Model, path: str | Path) -> None:
    """Write a model: ``path`` and the .bin beside it, both or neither.

    Both are written to temporary files in the same folder, flushed to the disk and renamed, so that
    an interrupted write leaves the files that were there whole.

    Raises:
        ModelError: the model cannot be written as XML, or the place cannot be written to.
    """
    target = Path(path)
    if "\0" in str(target) or not target.name:
        raise ModelError(f"{str(path)!r} is no name of a file")
    if target.suffix.lower() == ".bin":
        raise ModelError(f"{target}: cannot be written: .bin is the suffix of the weights beside the .xml")
    try:
        with replacing(target.with_suffix(".bin"), target) as (binary, xml):
            xml.write(Writer(binary.write).document(model))
    except OSError as error:
        raise ModelError(f"{target}: cannot be written: {error.strerror or error}") from None


def write_text(model: Model) -> tuple[bytes, bytes]:
    """The bytes of the .xml and of the .bin."""
    parts: list[Any] = []
    text = Writer(parts.append).document(model)
    return text, b"".join(bytes(part) for part in parts)


class Writer:
    """Writes one model; constants go to ``sink`` as they are met, the same bytes once.

    Args:
        sink: takes the bytes of the .bin piece by piece.
    """

    def __init__(self, sink: Callable[[Any], Any]) -> None:
        self._sink = sink
        self._offsets: dict[tuple[int, bytes], int] = {}
        self._size = 0

    def document(self, model: Model) -> bytes:
        """The text of the .xml."""
        net = _element("net", {"name": model.name, "version": "11"} | model.attributes, "of the model")
        self._graph(net, model)
        _append(net, model.rt_info)
        etree.indent(net, space="\t")
        written: bytes = etree.tostring(net, encoding="utf-8", xml_declaration=False)
        return b'<?xml version="1.0"?>\n' + written + b"\n"

    def _graph(self, parent: etree._Element, graph: Graph) -> None:
        damage = next((problem for problem in graph.problems if problem.severity == "error"), None)
        if damage is not None:
            raise ModelError(f"a damaged model cannot be written: line {damage.line}: {damage.message}")
        _check_ids(graph)
        layers, edges = (_element(tag, graph.parts.get(tag, {}), f"of {tag}") for tag in ("layers", "edges"))
        parent.extend([layers, edges])
        for node in graph.nodes:
            self._layer(layers, node)
        for numbers, attributes in _edges(graph):
            edges.append(_element("edge", dict(zip(_EDGE, map(str, numbers), strict=True)) | attributes, "of an edge"))

    def _layer(self, layers: etree._Element, node: Node) -> None:
        said = {"id": str(node.id), "name": node.name, "type": _written_type(node), "version": node.version}
        layer = _element("layer", said | node.extras, f"of {node.name!r}")
        layers.append(layer)
        parts = self._parts(node)
        order = [tag for tag in dict.fromkeys((*node.layout, *_DEFAULT_LAYOUT, *parts)) if tag in parts]
        for tag in order:
            layer.extend(parts[tag])

    def _parts(self, node: Node) -> dict[str, list[etree._Element]]:
        """The child elements of a layer by tag."""
        parts: dict[str, list[etree._Element]] = {}
        attributes = self._attributes(node)
        if attributes or "data" in node.layout:
            parts["data"] = [_element("data", attributes, f"of {node.name!r}")]
        if node.ports or "input" in node.layout:
            parts["input"] = [_ports("input", node, (_input(i, port) for i, port in enumerate(node.ports)))]
        if node.outputs or "output" in node.layout:
            parts["output"] = [_ports("output", node, map(_output, node.outputs))]
        for name, body in node.bodies.items():
            parts |= self._body(name, body, node)
        for child in node.rt_info or ():
            parts.setdefault(str(child.tag), []).append(_plain(child))
        return parts

    def _attributes(self, node: Node) -> dict[str, str]:
        if node.constant is None:
            return node.attributes
        constant = node.constant
        shape = ", ".join(map(str, constant.shape))
        fresh = {"element_type": constant.element.name, "shape": shape, "offset": str(self._offset(constant)), "size": str(constant.size)}
        # What was written stays in its spelling, unless the node has been given another constant since.
        if _spaceless(node.attributes.get("shape", "")) == _spaceless(shape):
            fresh["shape"] = node.attributes.get("shape", shape)
        if named_element(node.attributes.get("element_type", "")) is constant.element:
            fresh["element_type"] = node.attributes["element_type"]
        return {key: fresh.get(key, text) for key, text in node.attributes.items()} | fresh

    def _offset(self, constant: Constant) -> int:
        """Where the bytes of a constant stand; bytes that were written before are not written again."""
        raw = constant.raw[: constant.size]
        key = (constant.size, hashlib.sha256(raw.data if raw.flags.c_contiguous else raw.tobytes()).digest())
        if key not in self._offsets:
            self._offsets[key] = self._size
            self._sink(raw.data if raw.flags.c_contiguous else raw.tobytes())
            self._size += constant.size
        return self._offsets[key]

    def _body(self, name: str, body: Body, node: Node) -> dict[str, list[etree._Element]]:
        tag, map_tag, back_tag = body_tags(name)
        parts: dict[str, list[etree._Element]] = {}
        if body.port_maps or map_tag in node.layout:
            maps = etree.Element(map_tag)
            for entry in body.port_maps:
                numbers = {"external_port_id": str(entry.external), "internal_layer_id": str(entry.internal)}
                # OpenVINO writes the axis before the ids and everything else after them.
                axis = {key: text for key, text in entry.attributes.items() if key == "axis"}
                maps.append(_element(entry.kind, axis | numbers | entry.attributes, "of a port map"))
            parts[map_tag] = [maps]
        if body.back_edges or back_tag in node.layout:
            backs = etree.Element(back_tag)
            for edge in body.back_edges:
                ends = {"from-layer": str(edge.source), "to-layer": str(edge.target)}
                backs.append(_element("edge", ends | edge.attributes, "of a back edge"))
            parts[back_tag] = [backs]
        for part in parts:
            _set(parts[part][0], node.parts.get(part, {}), f"of {part}")
        named = {"name": body.graph.name} if body.graph.name else {}
        element = _element(tag, named | body.graph.parts.get("", {}), "of a body")
        self._graph(element, body.graph)
        _append(element, body.graph.extras.get("rest"))
        parts[tag] = [element]
        return parts


def _check_ids(graph: Graph) -> None:
    seen: set[int] = set()
    for node in graph.nodes:
        if node.id in seen:
            raise ModelError(f"two layers have the id {node.id}, the second is {node.name!r}")
        seen.add(node.id)


def _written_type(node: Node) -> str:
    """The type in the spelling of its file, unless the node has been given another type since."""
    if node.spelling is not None and READ_TYPES.get(node.spelling, node.spelling) == node.type:
        return node.spelling
    return WRITTEN_TYPES.get(node.type, node.type)


def _spaceless(text: str) -> str:
    return "".join(text.split())


def _edges(graph: Graph) -> list[tuple[tuple[int, int, int, int], dict[str, str]]]:
    """From layer, from port, to layer, to port of every edge and what else it says: in the order of the file, then new ones by number.

    OpenVINO sorts edges by the layer they come from, with a sort that is not stable, so the order of
    the others in its files follows from nothing.
    """
    inside = set(graph.nodes)
    found: list[tuple[bool, int, tuple[int, int, int, int], dict[str, str]]] = []
    for node in graph.nodes:
        for index, port in enumerate(node.ports):
            here = f"input {index} of layer {node.id} {node.name!r} is fed by"
            if port.source is None:
                raise ModelError(f"{here} nothing")
            if port.source.node not in inside:
                raise ModelError(f"{here} {port.source.node.name!r}, which is not in the graph")
            to_port = index if port.port is None else port.port
            numbers = (port.source.node.id, _output_number(port.source), node.id, to_port)
            found.append((port.edge is None, port.edge or 0, numbers, port.edge_attributes))
    found.sort(key=lambda edge: (edge[0], edge[1], edge[2][0], edge[2][2], edge[2][3]))
    return [(numbers, attributes) for *_, numbers, attributes in found]


def _output_number(value: Value) -> int:
    """The number of an output port: numbers run on from the inputs."""
    return len(value.node.ports) + value.index if value.port is None else value.port


def _ports(tag: str, node: Node, ports: Iterable[etree._Element]) -> etree._Element:
    element = _element(tag, node.parts.get(tag, {}), f"of {tag}")
    element.extend(list(ports))
    return element


def _input(index: int, port: Input) -> etree._Element:
    fact = port.fact if port.fact is not None or port.source is None else port.source.fact
    return _port(index if port.port is None else port.port, fact, port.attributes, port.rt_info, is_new=port.port is None)


def _output(value: Value) -> etree._Element:
    names = {"names": encode_names(value.names)} if value.names else {}
    return _port(_output_number(value), value.fact, names | value.attributes | names, value.rt_info, is_new=value.port is None)


def _port(number: int, fact: Fact | None, attributes: dict[str, str], rt_info: Any, *, is_new: bool) -> etree._Element:
    precision = _precision(None if fact is None else fact.element, attributes.get("precision"), is_new)
    port = _element("port", {"id": str(number)} | precision | attributes | precision, f"of port {number}")
    for size in (fact.shape if fact is not None else None) or ():
        etree.SubElement(port, "dim").text = str(size) if isinstance(size, int) else "-1"
    _append(port, rt_info)
    return port


def _precision(element: Element | None, written: str | None, is_new: bool) -> dict[str, str]:
    """The precision attribute: as written where that still says the element type."""
    if written is not None and named_element(written) is element:
        return {"precision": written}
    if element is None:
        return {"precision": NO_PRECISION} if is_new or written is not None else {}
    return {"precision": element.precision}


def _element(tag: str, attributes: dict[str, str], where: str) -> etree._Element:
    element = etree.Element(tag)
    _set(element, attributes, where)
    return element


def _set(element: etree._Element, attributes: dict[str, str], where: str) -> None:
    for key, text in attributes.items():
        try:
            element.set(key, text)
        except ValueError:
            raise ModelError(f"{key[:60]!r} {where}, {text[:60]!r}, has characters that XML cannot hold") from None


def _append(parent: etree._Element, children: Iterable[etree._Element] | None) -> None:
    parent.extend([_plain(child) for child in children or ()])


def _plain(element: etree._Element) -> etree._Element:
    """A copy without the white space of the file it was read from, so that indentation is the writer's."""
    fresh = copy.deepcopy(element)
    fresh.tail = None
    for inner in fresh.iter():
        if inner is not fresh and inner.tail is not None and not inner.tail.strip():
            inner.tail = None
        if len(inner) and inner.text is not None and not inner.text.strip():
            inner.text = None
    return fresh
