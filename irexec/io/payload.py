"""Contents of a file beyond the graph, kept so that the same file can be written again.

One payload hangs on each node, port, back edge and graph that was read. They consist of texts alone, so that they can
be copied and pickled; child elements are kept as XML text. Nothing outside of irexec.io looks inside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from irexec.io.record import RECORD_ATTRIBUTES
from irexec.io.xml import element_rows
from irexec.ir.graph import Graph, Input, Node, Value

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
