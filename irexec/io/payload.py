"""Contents of a file beyond the graph, kept so that the same file can be written again, and changes to them.

One payload hangs on each node, port, back edge and graph that was read. They consist of texts alone, so that they can
be copied and pickled; child elements are kept as XML text. Nothing outside of irexec.io looks inside.

Payloads are frozen, so that every change replaces the payload of its owner.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from irexec.errors import InputError
from irexec.io.reading import RECORD_ATTRIBUTES
from irexec.io.xml import XmlElement, decode_names, element_rows, element_texts, encode_names, parsed_elements
from irexec.ir.graph import Graph, Input, ModelGraph, Node, Value
from irexec.ir.shape_text import is_name, is_text

Attributes = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PortPayload:
    """Payload of a port.

    Attributes:
        attributes: further attributes, as written.
        elements: the child elements other than dims.
    """

    attributes: Attributes = field(default_factory=dict)
    elements: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class InputPayload(PortPayload):
    """Payload of an input port and its edge.

    Attributes:
        edge: the position of the edge among the edges of the file; None without one.
        edge_attributes: further attributes of the edge, as written.
    """

    edge: int | None = None
    edge_attributes: Attributes = field(default_factory=dict)


NO_PORT_PAYLOAD, NO_INPUT_PAYLOAD = PortPayload(), InputPayload()
"""Payload of the ports without further contents."""


@dataclass(frozen=True, slots=True)
class BackEdgePayload:
    """Payload of a back edge: further attributes, as written."""

    attributes: Attributes = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LayerPayload:
    """Payload of a layer.

    Attributes:
        attributes: further attributes of the layer element, as written.
        parts: attributes, by tag, of child elements for which IR defines none (input, output, the maps of bodies).
        elements: the child elements that IR does not define, and rt_info.
        layout: the tags of the child elements, in the order in which they are written.
    """

    attributes: Attributes = field(default_factory=dict)
    parts: Mapping[str, Attributes] = field(default_factory=dict)
    elements: tuple[str, ...] = ()
    layout: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GraphPayload:
    """Payload of the net element or of a body.

    Attributes:
        attributes: further attributes of the element, as written.
        parts: attributes, by tag, of layers and edges.
        elements: the child elements other than layers and edges.
    """

    attributes: Attributes = field(default_factory=dict)
    parts: Mapping[str, Attributes] = field(default_factory=dict)
    elements: tuple[str, ...] = ()


def set_metadata(
    of: Graph | Node | Value | Input,
    *,
    attributes: Attributes | None = None,
    parts: Mapping[str, Attributes] | None = None,
    elements: Sequence[str] = (),
) -> None:
    """Give a model, a body, a layer or a port what a file says of it beside the graph, in place of what it has.

    Args:
        of: the graph, the layer, or an output or input of a layer.
        attributes: further attributes of its element.
        parts: attributes of its child elements, by tag; of graphs and layers.
        elements: child elements as XML text, such as "<rt_info>...</rt_info>".
    """
    if isinstance(of, Graph | Node):
        kind = GraphPayload if isinstance(of, Graph) else LayerPayload
        of.payload = kind(attributes=dict(attributes or {}), parts=dict(parts or {}), elements=tuple(elements))
    else:
        port = PortPayload if isinstance(of, Value) else InputPayload
        of.payload = port(attributes=dict(attributes or {}), elements=tuple(elements))


def metadata(of: Graph | Node | Value | Input) -> dict[str, Any]:
    """Contents of a file beside the graph, of a model, a body, a layer or a port: the arguments of ``set_metadata``.

    The attributes of ports, which a writer fills in, and the record of the .bin are left out.
    """
    said = {} if of.payload is None else {each.name: getattr(of.payload, each.name) for each in fields(of.payload)}
    found = {name: said[name] for name in ("attributes", "parts", "elements") if said.get(name)}
    if isinstance(of.payload, PortPayload):
        found.pop("attributes", None)
    if "attributes" in found:
        found["attributes"] = {
            name: text for name, text in found["attributes"].items() if name not in RECORD_ATTRIBUTES
        }
    return {name: dict(value) if isinstance(value, Mapping) else value for name, value in found.items() if value}


# Defaults of the writer: the order of elements and edges never makes a model another one.
_ORDER = ("layout", "edge")


def plain(payload: Any, *, as_written: bool = False) -> dict[str, Any]:
    """A payload as data that can be compared: what it says, by field; empty for none.

    Args:
        payload: the payload of a node, port, back edge or graph.
        as_written: also what a writer fills in, the further attributes of ports.
    """
    if payload is None:
        return {}
    found = {each.name: getattr(payload, each.name) for each in fields(payload) if each.name not in _ORDER}
    if isinstance(payload, PortPayload) and not as_written:
        del found["attributes"]
    found["elements"] = element_rows(found.get("elements", ()))
    return {name: value for name, value in found.items() if value}


_RT_INFO, _LAYOUT, _OUTPUT_NAMES = "rt_info", "layout", "output_names"
MODULE = "module"
"""Entry in the rt_info of a layer whose ``scope`` is the name of a module, such as "blocks.0.conv"."""
_LETTERS = re.compile(r"\[?\s*([A-Za-z0-9_?](?:\s*,?\s*[A-Za-z0-9_?])*)\s*\]?")


def set_rt_info(model: ModelGraph, path: Sequence[str], value: str) -> None:
    """Set an entry of the model's rt_info.

    Args:
        model: the model.
        path: names of the elements that lead to the entry; those that do not exist are made.
        value: its text.

    Raises:
        InputError: the path is empty, XML cannot contain a name or the value, or the path leads through an entry that
            has a value.
    """
    _check_path(path, value)
    payload = model.payload if isinstance(model.payload, GraphPayload) else GraphPayload()
    elements, here = _with_rt_info(payload.elements)
    for name in path[:-1]:
        here = _first(here.children, name)
        if "value" in here.attributes:
            raise InputError(f"rt_info: {name!r} has the value {here.attributes['value']!r} and cannot have entries")
    entry = _first(here.children, path[-1])
    if entry.children:
        raise InputError(f"rt_info: {'/'.join(path)!r} has entries and cannot have a value")
    entry.attributes["value"] = value
    model.payload = replace(payload, elements=element_texts(elements))


def rt_info(model: ModelGraph) -> dict[str, str]:
    """The entries of a model's rt_info by their paths, such as {"conversion_parameters/framework": "pytorch"}."""
    if not isinstance(model.payload, GraphPayload):
        return {}
    found: dict[str, str] = {}
    waiting = [("", element) for element in parsed_elements(model.payload.elements) if element.tag == _RT_INFO]
    while waiting:
        path, element = waiting.pop(0)
        for child in element.children:
            here = f"{path}/{child.tag}" if path else child.tag
            if "value" in child.attributes:
                found[here] = child.attributes["value"]
            waiting.append((here, child))
    return found


