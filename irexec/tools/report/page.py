"""A report as one page that needs no other file: a verdict, four figures, and the parts of the report, each with its
heading.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files

from irexec.analysis.execution_graph import executed_layers, times_by_type
from irexec.analysis.model import Model
from irexec.display import Bar, Column, Content, Definitions, HistogramChart, Table, Text, bars
from irexec.display.hypertext import Html, Markup, element, html, joined, page
from irexec.io.onnx_bytes import is_onnx_file
from irexec.ir.dims import shape_text
from irexec.ir.findings import Finding, count_text
from irexec.ir.graph import Node
from irexec.ir.process import collection_paused
from irexec.messages import amount, counted, metric
from irexec.runtime.profile import Profile
from irexec.tools.arrays.statistics import Histogram as ConstantHistogram
from irexec.tools.inspect import precision as precision_report
from irexec.tools.inspect.cost import CostReport
from irexec.tools.inspect.memory import MemoryReport
from irexec.tools.inspect.precision import PrecisionReport
from irexec.tools.report.contents import Contents, Index, executed_table, file_size, layers_table
from irexec.tools.sections.models import findings_table, ports_table
from irexec.tools.sections.plans import profile_totals, rows_table

_FINDINGS = 2_000
"""Findings that are listed; a file with more of them has something wrong that the first ones show."""


@dataclass(frozen=True)
class ReportPart:
    """A part of the report.

    Attributes:
        id: of its heading, to which the list of contents leads.
        title: the heading.
        content: the content below it.
    """

    id: str
    title: str
    content: Content

    def html(self) -> Html:
        """The section."""
        return element("section", element("h2", self.title, id=self.id), html(self.content), aria_labelledby=self.id)


def page_sections(found: Contents, graph: Content) -> list[ReportPart]:
    """All sections of a report, without those that would be empty."""
    index = Index.of(found.nodes)
    planned = None if found.measured is None else found.measured.memory
    peak, executed = found.memory, found.is_execution_graph
    first = [
        ReportPart("summary", "Summary", summary(found)),
        ReportPart("findings", "Findings", findings(found.findings, index)),
    ]
    notes = element("ul", [element("li", note) for note in found.notes]) if found.notes else None
    last = ReportPart("notes", "Not in this report", notes)
    if not found.nodes:
        return [*first, last]
    all_sections = [
        ReportPart("graph", "Graph", graph),
        *first,
        ReportPart("ports", "Inputs and outputs", None if executed else ports(found)),
        ReportPart("operations", "Operations", executed_operations(found) if executed else operations(found)),
        ReportPart("time", "Time", None if found.measured is None else times(found.measured.profile)),
        ReportPart("layers", "Layers", executed_table(found, index) if executed else layers_table(found, index)),
        ReportPart("types", "Element types", None if found.precision is None else element_types(found.precision)),
        ReportPart("memory", "Memory", None if peak is None else replace(peak, plan=planned, no_plan="").sections()),
        ReportPart("weights", "Weights", weights(found, index)),
        last,
    ]
    return [section for section in all_sections if section.content]


def summary(found: Contents) -> Definitions:
    """The model at a glance."""
    model, whole = found.model, found.cost.known if found.cost is not None else None
    return Definitions(
        [
            ("name", model.name),
            ("file", _file_text(model)),
            ("format", "execution graph of OpenVINO" if found.is_execution_graph else _format(model)),
            ("findings", element("a", count_text(found.findings), href="#findings") if found.findings else "none"),
            ("layers", _layers_text(found)),
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
    if model.path is not None and is_onnx_file(model.path):
        return "ONNX, converted to IR" if model.nodes else "ONNX"
    return f"OpenVINO IR, version {model.version}"


def _layers_text(found: Contents) -> str | None:
    if not found.nodes:
        return None
    types, bodies = {node.type for node in found.nodes}, sum(len(node.bodies) for node in found.nodes)
    inside = f", {counted(bodies, 'body')}" if bodies else ""
    return f"{len(found.nodes):,}, of {len(types):,} operations{inside}"


def _weights_text(found: Contents) -> str | None:
    count = sum(node.constant is not None for node in found.nodes)
    if not count:
        return None
    average = None if found.precision is None else found.precision.bits_per_weight
    bits = "" if average is None else f", {average:.3g} bits per weight"
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


def findings(found: Sequence[Finding], index: Index) -> Content:
    """The findings, with links to their layers."""
    if not found:
        return "No findings: every port, attribute, edge and weight range is as it should be."
    shown = findings_table(
        found,
        limit=_FINDINGS,
        link=lambda finding, text: index.link_to_place(finding.layer_id, finding.layer_name, text),
    )
    return [count_text(found), shown]


def ports(found: Contents) -> Content:
    """Inputs, outputs and variables."""
    variables = dict.fromkeys(
        node.attributes.get("variable_id", "") for node in found.nodes if node.type in ("ReadValue", "Assign")
    )
    state = f"variables, whose state is kept between runs: {', '.join(variables)}" if variables else None
    summary, model = found.summary, found.model
    inputs, outputs = (summary.inputs, summary.outputs) if summary is not None else (model.inputs, model.outputs)
    return [ports_table({"input": inputs, "output": outputs}), state]


def operations(found: Contents) -> Table:
    """The number of layers of each operation, and their cost."""
    counts = Counter(node.type for node in found.nodes)
    report = found.cost
    costs = {} if report is None else {row.type: row for row in report.types}

    def share(type: str) -> Bar | None:
        part = report.share(costs[type].macs) if report is not None and type in costs else None
        return Bar(part, f"{part:.1%} of the MACs") if part else None

    columns = [
        Column("operation", lambda type: type),
        Column("layers", counts.__getitem__, "number"),
        Column("MACs", lambda type: costs[type].macs if type in costs else "", "count"),
        Column("params", lambda type: costs[type].parameters if type in costs else "", "count"),
        Column("bytes", lambda type: costs[type].bytes if type in costs else "", "bytes"),
        Column("share of MACs", share, "chart"),
    ]
    rows = sorted(counts, key=lambda type: (-(costs[type].macs or 0) if type in costs else 0, -counts[type]))
    return Table(columns, rows, style="sortable", label="operations")


def executed_operations(found: Contents) -> Table:
    """The time of each type of layer in an execution graph."""
    types = times_by_type(executed_layers(found.model))
    rows = [(row.type, row.microseconds, f"{row.microseconds:,.0f} µs in {row.layers:,}") for row in types]
    return bars(rows, ("operation", "time"))


def times(profile: Profile) -> Content:
    """Where the time of a run goes."""
    return [
        profile_totals(profile),
        element("h3", "By type of operation"),
        rows_table(profile.rows("type", "time"), "type"),
        element("h3", "By step"),
        rows_table(profile.rows("step", "time"), "step", 100),
    ]


def element_types(report: PrecisionReport) -> Content:
    """How weights are stored, and of which types the tensors between layers are."""
    return [precision_report.totals(report), report.by_type()]


def weights(found: Contents, index: Index) -> Table | None:
    """Each constant with its statistics and histogram; None if weights were not read."""
    if not found.histograms:
        return None
    columns = [
        Column("constant", lambda row: index.link(row[0], row[0].name)),
        Column("type", lambda row: row[0].constant.element.name, "code", width=5),
        Column("shape", lambda row: shape_text(row[0].constant.shape), "code", width=9),
        Column("bytes", lambda row: row[0].constant.size, "bytes", width=6.5),
        *(
            Column(title, _statistic_of(name), "figure", width=6.5)
            for title, name in (("minimum", "min"), ("maximum", "max"), ("mean", "mean"), ("std", "std"))
        ),
        Column("zeros", lambda row: _zeros(row[1]), "share", width=6.5),
        Column("NaN, inf", lambda row: _statistic_of("not_finite")(row) or None, "number", width=6.5),
        Column("histogram", lambda row: _chart(row[1]), "chart", width=10),
    ]
    rows = list(found.histograms.items())
    return Table(columns, rows, style="fixed sortable searchable", label="weights")


def _statistic_of(name: str) -> Callable[[tuple[Node, ConstantHistogram | str]], float | None]:
    return lambda row: None if isinstance(row[1], str) else getattr(row[1].statistics, name)


def _zeros(found: ConstantHistogram | str) -> float | None:
    statistics = None if isinstance(found, str) else found.statistics
    return statistics.zeros / statistics.count if statistics is not None and statistics.zeros else None


def _chart(found: ConstantHistogram | str) -> Content:
    if isinstance(found, str):
        return Text(found, "error")
    return HistogramChart(found.counts, found.edges[0], found.edges[-1]) if len(found.counts) > 1 else None


@dataclass(frozen=True)
class Page:
    """A page, and the ids of its sections in their order."""

    text: str
    sections: tuple[str, ...]


@collection_paused()
def report_page(found: Contents, title: str, origin: str, graph: Markup = None) -> Page:
    """The page.

    Args:
        found: the contents of the report.
        title: the heading.
        origin: by what, and when, the report was made.
        graph: the drawing of the graph, or why there is none.
    """
    parts = page_sections(found, graph)
    links = [element("a", part.title, href=f"#{part.id}") for part in parts]
    content = joined(
        element("header", element("h1", title), element("p", origin, class_="note"), overview(found)),
        element("nav", links, aria_label="contents"),
        element("main", [part.html() for part in parts]),
    )
    text = page(title, content, style_sheet=_file("report.css"), script=_file("report.js"))
    return Page(text, tuple(part.id for part in parts))


def _file(name: str) -> str:
    return (files("irexec.tools.report") / name).read_text("utf-8")


Figure = tuple[str, str]
"""A number with its unit, and the words below it."""


def overview(found: Contents) -> Html:
    """The verdict and the figures."""
    style, sentence = _verdict(found)
    tiles = [
        element("div", element("strong", number), element("span", words), class_="figure")
        for number, words in _figures(found)
    ]
    verdict = element("p", element("a", sentence, href="#findings"), class_=f"verdict {style}")
    return element("div", verdict, element("div", tiles, class_="figures") if tiles else None, class_="overview")


def _verdict(found: Contents) -> tuple[str, str]:
    """The style and the sentence."""
    severities = {finding.severity for finding in found.findings}
    counts = count_text(found.findings)
    if "error" in severities:
        return "error", f"{counts}: the model cannot be run, or its results cannot be trusted"
    if found.is_execution_graph:
        return "info", f"an execution graph of OpenVINO, not a model; {counts}"
    if "warning" in severities:
        return "warning", f"no errors; {counts}"
    return "good", "no errors and no warnings" + (f"; {counts}" if severities else "")


def _figures(found: Contents) -> list[Figure]:
    """Layers, weights, cost, and time or else memory; a figure that is not known is left out."""
    if not found.nodes:
        return []
    types = {node.type for node in found.nodes}
    figures = [(f"{len(found.nodes):,}", f"layers of {counted(len(types), 'operation')}")]
    if found.is_execution_graph:
        return [*figures, *_executed(found)]
    if found.cost is not None and found.cost.known.parameters:
        figures.append((metric(found.cost.known.parameters), f"parameters; {amount(found.weight_bytes)} of constants"))
    if found.cost is not None and found.cost.known.macs:
        words = "MACs in a run" if found.cost.cost.macs is not None else "MACs at least; some shapes are not known"
        figures.append((metric(found.cost.known.macs), words))
    if found.measured is not None:
        profile = found.measured.profile
        figures.append((f"{profile.milliseconds:.3g} ms", f"a run; median of {counted(profile.runs, 'run')}"))
    elif found.memory is not None and found.memory.peak:
        words = "at least; some sizes are not known" if found.memory.unknown else "in tensors between layers at once"
        figures.append((amount(found.memory.peak), words))
    return figures


def _executed(found: Contents) -> list[Figure]:
    times = [layer.microseconds for layer in executed_layers(found.model) if layer.microseconds is not None]
    return [(f"{sum(times) / 1e3:.3g} ms", f"in {counted(len(times), 'layer')} with a time")] if times else []
