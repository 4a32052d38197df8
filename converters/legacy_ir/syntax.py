"""Reading the .xml of versions 2 to 7: layers, ports, edges and blobs; no layer type is known here.

Forms of the versions: weights are blobs of the layer, in ``<blobs>`` or, in version 2, in the layer itself; attributes
are in ``<data>`` or, in version 2, in an element named after the type, such as ``<convolution_data>``; up to version 6
the ``precision`` of the layer is that of its ports.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from irexec.dtypes.elements import Element
from irexec.errors import ModelError
from irexec.io.ports import EDGE_ATTRIBUTES, ReadContext, parse_integer, read_ports
from irexec.io.reader import read_graph
from irexec.io.sources import Source, Weights
from irexec.io.xml import Progress, XmlElement, element_texts, named_element
from irexec.ir import codes
from irexec.ir.facts import Fact
from irexec.ir.findings import Finding
from irexec.ir.graph import Graph, Input, Node, Value

VERSIONS = range(2, 8)
_PARTS = frozenset(("input", "output", "blobs", "weights", "biases", "body", "port_map", "back_edges", "rt_info"))


@dataclass(frozen=True, slots=True)
class Blob:
    """Bytes of the .bin that belong to a layer.

    Attributes:
        offset, size: in bytes.
        element: the element type if the blob declares one.
        line: the XML line.
    """

    offset: int
    size: int
    element: Element | None
    line: int | None


@dataclass(frozen=True, slots=True)
class BodyPort:
    """A port of a layer in a body, and the port outside of it that it is connected to.

    Attributes:
        layer, port: ids of a layer of the body and of its port.
        external: id of the port of the TensorIterator.
        slices: axis, start, end, stride and part_size, as written.
        line: the XML line.
    """

    layer: int
    port: int
    external: int
    slices: dict[str, str]
    line: int | None


@dataclass(slots=True)
class OldBody:
    """The body of a TensorIterator: ``back_edges`` has the ids (from-layer, from-port, to-layer, to-port)."""

    graph: Graph
    inputs: list[BodyPort] = field(default_factory=list)
    outputs: list[BodyPort] = field(default_factory=list)
    back_edges: list[tuple[int, int, int, int]] = field(default_factory=list)


@dataclass(slots=True)
class OldLayer:
    """Contents of a layer beside ports and attributes: the ``payload`` of its node.

    Attributes:
        element: the element type that ``precision`` names, if any.
        blobs: by tag: weights, biases, custom.
        body: of a TensorIterator.
    """

    element: Element | None
    blobs: dict[str, Blob]
    body: OldBody | None = None


@dataclass(slots=True)
class OldModel:
    """A file of version 2 to 7.

    Attributes:
        graph: the layers; types and attributes as written, except that "-" in the name of an attribute is "_".
        version: of the file.
        writer: the Model Optimizer that wrote it, as the file says; empty if it does not.
        pre_process: the element with mean values, if any.
        has_statistics: whether there are statistics of activations.
        metadata: the XML text of <meta_data>.
    """

    graph: Graph
    version: int
    writer: str = ""
    pre_process: XmlElement | None = None
    has_statistics: bool = False
    metadata: tuple[str, ...] = ()


def read_syntax(source: Source, weights: Weights, progress: Progress | None = None) -> OldModel:
    """Read a file; what is wrong with layers and edges is in ``graph.problems``.

    Raises:
        ModelError: the file is not XML, or not an IR of version 2 to 7.
    """
    context = ReadContext(source.name, weights)
    net = source.parse(lambda root: None, {}, progress)
    version = parse_integer(net.attributes.get("version", ""))
    if net.tag != "net" or version is None or version not in VERSIONS:
        raise ModelError(f"{source.name}, line {net.line}: not an IR of version 2 to 7")
    found = OldModel(read_graph(context, net, 0, _layer), version)
    for child in net.children:
        if child.tag == "pre-process":
            found.pre_process = child
        elif child.tag == "statistics":
            found.has_statistics = bool(child.children)
        elif child.tag == "meta_data":
            found.metadata += element_texts([child])
            found.writer = _writer(child)
    return found


def _writer(metadata: XmlElement) -> str:
    return next((child.attributes.get("value", "") for child in metadata.all("MO_version")), "")


def _layer(context: ReadContext, element: XmlElement, depth: int) -> Node:
    texts = element.attributes
    number = parse_integer(texts.get("id", ""))
    node = Node(-1 if number is None else number, texts.get("name", ""), texts.get("type", ""), "")
    node.line = element.line
    for key in ("id", "name", "type"):
        if not texts.get(key):
            context.problem(codes.LAYER_ATTRIBUTE, f"the layer has no {key}", element, node)
    if texts.get("id") and (number is None or number < 0):
        context.problem(codes.BAD_NUMBER, f"id {texts['id'][:40]!r} is not an integer of at least 0", element, node)
    for child in element.children:
        if child.tag not in _PARTS:
            node.attributes |= _attributes(child)
    read_ports(context, element, node)
    content = OldLayer(_precision(context, element, node), dict(_blobs(context, element, node)))
    ports: list[Input | Value] = [*node.ports, *node.outputs]
    for port in ports:
        if port.fact is not None and port.fact.element is None:
            port.fact = Fact(content.element, port.fact.shape)
    for body in element.all("body"):
        content.body = _body(context, element, body, node, depth)
    node.payload = content
    return node


def _attributes(data: XmlElement) -> dict[str, str]:
    """The attributes of an element; of several <crop> in it, each attribute as a list."""
    entries = data.all("crop")
    found = {key: ",".join(entry.attributes.get(key, "") for entry in entries) for key in ("axis", "offset", "dim")}
    given = data.attributes | (found if entries else {})
    return {key.replace("-", "_"): text for key, text in given.items()}


def _precision(context: ReadContext, element: XmlElement, node: Node) -> Element | None:
    text = element.attributes.get("precision", "")
    if not text or text.upper() in ("UNSPECIFIED", "MIXED"):
        return None
    found = named_element(text)
    if found is None:
        context.problem(codes.BAD_PRECISION, f"precision {text[:40]!r} is not an element type", element, node)
    return found


def _blobs(context: ReadContext, element: XmlElement, node: Node) -> Iterator[tuple[str, Blob]]:
    inside = [child for part in element.all("blobs") for child in part.children]
    beside = [child for child in element.children if child.tag in ("weights", "biases")]
    for child in (*inside, *beside):
        numbers = context.integers(child, ("offset", "size"), node, codes.CONSTANT_ATTRIBUTE)
        if numbers is None or min(numbers) < 0:
            continue
        kind = _precision(context, child, node)
        if numbers[1]:
            yield child.tag, Blob(numbers[0], numbers[1], kind, child.line)


def _body(context: ReadContext, element: XmlElement, body: XmlElement, node: Node, depth: int) -> OldBody:
    found = OldBody(read_graph(context, body, depth + 1, _layer))
    for entry in (entry for part in element.all("port_map") for entry in part.children):
        keys = ("internal_layer_id", "internal_port_id", "external_port_id")
        ids = context.integers(entry, keys, node, codes.BAD_PORT_MAP)
        if ids is not None:
            ports = found.inputs if entry.tag == "input" else found.outputs
            ports.append(BodyPort(ids[0], ids[1], ids[2], entry.without(frozenset(keys)), entry.line))
    for entry in (entry for part in element.all("back_edges") for entry in part.children):
        edge = context.integers(entry, EDGE_ATTRIBUTES, node, codes.BAD_BACK_EDGE)
        if edge is not None:
            found.back_edges.append((edge[0], edge[1], edge[2], edge[3]))
    fed = {(port.layer, port.port) for port in found.inputs}
    found.graph.problems[:] = [problem for problem in found.graph.problems if not _is_fed(problem, fed)]
    return found


def _is_fed(problem: Finding, fed: set[tuple[int, int]]) -> bool:
    """Whether the input port without an edge is one that the port map feeds."""
    return problem.code == codes.MISSING_EDGE and (problem.layer_id, problem.port) in fed