def _with_rt_info(texts: tuple[str, ...]) -> tuple[list[XmlElement], XmlElement]:
    """The elements of a payload, and the rt_info among them, which is made if there is none."""
    elements = list(parsed_elements(texts))
    return elements, _first(elements, _RT_INFO)


def _check_path(path: Sequence[str], value: str) -> None:
    for name in path:
        if not is_name(name) or ":" in name:
            raise InputError(f"rt_info: {name!r} cannot be the name of an entry")
    if not path:
        raise InputError("rt_info: an entry has no name")
    if not is_text(value):
        raise InputError(f"rt_info: {value[:60]!r} has characters that XML cannot contain")


def _first(elements: list[XmlElement], tag: str) -> XmlElement:
    """The first of elements with a tag, which is added if there is none."""
    found = next((element for element in elements if element.tag == tag), None)
    if found is None:
        found = XmlElement(tag, {})
        elements.append(found)
    return found


def layout_of(value: Value) -> str | None:
    """The layout that a file declares for a tensor, one character for each axis such as "NHWC"; None without one."""
    entry = info_entry(value, _LAYOUT)
    return None if entry is None else parse_layout(entry.get("layout", ""))


def info_entry(of: Node | Value, name: str) -> Attributes | None:
    """The attributes of an entry in the rt_info of a layer or an output, such as "fused_names"; None without it."""
    if not isinstance(of.payload, LayerPayload | PortPayload):
        return None
    for element in parsed_elements(of.payload.elements):
        for entry in element.all("attribute") if element.tag == _RT_INFO else ():
            if entry.attributes.get("name") == name:
                return entry.attributes
    return None


def module_of(node: Node) -> str:
    """The module of a PyTorch model that a layer was exported from, where the exporter wrote it down; ""."""
    return (info_entry(node, MODULE) or {}).get("scope", "")


def parse_layout(text: str) -> str | None:
    """The layout of a text such as "NHWC" or "[N,H,W,C]"; None for texts such as "[N,...,C]"."""
    found = _LETTERS.fullmatch(text.strip())
    return None if found is None else re.sub(r"[\s,]", "", found[1]).upper()


def set_layout(value: Value, layout: str | None) -> None:
    """Declare the layout of a tensor; None takes the declaration away."""
    payload = value.payload if isinstance(value.payload, PortPayload) else PortPayload()
    elements, info = _with_rt_info(payload.elements)
    info.children = [child for child in info.children if child.attributes.get("name") != _LAYOUT]
    if layout is not None:
        texts = {"name": _LAYOUT, "version": "0", "layout": f"[{','.join(layout)}]"}
        info.children.append(XmlElement("attribute", texts))
    if not info.children:
        elements.remove(info)
    value.payload = replace(payload, elements=element_texts(elements))


def output_names(result: Node) -> list[str] | None:
    """The names that a file gives to the output of a model at its Result; None where it gives none."""
    payload = result.payload
    text = payload.attributes.get(_OUTPUT_NAMES) if isinstance(payload, LayerPayload) else None
    return None if text is None else decode_names(text)


def set_output_names(result: Node, names: Sequence[str]) -> None:
    """Change the names that a file gives to the output of a model at its Result; without names nothing is written."""
    payload = result.payload if isinstance(result.payload, LayerPayload) else LayerPayload()
    attributes = {key: text for key, text in payload.attributes.items() if key != _OUTPUT_NAMES}
    if names:
        attributes[_OUTPUT_NAMES] = encode_names(list(names))
    result.payload = replace(payload, attributes=attributes)


def mark_layer(node: Node, name: str, **attributes: str) -> None:
    """Add an entry to the rt_info of a layer that has none of this name, such as OpenVINO's "decompression"."""
    payload = node.payload if isinstance(node.payload, LayerPayload) else LayerPayload()
    elements, info = _with_rt_info(payload.elements)
    if all(child.attributes.get("name") != name for child in info.children):
        info.children.append(XmlElement("attribute", {"name": name, "version": "0", **attributes}))
    node.payload = replace(payload, elements=element_texts(elements))
