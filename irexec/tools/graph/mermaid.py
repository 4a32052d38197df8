"""A drawing as a flowchart in Mermaid, which Markdown of GitHub and GitLab shows. Source: "Flowcharts - Basic Syntax"
of Mermaid."""

from __future__ import annotations

from functools import partial

from irexec.tools.graph.drawing import Drawing, DrawnFrame
from irexec.tools.graph.families import FAMILIES
from irexec.tools.graph.flat import box_name, flat_edges, frame_label, label_lines, nested_lines

MAX_TEXT, MAX_EDGES = 50_000, 500
"""Characters and edges that Mermaid shows unless it is configured otherwise (``maxTextSize``, ``maxEdges``)."""

_PLAIN = frozenset(" _-+.,:=?!/()[]*×·%")


def mermaid(drawing: Drawing) -> str:
    """The text of a .mmd file."""
    lines = ["flowchart TD", *nested_lines(drawing, partial(_node, drawing), partial(_begin, drawing), "end")]
    for edge in flat_edges(drawing):
        label = f'|"{escaped(edge.label)}"|' if edge.label else ""
        lines.append(f"  {box_name(edge.source)} -->{label} {box_name(edge.target)}")
    used = {layer.family for layer in drawing.layers if layer.drawn_in is None}
    for family in FAMILIES.values():
        if family.name in used:
            lines.append(f"  classDef {_class(family.name)} fill:{family.fill},stroke:{family.stroke},color:#15191e")
    severities = {drawing.severity(layer) for layer in drawing.layers}
    if severities & {"error", "warning"}:
        lines.append("  classDef marked stroke:#c62828,stroke-width:3px")
    return "\n".join([*lines, ""])


def _begin(drawing: Drawing, frame: DrawnFrame) -> tuple[str]:
    return (f'subgraph {box_name(~frame.index)} ["{escaped(frame_label(drawing, frame))}"]',)


def _node(drawing: Drawing, item: int) -> str:
    label = "<br/>".join(escaped(line) for line in label_lines(drawing, item))
    if item < 0:
        return f'{box_name(item)}[["{label}"]]'
    layer = drawing.layers[item]
    marked = drawing.severity(layer) in ("error", "warning")
    return f'{box_name(item)}["{label}"]:::{_class(layer.family)}' + (
        f"\n  class {box_name(item)} marked" if marked else ""
    )


def _class(family: str) -> str:
    return f"is_{family}"


def escaped(text: str) -> str:
    """A text in quotes: letters of any script stay, what Mermaid, Markdown or HTML could obey is written as its code
    point."""
    return "".join(letter if letter in _PLAIN or letter.isalnum() else f"#{ord(letter)};" for letter in text)
