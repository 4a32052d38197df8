"""A drawing in Graphviz's language. Source: "DOT Language" of the Graphviz project."""

from __future__ import annotations

from functools import partial

from irexec.tools.graph.drawing import Drawing, DrawnFrame
from irexec.tools.graph.families import FAMILIES
from irexec.tools.graph.flat import box_name, flat_edges, frame_label, label_lines, nested_lines

_COLOURS = {"error": "#c62828", "warning": "#b26a00", "info": "#1f6fc0"}


def dot(drawing: Drawing) -> str:
    """The text of a .dot file."""
    lines = [f"digraph {_quoted(drawing.name)} {{", '  graph [fontname="Helvetica", newrank=true];']
    lines.append('  node [shape=box, style="rounded,filled", fontname="Helvetica", fontsize=11, height=0.3];')
    lines.append('  edge [color="#7c8792", fontname="Helvetica", fontsize=9, arrowsize=0.6];')
    lines += nested_lines(drawing, partial(_node, drawing), partial(_begin, drawing), "}")
    for edge in flat_edges(drawing):
        lines.append(f"  {box_name(edge.source)} -> {box_name(edge.target)} [label={_quoted(edge.label)}];")
    return "\n".join([*lines, "}", ""])


def _begin(drawing: Drawing, frame: DrawnFrame) -> tuple[str, str]:
    style = 'style="rounded,filled"; color="#a9b3bd"; fillcolor="#f5f7f9";'
    return f"subgraph cluster_{frame.index} {{", f"label={_quoted(frame_label(drawing, frame))}; {style}"


def _node(drawing: Drawing, item: int) -> str:
    attributes = {"label": "\\n".join(_escaped(line) for line in label_lines(drawing, item))}
    if item >= 0:
        layer = drawing.layers[item]
        family = FAMILIES[layer.family]
        attributes |= {
            "fillcolor": family.fill,
            "color": family.stroke,
            "tooltip": _escaped(f"{layer.line.path}{layer.line.name}"[:400]),
        }
        severity = drawing.severity(layer)
        if severity:
            attributes |= {"color": _COLOURS[severity], "penwidth": "2.5"}
    else:
        attributes |= {"fillcolor": "#ffffff", "peripheries": "2"}
    written = ", ".join(f'{key}="{text}"' for key, text in attributes.items())
    return f"{box_name(item)} [{written}];"


def _escaped(text: str) -> str:
    return "".join(_ESCAPES.get(letter, letter) for letter in text if letter >= " ")


_ESCAPES = {"\\": "\\\\", '"': '\\"'}


def _quoted(text: str) -> str:
    return f'"{_escaped(text)}"'
