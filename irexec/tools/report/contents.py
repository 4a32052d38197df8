"""The contents of a report: everything known of a model, why the rest is not known, and a row for each layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np

from irexec.analysis.execution_graph import executed_layers, is_execution_graph
from irexec.analysis.model import Model
from irexec.analysis.shape_inference import Inference
from irexec.display import Amount, Column, Content, Table
from irexec.display.hypertext import Html, element, joined
from irexec.errors import InputError, IrexecError
from irexec.ir.findings import Finding, Findings
from irexec.ir.graph import Node
from irexec.ir.process import collection_paused
from irexec.messages import amount, counted, cut, silent
from irexec.runtime.profile import Profile
from irexec.tools.arrays.statistics import Histogram, constant_histogram
from irexec.tools.inspect.cost import CostReport, LayerCost, cost
from irexec.tools.inspect.memory import MemoryReport, PlannedMemory, memory
from irexec.tools.inspect.precision import PrecisionReport, precision
from irexec.tools.inspect.summary import LayerLine, Summary, layer_lines, summarize

T = TypeVar("T")

BINS = 24
"""Intervals of a histogram of weights."""

Advance = Callable[[float], None]


@dataclass(frozen=True)
class Measured:
    """Measurements of a run: the time of the steps, and the memory of the compiled model."""

    profile: Profile
    memory: PlannedMemory


@dataclass
class Contents:
    """Everything known of a model.

    Attributes:
        model: the model, reshaped as asked for.
        lines: every layer, those of bodies after the layer that has them.
        nodes: the same layers as the graph has them.
        findings: about the model.
        inference: facts of its values.
        summary, cost, memory, precision: of the model; None for an execution graph, or where ``notes`` say why.
        histograms: of each constant, or why it cannot be read; None if weights are not to be read.
        measured: None unless the model was run.
        notes: missing parts of the report, and the reasons.
    """

    model: Model
    lines: list[LayerLine]
    nodes: list[Node]
    findings: Findings
    inference: Inference
    summary: Summary | None = None
    cost: CostReport | None = None
    memory: MemoryReport | None = None
    precision: PrecisionReport | None = None
    histograms: dict[Node, Histogram | str] | None = None
    measured: Measured | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def is_execution_graph(self) -> bool:
        """Whether it is what OpenVINO ran, and not a model."""
        return is_execution_graph(self.model)

    @property
    def weight_bytes(self) -> int:
        """Bytes of all constants."""
        return sum(node.constant.size for node in self.nodes if node.constant is not None)

    def attempt(self, what: str, find: Callable[[], T]) -> T | None:
        """The result of a function; None, with a note, where the model does not allow it."""
        try:
            return find()
        except IrexecError as error:
            self.notes.append(f"{what}: {error}")
            return None


@collection_paused()
def contents_of(model: Model, findings: Findings, inference: Inference, *, advance: Advance = silent) -> Contents:
    """Everything that can be said of a model, however damaged, without running it or reading its weights.

    Args:
        model: any model, or an execution graph.
        findings: about it.
        inference: facts of its values.
        advance: called after each part of the work with its fraction of the whole.
    """
    found = Contents(model, layer_lines(model, inference.facts), list(model.walk()), findings, inference)
    advance(0.4)
    if not found.is_execution_graph:
        found.summary = found.attempt("summary", lambda: summarize(model, inference))
        advance(0.2)
        found.cost = found.attempt("cost", lambda: cost(model, inference))
        advance(0.2)
        found.memory = found.attempt("memory", lambda: memory(model, compiled=False, inference=inference))
        found.precision = found.attempt("element types", lambda: precision(model, inference))
    advance(0.2)
    return found


@collection_paused()
def read_weights(found: Contents, advance: Advance = silent) -> None:
    """Add the histograms of all constants; ``advance`` is called with the bytes of each.

    What is read goes with the last reference to it, block by block: no cycles hold it.
    """
    found.histograms = {}
    for node in found.nodes:
        if node.constant is None:
            continue
        try:
            # Damaged weights may be signalling NaN, or too large for a sum.
            with np.errstate(all="ignore"):
                found.histograms[node] = constant_histogram(node, BINS)
        except IrexecError as error:
            found.histograms[node] = str(error)
        advance(node.constant.size)


def measure(found: Contents, run: Callable[[Model], tuple[Profile, PlannedMemory]]) -> None:
    """Run the model and add what that shows; a note says why it cannot be run.

    Raises:
        InputError: of what the caller gave for the run.
    """
    try:
        found.measured = Measured(*run(found.model))
    except InputError:
        raise
    except IrexecError as error:
        found.notes.append(f"times: the model cannot be run: {error}")


def file_size(path: Path | None) -> int | None:
    """Bytes of a file; None if there is none."""
    try:
        return None if path is None else path.stat().st_size
    except OSError:
        return None


_NEW_LINE = Html("\n")
_LONGEST = 1_000
"""Characters of an attribute that are shown."""


@dataclass(frozen=True)
class Index:
    """Where layers are on the page.

    Attributes:
        rows: the number of the row of each layer.
        by_place: the same by the id and the name of the layer; the first one where several have these.
    """

    rows: Mapping[Node, int]
    by_place: Mapping[tuple[int | None, str | None], int]

    @staticmethod
    def of(nodes: Sequence[Node]) -> Index:
        """The rows of layers in their order."""
        positions: dict[tuple[int | None, str | None], int] = {}
        for number, node in enumerate(nodes):
            positions.setdefault((node.id, node.name), number)
        return Index({node: number for number, node in enumerate(nodes)}, positions)

    def link(self, node: Node, text: str) -> Content:
        """The text as a link to a layer's row."""
        number = self.rows.get(node)
        return text if number is None else element("a", text, href=f"#l{number}")

    def link_to_place(self, id: int | None, name: str | None, text: str) -> Content:
        """The same for the layer of an id and a name."""
        number = self.by_place.get((id, name))
        return text if number is None else element("a", text, href=f"#l{number}")


