"""Reading IR, versions 10 and 11: syntax only, with nothing lost.

What is not XML, or not an IR, raises. Everything else that is wrong is kept in ``Graph.problems``, so that one damaged
layer does not hide the rest of the file.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from irexec.errors import ModelError
from irexec.io.payload import BackEdgePayload, GraphPayload, LayerPayload
from irexec.io.ports import (
    Edge,
    ReadContext,
    bin_problems,
    connect,
    parse_integer,
    read_constant,
    read_edge,
    read_ports,
    weights_problems,
)
from irexec.io.reading import RECORD_ATTRIBUTES, BinRecord
from irexec.io.sources import ModelSource, Source, Weights, WeightsSource, read_source, weights_of
from irexec.io.xml import READ_TYPES, Progress, XmlElement, attributes_by_tag, body_tags, element_texts
from irexec.ir import codes
from irexec.ir.graph import BackEdge, Body, Graph, ModelGraph, Node, PortMap
from irexec.ir.process import collection_paused

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


_DEEPEST_BODY = 64
_VERSIONS = (10, 11)
_OLD_VERSIONS = range(2, 8)
_LAYER_ATTRIBUTES = ("id", "name", "type", "version")
_KNOWN_ATTRIBUTES = frozenset(_LAYER_ATTRIBUTES)
_LAYER_CHILDREN = frozenset(("data", "input", "output"))
_PORTS = frozenset(("input", "output"))


class OldVersionError(ModelError):
    """An IR of version 2 to 7, which another reader reads.

    Attributes:
        source: the .xml.
        weights: the .bin.
    """

    def __init__(self, message: str, source: Source, weights: Weights) -> None:
        super().__init__(message)
        self.source, self.weights = source, weights


def read(
    model: ModelSource | Source, weights: WeightsSource = None, *, mmap: bool = True, progress: Progress | None = None
) -> ModelGraph:
    """Read a model.

    Args:
        model: the .xml: its path, its bytes, or a file open for reading bytes.
        weights: the .bin: its path, its bytes, an array or a file; by default the file of the same name beside the
            .xml. A default that cannot be read, or is not the one that was written with the .xml, is a problem of the
            model.
        mmap: map the .bin; otherwise it is read at once.
        progress: called with the fraction of the .xml that each step has read.

    Raises:
        OldVersionError: the .xml is an IR of version 2 to 7.
        ModelError: the .xml cannot be read, is not XML, or not an IR; the .bin that is named cannot be read.
        InputError: an argument is of another type.
    """
    source = read_source(model)
    found = weights_of(weights, source.path, mapped=mmap)
    return _ModelReader(source, found, is_beside=weights is None).model(progress)


def read_text(text: str | bytes, weights: bytes | np.ndarray | None = None) -> ModelGraph:
    """Read a model from the text of its .xml and the bytes of its .bin; raises as ``read`` does."""
    # A surrogate has no UTF-8: its bytes are an error of the XML.
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return _ModelReader(Source(data, "<text>", None), Weights(data=weights), is_beside=False).model()


class _ModelReader:
    """Reads one file: each layer and edge when its element is complete, so that only one is held as XML.

    A default .bin must be the file that was written with the .xml.
    """

    def __init__(self, source: Source, weights: Weights, *, is_beside: bool) -> None:
        self._source, self._is_beside = source, is_beside
        self._context = ReadContext(source.name, weights)
        self._model = ModelGraph(path=source.path, bin_size=weights.size)
        self._edges: list[Edge] = []
        self._edge_count = 0

    @collection_paused()
    def model(self, progress: Progress | None = None) -> ModelGraph:
        """The model; raises ModelError if the file is not an IR."""
        model, context, weights = self._model, self._context, self._context.weights
        context.problems = model.problems
        net = self._source.parse(self._open, {"layers": self._layer, "edges": self._edge}, progress)
        connect(context, model, self._edges)
        record = BinRecord.of(net.attributes)
        model.payload = _graph_payload(
            net, net.without({"name", "version", *(RECORD_ATTRIBUTES if record is not None else ())})
        )
        model.bin_path = weights.path if weights.defect is None else None
        model.problems += weights_problems(weights, context.unreadable)
        if record is not None and self._is_beside and weights.defect is None and not context.unreadable:
            model.check_bin = partial(bin_problems, weights, record)
            model.problems += model.check_bin(whole=not weights.mapped)
        return model

    def _open(self, net: XmlElement) -> None:
        if net.tag != "net":
            raise ModelError(f"{self._source.name}, line {net.line}: the root element is <{net.tag}>, IR has <net>")
        if parse_integer(net.attributes.get("version", "")) in _OLD_VERSIONS:
            text = f"{self._source.name}: an IR of version {net.attributes['version']} is read by converters.legacy_ir"
            raise OldVersionError(text, self._source, self._context.weights)
        self._model.name, self._model.version = net.attributes.get("name", ""), _version(self._source.name, net)

    def _layer(self, element: XmlElement) -> None:
        if element.tag == "layer":
            self._model.nodes.append(_layer(self._context, element, 0))

    def _edge(self, element: XmlElement) -> None:
        if element.tag == "edge":
            edge = read_edge(self._context, element, self._edge_count)
            self._edge_count += 1
            if edge is not None:
                self._edges.append(edge)


def _version(name: str, net: XmlElement) -> int:
    text = net.attributes.get("version", "")
    version = parse_integer(text)
    if version in _VERSIONS:
        return version
    raise ModelError(f"{name}, line {net.line}: IR version {text!r} is not supported; 2 to 7, 10 and 11 are")


def read_graph(
    context: ReadContext, element: XmlElement, depth: int, read_layer: Callable[[ReadContext, XmlElement, int], Node]
) -> Graph:
    """The graph of an element with <layers> and <edges>, inside ``depth`` bodies; ModelError for too many."""
    if depth > _DEEPEST_BODY:
        raise ModelError(f"{context.name}, line {element.line}: bodies are nested more than {_DEEPEST_BODY} deep")
    graph = Graph(element.attributes.get("name", ""))
    outer, context.problems = context.problems, graph.problems
    graph.nodes = [read_layer(context, layer, depth) for part in element.all("layers") for layer in part.all("layer")]
    elements = [edge for part in element.all("edges") for edge in part.all("edge")]
    edges = [read_edge(context, edge, index) for index, edge in enumerate(elements)]
    connect(context, graph, [edge for edge in edges if edge is not None])
    context.problems = outer
    return graph


def _body_graph(context: ReadContext, body: XmlElement, depth: int) -> Graph:
    graph = read_graph(context, body, depth, _layer)
    graph.payload = _graph_payload(body, body.without({"name"}))
    return graph


def _graph_payload(element: XmlElement, attributes: dict[str, str]) -> GraphPayload:
    """Payload of a net or a body; ``attributes`` are needed by the file alone."""
    others = element_texts(child for child in element.children if child.tag not in ("layers", "edges"))
    return GraphPayload(attributes, attributes_by_tag(element, "layers", "edges"), others)


def _layer(context: ReadContext, element: XmlElement, depth: int) -> Node:
    node = _named(context, element)
    for child in element.children:
        if child.tag == "data":
            node.attributes |= {key: context.shared(text) for key, text in child.attributes.items()}
    read_ports(context, element, node)
    layout = tuple([child.tag for child in element.children])
    if _LAYER_CHILDREN.issuperset(layout):
        node.payload = _plain_payload(context, element, layout)
    else:
        known = _LAYER_CHILDREN | read_bodies(
            context, element, node, lambda body: _body_graph(context, body, depth + 1)
        )
        tags = [tag for name in node.bodies for tag in body_tags(name)[1:]]
        others = element_texts(child for child in element.children if child.tag not in known)
        parts = attributes_by_tag(element, *_PORTS, *tags)
        node.payload = LayerPayload(element.without(_KNOWN_ATTRIBUTES), parts, others, layout)
    if node.type == "Constant":
        node.constant = read_constant(context, element, node)
    return node


def _plain_payload(context: ReadContext, element: XmlElement, layout: tuple[str, ...]) -> LayerPayload:
    """The payload of a layer without elements of its own; layers without further attributes share one."""
    attributes, parts = element.without(_KNOWN_ATTRIBUTES), attributes_by_tag(element, *_PORTS)
    if attributes or parts:
        return LayerPayload(attributes, parts, (), layout)
    return context.layouts.setdefault(layout, LayerPayload(layout=layout))


def _named(context: ReadContext, element: XmlElement) -> Node:
    """The node of a layer with its id, name, type and version."""
    texts = element.attributes
    written, number = context.shared(texts.get("type", "")), parse_integer(texts.get("id", ""))
    version = context.shared(texts.get("version", ""))
    node = Node(-1 if number is None else number, texts.get("name", ""), READ_TYPES.get(written, written), version)
    node.line, node.spelling = element.line, written
    for key in _LAYER_ATTRIBUTES:
        text = texts.get(key)
        if text is None or (not text and key == "type"):
            context.problem(codes.LAYER_ATTRIBUTE, f"the layer has no {key}", element, node)
        elif key == "id" and (number is None or number < 0):
            context.problem(
                codes.BAD_NUMBER, f"the layer's id {text[:40]!r} is not an integer of at least 0", element, node
            )
    return node
