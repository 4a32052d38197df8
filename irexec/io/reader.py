"""Reading IR, versions 10 and 11: syntax only, with nothing lost.

What is not XML, or not a net, raises. Everything else that is wrong is written down in
``Graph.problems``, so that one damaged layer does not hide the rest of the file.
"""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
from lxml import etree

from irexec.dtypes.elements import Element, element
from irexec.errors import ModelError, UnsupportedError
from irexec.io.bodies import read_bodies
from irexec.io.names import READ_TYPES, decode_names, named_element
from irexec.io.weights import Weights
from irexec.io.xml import Document, said_by_tag, texts
from irexec.ir import codes
from irexec.ir.constants import Constant
from irexec.ir.dims import ANY, Size
from irexec.ir.facts import Fact
from irexec.ir.findings import Finding, in_model
from irexec.ir.graph import Graph, Input, Model, Node, Value

LARGEST_SIZE = (1 << 63) - 1
DEEPEST_BODY = 64
_VERSIONS = ("10", "11")
_LAYER_ATTRIBUTES = ("id", "name", "type", "version")
_EDGE = ("from-layer", "from-port", "to-layer", "to-port")
_NO_PRECISION = ("", "dynamic", "undefined", "unspecified")
_OTHERS = {".onnx": " (an ONNX model? irexec convert makes IR of it)", ".bin": " (the weights? the model is the .xml beside them)"}
_LAYER_CHILDREN = {"data", "input", "output"}