def layers_table(found: Contents, index: Index) -> Table:
    """The table of the layers of a model."""
    costs = {} if found.cost is None else {(row.path, row.id, row.name): row for row in found.cost.layers}
    times, within = _times(found)
    worst = _worst(found.findings)

    def own(row: _Row) -> LayerCost | None:
        return costs.get((row[0].path, row[0].id, row[0].name))

    def name(row: _Row) -> Html:
        line, node = row
        main = within.get(line.name) if not line.path else None
        together = None if main is None else element("div", "computed in the same step as ", main, class_="inside")
        return _name(line, joined(_details(line, node, index, own(row)), together), worst.get((line.id, line.name)))

    def cost(name: str) -> Callable[[_Row], object]:
        return lambda row: getattr(own(row), name, "")

    columns = [
        Column("id", lambda row: row[0].id, "number", "the id of the layer in the file", _ID),
        Column("layer", name),
        Column("operation", lambda row: row[1].type, width=_WORD),
        Column("output", lambda row: ", ".join(row[0].outputs), "code", width=_CODE),
        Column("MACs", cost("macs"), "count", "multiply-accumulates", _NUMBER),
        Column("params", cost("parameters"), "count", "elements of the constants that the layer reads", _NUMBER),
        Column("bytes", cost("bytes"), "bytes", "bytes read and written, weights included", _NUMBER),
        Column("ms", lambda row: None if row[0].path else times.get(row[0].name), "ms", _MILLISECONDS, _NUMBER),
    ]
    return _page_table(columns, list(zip(found.lines, found.nodes, strict=True)), index)


_Row = tuple[LayerLine, Node]
_MILLISECONDS = "milliseconds, the median of the runs; the time of a step is at its main layer"


def _page_table(columns: Sequence[Column], rows: Sequence[_Row], index: Index) -> Table:
    ids = [f"l{index.rows[node]}" for _, node in rows]
    return Table(columns, rows, style="fixed sortable searchable", label="layers", ids=ids)


