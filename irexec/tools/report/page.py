"""A report as one page that needs no other file; it begins with a verdict and four figures."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

from irexec.analysis.execution_graph import executed_layers
from irexec.display.markup import Content, Html, element, joined
from irexec.display.page import page
from irexec.ir.findings import count_text
from irexec.ir.garbage import collection_paused
from irexec.messages import amount, counted, metric
from irexec.tools.report.contents import Contents
from irexec.tools.report.sections import page_sections


@dataclass(frozen=True)
class Page:
    """A page, and the ids of its sections in their order."""

    text: str
    sections: tuple[str, ...]


@collection_paused()
def report_page(found: Contents, title: str, origin: str, graph: Content = None) -> Page:
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
        element(
            "header",
            element("h1", title),
            element("p", origin, class_="note"),
            overview(found),
        ),
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
