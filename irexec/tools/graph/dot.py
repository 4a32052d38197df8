"""A drawing in Graphviz's language. Source: "DOT Language" of the Graphviz project."""

from __future__ import annotations

from collections.abc import Iterator

from irexec.tools.graph.drawing import Drawing, Frame
from irexec.tools.graph.families import FAMILIES
from irexec.tools.graph.flat import flat_edges, frame_label, label_lines

_COLOURS = {"error": "#c62828", "warning": "#b26a00", "info": "#1f6fc0"}


def dot(drawing: Drawing) -> str:
    """The text of a .dot file."""
    lines = [f"digraph {_quoted(drawing.name)} {{", '  graph [fontname="Helvetica", newrank=true];']
    lines.append('  node [shape=box, style="rounded,filled", fontname="Helvetica", fontsize=11, height=0.3];')
    lines.append('  edge [color="#7c8792", fontname="Helvetica", fontsize=9, arrowsize=0.6];')
    lines += _content(drawing, drawing.frames[0], "  ")
    for edge in flat_edges(drawing):
        lines.append(f"  {_name(edge.source)} -> {_name(edge.target)} [label={_quoted(edge.label)}];")
    return "\n".join([*lines, "}", ""])


def _content(drawing: Drawing, frame: Frame, indent: str) -> Iterator[str]:
    """The boxes of a frame, and in it those of the frames that are not folded."""
    if frame.layer is not None:
        yield f"{indent}{_node(drawing, frame.layer)}"
    for item in frame.items:
        inner = None if item >= 0 else drawing.frames[~item]
        if inner is None or inner.folded:
            yield f"{indent}{_node(drawing, item)}"
            continue
        yield f"{indent}subgraph cluster_{inner.index} {{"
        yield f'{indent}  label={_quoted(frame_label(drawing, inner))}; style="rounded,filled"; color="#a9b3bd"; fillcolor="#f5f7f9";'
        yield from _content(drawing, inner, f"{indent}  ")
        yield f"{indent}}}"


def _node(drawing: Drawing, item: int) -> str:
    attributes = {"label": "\\n".join(_escaped(line) for line in label_lines(drawing, item))}
    if item >= 0:
        layer = drawing.layers[item]
        family = FAMILIES[layer.family]
        attributes |= {"fillcolor": family.fill, "color": family.stroke, "tooltip": _escaped(f"{layer.line.path}{layer.line.name}"[:400])}
        severity = drawing.severity(layer)
        if severity:
            attributes |= {"color": _COLOURS[severity], "penwidth": "2.5"}
    else:
        attributes |= {"fillcolor": "#ffffff", "peripheries": "2"}
    written = ", ".join(f'{key}="{text}"' for key, text in attributes.items())
    return f"{_name(item)} [{written}];"


def _name(item: int) -> str:
    return f"n{item}" if item >= 0 else f"f{~item}"


def _escaped(text: str) -> str:
    return "".join(_ESCAPES.get(letter, letter) for letter in text if letter >= " ")


_ESCAPES = {"\\": "\\\\", '"': '\\"'}


def _quoted(text: str) -> str:
    return f'"{_escaped(text)}"'