_ID, _NUMBER, _WORD, _CODE = 4, 5.5, 10, 12
"""Widths of columns."""


def executed_table(found: Contents, index: Index) -> Table:
    """The table of the layers of an execution graph."""
    executed = dict(zip(found.nodes, executed_layers(found.model), strict=True))

    def of(name: str) -> Callable[[_Row], object]:
        return lambda row: getattr(executed[row[1]], name)

    def time(row: _Row) -> Amount | None:
        spent = executed[row[1]].microseconds
        return None if spent is None else Amount(spent, f"{spent:,.0f}")

    columns = [
        Column("id", of("id"), "number", width=_ID),
        Column("layer", lambda row: _name(row[0], _details(row[0], row[1], index, None), None)),
        *(Column(title, of(name), width=_WORD) for title, name in _EXECUTED.items()),
        Column("output", lambda row: ", ".join(row[0].outputs), "code", width=_CODE),
        Column("µs", time, "number", "microseconds, as measured by OpenVINO", _NUMBER),
    ]
    return _page_table(columns, list(zip(found.lines, found.nodes, strict=True)), index)


_EXECUTED = {"operation": "type", "kernel": "kernel", "precision": "precision"}


def _name(line: LayerLine, inside: Html, worst: str | None) -> Html:
    path = element("span", line.path, class_="note") if line.path else None
    mark = element("span", worst, class_=worst) if worst else None
    return element(
        "details", element("summary", path, cut(line.name, 300) or "(no name)", " " if mark else None, mark), inside
    )


def _details(line: LayerLine, node: Node, index: Index, own: LayerCost | None) -> Html:
    """All that the file says of a layer, a line for each thing."""
    pieces = list(_detail_lines(line, node, index, own))
    return element("div", [[piece, _NEW_LINE] for piece in pieces], class_="inside")


def _detail_lines(line: LayerLine, node: Node, index: Index, own: LayerCost | None) -> Iterator[Content]:
    yield ", ".join(filter(None, (line.version, "" if line.line is None else f"line {line.line}")))
    for name, value in line.attributes.items():
        yield f"{name} = {cut(value, _LONGEST)}"
    for port, fact, arrives, source in zip(line.input_ports, line.inputs, node.inputs, line.sources, strict=True):
        if arrives is None:
            yield f"input {port}: no edge arrives"
        else:
            yield [f"input {port}: {fact} from ", index.link(arrives.node, cut(source or arrives.node.name, 300))]
    for port, fact, names in zip(line.output_ports, line.outputs, line.tensor_names, strict=True):
        yield f"output {port}: {fact}{' ' if names else ''}{', '.join(names)}"
    if node.constant is not None:
        place = "" if node.constant.offset is None else f" at offset {node.constant.offset:,} of the .bin"
        yield f"{amount(node.constant.size)}{place}"
    if node.bodies:
        yield ", ".join(f"{name} with {counted(len(body.graph.nodes), 'layer')}" for name, body in node.bodies.items())
    if own is not None and own.intensity is not None:
        yield f"{own.intensity:.3g} floating-point operations for each byte"


def _times(found: Contents) -> tuple[dict[str, float], dict[str, str]]:
    """Milliseconds of layers by their names, and for layers that have none the main layer of their step."""
    if found.measured is None:
        return {}, {}
    profile = found.measured.profile
    times = {row.name: row.milliseconds for row in profile.layers if row.milliseconds is not None}
    within = {layer: step.name for step in profile.steps for layer in step.layers if layer not in times}
    return times, within


def _worst(findings: Sequence[Finding]) -> dict[tuple[int | None, str | None], str]:
    """The worst severity of each layer that has findings."""
    order = ("info", "warning", "error")
    # The worst of a layer comes last.
    found = sorted(findings, key=lambda one: order.index(one.severity))
    return {(one.layer_id, one.layer_name): one.severity for one in found}
