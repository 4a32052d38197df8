"""Reading ports: the declared element type and shape, the tensor names."""

from __future__ import annotations

from lxml import etree

from irexec.dtypes.elements import Element
from irexec.io.context import ReadContext, parse_integer
from irexec.io.names import decode_names, named_element
from irexec.io.payload import InputPayload, PortPayload
from irexec.io.xml import attributes_of, element_texts
from irexec.ir import codes
from irexec.ir.dims import ANY, Size
from irexec.ir.facts import Fact
from irexec.ir.graph import Input, Node, Value

_UNKNOWN_PRECISIONS = ("", "dynamic", "undefined", "unspecified")


def read_ports(context: ReadContext, layer: etree._Element, node: Node) -> None:
    """Read the ports of a layer into ``node.ports`` and ``node.outputs``."""
    for port in _ports(layer, "input"):
        node.ports.append(_input(context, port, node))
    for index, port in enumerate(_ports(layer, "output")):
        node.outputs.append(_output(context, port, node, index))
    _report_duplicates(context, layer, node, [port.port for port in node.ports])
    _report_duplicates(context, layer, node, [value.port for value in node.outputs])


def _report_duplicates(context: ReadContext, layer: etree._Element, node: Node, ids: list[int | None]) -> None:
    seen: set[int] = set()
    for number in ids:
        if number is not None and number in seen:
            context.problem(codes.DUPLICATE_PORT, f"two ports have the id {number}", layer, node, number)
        elif number is not None:
            seen.add(number)


def _ports(layer: etree._Element, tag: str) -> list[etree._Element]:
    return [port for part in layer.iterchildren(tag) for port in part.iterchildren("port")]


def _input(context: ReadContext, element: etree._Element, node: Node) -> Input:
    number = context.integer(element, "id", node)
    fact = _fact(context, element, node, number)
    payload = InputPayload(attributes_of(element, "id", *_modelled(element, fact)), _other_elements(element))
    return Input(fact=fact, port=number, line=context.line(element), payload=payload)


def _output(context: ReadContext, element: etree._Element, node: Node, index: int) -> Value:
    number = context.integer(element, "id", node)
    fact = _fact(context, element, node, number)
    names = decode_names(element.get("names", ""))
    modelled = ("id", *(["names"] if names else []), *_modelled(element, fact))
    payload = PortPayload(attributes_of(element, *modelled), _other_elements(element))
    return Value(node, index, fact, names, number, context.line(element), payload)


def _fact(context: ReadContext, port: etree._Element, node: Node, number: int | None) -> Fact:
    shape = tuple(_size(context, dim, node, number) for dim in port.iterchildren("dim"))
    return Fact(_element(context, port, node, number), shape)


def _element(context: ReadContext, port: etree._Element, node: Node, number: int | None) -> Element | None:
    text = port.get("precision")
    if text is None or text.lower() in _UNKNOWN_PRECISIONS:
        return None
    found = named_element(text)
    if found is None:
        context.problem(codes.BAD_PRECISION, f"precision {text[:40]!r} is not an element type", port, node, number)
    return found


def _size(context: ReadContext, dim: etree._Element, node: Node, number: int | None) -> Size:
    size = parse_integer(dim.text or "")
    if size is None or size < -1:
        context.problem(codes.BAD_DIM, f"dim {(dim.text or '').strip()[:40]!r} is not a size", dim, node, number)
    return ANY if size is None or size < 0 else size


def _modelled(port: etree._Element, fact: Fact) -> list[str]:
    """The precision, if the fact implies it exactly as it is written: any other spelling is kept."""
    implied = None if fact.element is None else fact.element.precision
    return ["precision"] if port.get("precision") == implied else []


def _other_elements(port: etree._Element) -> tuple[str, ...]:
    return element_texts(child for child in port if child.tag != "dim")
