"""The parts of a model: a summary, its layers and the edges between them, and a tree of their names with what each
branch costs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from irexec.analysis.cost import NOTHING, Cost
from irexec.analysis.model import Port, brief, output_ports
from irexec.analysis.shape_inference import UNKNOWN, Inference, infer_shapes
from irexec.api import ModelLike, as_model
from irexec.display import Column, Content, Guided, Section, Table, Text, sections_of
from irexec.errors import InputError
from irexec.ir.facts import Fact
from irexec.ir.graph import Graph, Node, Value
from irexec.ir.order import walk_with_paths
from irexec.ir.process import collection_paused
from irexec.messages import amount, counted
from irexec.records import Record, Records, Report
from irexec.tools.inspect.cost import CostReport, LayerCost, totals
from irexec.tools.inspect.cost import cost as cost_of
from irexec.tools.operations import unsupported
from irexec.tools.sections.models import ports_table


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
        for path, node in walk_with_paths(model)
    ]


@collection_paused()
def edges(model: Graph) -> Records[EdgeRow]:
    """Every edge; edges of a body come after the edges of its layer."""
    return Records(
        EdgeRow(path, port.source.node.id, port.source.port_id, node.id, node.input_id(index))
        for path, node in walk_with_paths(model)
        for index, port in enumerate(node.ports)
        if port.source is not None
    )


_SEPARATORS = re.compile(r"([/.]+)")
# A name may have any length; the rest of one with more parts is one part.
_PARTS = 64


@dataclass(frozen=True)
class TreeBranch(Record):
    """The layers whose names begin alike.

    Attributes:
        name: the part of the names that this branch adds, with those below it where there is nothing else:
            "model/encoder".
        path: how the names begin.
        type: of the layer that has just this name; None where there is none, or where there are several.
        layers: number of its rows in CostReport: layers that run, without Parameters, Constants and Results.
        cost: of these layers, as in CostReport: None for what is not known of any of them.
        branches: in the order of the file; empty below the depth that was asked for.
    """

    name: str
    path: str
    type: str | None
    layers: int
    cost: Cost
    branches: tuple[TreeBranch, ...]

    def as_dict(self) -> dict[str, Any]:
        """The branch for JSON, its cost among its own fields."""
        fields = super().as_dict()
        return fields | fields.pop("cost")


@dataclass(frozen=True)
class TreeReport(Report):
    """The tree of a model.

    Attributes:
        name: of the model.
        root: the branch of all layers.
        report: the cost of every layer.
    """

    name: str
    root: TreeBranch
    report: CostReport = field(repr=False)

    def __repr__(self) -> str:
        return f"<TreeReport {self.name!r}: {self.root.layers} layers in {counted(len(self.root.branches), 'branch')}>"

    def sections(self) -> list[Content]:
        """The branches and the sums."""
        columns = [
            Column("layers of the name", lambda row: Guided(row[0], row[1].name)),
            Column("operation", lambda row: row[1].type),
            Column("layers", lambda row: "" if row[1].layers == 1 and row[1].type else row[1].layers, "number"),
            Column("MACs", lambda row: row[1].cost.macs, "count"),
            Column("params", lambda row: row[1].cost.parameters, "count"),
            Column("bytes", lambda row: row[1].cost.bytes, "bytes"),
        ]
        return [Table(columns, list(walk(self.root)), what="branches"), totals(self.report)]

    def as_dict(self) -> dict[str, Any]:
        """The tree for JSON."""
        return self.root.as_dict()


def tree(model: ModelLike, depth: int | None = None, inference: Inference | None = None) -> TreeReport:
    """The layers of a model by their names, whose parts "/" and "." separate; bodies are branches of the layer that has
    them.

    Args:
        model: any model, or what read_model takes.
        depth: number of levels of branches; None for all.
        inference: facts of its values; inferred unless given.

    Raises:
        InputError: ``depth`` is not a positive integer.
        ModelError: it is an execution graph.
    """
    if depth is not None and (isinstance(depth, bool) or not isinstance(depth, int) or depth < 1):
        raise InputError(f"depth is {depth!r}, expected an integer of at least 1")
    report = cost_of(model, inference)
    root = _Growing("", "")
    for row in report.layers:
        root.add(f"{row.path}{row.name}", row)
    return TreeReport(report.name, root.branch(depth), report)


class _Growing:
    """A branch while layers are added."""

    def __init__(self, name: str, path: str) -> None:
        self._name, self._path = name, path
        self._below: dict[str, _Growing] = {}
        self._layers, self._types = 0, list[str]()
        self._cost = NOTHING

    def add(self, name: str, row: LayerCost) -> None:
        """Add a layer."""
        at = self
        at._count(row)
        parts = _SEPARATORS.split(name, maxsplit=_PARTS)
        for i in range(0, len(parts), 2):
            if parts[i]:
                separator = parts[i - 1] if i else ""
                below = at._below.get(parts[i])
                if below is None:
                    below = at._below[parts[i]] = _Growing(f"{separator}{parts[i]}", f"{at._path}{separator}{parts[i]}")
                at = below
                at._count(row)
        at._types.append(row.type)

    def _count(self, row: LayerCost) -> None:
        self._layers += 1
        self._cost += row.cost

    def branch(self, depth: int | None) -> TreeBranch:
        """The branch, with ``depth`` levels below it."""
        at, name = self, self._name
        while not at._types and len(at._below) == 1 and self._name:
            (at,) = at._below.values()
            name += at._name
        below = (
            () if depth == 0 else tuple(one.branch(None if depth is None else depth - 1) for one in at._below.values())
        )
        type = at._types[0] if len(at._types) == 1 else None
        return TreeBranch(name.lstrip("/.") if self._name else "", at._path, type, at._layers, at._cost, below)


def walk(root: TreeBranch) -> Iterator[tuple[str, TreeBranch]]:
    """The branches from top to bottom, each with the lines that lead to it."""
    corner, tee, line = "└─ ", "├─ ", "│  "
    waiting = [("", "", branch) for branch in reversed(root.branches)]
    while waiting:
        before, guide, branch = waiting.pop()
        yield before + guide, branch
        inner = before if not guide else f"{before}{'   ' if guide == corner else line}"
        last = len(branch.branches) - 1
        waiting += [
            (inner, corner if i == last else tee, below) for i, below in reversed(list(enumerate(branch.branches)))
        ]
