"""Reading ports: the declared element type and shape, the tensor names."""

from __future__ import annotations

from collections.abc import Sequence

from irexec.dtypes.elements import Element as ElementType
from irexec.io.context import ReadContext, parse_integer
from irexec.io.elements import XmlElement, element_texts
from irexec.io.names import decode_names, named_element
from irexec.io.payload import NO_INPUT_PAYLOAD, NO_PORT_PAYLOAD, InputPayload, PortPayload
from irexec.ir import codes
from irexec.ir.dims import ANY, Size
from irexec.ir.facts import Fact
from irexec.ir.graph import Input, Node, Value

_MODELLED = frozenset(("id", "precision", "names"))
_UNKNOWN_PRECISIONS = ("", "dynamic", "undefined", "unspecified")


def read_ports(context: ReadContext, layer: XmlElement, node: Node) -> None:
    """Read the ports of a layer into ``node.ports`` and ``node.outputs``."""
    node.ports = [_input(context, port, node) for port in _ports(layer, "input")]
    node.outputs = [_output(context, port, node, index) for index, port in enumerate(_ports(layer, "output"))]
    for ports in (node.ports, node.outputs):
        if len(ports) > 1:
            _report_duplicates(context, layer, node, ports)


def _report_duplicates(context: ReadContext, layer: XmlElement, node: Node, ports: Sequence[Input | Value]) -> None:
    seen: set[int] = set()
    for number in [port.port for port in ports]:
        if number is not None and number in seen:
            context.problem(codes.DUPLICATE_PORT, f"two ports have the id {number}", layer, node, number)
        elif number is not None:
            seen.add(number)


def _ports(layer: XmlElement, tag: str) -> list[XmlElement]:
    return [port for part in layer.children if part.tag == tag for port in part.children if port.tag == "port"]


def _input(context: ReadContext, element: XmlElement, node: Node) -> Input:
    number = context.integer(element, "id", node)
    fact = _fact(context, element, node, number)
    attributes, others = _further(element, fact, has_names=False), _other_elements(element)
    payload = InputPayload(attributes, others) if attributes or others else NO_INPUT_PAYLOAD
    return Input(None, fact, number, element.line, payload)


def _output(context: ReadContext, element: XmlElement, node: Node, index: int) -> Value:
    number = context.integer(element, "id", node)
    fact = _fact(context, element, node, number)
    names = decode_names(element.attributes.get("names", ""))
    attributes, others = _further(element, fact, has_names=bool(names)), _other_elements(element)
    payload = PortPayload(attributes, others) if attributes or others else NO_PORT_PAYLOAD
    return Value(node, index, fact, names, number, element.line, payload)


def _fact(context: ReadContext, port: XmlElement, node: Node, number: int | None) -> Fact:
    written = (port.attributes.get("precision"), *[child.text for child in port.children if child.tag == "dim"])
    known = context.facts.get(written)
    if known is not None:
        return known
    problems = len(context.problems)
    shape = tuple(_size(context, dim, node, number) for dim in port.all("dim"))
    fact = Fact(_element(context, port, node, number), shape)
    if len(context.problems) == problems:
        context.facts[written] = fact
    return fact


def _element(context: ReadContext, port: XmlElement, node: Node, number: int | None) -> ElementType | None:
    text = port.attributes.get("precision")
    if text is None or text.lower() in _UNKNOWN_PRECISIONS:
        return None
    found = named_element(text)
    if found is None:
        context.problem(codes.BAD_PRECISION, f"precision {text[:40]!r} is not an element type", port, node, number)
    return found


def _size(context: ReadContext, dim: XmlElement, node: Node, number: int | None) -> Size:
    size = parse_integer(dim.text)
    if size is None or size < -1:
        context.problem(codes.BAD_DIM, f"dim {dim.text.strip()[:40]!r} is not a size", dim, node, number)
    return ANY if size is None or size < 0 else size


def _further(port: XmlElement, fact: Fact, *, has_names: bool) -> dict[str, str]:
    """The attributes that the graph does not hold: any precision but the one that the fact implies, names that are
    empty, others.
    """
    implied = None if fact.element is None else fact.element.precision
    held = _MODELLED
    if port.attributes.get("precision") != implied:
        held = held - {"precision"}
    if not has_names:
        held = held - {"names"}
    return port.without(held)


def _other_elements(port: XmlElement) -> tuple[str, ...]:
    others = [child for child in port.children if child.tag != "dim"]
    return element_texts(others) if others else ()
