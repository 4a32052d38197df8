"""Reading ports, constants and edges, with the state that every part of the reader shares: the weights, the problems so
far, common parts of ports and layers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from irexec.dtypes.elements import Element as ElementType
from irexec.dtypes.elements import element
from irexec.errors import UnsupportedError
from irexec.io.payload import NO_INPUT_PAYLOAD, NO_PORT_PAYLOAD, InputPayload, LayerPayload, PortPayload
from irexec.io.reading import BinRecord
from irexec.io.sources import Weights
from irexec.io.xml import XmlElement, decode_names, element_texts, named_element
from irexec.ir import codes
from irexec.ir.constants import Constant
from irexec.ir.dims import ANY, LARGEST_SIZE, Size
from irexec.ir.facts import Fact
from irexec.ir.findings import Finding, in_model
from irexec.ir.graph import Graph, Input, Node, Value
from irexec.messages import counted


class ReadContext:
    """One document while it is read.

    Most layers of a large model say the same of their ports and have the same parts, so that these are held once.

    Attributes:
        name: the name of the document in messages.
        weights: the .bin.
        problems: the problems of the graph that is being read.
        unreadable: the constants whose bytes are not in the .bin.
        facts: by precision and dims as written, where nothing is wrong with them.
        layouts: payloads of layers that say nothing else, by the tags of their child elements.
    """

    def __init__(self, name: str, weights: Weights) -> None:
        self.name, self.weights = name, weights
        self.problems: list[Finding] = []
        self.unreadable: list[Node] = []
        self.facts: dict[tuple[str | None, ...], Fact] = {}
        self.layouts: dict[tuple[str, ...], LayerPayload] = {}
        self._texts: dict[str, str] = {}
        self._shapes: dict[tuple[int, ...], tuple[int, ...]] = {}

    def shared(self, text: str) -> str:
        """The same text, held once."""
        return self._texts.setdefault(text, text)

    def shared_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The same sizes, held once."""
        return self._shapes.setdefault(shape, shape)

    def problem(
        self, code: str, message: str, element: XmlElement, node: Node | None = None, port: int | None = None
    ) -> None:
        """Add what is wrong at an element."""
        if node is None:
            self.problems.append(in_model(code, message, port=port, line=element.line))
        else:
            self.problems.append(node.finding(code, message, port=port, line=element.line))

    def integer(
        self, element: XmlElement, key: str, node: Node | None = None, code: str = codes.BAD_NUMBER
    ) -> int | None:
        """An integer of at most 64 bits from an attribute; None, and a problem, if it is not one."""
        text = element.attributes.get(key)
        value = None if text is None else parse_integer(text)
        if text is None:
            self.problem(code, f"<{element.tag}> has no {key}", element, node)
        elif value is None:
            self.problem(code, f"{key} {text[:40]!r} is not an integer of 64 bits", element, node)
        return value

    def integers(
        self, element: XmlElement, keys: Sequence[str], node: Node | None = None, code: str = codes.BAD_NUMBER
    ) -> list[int] | None:
        """Integers from several attributes; None, and problems, if one is not an integer."""
        values = [value for key in keys if (value := self.integer(element, key, node, code)) is not None]
        return values if len(values) == len(keys) else None


def parse_integer(text: str) -> int | None:
    """An integer of at most 64 bits; None for any other text."""
    if len(text) < 19 and text.isascii() and text.isdigit():
        return int(text)
    stripped = text.strip()
    digits = stripped.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 20):
        return None
    value = int(stripped)
    return value if -LARGEST_SIZE - 1 <= value <= LARGEST_SIZE else None


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


_ATTRIBUTES = ("element_type", "shape", "offset", "size")


def read_constant(context: ReadContext, layer: XmlElement, node: Node) -> Constant | None:
    """The constant of a layer; None, and a problem, if its attributes do not describe one."""
    texts = node.attributes
    missing = [key for key in _ATTRIBUTES if key not in texts]
    if missing:
        context.problem(codes.CONSTANT_ATTRIBUTE, f"the constant has no {', '.join(missing)}", layer, node)
        return None
    kind = _element_type(context, layer, node)
    sizes = texts["shape"].split(",") if texts["shape"].strip() else []
    shape = _integers(context, layer, node, "shape", sizes)
    offset, size = (_integers(context, layer, node, key, [texts[key]]) for key in ("offset", "size"))
    if kind is None or shape is None or offset is None or size is None:
        return None
    is_readable = size[0] == 0 or context.weights.contains(offset[0], size[0])
    if not is_readable:
        context.unreadable.append(node)
    return Constant(kind, shape, context.weights.slice(offset[0], size[0]), size[0], offset[0], is_readable)


def _element_type(context: ReadContext, layer: XmlElement, node: Node) -> ElementType | None:
    try:
        return element(node.attributes["element_type"])
    except UnsupportedError as error:
        context.problem(codes.CONSTANT_ATTRIBUTE, str(error), layer, node)
        return None


def _integers(
    context: ReadContext, layer: XmlElement, node: Node, key: str, texts: Sequence[str]
) -> tuple[int, ...] | None:
    numbers = [parse_integer(text) for text in texts]
    if any(number is None or number < 0 for number in numbers):
        context.problem(
            codes.CONSTANT_ATTRIBUTE, f"the constant's {key} {node.attributes[key][:60]!r} is wrong", layer, node
        )
        return None
    return context.shared_shape(tuple([number or 0 for number in numbers]))


def weights_problems(weights: Weights, unreadable: Sequence[Node]) -> Iterator[Finding]:
    """Findings about the .bin: one finding, however many constants it concerns."""
    if not unreadable:
        return
    first, rest = unreadable[0], len(unreadable) - 1
    if weights.defect is not None:
        what = counted(len(unreadable), "constant") if rest else f"the constant {first.name!r}"
        yield in_model(codes.NO_WEIGHTS_FILE, f"{weights.defect}; the contents of {what} are unknown")
        return
    needed = max(c.offset + c.size for node in unreadable if (c := node.constant) is not None and c.offset is not None)
    file = "the weights have" if weights.path is None else f"{weights.path.name} has"
    more = f", nor those of {counted(rest, 'more constant')}" if rest else ""
    text = f"{file} {weights.size} bytes: those of this constant are not among them{more} ({needed} bytes are needed)"
    yield first.finding(codes.CONSTANT_OUT_OF_FILE, text)


def bin_problems(weights: Weights, record: BinRecord, *, whole: bool) -> list[Finding]:
    """The finding that the .bin is not the one that was written with the .xml, if so.

    Args:
        weights: the .bin.
        record: the entry of the .xml.
        whole: compare all bytes of the .bin, in place of its size and a sample.

    Raises:
        ModelError: it cannot be read.
    """
    changed = record.difference(weights.record(whole=whole))
    if changed is None:
        return []
    name = "the .bin" if weights.path is None else weights.path.name
    return [in_model(codes.CHANGED_BIN, f"{name} is not the file that was written with the .xml: {changed}")]


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
