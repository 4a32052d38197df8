"""The parts of a model: a summary, its layers and the edges between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from irexec.analysis.model import Port, brief, output_ports
from irexec.analysis.shape_inference import UNKNOWN, Inference, infer_shapes
from irexec.api import ModelLike, as_model
from irexec.ir.facts import Fact
from irexec.ir.garbage import collection_paused
from irexec.ir.graph import Graph, Node, Value
from irexec.messages import amount, counted
from irexec.records import Record, Records
from irexec.tools.operations import unsupported


@dataclass(frozen=True, repr=False)
class Summary(Record):
    """A model at a glance.

    Attributes:
        name, version: of the ``net`` element.
        layers, bodies, constants: how many there are, those of bodies included.
        weight_bytes, weight_elements: of all constants.
        inputs, outputs: the ports of the model.
        ops: how many layers of each operation.
        unsupported: one sentence for each operation that irexec does not run.
    """

    name: str
    version: int
    layers: int
    bodies: int
    constants: int
    weight_bytes: int
    weight_elements: int
    inputs: list[Port]
    outputs: list[Port]
    ops: dict[str, int]
    unsupported: list[str]

    def __repr__(self) -> str:
        ports = f"{brief(self.inputs)} -> {brief(self.outputs)}"
        constants = f"{counted(self.constants, 'constant')} of {amount(self.weight_bytes)}"
        return f"<Summary {self.name!r}: {counted(self.layers, 'layer')}, {constants}, {ports}>"


@dataclass(frozen=True, repr=False)
class LayerLine(Record):
    """One layer.

    Attributes:
        id, name, type, version: as written.
        path: the names of the bodies that it is in, each followed by a slash.
        inputs: element type and shape of each input, as inferred.
        outputs: the same of each output.
        sources: the name of the layer each input comes from, with ``:index`` where that has several outputs; None for
            an input that no edge leads to.
        input_ports, output_ports: the ids of the ports, as written.
        tensor_names: the tensor names of each output.
        attributes: of the operation, as written.
        line: the XML line.
    """

    id: int
    path: str
    name: str
    type: str
    version: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    sources: tuple[str | None, ...]
    input_ports: tuple[int, ...]
    output_ports: tuple[int, ...]
    tensor_names: tuple[tuple[str, ...], ...]
    attributes: dict[str, str]
    line: int | None

    def __repr__(self) -> str:
        line = "" if self.line is None else f", line {self.line}"
        return f"<LayerLine {self.id} {self.path + self.name!r} {self.type}: {', '.join(self.inputs)} -> {', '.join(self.outputs)}{line}>"


def layer_text(layer: LayerLine) -> Iterator[str]:
    """A layer as indented text, one line for each port and one for the attributes; a table would be too wide."""
    line = "" if layer.line is None else f", line {layer.line}"
    yield f"{layer.id} {layer.path}{layer.name} ({layer.type}, {layer.version or 'no version'}{line})"
    inputs = zip(layer.input_ports, layer.inputs, layer.sources, strict=True)
    outputs = zip(layer.output_ports, layer.outputs, layer.tensor_names, strict=True)
    ports = [
        (f"input {port}", fact, f"from {source}" if source else "no edge arrives") for port, fact, source in inputs
    ]
    ports += [(f"output {port}", fact, ", ".join(names)) for port, fact, names in outputs]
    widths = [max((len(port[column]) for port in ports), default=0) for column in (0, 1)]
    for name, fact, text in ports:
        yield f"    {name:{widths[0]}}  {fact:{widths[1]}}  {text}".rstrip()
    if layer.attributes:
        attributes = " ".join(f'{name}="{value}"' for name, value in layer.attributes.items())
        yield f"    {attributes}"


@dataclass(frozen=True)
class Edge(Record):
    """An edge as the file has it: ids of layers, which count in each body anew, and of ports."""

    path: str
    from_layer: int
    from_port: int
    to_layer: int
    to_port: int


def summarize(model: ModelLike, inference: Inference | None = None) -> Summary:
    """The model at a glance; nothing of it is run or unpacked.

    Args:
        model: any model, or what read_model takes.
        inference: what is known of its values; inferred without.
    """
    model = as_model(model)
    nodes = list(model.walk())
    constants = [node.constant for node in nodes if node.constant is not None]
    facts = (inference or infer_shapes(model, tolerant=True)).facts
    return Summary(
        name=model.name,
        version=model.version,
        layers=len(nodes),
        bodies=sum(len(node.bodies) for node in nodes),
        constants=len(constants),
        weight_bytes=sum(constant.size for constant in constants),
        weight_elements=sum(constant.count for constant in constants),
        inputs=model.inputs,
        outputs=output_ports(model, facts),
        ops=histogram(model),
        unsupported=unsupported(model),
    )


def histogram(model: Graph) -> dict[str, int]:
    """The number of layers of each type and version, the most frequent first."""
    counts = Counter(f"{written_type(node)}-{node.version.removeprefix('opset')}" for node in model.walk())
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def written_type(node: Node) -> str:
    """The type of a layer as the file spells it: "ReLU", "Const"."""
    return node.spelling or node.type


@collection_paused()
def layers(model: ModelLike, inference: Inference | None = None) -> Records[LayerLine]:
    """Every layer, those of bodies after the layer that has them.

    Args:
        model: any model, or what read_model takes.
        inference: what is known of its values; inferred without.
    """
    model = as_model(model)
    return Records(layer_lines(model, (inference or infer_shapes(model, tolerant=True)).facts))


def layer_lines(model: Graph, facts: Mapping[Value, Fact]) -> list[LayerLine]:
    """Every layer, in the order of ``Graph.walk``; ``facts`` are those of shape inference."""
    texts = {value: str(fact) for value, fact in facts.items()}
    unknown = str(UNKNOWN)
    return [
        LayerLine(
            id=node.id,
            path=path,
            name=node.name,
            type=written_type(node),
            version=node.version,
            inputs=tuple(texts.get(v, unknown) if v is not None else "-" for v in node.inputs),
            outputs=tuple(texts.get(v, unknown) for v in node.outputs),
            sources=tuple(None if v is None else v.label for v in node.inputs),
            input_ports=tuple(map(node.input_id, range(len(node.ports)))),
            output_ports=tuple(value.port_id for value in node.outputs),
            tensor_names=tuple(tuple(v.names) for v in node.outputs),
            attributes=dict(node.attributes),
            line=node.line,
        )
        for path, node in _nodes(model, "")
    ]


@collection_paused()
def edges(model: Graph) -> Records[Edge]:
    """Every edge; edges of a body come after the edges of its layer."""
    return Records(
        Edge(path, port.source.node.id, port.source.port_id, node.id, node.input_id(index))
        for path, node in _nodes(model, "")
        for index, port in enumerate(node.ports)
        if port.source is not None
    )


def _nodes(graph: Graph, path: str) -> Iterator[tuple[str, Node]]:
    for node in graph.nodes:
        yield path, node
        for name, body in node.bodies.items():
            yield from _nodes(body.graph, f"{path}{node.name}/{name}/")
