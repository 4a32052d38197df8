"""The parts of a report, each with its heading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from irexec.analysis.execution_graph import executed_layers, times_by_type
from irexec.analysis.model import Model, ports_table
from irexec.analysis.text_table import amount, metric
from irexec.html import Amount, Column, Content, Html, area, bar, bars, definitions, element, histogram, joined, table
from irexec.ir.dims import shape_text
from irexec.ir.findings import Finding, count_text, findings_table
from irexec.ir.graph import Node
from irexec.messages import counted
from irexec.runtime.profile import Profile, rows_table
from irexec.runtime.profile import totals as profile_totals
from irexec.tools.arrays.histogram import Histogram
from irexec.tools.inspect import memory as memory_report
from irexec.tools.inspect import precision as precision_report
from irexec.tools.inspect.cost import CostReport, TypeCost
from irexec.tools.inspect.memory import MemoryReport, PlannedMemory
from irexec.tools.inspect.precision import PrecisionReport
from irexec.tools.report.contents import Contents, file_size
from irexec.tools.report.rows import Index, bytes_cell, count_cell, executed_table, layers_table

_FINDINGS = 2_000
"""Findings that are listed; a file with more of them has something wrong that the first ones show."""


@dataclass(frozen=True)
class Section:
    """A part of the report.

    Attributes:
        id: of its heading, to which the list of contents leads.
        title: the heading.
        content: what is below it.
    """

    id: str
    title: str
    content: Content

    def html(self) -> Html:
        """The section."""
        return element("section", element("h2", self.title, id=self.id), self.content, aria_labelledby=self.id)


def sections_of(found: Contents, graph: Content) -> list[Section]:
    """All sections of a report, without those that would be empty."""
    index = Index.of(found.nodes)
    planned = None if found.measured is None else found.measured.memory
    first = [
        Section("summary", "Summary", summary(found)),
        Section("findings", "Findings", findings(found.findings, index)),
    ]
    last = Section(
        "notes",
        "Not in this report",
        element("ul", [element("li", note) for note in found.notes]) if found.notes else None,
    )
    if not found.nodes:
        return [*first, last]
    all_sections = [
        *first,
        Section("ports", "Inputs and outputs", None if found.is_execution_graph else ports(found)),
        Section("graph", "Graph", graph),
        Section(
            "operations", "Operations", executed_operations(found) if found.is_execution_graph else operations(found)
        ),
        Section("time", "Time", None if found.measured is None else times(found.measured.profile)),
        Section(
            "layers", "Layers", executed_table(found, index) if found.is_execution_graph else layers_table(found, index)
        ),
        Section("types", "Element types", None if found.precision is None else element_types(found.precision)),
        Section("memory", "Memory", None if found.memory is None else memory(found.memory, planned)),
        Section("weights", "Weights", weights(found, index)),
        last,
    ]
    return [section for section in all_sections if section.content]


def summary(found: Contents) -> Html:
    """The model at a glance."""
    model, whole = found.model, found.cost.known if found.cost is not None else None
    bodies = sum(len(node.bodies) for node in found.nodes)
    return definitions(
        [
            ("name", model.name),
            ("file", _file_text(model)),
            ("format", "execution graph of OpenVINO" if found.is_execution_graph else _format(model)),
            ("findings", element("a", count_text(found.findings), href="#findings") if found.findings else "none"),
            (
                "layers",
                None
                if not found.nodes
                else f"{len(found.nodes):,}, of {len({node.type for node in found.nodes}):,} operations{_bodies(bodies)}",
            ),
            ("parameters", None if whole is None else metric(whole.parameters)),
            ("weights", _weights_text(found)),
            ("cost", None if found.cost is None else _macs(found.cost)),
            ("memory", None if found.memory is None else _peak(found.memory)),
            ("time", None if found.measured is None else profile_totals(found.measured.profile)[0]),
            ("measured time", _executed_time(found) if found.is_execution_graph else None),
        ]
    )


def _file_text(model: Model) -> str | None:
    paths = [path for path in (model.path, model.bin_path) if path is not None]
    sizes = [(path.name, file_size(path)) for path in paths]
    return ", ".join(f"{name} ({amount(size)})" if size is not None else name for name, size in sizes) or None


def _format(model: Model) -> str:
    if model.path is not None and model.path.suffix.lower() == ".onnx":
        return "ONNX, converted to IR" if model.nodes else "ONNX"
    return f"OpenVINO IR, version {model.version}"


def _bodies(count: int) -> str:
    return f", {count:,} bod{'y' if count == 1 else 'ies'}" if count else ""


def _weights_text(found: Contents) -> str | None:
    count = sum(node.constant is not None for node in found.nodes)
    if not count:
        return None
    stored = found.precision
    bits = (
        f", {stored.bits_per_weight:.3g} bits per weight"
        if stored is not None and stored.bits_per_weight is not None
        else ""
    )
    return f"{amount(found.weight_bytes)} in {counted(count, 'constant')}{bits}"


def _macs(report: CostReport) -> str:
    """The multiply-accumulates of a run; where some are not known, those that are, if there are any."""
    is_exact = report.cost.macs is not None
    known = report.known.macs or 0
    if not is_exact and not known:
        return "depends on sizes of inputs that are not known" if report.open_inputs else "not known"
    return f"{'' if is_exact else 'at least '}{metric(known)}{'' if known > 999 else ' '}MACs"


def _peak(report: MemoryReport) -> str:
    """The peak of the tensors between layers."""
    if report.unknown and report.open_inputs:
        return "depends on sizes of inputs that are not known"
    return f"{'at least ' if report.unknown else ''}{amount(report.peak)} in tensors between layers at once"


def _executed_time(found: Contents) -> str | None:
    times = [layer.microseconds for layer in executed_layers(found.model) if layer.microseconds is not None]
    return f"{sum(times) / 1e3:,.3f} ms in {counted(len(times), 'layer')}" if times else None


def findings(found: Sequence[Finding], index: Index) -> Html:
    """The findings, with links to their layers."""
    if not found:
        return element("p", "No findings: every port, attribute, edge and weight range is as it should be.")
    shown = findings_table(
        found,
        limit=_FINDINGS,
        link=lambda finding, text: index.link_to_place(finding.layer_id, finding.layer_name, text),
    )
    return joined(element("p", count_text(found)), shown)


def ports(found: Contents) -> Html:
    """Inputs, outputs and variables."""
    variables = dict.fromkeys(
        node.attributes.get("variable_id", "") for node in found.nodes if node.type in ("ReadValue", "Assign")
    )
    state = element("p", "variables, whose state is kept between runs: ", ", ".join(variables)) if variables else None
    summary, model = found.summary, found.model
    inputs, outputs = (summary.inputs, summary.outputs) if summary is not None else (model.inputs, model.outputs)
    return joined(ports_table({"input": inputs, "output": outputs}), state)


def operations(found: Contents) -> Html:
    """How many layers of each operation there are, and what they cost together."""
    counts: dict[str, int] = {}
    for node in found.nodes:
        counts[node.type] = counts.get(node.type, 0) + 1
    costs = {} if found.cost is None else {row.type: row for row in found.cost.types}
    numbers = [Column(title, is_number=True) for title in ("layers", "MACs", "params", "bytes")]
    rows = [
        _operation_row(type, counts[type], costs.get(type), found)
        for type in sorted(counts, key=lambda type: -counts[type])
    ]
    rows.sort(key=lambda row: -(costs[str(row[0])].macs or 0) if row[0] in costs else 0)
    return table(["operation", *numbers, "share of MACs"], rows, hide_empty=True, class_="sortable", label="operations")


def _operation_row(type: str, count: int, cost: TypeCost | None, found: Contents) -> list[Content]:
    if cost is None or found.cost is None:
        return [type, count, "", "", "", ""]
    share = found.cost.share(cost.macs)
    drawn = bar(share, f"{share:.1%} of the MACs") if share else None
    parameters = Amount(cost.parameters, metric(cost.parameters or None))
    return [type, count, count_cell(cost.macs), parameters, bytes_cell(cost.bytes), drawn]


def executed_operations(found: Contents) -> Html:
    """The time of each type of layer in an execution graph."""
    types = times_by_type(executed_layers(found.model))
    rows = [(row.type, row.microseconds, f"{row.microseconds:,.0f} µs in {row.layers:,}") for row in types]
    return bars(rows, titles=("operation", "time"))


def times(profile: Profile) -> Html:
    """Where the time of a run goes."""
    lines = [element("p", text) for text in profile_totals(profile)]
    by_type = [element("h3", "By type of operation"), rows_table(profile.rows("type", "time"), "type", None)]
    by_step = [element("h3", "By step"), rows_table(profile.rows("step", "time"), "step", 100)]
    return joined(lines, by_type, by_step)


def element_types(report: PrecisionReport) -> Html:
    """How weights are stored, and of which types the tensors between layers are."""
    stored = [precision_report.storage_cells(row) for row in report.weights]
    types = [precision_report.activation_cells(row) for row in report.activations]
    return joined(
        [element("p", text) for text in precision_report.totals(report)],
        _text_table(precision_report.STORAGE_HEADERS, stored, precision_report.STORAGE_RIGHT, "weights")
        if stored
        else None,
        _text_table(precision_report.ACTIVATION_HEADERS, types, precision_report.ACTIVATION_RIGHT, "activations")
        if types
        else None,
    )


def memory(report: MemoryReport, planned: PlannedMemory | None) -> Html:
    """The memory of the tensors between layers, over the layers in the order in which they run."""
    curve = area(
        report.curve,
        f"bytes of tensors alive during each of {counted(len(report.curve), 'layer')}, at most {amount(report.peak)}",
    )
    texts = memory_report.totals(replace(report, plan=planned))
    # Without a plan the last line says why there is none.
    lines = [element("p", text) for text in (texts[:-1] if planned is None else texts)]
    alive = [memory_report.cells(tensor) for tensor in report.alive[:_ALIVE]]
    shown = _text_table(memory_report.HEADERS, alive, memory_report.RIGHT, "tensors alive at the peak")
    return joined(curve if report.peak else None, lines, shown if alive else None)


_ALIVE = 50


def weights(found: Contents, index: Index) -> Html | None:
    """Each constant with its statistics and histogram; None if weights were not read."""
    if not found.histograms:
        return None
    titles = ("bytes", "minimum", "maximum", "mean", "std", "zeros", "NaN, inf")
    numbers = [Column(title, is_number=True, width=6.5) for title in titles]
    codes = Column("type", is_code=True, width=5), Column("shape", is_code=True, width=9)
    columns = ["constant", *codes, *numbers, Column("histogram", width=10)]
    rows = [_constant_row(node, one, index) for node, one in found.histograms.items()]
    return table(columns, rows, hide_empty=True, class_="fixed sortable searchable", label="weights")


def _constant_row(node: Node, found: Histogram | str, index: Index) -> list[Content]:
    if node.constant is None:
        return [""] * 11
    start = [
        index.link(node, node.name),
        node.constant.element.name,
        shape_text(node.constant.shape),
        bytes_cell(node.constant.size),
    ]
    if isinstance(found, str):
        return [*start, "", "", "", "", "", "", element("span", found, class_="error")]
    s = found.statistics
    figures = [None if value is None else Amount(value, f"{value:.4g}") for value in (s.min, s.max, s.mean, s.std)]
    zeros = Amount(s.zeros, f"{s.zeros / s.count:.1%}") if s.zeros else None
    chart = histogram(found.counts, found.edges[0], found.edges[-1]) if len(found.counts) > 1 else None
    return [*start, *figures, zeros, s.not_finite or None, chart]


def _text_table(headers: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int], label: str) -> Html:
    columns = [Column(title, is_number=i in right) for i, title in enumerate(headers)]
    return table(columns, rows, hide_empty=True, label=label)
