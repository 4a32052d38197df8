"""The parts of a model: a summary, its layers and the edges between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from irexec.analysis.model import Port, brief, output_ports
from irexec.analysis.shape_inference import UNKNOWN, Inference, infer_shapes
from irexec.api import ModelLike, as_model
from irexec.display import Column, Content, Section, Table, Text, sections_of
from irexec.ir.facts import Fact
from irexec.ir.garbage import collection_paused
from irexec.ir.graph import Graph, Node, Value
from irexec.messages import amount, counted
from irexec.records import Record, Records, Report
from irexec.tools.operations import unsupported
from irexec.tools.sections.graphs import ports_table


@dataclass(frozen=True, repr=False)
class Summary(Report):
    """A model at a glance.

    Attributes:
        name, version: of the ``net`` element.
        layers, bodies, constants: their numbers, bodies included.
        weight_bytes, weight_elements: of all constants.
        inputs, outputs: the ports of the model.
        ops: number of layers of each operation.
        unsupported: one sentence for each operation that irexec does not run.
        origin: version and writer of the IR of version 2 to 7 that it was made of; None for others.
        path: the file; None for a model that was not read from one.
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
    origin: str | None = None
    path: str | None = field(default=None, metadata={"json": False})

    def sections(self) -> list[Content]:
        """Counts of layers and constants, the inputs and outputs, and the operations that irexec does not run."""
        file = "" if self.path is None else f"{self.path}: "
        bodies = f", {counted(self.bodies, 'body')}" if self.bodies else ""
        elements = counted(self.weight_elements, "element")
        return [
            Text(f"{file}{self.name or 'no name'}, {self.origin or f'IR version {self.version}'}", "title"),
            f"{counted(self.layers, 'layer')} of {counted(len(self.ops), 'operation')}{bodies}",
            f"{counted(self.constants, 'constant')}, {elements}, {counted(self.weight_bytes, 'byte')}",
            ports_table({"input": self.inputs, "output": self.outputs}),
            [f"not supported: {sentence}" for sentence in self.unsupported],
            Section("operations", operations_table(self.ops), is_folded=True),
        ]

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
        ports = f"{', '.join(self.inputs)} -> {', '.join(self.outputs)}"
        return f"<LayerLine {self.id} {self.path + self.name!r} {self.type}: {ports}{line}>"


@sections_of.register
def _(layer: LayerLine) -> Iterator[Content]:
    """A line for the layer, one for each port and one for the attributes; a table of layers would be too wide."""
    line = "" if layer.line is None else f", line {layer.line}"
    yield f"{layer.id} {layer.path}{layer.name} ({layer.type}, {layer.version or 'no version'}{line})"
    inputs = zip(layer.input_ports, layer.inputs, layer.sources, strict=True)
    outputs = zip(layer.output_ports, layer.outputs, layer.tensor_names, strict=True)
    ports = [
        (f"    input {port}", fact, f"from {source}" if source else "no edge arrives") for port, fact, source in inputs
    ]
    ports += [(f"    output {port}", fact, ", ".join(names)) for port, fact, names in outputs]
    if ports:
        yield Table([Column("", kind="code"), Column("", kind="code"), Column("", kind="sentence")], ports)
    if layer.attributes:
        attributes = " ".join(f'{name}="{value}"' for name, value in layer.attributes.items())
        yield f"    {attributes}"


@dataclass(frozen=True)
class EdgeRow(Record):
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
        inference: facts of its values; inferred unless given.
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
        origin=model.origin,
        path=None if model.path is None else str(model.path),
    )


def histogram(model: Graph) -> dict[str, int]:
    """The number of layers of each type and version, the most frequent first."""
    counts = Counter(f"{written_type(node)}-{node.version.removeprefix('opset')}" for node in model.walk())
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def operations_table(ops: Mapping[str, int]) -> Table:
    """The number of layers of each operation."""
    return Table([Column("operation"), Column("layers", kind="number")], list(ops.items()), what="operations")


def written_type(node: Node) -> str:
    """The type of a layer as the file spells it: "ReLU", "Const"."""
    return node.spelling or node.type


@collection_paused()
def layers(model: ModelLike, inference: Inference | None = None) -> Records[LayerLine]:
    """Every layer, those of bodies after the layer that has them.

    Args:
        model: any model, or what read_model takes.
        inference: facts of its values; inferred unless given.
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
def edges(model: Graph) -> Records[EdgeRow]:
    """Every edge; edges of a body come after the edges of its layer."""
    return Records(
        EdgeRow(path, port.source.node.id, port.source.port_id, node.id, node.input_id(index))
        for path, node in _nodes(model, "")
        for index, port in enumerate(node.ports)
        if port.source is not None
    )


def _nodes(graph: Graph, path: str) -> Iterator[tuple[str, Node]]:
    for node in graph.nodes:
        yield path, node
        for name, body in node.bodies.items():
            yield from _nodes(body.graph, f"{path}{node.name}/{name}/")
