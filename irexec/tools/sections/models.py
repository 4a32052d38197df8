"""Models, layers, ports and findings, and execution graphs: the layers that a device ran."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from irexec.analysis.execution_graph import ExecutedLayer, TypeTime, description, executed_layers
from irexec.analysis.model import Model, Port
from irexec.display import Column, Content, Definitions, Section, Table, Text, bars, sections_of
from irexec.ir.dims import shape_text
from irexec.ir.findings import Finding, Findings, count_text, layer_text
from irexec.ir.graph import Graph, Input, Node, Value
from irexec.messages import amount, counted
from irexec.records import Report


@sections_of.register
def model_sections(model: Model) -> Iterable[Content]:
    """A model: its ports, and folded its operations and layers."""
    constants = [node.constant for node in model.walk() if node.constant is not None]
    general = {
        "file": None if model.path is None else str(model.path),
        "origin": model.origin,
        "layers": f"{len(model.nodes):,}",
        "weights": f"{counted(len(constants), 'constant')}, {amount(sum(constant.size for constant in constants))}",
        "problems": count_text(model.problems) if model.problems else None,
    }
    counts = Counter(node.type for node in model.walk()).most_common()
    operations = bars([(type, count, f"{count:,}") for type, count in counts], ("operation", "layers"))
    return [
        Text(model.name or "model", "title"),
        Definitions(general),
        ports_table({"input": model.inputs, "output": model.outputs}),
        Section("operations", operations, is_folded=True),
        Section("layers", layers_table(model.nodes), is_folded=True),
    ]


@sections_of.register
def graph_sections(graph: Graph) -> Iterable[Content]:
    """A graph: its layers."""
    title = f"{graph.name or type(graph).__name__}: {counted(len(graph.nodes), 'layer')}"
    return [Text(title, "title"), layers_table(graph.nodes)]


@sections_of.register
def node_sections(node: Node) -> Iterable[Content]:
    """A layer: its attributes and ports."""
    sources = ["nothing" if value is None else value.label for value in node.inputs]
    names = [", ".join(value.names) for value in node.outputs]
    ports = [(f"input {i}", _fact(p), f"from {s}") for i, (p, s) in enumerate(zip(node.ports, sources, strict=True))]
    ports += [(f"output {i}", _fact(p), n) for i, (p, n) in enumerate(zip(node.outputs, names, strict=True))]
    general = {
        "id": str(node.id),
        "version": node.version,
        "line": None if node.line is None else str(node.line),
        **node.attributes,
        **{name: repr(body) for name, body in node.bodies.items()},
    }
    return [
        Text(f"{node.name} ({node.type})", "title"),
        Definitions(general),
        Table(["", Column("", kind="code"), ""], ports, hide_empty=False),
    ]


# A row of a table.
sections_of.register(Port, lambda port: [ports_table({"": [port]})])
sections_of.register(Finding, lambda finding: [findings_table([finding])])
sections_of.register(ExecutedLayer, lambda layer: [executed_table([layer])])


@sections_of.register
def findings_sections(findings: Findings) -> Iterable[Content]:
    """Findings: a table."""
    return [Text(count_text(findings), "title"), findings_table(findings) if findings else None]


def layers_table(nodes: Sequence[Node]) -> Table:
    """Layers as they are declared."""
    columns = [
        Column("id", "id", "number"),
        Column("name", "name"),
        Column("type", "type"),
        Column("inputs", lambda node: _facts(node.ports), "code"),
        Column("outputs", lambda node: _facts(node.outputs), "code"),
        Column("attributes", lambda node: ", ".join(f"{name}={value}" for name, value in node.attributes.items())),
    ]
    return Table(columns, nodes, what="layers")


def _facts(ports: Iterable[Input | Value]) -> str:
    return ", ".join(map(_fact, ports))


def _fact(port: Input | Value) -> str:
    return str(port.fact or "?")


def ports_table(ports: Mapping[str, Sequence[Port]]) -> Table:
    """Inputs and outputs, by "input" and "output"."""
    columns = [
        Column("", lambda row: row[0]),
        Column("name", lambda row: row[1].name),
        Column("type", lambda row: str(row[1].element or "?"), "code"),
        Column("shape", lambda row: shape_text(row[1].shape), "code"),
        Column("other names", lambda row: ", ".join(name for name in row[1].names if name != row[1].name)),
    ]
    rows = [(kind, port) for kind, several in ports.items() for port in several]
    return Table(columns, rows, style="stacked", what="inputs and outputs")


def findings_table(
    findings: Sequence[Finding], *, limit: int | None = None, link: Callable[[Finding, str], Content] | None = None
) -> Table:
    """Findings; the meaning of a code is shown where the pointer rests on it.

    Args:
        findings: the rows.
        limit: maximum number shown.
        link: makes the cell of the layer of a finding from its text, in a page.
    """

    # All tables of codes: for a table of findings alone.
    from irexec.analysis.codes import CODES

    def layer(finding: Finding) -> Content:
        text = layer_text(finding)
        return text if link is None or not text else link(finding, text)

    columns = [
        Column("line", "line", "number"),
        Column("severity", lambda finding: Text(finding.severity, finding.severity)),
        Column("code", lambda one: Text(one.code, hint=CODES[one.code].meaning if one.code in CODES else None)),
        Column("layer", layer),
        Column("port", "port", "number"),
        Column("finding", "message", "sentence"),
    ]
    return Table(columns, findings, limit=limit, style="stacked", what="findings")


@dataclass(frozen=True)
class ExecutionSummary(Report):
    """An execution graph at a glance.

    Attributes:
        name: of the ``net`` element.
        execution_graph: True, which tells its JSON from that of a model.
        layer_count: number of layers.
        microseconds: the sum of the times.
        measured: number of layers with a time.
        path: the file.
        text: a sentence about the file.
    """

    name: str
    layer_count: int
    microseconds: float
    measured: int = field(metadata={"json": False})
    path: str | None = field(metadata={"json": False})
    text: str = field(metadata={"json": False})
    execution_graph: bool = True

    def sections(self) -> list[Content]:
        """The file, and the sum of the times."""
        file = "" if self.path is None else f"{self.path}: "
        times = f"{counted(self.measured, 'layer')} with a time, {self.microseconds:,.0f} µs in all"
        return [
            Text(f"{file}{self.name or 'no name'}", "title"),
            self.text,
            times if self.measured else "no layer has a time: it was not measured",
        ]


def execution_summary(model: Model) -> ExecutionSummary:
    """An execution graph at a glance."""
    times = [layer.microseconds for layer in executed_layers(model)]
    measured = [time for time in times if time is not None]
    path = None if model.path is None else str(model.path)
    return ExecutionSummary(model.name, len(times), sum(measured), len(measured), path, description(model))


def times_table(types: Sequence[TypeTime]) -> Table:
    """The time of each operation."""
    columns = [
        Column("operation", "type"),
        Column("layers", "layers", "number"),
        Column("µs", "microseconds", "number"),
    ]
    return Table(columns, types, what="operations")


def executed_table(layers: Sequence[ExecutedLayer]) -> Table:
    """Executed layers, each with the layers of the model that were fused into it."""
    columns = [
        Column("id", "id", "number"),
        Column("layer", "name", "path"),
        Column("operation", "type"),
        Column("µs", "microseconds", "number"),
        Column("type", "precision"),
        Column("kernel", "kernel"),
        Column("fused layers", lambda row: ", ".join(name for name in row.original if name != row.name)),
    ]
    return Table(columns, layers, what="layers")
