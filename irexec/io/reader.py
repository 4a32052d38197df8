"""Reading IR, versions 10 and 11: syntax only, with nothing lost.

What is not XML, or not an IR, raises. Everything else that is wrong is kept in ``Graph.problems``, so that one damaged
layer does not hide the rest of the file.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from lxml import etree

from irexec.errors import ModelError
from irexec.io.bodies import read_bodies
from irexec.io.constants import read_constant, weights_problems
from irexec.io.context import ReadContext, parse_integer
from irexec.io.edges import connect
from irexec.io.names import READ_TYPES, body_tags
from irexec.io.payload import GraphPayload, LayerPayload
from irexec.io.ports import read_ports
from irexec.io.sources import ModelSource, WeightsSource, read_source, weights_of
from irexec.io.weights import Weights
from irexec.io.xml import Document, attributes_by_tag, attributes_of, element_texts
from irexec.ir import codes
from irexec.ir.graph import Graph, Model, Node

DEEPEST_BODY = 64
_VERSIONS = (10, 11)
_LAYER_ATTRIBUTES = ("id", "name", "type", "version")
_LAYER_CHILDREN = {"data", "input", "output"}


def read(model: ModelSource, weights: WeightsSource = None) -> Model:
    """Read a model.

    Args:
        model: the .xml: its path, its bytes, or a file open for reading bytes.
        weights: the .bin: its path, its bytes, an array or a file; by default the file of the same name
            beside the .xml. A default that cannot be read is a problem of the model.

    Raises:
        ModelError: the .xml cannot be read, is not XML, or not an IR of version 10 or 11; the .bin that is named cannot be read.
        InputError: an argument is of another type.
    """
    source = read_source(model)
    return _model(source.document(), weights_of(weights, source.path), source.path)


def read_text(text: str | bytes, weights: bytes | np.ndarray | None = None) -> Model:
    """Read a model from the text of its .xml and the bytes of its .bin; raises as ``read`` does."""
    return _model(Document(text.encode() if isinstance(text, str) else text, "<text>"), Weights(data=weights), None)


def _model(document: Document, weights: Weights, path: Path | None) -> Model:
    net = document.root
    if net.tag != "net":
        raise ModelError(f"{document.name}, line {net.sourceline}: the root element is <{net.tag}>, IR has <net>")
    version = _version(document, net)
    model = Model(name=net.get("name", ""), version=version, path=path, bin_size=weights.size)
    model.bin_path = weights.path if weights.defect is None else None
    context = ReadContext(document, weights)
    _fill(context, net, model, attributes_of(net, "name", "version"), 0)
    model.problems += weights_problems(weights, context.unreadable)
    return model


def _version(document: Document, net: etree._Element) -> int:
    text = net.get("version", "")
    version = parse_integer(text)
    if version in _VERSIONS:
        return version
    reason = "10 and 11 are"
    if version is not None and version < min(_VERSIONS):
        reason = (
            "OpenVINO writes 10 or 11 since release 2020.1 and reads nothing older since 2021.1: convert the original model "
            "again, with ovc of a current OpenVINO or, from ONNX, with irexec convert"
        )
    raise ModelError(f"{document.name}, line {net.sourceline}: IR version {text!r} is not supported; {reason}")


def _fill(context: ReadContext, element: etree._Element, graph: Graph, attributes: dict[str, str], depth: int) -> Graph:
    """Fill ``graph`` from an element that has <layers> and <edges>; ``attributes`` are those that only the file needs."""
    if depth > DEEPEST_BODY:
        raise ModelError(f"{context.document.name}, line {context.line(element)}: bodies are nested more than {DEEPEST_BODY} deep")
    outer, context.problems = context.problems, graph.problems
    layers = [layer for part in element.iterchildren("layers") for layer in part.iterchildren("layer")]
    graph.nodes = [_layer(context, layer, depth) for layer in layers]
    connect(context, graph, [edge for part in element.iterchildren("edges") for edge in part.iterchildren("edge")])
    others = element_texts(child for child in element if child.tag not in ("layers", "edges"))
    graph.payload = GraphPayload(attributes, attributes_by_tag(element, "layers", "edges"), others)
    context.problems = outer
    return graph


def _layer(context: ReadContext, element: etree._Element, depth: int) -> Node:
    node = _named(context, element)
    for data in element.iterchildren("data"):
        node.attributes.update(attributes_of(data))
    read_ports(context, element, node)

    def read_graph(body: etree._Element) -> Graph:
        return _fill(context, body, Graph(body.get("name", "")), attributes_of(body, "name"), depth + 1)

    known = _LAYER_CHILDREN | read_bodies(context, element, node, read_graph)
    tags = ("input", "output", *(tag for name in node.bodies for tag in body_tags(name)[1:]))
    node.payload = LayerPayload(
        attributes_of(element, *_LAYER_ATTRIBUTES),
        attributes_by_tag(element, *tags),
        element_texts(child for child in element if child.tag not in known),
        tuple(str(child.tag) for child in element),
    )
    if node.type == "Constant":
        node.constant = read_constant(context, element, node)
    return node


def _named(context: ReadContext, element: etree._Element) -> Node:
    """The node of a layer with its id, name, type and version."""
    written, number = element.get("type", ""), parse_integer(element.get("id", ""))
    node = Node(-1 if number is None else number, element.get("name", ""), READ_TYPES.get(written, written), element.get("version", ""))
    node.line, node.spelling = context.line(element), written
    for key in _LAYER_ATTRIBUTES:
        text = element.get(key)
        if text is None or (not text and key == "type"):
            context.problem(codes.LAYER_ATTRIBUTE, f"the layer has no {key}", element, node)
        elif key == "id" and (number is None or number < 0):
            context.problem(codes.BAD_NUMBER, f"the layer's id {text[:40]!r} is not an integer of at least 0", element, node)
    return node