def read(path: str | Path, bin_path: str | Path | None = None) -> Model:
    """Read a model; its .bin is the file of the same name beside it unless told.

    Raises:
        ModelError: the file cannot be read, is no XML, or no IR of version 10 or 11.
    """
    file = Path(path)
    try:
        data = file.read_bytes()
    except OSError as error:
        raise ModelError(f"{file}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise ModelError(f"{str(file)!r} cannot be read: {error}") from None
    if bin_path is not None and not Path(bin_path).is_file():
        raise ModelError(f"{bin_path}: {'is no file' if Path(bin_path).exists() else 'there is no such file'}")
    weights = Weights(Path(bin_path) if bin_path is not None else file.with_suffix(".bin"))
    try:
        document = Document(data, str(file))
    except ModelError as error:
        raise ModelError(f"{error}{_OTHERS.get(file.suffix.lower(), '')}") from None
    model = Reader(document, weights).model()
    model.path = file
    model.bin_path = weights.path if weights.exists else None
    return model


def read_text(text: str | bytes, weights: bytes | np.ndarray | None = None) -> Model:
    """Read a model from the text of its .xml and the bytes of its .bin; raises as ``read`` does."""
    data = text.encode() if isinstance(text, str) else text
    return Reader(Document(data, "<text>"), Weights(data=weights)).model()


class Reader:
    """Reads one document."""

    def __init__(self, document: Document, weights: Weights) -> None:
        self.document, self.weights = document, weights
        self.problems: list[Finding] = []

    def model(self) -> Model:
        """The model, with what is wrong with it in ``problems`` of its graphs."""
        net = self.document.root
        if net.tag != "net":
            raise ModelError(f"{self.document.name}, line {net.sourceline}: the root element is <{net.tag}>, IR has <net>")
        version = net.get("version", "")
        if version not in _VERSIONS:
            raise ModelError(f"{self.document.name}, line {net.sourceline}: IR version {version!r} is not supported (10 and 11 are)")
        model = Model(name=net.get("name", ""), version=int(version), bin_size=self.weights.size)
        model.attributes = texts(net, "name", "version")
        self.graph(net, model, 0)
        model.rt_info = model.extras.pop("rest", None)
        return model

    def graph(self, element: etree._Element, graph: Graph, depth: int) -> Graph:
        """Fill ``graph`` from an element that has <layers> and <edges>."""
        if depth > DEEPEST_BODY:
            raise ModelError(f"{self.document.name}, line {self.document.line(element)}: bodies are nested more than {DEEPEST_BODY} deep")
        outer, self.problems = self.problems, graph.problems
        layers = [layer for part in element.iterchildren("layers") for layer in part.iterchildren("layer")]
        graph.nodes = [self._layer(layer, depth) for layer in layers]
        self._edges(graph, [edge for part in element.iterchildren("edges") for edge in part.iterchildren("edge")])
        self._unfed(graph)
        graph.parts = said_by_tag(element, "layers", "edges")
        rest = [child for child in element if child.tag not in ("layers", "edges")]
        if rest:
            graph.extras["rest"] = [copy.deepcopy(child) for child in rest]
        self.problems = outer
        return graph

    def problem(self, code: str, message: str, element: etree._Element, node: Node | None = None, port: int | None = None) -> None:
        """Write down what is wrong at an element."""
        line = self.document.line(element)
        if node is None:
            self.problems.append(in_model(code, message, port=port, line=line))
        else:
            self.problems.append(node.finding(code, message, port=port, line=line))

    def number(self, element: etree._Element, key: str, node: Node | None = None, code: str = codes.BAD_NUMBER) -> int | None:
        """A whole number of at most 64 bits from an attribute; None, and a problem, if it is not one."""
        text = element.get(key)
        if text is None:
            self.problem(code, f"<{element.tag}> lacks {key}", element, node)
            return None
        value = _integer(text)
        if value is None:
            self.problem(code, f"{key} {text[:40]!r} is not a whole number of 64 bits", element, node)
        return value

    def _layer(self, element: etree._Element, depth: int) -> Node:
        written = element.get("type", "")
        node = Node(-1, element.get("name", ""), READ_TYPES.get(written, written), element.get("version", ""))
        node.line = self.document.line(element)
        node.spelling = written
        node.extras = texts(element, *_LAYER_ATTRIBUTES)
        node.layout = tuple(str(child.tag) for child in element)
        node.parts = said_by_tag(element, "input", "output")
        number = _integer(element.get("id", ""))
        node.id = -1 if number is None else number
        self._layer_attributes(element, node, number)
        for data in element.iterchildren("data"):
            node.attributes.update(texts(data))
        for index, port in enumerate(port for part in element.iterchildren("input") for port in part.iterchildren("port")):
            node.ports.append(self._input(port, node, index))
        for index, port in enumerate(port for part in element.iterchildren("output") for port in part.iterchildren("port")):
            node.outputs.append(self._output(port, node, index))
        self._port_ids(element, node)
        modelled = read_bodies(self, element, node, depth)
        rest = [child for child in element if child.tag not in _LAYER_CHILDREN and child.tag not in modelled]
        node.rt_info = [copy.deepcopy(child) for child in rest] or None
        if node.type == "Constant":
            node.constant = self._constant(element, node)
        return node

    def _layer_attributes(self, element: etree._Element, node: Node, number: int | None) -> None:
        for key in _LAYER_ATTRIBUTES:
            text = element.get(key)
            if text is None or (not text and key == "type"):
                self.problem(codes.LAYER_ATTRIBUTE, f"the layer has no {key}", element, node)
            elif key == "id" and (number is None or number < 0):
                self.problem(codes.BAD_NUMBER, f"the layer's id {text[:40]!r} is not a whole number", element, node)

    def _port_ids(self, element: etree._Element, node: Node) -> None:
        for ports in ([p.port for p in node.ports], [v.port for v in node.outputs]):
            seen: set[int] = set()
            for number in ports:
                if number is not None and number in seen:
                    self.problem(codes.DUPLICATE_PORT, f"two ports have the id {number}", element, node, number)
                seen |= {number} if number is not None else set()

    def _input(self, element: etree._Element, node: Node, index: int) -> Input:
        number = self.number(element, "id", node)
        port = Input(fact=self._fact(element, node, number), port=number, line=self.document.line(element))
        port.attributes = texts(element, "id", *_said(element, port.fact))
        port.rt_info = _opaque(element)
        return port

    def _output(self, element: etree._Element, node: Node, index: int) -> Value:
        number = self.number(element, "id", node)
        value = Value(node, index, self._fact(element, node, number), port=number, line=self.document.line(element))
        value.names = decode_names(element.get("names", ""))
        value.attributes = texts(element, "id", *(["names"] if value.names else []), *_said(element, value.fact))
        value.rt_info = _opaque(element)
        return value

    def _fact(self, port: etree._Element, node: Node, number: int | None) -> Fact:
        shape = tuple(self._size(dim, node, number) for dim in port.iterchildren("dim"))
        return Fact(self._precision(port, node, number), shape)

    def _precision(self, port: etree._Element, node: Node, number: int | None) -> Element | None:
        text = port.get("precision")
        if text is None or text.lower() in _NO_PRECISION:
            return None
        found = named_element(text)
        if found is None:
            self.problem(codes.BAD_PRECISION, f"precision {text[:40]!r} is no element type", port, node, number)
        return found

    def _size(self, dim: etree._Element, node: Node, number: int | None) -> Size:
        size = _integer(dim.text or "")
        if size is None or size < -1:
            self.problem(codes.BAD_DIM, f"dim {(dim.text or '').strip()[:40]!r} is not a size", dim, node, number)
        return ANY if size is None or size < 0 else size

    def _constant(self, layer: etree._Element, node: Node) -> Constant | None:
        found = node.attributes
        missing = [key for key in ("element_type", "shape", "offset", "size") if key not in found]
        if missing:
            self.problem(codes.CONSTANT_ATTRIBUTE, f"the constant has no {', '.join(missing)}", layer, node)
            return None
        kind = self._constant_type(layer, node)
        sizes = [_integer(part) for part in found["shape"].split(",")] if found["shape"].strip() else []
        place = [_integer(found[key]) for key in ("offset", "size")]
        checked = {"shape": sizes, "offset": place[:1], "size": place[1:]}
        for key, numbers in checked.items():
            if any(number is None or number < 0 for number in numbers):
                self.problem(codes.CONSTANT_ATTRIBUTE, f"the constant's {key} {found[key][:60]!r} is wrong", layer, node)
                return None
        if kind is None:
            return None
        offset, size = (number or 0 for number in place)
        self._in_file(layer, node, offset, size)
        shape = tuple(number or 0 for number in sizes)
        return Constant(kind, shape, self.weights.fetcher(offset, size), size, offset)

    def _constant_type(self, layer: etree._Element, node: Node) -> Element | None:
        try:
            return element(node.attributes["element_type"])
        except UnsupportedError as error:
            self.problem(codes.CONSTANT_ATTRIBUTE, str(error), layer, node)
            return None

    def _in_file(self, layer: etree._Element, node: Node, offset: int, size: int) -> None:
        if size and not self.weights.exists:
            name = "" if self.weights.path is None else f" {self.weights.path.name}"
            self.problem(codes.NO_WEIGHTS_FILE, f"the constant's {size} bytes are in a .bin{name} that is not there", layer, node)
        elif offset + size > self.weights.size:
            text = f"the constant's bytes {offset}..{offset + size} are not all in the .bin of {self.weights.size} bytes"
            self.problem(codes.CONSTANT_OUT_OF_FILE, text, layer, node)

    def _by_id(self, graph: Graph) -> dict[int, Node]:
        found: dict[int, Node] = {}
        for node in graph.nodes:
            first = found.setdefault(node.id, node)
            if first is not node and node.id >= 0:
                text = f"id {node.id} is also that of {first.name!r} in line {first.line}"
                self.problems.append(node.finding(codes.DUPLICATE_LAYER, text))
        found.pop(-1, None)
        return found

    def _edges(self, graph: Graph, edges: list[etree._Element]) -> None:
        """Join the ports. They are looked up by number: one layer may have as many as there are edges."""
        by_id = self._by_id(graph)
        outputs: dict[tuple[int, int | None], Value] = {}
        inputs: dict[tuple[int, int | None], Input] = {}
        for node in by_id.values():
            for value in node.outputs:
                outputs.setdefault((node.id, value.port), value)
            for port in node.ports:
                inputs.setdefault((node.id, port.port), port)
        for index, edge in enumerate(edges):
            from_layer, from_port, to_layer, to_port = (self.number(edge, key) for key in _EDGE)
            if from_layer is None or from_port is None or to_layer is None or to_port is None:
                continue
            found = outputs.get((from_layer, from_port)), inputs.get((to_layer, to_port))
            self._edge(edge, index, (by_id.get(from_layer), from_port, found[0]), (by_id.get(to_layer), to_port, found[1]))

    def _edge(
        self, edge: etree._Element, index: int, origin: tuple[Node | None, int, Value | None], end: tuple[Node | None, int, Input | None]
    ) -> None:
        source, from_port, value = origin
        target, to_port, port = end
        from_layer, to_layer = edge.get("from-layer"), edge.get("to-layer")
        if source is None:
            text = f"an edge to layer {to_layer} comes from layer {from_layer}, which is not there"
            self.problem(codes.EDGE_FROM_NOTHING, text, edge)
        elif value is None:
            text = f"an edge comes from output port {from_port}, which the layer does not have"
            self.problem(codes.EDGE_FROM_NOTHING, text, edge, source, from_port)
        if target is None:
            text = f"an edge from layer {from_layer} goes to layer {to_layer}, which is not there"
            self.problem(codes.EDGE_TO_NOTHING, text, edge)
        elif port is None:
            text = f"an edge goes to input port {to_port}, which the layer does not have"
            self.problem(codes.EDGE_TO_NOTHING, text, edge, target, to_port)
        if value is None or port is None:
            return
        if port.source is not None:
            text = f"a second edge arrives at input port {to_port}, from layer {from_layer}"
            self.problem(codes.DUPLICATE_EDGE, text, edge, target, to_port)
            return
        port.source, port.edge, port.edge_attributes = value, index, texts(edge, *_EDGE)

    def _unfed(self, graph: Graph) -> None:
        for node in graph.nodes:
            for port in node.ports:
                if port.source is None:
                    text = f"no edge arrives at input port {port.port}"
                    self.problems.append(node.finding(codes.MISSING_EDGE, text, port=port.port, line=port.line))


def _integer(text: str) -> int | None:
    """A whole number of at most 64 bits; None for any other text."""
    stripped = text.strip()
    digits = stripped.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 20):
        return None
    value = int(stripped)
    return value if -LARGEST_SIZE - 1 <= value <= LARGEST_SIZE else None


def _said(port: etree._Element, fact: Fact | None) -> list[str]:
    """The precision, if the fact says it exactly as it is written: any other spelling is kept as it is."""
    written = None if fact is None or fact.element is None else fact.element.precision
    return ["precision"] if port.get("precision") == written else []


def _opaque(element: etree._Element) -> list[etree._Element] | None:
    return [copy.deepcopy(child) for child in element if child.tag != "dim"] or None
